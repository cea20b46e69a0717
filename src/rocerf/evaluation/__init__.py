"""Measuring recourses by retraining."""

from rocerf.evaluation.compare import Comparison, compare
from rocerf.evaluation.metrics import Validity, average_validity, validity_curves, worst_case_validity
from rocerf.evaluation.worst_deletions import WorstDeletions, worst_deletions

__all__ = [
    "Comparison",
    "Validity",
    "WorstDeletions",
    "average_validity",
    "compare",
    "validity_curves",
    "worst_case_validity",
    "worst_deletions",
]
