"""The paper's logistic tables: cost, validity under random deletions, plain counterfactuals."""

from __future__ import annotations

import numpy as np
import pytest

import rocerf
from rocerf.baselines import Scfe
from rocerf.evaluation import validity_curves
from shared_data import SHARED, needs_shared


def check(name: str, path: object, denied: int, cost: float, trials: int) -> None:
    data = rocerf.load_dataset(name, path=path)
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    people = data.test.X[model.predict(data.test.X) == 0]
    assert len(people) == denied
    robust = rocerf.Rocerf(model, "0.5%", promise="first_order").explain(people)
    plain = Scfe(model).explain(people)
    assert robust.answered.all()
    assert robust.costs.mean() == pytest.approx(cost, rel=0.02)
    points = {"robust": robust.matrix, "plain": plain.matrix}
    curves = validity_curves(model, points, [0.005, 0.02, 0.05], trials)
    assert min(v.mean for v in curves["robust"]) >= 0.999
    assert 0.35 < np.mean([v.mean for v in curves["plain"]]) < 0.65


@pytest.mark.slow
@needs_shared
def test_compas() -> None:
    check("compas", SHARED / "openxai", denied=105, cost=0.864, trials=100)


@pytest.mark.slow
def test_adult() -> None:
    check("adult", None, denied=7304, cost=1.054, trials=25)
