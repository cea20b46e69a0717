"""Row effects against finite differences in the weights, leave-one-out refits and a dense inverse."""

from __future__ import annotations

import numpy as np
import pytest

from problems import random_training_set, weighted_objective
from rocerf import LogisticModel, TrainingSet
from rocerf.deletion import row_effects
from rocerf.deletion.row_effects import RowEffects

SETTINGS = [
    pytest.param({"C": 1.0}, id="fixed"),
    pytest.param({"C": 10.0, "fit_intercept": False}, id="no-intercept"),
    pytest.param({"gamma": 0.02}, id="mean"),
    pytest.param({"C": 0.3, "class_weight": {0: 2.0, 1: 0.7}}, id="class-weight"),
]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", SETTINGS)
def test_effects_are_minus_the_derivative_of_the_optimum_in_the_row_s_weight(options: dict, weights: bool) -> None:
    """Lowering the weight of row i from 1 by t moves theta by t v_i: central differences, with BFGS refits."""
    model = LogisticModel.fit(random_training_set(1, n=40, weights=weights), **options)
    effects = RowEffects.of(model).in_training_order()
    step = 1e-2
    for row in (0, 7, 23, 39):
        shifted = []
        for change in (-step, step):
            row_weights = np.ones(len(model.train))
            row_weights[row] += change
            shifted.append(weighted_objective(model, row_weights))
        np.testing.assert_allclose(
            effects[row], (shifted[0] - shifted[1]) / (2 * step), atol=3e-4 * np.abs(effects).max()
        )


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", SETTINGS)
def test_effects_predict_leave_one_out_refits(options: dict, weights: bool) -> None:
    """First order: with every row four times, one row weighs a quarter, and so does the relative error."""
    small = random_training_set(2, n=80, weights=weights)
    ratios = []
    for copies in (1, 4):
        sample_weight = None if small.weights is None else np.tile(small.weights, copies)
        train = TrainingSet(np.tile(small.X, (copies, 1)), np.tile(small.y, copies), sample_weight=sample_weight)
        same_optimum = {name: value / copies if name == "C" else value for name, value in options.items()}
        model = LogisticModel.fit(train, **same_optimum)
        effects = RowEffects.of(model).in_training_order()
        x = model.score_gradient(model.train.X[:20])
        errors, truths = [], []
        for row in range(0, 80, 4):
            truth = model.without([model.train.ids[row]]).theta - model.theta
            errors.append(x @ (effects[row] - truth))
            truths.append(x @ truth)
        ratios.append(np.linalg.norm(errors) / np.linalg.norm(truths))
    assert ratios[0] < 0.3
    assert ratios[1] == pytest.approx(ratios[0] / 4, rel=0.25)


def test_effects_equal_the_dense_inverse_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(3, n=57), C=1.0)
    dense = model.row_gradients() @ np.linalg.inv(model.curvature().hessian)
    for chunk in (1, 10, 57, 1000):
        monkeypatch.setattr(row_effects, "CHUNK", chunk)
        found = RowEffects.of(model, seed=chunk)
        np.testing.assert_allclose(found.in_training_order(), dense, atol=1e-11)
        np.testing.assert_allclose(found.vectors, dense[found.rows], atol=1e-11)
        assert sorted(found.rows.tolist()) == list(range(57))
