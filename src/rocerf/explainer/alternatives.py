"""Several answers for each person that ask for different changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rocerf.models.options import positive_whole
from rocerf.recourse.costs.cost import Cost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.result import Recourses
from rocerf.types import Places, Progress

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.explainer.explainer import Rocerf


def find_alternatives(
    explainer: Rocerf,
    X: ArrayLike | pd.DataFrame,
    most: int,
    progress: Progress | None,
    preparing: Progress | None = None,
    id: str | None = None,
) -> tuple[Recourses, ...]:
    """Up to ``most`` answers for each person of X, as :meth:`rocerf.Rocerf.alternatives` says."""
    positive_whole(most, "most")
    found = [explainer.explain(X, id=id, progress=progress, preparing=preparing)]
    excluded: list[tuple[frozenset[int], ...]] = [()] * len(found[0])
    while len(found) < most and found[-1].answered.any():
        last = found[-1]
        changed = FeasibleSet.around(last.people, last.schema).changed(last.matrix)
        for person in np.flatnonzero(last.answered):
            main = _main_changes(explainer.cost, last, int(person), np.flatnonzero(changed[person]))
            excluded[person] = (*excluded[person], main)
        found.append(explainer.explain_by(explainer.find_points, X, progress, excluded, id=id))
    return tuple(found)


def _main_changes(cost: Cost, found: Recourses, person: int, changed: Places) -> frozenset[int]:
    """Of the attributes that an answer changes, the dearest: without them the rest costs less than half."""
    x0, x = found.people[person], found.matrix[person]
    attributes = found.schema.attributes

    def cost_without(left_out: Iterable[int]) -> float:
        point = x.copy()
        for place in left_out:
            columns = list(attributes[place].places)
            point[columns] = x0[columns]
        return float(cost.of(point[None], x0[None])[0])

    dearest = sorted(changed.tolist(), key=lambda place: cost_without((place,)))
    whole = cost_without(())
    most = next((n for n in range(1, len(dearest)) if cost_without(dearest[:n]) < 0.5 * whole), len(dearest))
    return frozenset(dearest[:most])
