"""Promises: constraints on a point that speak about deletions."""

from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.fresh_starts import FreshStarts
from rocerf.promises.held_out import HeldOut
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Promise, Reading
from rocerf.promises.registry import register_promise
from rocerf.promises.retrained import Retrained
from rocerf.promises.simulated import Simulated

__all__ = [
    "Certified",
    "FirstOrder",
    "FreshStarts",
    "HeldOut",
    "LocalLinear",
    "Plain",
    "Promise",
    "Reading",
    "Retrained",
    "Simulated",
    "register_promise",
]
