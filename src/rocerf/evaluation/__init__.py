"""Measuring recourses by retraining."""

from rocerf.evaluation.compare import Comparison, compare
from rocerf.evaluation.metrics import Validity, average_validity, validity_curves, worst_case_validity

__all__ = ["Comparison", "Validity", "average_validity", "compare", "validity_curves", "worst_case_validity"]
