"""Which model something was found or proven about, in full: what is true of one model says nothing about another.

Two models may share their rows and their scores and still part ways when rows are deleted: ``C`` and
``gamma = 1 / (2 C n)`` have the same parameters today. So everything that retraining depends on is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from rocerf.models.model import Refittable

#: Numbers are the same up to this share of the largest of their column; scores of networks and other estimators, which
#: depend on threads and libraries, up to that.
SAME, SAME_SCORE = 1e-9, 1e-6


@dataclass(frozen=True, eq=False)
class Identity:
    """A model and a number of deletions, as plain values and arrays by what they mean."""

    values: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, model: Refittable, k: int) -> Identity:
        """Of this model and k."""
        values = {
            "kind of model": type(model).__name__,
            "number of deletions": int(k),
            "training rows": model.train.checksum,
            "favourable label": str(model.train.favourable),
            "threshold": model.threshold,
        }
        own, arrays = model.known_by()
        return cls(values | own, arrays)

    def difference(self, other: Identity) -> str | None:
        """What is not the same in the other one, in words; None where all is."""
        for name in (*self.values, *other.values):
            same = _same_threshold if name == "threshold" else _same_value
            if not same(self.values.get(name), other.values.get(name)):
                return f"different {name} ({_shown(other.values.get(name))}, not {_shown(self.values.get(name))})"
        return first_difference(self.arrays, other.arrays)


def first_difference(saved: Mapping[str, NDArray[Any]], own: Mapping[str, NDArray[Any]]) -> str | None:
    """The first array that is not the same, or not in both, in words."""
    for name in (*saved, *own):
        if name not in saved or name not in own:
            return f"{'no' if name in saved else 'its own'} {name}"
        if name == "scores":  # one column: one near zero is no more exact than the others
            same = same_array(saved[name][..., None], own[name][..., None], SAME_SCORE)
        else:
            same = same_array(saved[name], own[name])
        if not same:
            return f"different {name}"
    return None


def same_array(one: NDArray[Any], other: NDArray[Any], share: float = SAME) -> bool:
    """Whether two arrays hold the same, numbers up to a share of the largest of their column.

    Columns have units of their own: what is nothing to one is another number to the next. An array of one dimension
    has one number a column.
    """
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fiub" or other.dtype.kind not in "fiub":
        return bool(np.array_equal(one, other))
    sizes = np.abs(np.where(np.isfinite(one), one, 0.0))
    if one.ndim > 1:
        sizes = sizes.max(axis=tuple(range(one.ndim - 1)), initial=0.0)
    return bool(np.isclose(one, other, rtol=0.0, atol=share * sizes, equal_nan=True).all())


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return same_array(np.array(one), np.array(float(other)))
    return bool(one == other)


def _same_threshold(one: Any, other: Any) -> bool:
    """By what is taken off the log odds: of two thresholds near 1 one can be much the stricter."""
    if one is None or other is None:
        return one is other
    return bool(np.isclose(logit(float(one)), logit(float(other)), rtol=SAME, atol=SAME))


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}..."
