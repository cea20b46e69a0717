"""Columns in units so large or so small that a careless square or floor would lose them, and points that are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rocerf
from problems import random_training_set
from rocerf import Adversary, EstimatorModel, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.errors import DataError, IdError, LabelError


def plain(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Three correlated columns and overlapping classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) + 1.0
    return X, (X @ [1.0, -1.0, 0.5] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("exponent", [-290, -160, -100, -20, -13, -12, 13, 100, 154, 155, 200, 290])
def test_a_table_in_other_units_is_the_same_model(exponent: int) -> None:
    X, y = plain()
    unit = np.array([10.0**exponent, 1.0, 1.0])
    model, other = LogisticModel.fit(TrainingSet(X, y)), LogisticModel.fit(TrainingSet(X * unit, y))
    np.testing.assert_allclose(other.train.spread, model.train.spread * unit, rtol=1e-12)
    np.testing.assert_allclose(other.train.centre, model.train.centre * unit, rtol=1e-12)
    np.testing.assert_allclose(other.score(X * unit), model.score(X), atol=1e-9)
    denied = X[model.predict(X) == 0][:3]
    for promise in ("certified", "retrained"):
        found, same = Rocerf(model, 1, promise=promise).explain(denied), Rocerf(other, 1, promise=promise)
        np.testing.assert_allclose(same.explain(denied * unit).costs, found.costs, rtol=1e-6)


def test_ordinary_spreads_are_numpy_s_to_the_bit() -> None:
    X = random_training_set(3, n=50, d=6).X * 10.0 ** np.arange(-6, 6, 2)
    train = TrainingSet(X, [0, 1] * 25)
    np.testing.assert_array_equal(train.spread, X.std(axis=0))
    np.testing.assert_array_equal(train.centre, X.mean(axis=0))


def test_constant_columns_have_scale_one_and_those_that_hardly_move_their_own() -> None:
    rng = np.random.default_rng(0)
    base = np.array([0.1, 0.0, 1e20, -1e-200])
    train = TrainingSet(np.tile(base, (40, 1)), [0, 1] * 20)
    np.testing.assert_array_equal(train.spread, 1.0)
    np.testing.assert_array_equal(train.centre, base)
    moves = 1e15 + 100.0 * rng.normal(size=(40, 1))  # a millionth of a millionth of its size, and no rounding
    assert TrainingSet(moves, [0, 1] * 20).spread[0] == pytest.approx((moves - 1e15).std(), rel=1e-3)
    for size in (0.3, 1e-150, 1e20):  # sums that differ in their last digits are one number
        noise = size * np.where(rng.random((40, 1)) < 0.5, 1.0, 1.0 + 2e-16)
        assert TrainingSet(noise, [0, 1] * 20).spread[0] >= 0.5 * max(1.0, size)


@pytest.mark.parametrize("exponent", [-307, -302, 302, 307])
def test_what_cannot_be_divided_by_is_refused_by_name(exponent: int) -> None:
    X, y = plain()
    table = pd.DataFrame(X * [1.0, 10.0**exponent, 1.0], columns=["a", "b", "c"])
    with pytest.raises(DataError, match=r"in 'b'; give that column in another unit"):
        LogisticModel.fit(TrainingSet(table, y))


@pytest.mark.parametrize("exponent", [155, 200, 300])
def test_raw_columns_whose_squares_are_no_numbers_are_refused_by_name(exponent: int) -> None:
    X, y = plain()
    table = pd.DataFrame(X * [1.0, 10.0**exponent, 1.0], columns=["a", "b", "c"])
    with pytest.raises(DataError, match=r"squares are numbers .* in column b; scale"):
        LogisticModel.fit(TrainingSet(table, y), scale=False)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_no_numbers_are_neither_attacked_nor_counted(bad: float) -> None:
    X, y = plain(30)
    model = LogisticModel.fit(TrainingSet(pd.DataFrame(X, columns=["a", "b", "c"]), y))
    point = X[0].copy()
    point[1] = bad
    for points in (point, point[None], np.vstack([X[:2], point]), pd.DataFrame([point], columns=["a", "b", "c"])):
        with pytest.raises(DataError, match=r"got .* in 'b' of row"):
            Adversary(model, 1).attack(points)
    with pytest.raises(DataError, match=r"'b' of row 2"):
        Rocerf(model, 1).removal_budget(np.vstack([X[:2], point]), most=1)
    with pytest.raises(DataError, match="missing altogether"):
        Adversary(model, 1).attack(np.full((1, 3), np.nan))
    # A row of nothing is an answer that was not given, as explain hands it out.
    budget = Rocerf(model, 1).removal_budget(np.vstack([X[model.score(X) > 1][:1], np.full(3, np.nan)]), most=1)
    assert budget.found.tolist()[1] == -1
    assert budget.found.tolist()[0] >= 0


def masked(values: np.ndarray, *places: tuple[int, ...]) -> np.ma.MaskedArray:
    """The values with some of them masked."""
    found = np.ma.masked_array(values.copy(), mask=np.zeros(values.shape, bool))
    for place in places:
        found[place] = np.ma.masked
    return found


def test_masked_training_values_are_missing_and_refused() -> None:
    X, y = plain(20)
    for table in (masked(X, (3, 1)), list(masked(X, (3, 1))), masked(X.round().astype(int), (3, 1))):
        with pytest.raises(DataError, match=r"nan in row 3, column number 1"):
            TrainingSet(table, y)
    for labels in (masked(y, (4,)), masked(np.where(y == 1, "yes", "no"), (4,))):
        with pytest.raises(LabelError, match="1 missing"):
            TrainingSet(X, labels, favourable=1 if labels.dtype.kind == "i" else "yes")
    with pytest.raises(DataError, match="sample weights"):
        TrainingSet(X, y, sample_weight=masked(np.ones(20), (2,)))
    with pytest.raises(IdError, match="missing"):
        TrainingSet(X, y, ids=masked(np.arange(20), (2,)))
    whole = TrainingSet(masked(X), masked(y), ids=masked(np.arange(20)))
    np.testing.assert_array_equal(whole.X, X)
    assert (whole.unfavourable, whole.ids.tolist()) == (0, list(range(20)))


def test_masked_values_of_people_are_missing() -> None:
    X, y = plain(30)
    train = TrainingSet(X, y)
    model = LogisticModel.fit(train)
    estimator = EstimatorModel.from_sklearn(LogisticRegression(tol=1e-8).fit(X, y), train)
    people = masked(X[model.predict(X) == 0][:3], (1, 2))
    recourses = Rocerf(model, 1).explain(people)
    assert recourses.statuses[1] is Status.INVALID_INPUT
    assert "x2" in recourses.reasons[1]
    assert recourses.answered[[0, 2]].all()
    for each in (model, estimator):
        assert np.isnan(each.score(people)[1])
        assert np.isfinite(each.score(people)[[0, 2]]).all()
    for points in (people, people[1]):
        with pytest.raises(DataError, match="'x2'"):
            Adversary(model, 1).attack(points)


def test_masked_values_are_missing_for_a_pipeline_s_schema_space_too() -> None:
    X, y = plain(30)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = rocerf.from_pipeline(make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8)).fit(frame, y), frame, y)
    assert np.isnan(model.score(masked(X[:3], (1, 2)))[1])
    with pytest.raises(LabelError, match="1 missing"):
        rocerf.from_pipeline(
            make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y), frame, masked(y, (3,))
        )
