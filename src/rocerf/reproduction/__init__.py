"""The paper's study: its experiment as resumable jobs, its tables, figures and report."""

from rocerf.reproduction.runner import Reproduction, reproduce
from rocerf.reproduction.settings import ExperimentSettings

__all__ = ["ExperimentSettings", "Reproduction", "reproduce"]
