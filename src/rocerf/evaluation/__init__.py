"""Measuring recourses by retraining."""

from rocerf.evaluation.metrics import Validity, average_validity, validity_curves

__all__ = ["Validity", "average_validity", "validity_curves"]
