"""Promises: constraints on a point that speak about deletions."""

from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Promise, Reading, Wording
from rocerf.promises.retrained import Retrained

__all__ = ["Certified", "FirstOrder", "Plain", "Promise", "Reading", "Retrained", "Wording"]
