"""Proven lower bounds of a score over *all* deletions of at most k training rows; docs/certificate.md has the proof."""

from rocerf.deletion.certificate.certificate import Certificate
from rocerf.deletion.certificate.options import Options
from rocerf.deletion.certificate.proving import certify, certify_model, largest_k_that_closes

__all__ = ["Certificate", "Options", "certify", "certify_model", "largest_k_that_closes"]
