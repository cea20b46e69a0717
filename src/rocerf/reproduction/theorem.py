"""A check of Theorems 4.1 and 4.2: what robustness costs, against k/n, for growing training sets.

The model is the one the theorems speak of: logistic regression with the *mean* penalty, ``(1/n) sum_i (loss_i + gamma
theta'P theta)``. Under scikit-learn's fixed penalty the constant would change with n. The extra cost is the mean cost
of `first_order` with margin 0 minus that of the plain counterfactual.

**The bound, with nothing left unnamed.** Let ``w`` be the slopes over standardised columns (cost is measured there),
``v_i = H^-1 g_i`` with the total Hessian, and ``x~`` a point with its 1 for the intercept. For k deletions the estimate
of the score falls at x by at most ``|x~| k max_i |v_i|``, that is ``(k/n) C_2 |x~|`` with ``C_2 = n max_i |v_i|``. C_2
is free of n as far as the rows are bounded, which the theorem assumes; measured, it grows a little, since more rows
hold a more extreme one. From the plain point ``x_p`` go t along ``w/|w|``: the score rises by ``t |w|`` and ``|x~|`` by
at most t, so the constraint holds from

    t = (k/n) C_2 |x~_p| / (|w| - (k/n) C_2)                                                   (Theorem 4.1)

on: the theorem's ``k C / (n |theta|)`` with ``C = C_2 B``, except that B is not assumed to bound the moved point too.
The ``C_1`` of the theorem buys validity through a margin; with margin 0 it has no part in the cost. Theorem 4.2, for a
linear score, is the same with ``C_2 = max_i |g_i| |(H/n)^-1|`` (its C_2 C_4), a looser constant. Its strongly convex
case does not arise, since a linear score is not strongly convex; as printed it drops a square, and the bound should
read ``sqrt(2kC/(n mu))``. Where k/n is so large that the denominator is not positive, this version of the bound ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rocerf.baselines.scfe import Scfe
from rocerf.data.datasets import load_dataset
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.logistic.model import LogisticModel
from rocerf.types import Array

#: The table whose first rows, in a random order, are the growing training sets.
TABLE = "adult"

#: The mean penalty of each row.
GAMMA = 1e-3


def extra_costs(
    n: int, ks: Sequence[int], *, people: int = 100, seed: int = 0, gamma: float = GAMMA
) -> list[dict[str, Any]]:
    """One row for each k on n training rows: extra cost and both bounds, means over denied test people.

    >>> (row,) = extra_costs(1000, [1], people=5)
    >>> 0 < row["extra_cost"] <= row["bound"] <= row["bound_42"]
    True
    """
    data = load_dataset(TABLE)
    if n > len(data.train):
        raise OptionError(f"Expected at most the {len(data.train)} rows of {TABLE}, got n={n}; use fewer.")
    chosen = np.random.default_rng([seed, 41]).permutation(len(data.train))[:n]
    labels = np.where(data.train.y[chosen] > 0, 1, 0)
    model = LogisticModel.fit(TrainingSet(data.train.X[chosen], labels), gamma=gamma)
    denied = data.test.X[model.predict(data.test.X) == 0][:people]
    plain = Scfe(model).explain(denied)
    constants = _constants(model)
    rows = []
    for k in ks:
        robust = Rocerf(model, k, promise="first_order").explain(denied)
        both = plain.answered & robust.answered
        lengths = np.sqrt((model.score_gradient(plain.matrix[both]) ** 2).sum(axis=1))
        row = {
            "n": n,
            "k": k,
            "k_over_n": k / n,
            "extra_cost": float((robust.costs[both] - plain.costs[both]).mean()),
            "bound": _bound(k / n, constants["C_2"], constants["norm"], lengths),
            "bound_42": _bound(k / n, constants["C_2_of_42"], constants["norm"], lengths),
            "constant": constants["C_2"],
            "slope_norm": constants["norm"],
            "people": int(both.sum()),
        }
        rows.append(row)
    return rows


def _constants(model: LogisticModel) -> dict[str, float]:
    """``C_2`` of either theorem, and ``|w|``."""
    n, gradients = len(model.train), model.row_gradients()
    effects = model.curvature().solve(gradients)
    inverse = np.linalg.norm(model.curvature().solve(np.eye(len(model.theta))), 2)
    return {
        "C_2": n * float(np.sqrt((effects**2).sum(axis=1).max())),
        "C_2_of_42": n * float(inverse) * float(np.sqrt((gradients**2).sum(axis=1).max())),
        "norm": float(np.linalg.norm(model.theta[:-1])),
    }


def _bound(share: float, constant: float, norm: float, lengths: Array) -> float | None:
    """Mean over people of the t of the module's docstring; None where there is none."""
    room = norm - share * constant
    return float(share * constant * lengths.mean() / room) if room > 0 else None
