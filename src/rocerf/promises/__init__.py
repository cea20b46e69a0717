"""Promises: constraints on a point that speak about deletions."""

from rocerf.promises.first_order import FirstOrder
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Promise, Reading, Wording

__all__ = ["FirstOrder", "Plain", "Promise", "Reading", "Wording"]
