"""The first-order promise against the formula written out, one person and one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.deletion import row_effects
from rocerf.deletion.row_effects import StreamedRowEffects
from rocerf.promises import FirstOrder, Plain

OPTIONS = [{"C": 1.0}, {"gamma": 0.02}, {"C": 5.0, "fit_intercept": False, "threshold": 0.6}]


def plain_value(model: LogisticModel, x: np.ndarray, k: int) -> tuple[float, list[str]]:
    """f_A(x) with a dense inverse and a sort, straight from the definition; and the worst rows."""
    inverse = np.linalg.inv(model.curvature().hessian)
    beta = model.score_gradient(x[None])[0]
    effects = [(beta @ inverse @ g, row_id) for g, row_id in zip(model.row_gradients(), model.train.ids, strict=True)]
    worst = sorted(pair for pair in effects if pair[0] < 0)[:k]
    return float(model.score(x[None])[0] + sum(v for v, _ in worst)), [row_id for _, row_id in worst]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("k", [0, 1, 5, 59])
def test_value_and_worst_rows_follow_the_definition(options: dict, k: int) -> None:
    model = LogisticModel.fit(random_training_set(1), **options)
    X = model.train.X[:8]
    reading = FirstOrder(model, k).read(X)
    for j, x in enumerate(X):
        value, worst = plain_value(model, x, k)
        assert reading.values[j] == pytest.approx(value, abs=1e-9)
        assert reading.worst_ids(j).tolist() == worst


@pytest.mark.parametrize("options", OPTIONS)
def test_cuts_lie_above_the_value_everywhere_and_touch_it(options: dict) -> None:
    model = LogisticModel.fit(random_training_set(2), **options)
    promise = FirstOrder(model, 4)
    rng = np.random.default_rng(0)
    at = model.train.X[:10] + rng.normal(size=(10, 3)) * model.train.spread
    elsewhere = model.train.X + 3 * rng.normal(size=model.train.X.shape) * model.train.spread
    reading = promise.read(at)
    slopes, constants = reading.cuts(at)
    np.testing.assert_allclose(np.einsum("ij,ij->i", slopes, at) + constants, reading.values, atol=1e-9)
    gaps = elsewhere @ slopes.T + constants - promise.read(elsewhere).values[:, None]
    assert gaps.min() > -1e-9


def test_slopes_match_finite_differences() -> None:
    model = LogisticModel.fit(random_training_set(3), C=1.0)
    promise = FirstOrder(model, 3)
    x = refused_people(model, 0, 5)
    for j, spread in enumerate(model.train.spread):
        step = np.zeros(3)
        step[j] = 1e-7 * spread
        difference = (promise.read(x + step).values - promise.read(x - step).values) / (2 * step[j])
        np.testing.assert_allclose(promise.read(x).slopes[:, j], difference, rtol=1e-4)


def test_the_deployed_model_must_accept_too() -> None:
    """A loosely converged scikit-learn model judges people today: the promise includes its own decision."""
    train = random_training_set(4, n=300)
    X = (train.X - train.X.mean(0)) / train.spread
    loose = LogisticRegression(tol=1e-3).fit(X, train.y)
    model = LogisticModel.from_sklearn(loose, TrainingSet(X, train.y))
    assert np.abs(model.theta - model.deployed_theta).max() > 1e-6
    reading = Plain(model).read(X)
    np.testing.assert_allclose(reading.values, np.minimum(model.score(X), loose.decision_function(X)), atol=1e-12)
    robust = FirstOrder(model, 1).read(X).values
    assert (robust <= loose.decision_function(X) + 1e-12).all()


def test_a_class_that_can_vanish_makes_the_promise_impossible() -> None:
    rng = np.random.default_rng(0)
    train = TrainingSet(rng.normal(size=(30, 2)), [1] * 27 + [0] * 3)
    model = LogisticModel.fit(train)
    assert FirstOrder(model, 2).impossible() is None
    assert "labelled 0" in (FirstOrder(model, 3).impossible() or "")
    assert FirstOrder(LogisticModel.fit(train, fit_intercept=False), 3).impossible() is None


@pytest.mark.parametrize(("room", "at_once"), [(2**27, 2**21), (8 * 4 * 40, 2**21), (2**27, 100)])
def test_readings_of_few_rows_are_never_below_the_promise(
    room: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their cuts hold for everybody, also where there is no room for all rows that mattered, or they are too many."""
    monkeypatch.setattr(row_effects, "NOTED_BYTES", room)
    monkeypatch.setattr(row_effects, "NOTED_AT_ONCE", at_once)
    model = LogisticModel.fit(random_training_set(4, n=400), C=1.0)
    streamed, kept = FirstOrder(model, 12), FirstOrder(model, 12)
    streamed.effects = StreamedRowEffects(model)
    assert streamed.relaxes
    assert not kept.relaxes
    rng = np.random.default_rng(0)
    at = model.train.X[:10] + rng.normal(size=(10, 3)) * model.train.spread
    nowhere = np.full_like(at, np.nan)
    np.testing.assert_allclose(streamed.read_above(at, nowhere).values, Plain(model).read(at).values)
    np.testing.assert_allclose(streamed.read(at).values, kept.read(at).values, atol=1e-9)
    few, edges = streamed.effects.few, streamed.effects.edges
    kept_rows = few.rows if few is not None else edges
    assert kept_rows is not None
    assert 0 < len(kept_rows) <= room // (8 * 4)
    assert (few is None) == (room < 2**20 or at_once == 100)
    elsewhere = model.train.X + 3 * rng.normal(size=model.train.X.shape) * model.train.spread
    for points in (at, at + 0.3 * model.train.spread):
        above = streamed.read_above(points, at)
        assert (above.values >= kept.read(points).values - 1e-9).all()
        slopes, constants = above.cuts(points)
        gaps = elsewhere @ slopes.T + constants - kept.read(elsewhere).values[:, None]
        assert gaps.min() > -1e-9
        if points is at:  # these very rows were read
            np.testing.assert_allclose(above.values, kept.read(points).values, atol=1e-9)


@pytest.mark.parametrize(("room", "at_once"), [(2**27, 2**21), (8 * 7 * 120, 2**21), (2**27, 100)])
def test_streamed_effects_are_asked_a_few_times_for_the_same_recourses(
    room: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there is no room for all rows that mattered, or they are too many to be held against each other."""
    monkeypatch.setattr(row_effects, "NOTED_BYTES", room)
    monkeypatch.setattr(row_effects, "NOTED_AT_ONCE", at_once)
    train = random_training_set(5, n=2000, d=6)
    model = LogisticModel.fit(train, C=1.0)
    people = refused_people(model, 1, 12)
    expected = Rocerf(model, 40, promise="first_order").explain(people)
    calls: list[int] = []
    whole = StreamedRowEffects.worst
    monkeypatch.setattr(StreamedRowEffects, "worst", lambda *given: calls.append(len(given[1])) or whole(*given))
    explainer = Rocerf(model, 40, promise="first_order")
    explainer.promise.effects = StreamedRowEffects(model)  # type: ignore[attr-defined]
    found = explainer.explain(people)
    assert expected.answered.any()
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-6)
    assert (FirstOrder(model, 40).read(found.matrix[found.answered]).values >= 0).all()
    assert len(calls) <= 7
