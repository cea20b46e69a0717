"""The table "Which models, which promises" held against trying each cell, where trying takes seconds."""

from __future__ import annotations

import numpy as np
import pytest
from tools.recorded_figures import _models, models_table

from rocerf import LogisticModel, Rocerf, Status
from rocerf.errors import RocerfError
from rocerf.promises.registry import PROMISES


def test_a_cell_says_yes_where_an_answer_is_given_and_nothing_where_it_is_refused() -> None:
    rows = [line.strip("|").split("|")[1:] for line in models_table().splitlines()[2:]]
    tried = 0
    for (said, model), cells in zip(_models(), rows, strict=True):
        if not isinstance(model, LogisticModel):  # forests and networks are retrained for minutes
            continue
        X = np.asarray(model.train.X)
        refused = X[model.predict(X) == 0][:1]
        for name, cell in zip(PROMISES, cells, strict=True):
            tried += 1
            if cell.strip():
                recourses = Rocerf(model, 1, promise=name).explain(refused)
                assert recourses.statuses[0] is Status.ANSWERED, (said, name)
                assert (model.predict(recourses.matrix) == 1).all(), (said, name)
            else:
                with pytest.raises(RocerfError, match="Expected"):
                    Rocerf(model, 1, promise=name).explain(refused)
    assert tried == 6 * len(PROMISES)
