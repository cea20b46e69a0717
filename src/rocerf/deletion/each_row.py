"""Every row deleted alone: where a fit costs little and comes out the same each time, what guesses can only guess."""

from __future__ import annotations

import numpy as np

from rocerf.deletion.efforts import EFFORTS
from rocerf.deletion.groups import Groups
from rocerf.models.model import Proposing
from rocerf.types import Array, Places, Progress

#: What this search is called.
EACH_ROW = "each row"

#: What the fits start from; it makes no difference to them.
SEED = 0

#: Where a model keeps them. A table of models elsewhere would keep the models, which these refer to.
KEPT_AS = "_each_row_alone"


def rows_tried_alone(model: Proposing, effort: str, *, random: bool) -> int:
    """How many rows are deleted alone: none where they are many, or training again gives another model each time."""
    rows = len(model.train)
    return 0 if random or rows > EFFORTS[effort].groups.each_row else rows


def each_row_alone(model: Proposing, progress: Progress | None = None) -> Groups:
    """A model without each row: retrained once and kept with the model, as they come out alike whoever asks."""
    found: Groups | None = vars(model).get(KEPT_AS)
    if found is None:
        sets = [np.array([row], np.intp) for row in range(len(model.train))]
        found = Groups().retrain(model, sets, 1, seed=SEED, starts=1, progress=progress)
        setattr(model, KEPT_AS, found)
    return found


def harmful_alone(alone: Groups, X: Array, values: Array, known: Groups) -> tuple[list[Places], Array]:
    """Rows not yet known that alone bring points (P, d) below their values (P,); and how harmful each is, (P, n)."""
    scores = alone.outcomes(X).means
    lower = np.unique(scores.argmin(axis=0)[scores.min(axis=0) < values])
    before = {rows.tobytes() for rows in known.sets}
    new = [alone.sets[row] for row in lower.tolist() if alone.sets[row].tobytes() not in before]
    return new, np.asarray((scores - known.of(0).scores(X)[:1]).T)
