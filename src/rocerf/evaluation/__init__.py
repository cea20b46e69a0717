"""Measuring recourses by retraining."""

from rocerf.evaluation.compare import Comparison, compare
from rocerf.evaluation.metrics import Validity, average_validity, validity_curves, worst_case_validity
from rocerf.evaluation.runner import Reproduction, reproduce
from rocerf.evaluation.settings import ExperimentSettings

__all__ = [
    "Comparison",
    "ExperimentSettings",
    "Reproduction",
    "Validity",
    "average_validity",
    "compare",
    "reproduce",
    "validity_curves",
    "worst_case_validity",
]
