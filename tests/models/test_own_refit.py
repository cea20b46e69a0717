"""The user's own estimator fitted again: the same as scikit-learn's own refit, as a half-space of schema space."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import rocerf
from own_fits import PIPELINES, fitted, loans
from rocerf import LogisticModel
from rocerf.errors import OptionError, UnsupportedModelError

ROWS = np.array([3, 17, 40])


@pytest.mark.parametrize("rule", ["frozen", "refitted"])
@pytest.mark.parametrize("name", ["minmax", "liblinear", "class weights"])
def test_it_is_what_scikit_learn_fits_from_scratch(name: str, rule: Any) -> None:
    frame, y = loans()
    pipeline = fitted(PIPELINES[name], frame, y)
    own = rocerf.from_pipeline(pipeline, frame, y, preprocessing=rule, threshold=0.6).own_refit
    kept = np.delete(np.arange(len(y)), ROWS)
    if rule == "refitted":
        # an open random state is settled by us, so the truth has the same one
        state = own.fitted_without(ROWS)[-1].random_state
        scratch = fitted(pipeline.set_params(logisticregression__random_state=state), frame.iloc[kept], y[kept])
    else:
        last = own.fitted_without(ROWS)[-1]
        scratch = make_pipeline(pipeline[:-1], fitted(last, pipeline[:-1].transform(frame.iloc[kept]), y[kept]))
    people = loans(50, seed=2)[0]
    truth = scratch.decision_function(people) - np.log(0.6 / 0.4)
    again = own.without(ROWS)
    X = rocerf.from_pipeline(pipeline, frame, y).matrix(people)
    np.testing.assert_allclose(X @ again.slopes + again.constant, truth, atol=1e-9)
    np.testing.assert_allclose(again.scores(X), truth, atol=1e-12)
    np.testing.assert_allclose(own.halfspaces([ROWS]).scores(X)[0], truth, atol=1e-9)


def test_labels_weights_and_warm_start_are_the_users() -> None:
    frame, y = loans()
    X, labels, weights = (
        frame[["income", "debt"]].to_numpy() / 20,
        np.where(y == 1, "no", "yes"),
        np.arange(300) % 3 + 1.0,
    )
    lr = LogisticRegression(warm_start=True, tol=3e-3).fit(X, labels, sample_weight=weights)
    model = LogisticModel.from_sklearn(lr, rocerf.TrainingSet(X, labels, favourable="no"), sample_weight=weights)
    kept = np.delete(np.arange(300), ROWS)
    truth = LogisticRegression(tol=3e-3).fit(X[kept], labels[kept], sample_weight=weights[kept])
    assert truth.classes_[0] == "no"
    np.testing.assert_allclose(model.own_refit.without(ROWS).scores(X), -truth.decision_function(X), atol=1e-12)
    assert not model.own_refit.fitted_without(ROWS).warm_start
    drawn = [model.train.ids[ROWS]]
    np.testing.assert_allclose(model.refitted(drawn).scores(X)[0], -truth.decision_function(X), atol=1e-9)
    exact = model.with_retraining("exact").refitted(drawn).scores(X)[0]
    np.testing.assert_allclose(exact, model.without(model.train.ids[ROWS]).score(X), atol=1e-9)
    assert np.abs(exact + truth.decision_function(X)).max() > 1e-4


def test_fits_that_do_not_converge_are_counted_not_told() -> None:
    frame, y = loans()
    X = frame[["income", "debt"]].to_numpy() / 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lr = LogisticRegression(max_iter=6, tol=1e-8).fit(X, y)
    own = LogisticModel.from_sklearn(lr, rocerf.TrainingSet(X, y)).own_refit
    own.without(ROWS)
    assert (own.refits, own.unconverged) == (1, 1)


def test_who_retrains_is_a_property_of_the_model() -> None:
    frame, y = loans()
    pipeline = fitted(PIPELINES["minmax"], frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, retraining="exact")
    assert model.retraining == "exact"
    assert model.own_refit is None
    assert any("model.without" in said for said in model.assumptions())
    assert model.with_retraining("own").own_refit is not None
    assert model.with_retraining("own").without([3]).own_refit is None  # what we retrained is ours
    ours = LogisticModel.fit(model.train)
    assert ours.retraining is None
    assert ours.own_refit is None
    with pytest.raises(OptionError, match=r"'own'.*'exact'"):
        rocerf.from_pipeline(pipeline, frame, y, retraining="mine")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="taken over from scikit-learn"):
        ours.with_retraining("own")
    with pytest.raises(UnsupportedModelError, match="rows that are left"):
        model.with_retraining("own").own_refit.without(np.flatnonzero(y == 1))
