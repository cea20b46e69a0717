"""Proofs about the rows that a pipeline itself makes, in the arithmetic in which it makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import rocerf
from pipelines import ONE_HOT, applicants, classifier, columns, fitted, model_of
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.promises import Certified
from rocerf.storage.state import State


def far_from_zero(seed: int, ratio: float, dtype: str, n: int = 40) -> tuple[Any, pd.DataFrame, np.ndarray]:
    """Two columns whose mean is ``ratio`` times their spread, of this type; a pipeline fitted on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (rng.random(n) < expit(X @ [1.5, -1.0])).astype(int)
    frame = pd.DataFrame((X + ratio).astype(dtype), columns=["a", "b"])
    # Near the end of float32's digits newton-cholesky's line search fails by chance; lbfgs stops before.
    solver = {"solver": "lbfgs", "tol": 1e-4} if dtype == "float32" else {}
    return fitted(make_pipeline(StandardScaler(), classifier(**solver)), frame, y), frame, y


def every_single_deletion(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Parameters of the model with C = 1 and after each deletion of one row, (n + 1, p); plain Newton on these rows."""
    penalty = np.append(np.ones(Z.shape[1] - 1), 0.0)
    theta, found = np.zeros(Z.shape[1]), []
    for gone in range(-1, len(Z)):
        left = np.arange(len(Z)) != gone
        rows, labels, theta = Z[left], y[left], theta.copy()
        for _ in range(50):
            chance = expit(rows @ theta)
            gradient = rows.T @ (chance - labels) + penalty * theta
            step = np.linalg.solve((rows * (chance * (1 - chance))[:, None]).T @ rows + np.diag(penalty), gradient)
            theta -= step
            if np.abs(step).max() < 1e-12:
                break
        found.append(theta)
    return np.array(found)


def images(pipeline: Any, frame: pd.DataFrame) -> np.ndarray:
    """What the pipeline's classifier sees, in double precision, with the 1 of the intercept."""
    seen = pipeline[:-1].transform(frame)
    return np.column_stack([np.asarray(seen, np.float64), np.ones(len(frame))])


def worst_scores(pipeline: Any, frame: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """The lowest score of rows over all deletions of one row, everything in the rows that the pipeline makes."""
    return (images(pipeline, rows) @ every_single_deletion(images(pipeline, frame), y).T).min(axis=1)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_certified_survives_every_deletion_in_the_pipeline_s_own_rows_or_is_refused(seed: int) -> None:
    # In float32 about half of these were certified and broken, by up to 0.08.
    ratio = 10.0 ** np.random.default_rng(seed).uniform(3, 6)
    for dtype in ("float32", "float64"):
        pipeline, frame, y = far_from_zero(seed, ratio, dtype)
        model = model_of(pipeline, frame, y)
        denied = frame[model.predict(frame) == 0].iloc[:5]
        if dtype == "float32":
            with pytest.raises(UnsupportedModelError, match=r"32 bits.*float64"):
                Rocerf(model, 1, promise="certified")
            continue
        recourses = Rocerf(model, 1, promise="certified").explain(denied)
        assert recourses.certified.all()
        truth = worst_scores(pipeline, frame, y, recourses.points)
        assert (truth >= recourses.margins - 1e-9).all()
        assert (truth >= 0).all()


@pytest.mark.parametrize("seed", [4, 5, 8])
def test_where_the_stand_in_is_far_off_the_bound_is_of_what_the_pipeline_makes(seed: int) -> None:
    # With a mean of 1e10 to 1e12 spreads the affine stand-in is off by up to 1e-4, in float64, too.
    pipeline, frame, y = far_from_zero(seed, 10.0 ** np.random.default_rng(seed).uniform(10, 12), "float64")
    model = model_of(pipeline, frame, y)
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(frame.to_numpy().mean(axis=0) + 2 * rng.normal(size=(300, 2)), columns=["a", "b"])
    promise = Certified(model, 1)
    truth = worst_scores(pipeline, frame, y, rows)
    # What rounding of these sums alone can do is 1e-13; the certificate's error radii for k = 1 are about 1e-9.
    assert (promise.bound(rows) <= np.minimum(truth, pipeline.decision_function(rows)) + 1e-9).all()
    assert (promise.bound(rows) >= np.minimum(truth, pipeline.decision_function(rows)) - 1e-6).all()
    off = np.abs(model.score(rows) - images(pipeline, rows) @ model.theta).max()
    assert off > 1e-7  # else this test would show nothing
    # What the solver reads, at the stand-in, is lower by what the two may differ by: no point is lost at the end.
    reading = promise.read(model.matrix(rows))
    assert (reading.values <= promise.bound(rows) + 1e-9).all()
    allowance, steepness = promise._allowance(model.matrix(rows))
    assert (allowance > 0).all()
    others = model.matrix(rows)[::-1]
    along = (steepness * (others - model.matrix(rows))).sum(axis=1)
    assert (promise._allowance(others)[0] >= allowance + along - 1e-9 * allowance).all()  # convex, with these slopes


def test_theta_that_is_not_the_optimum_of_the_pipeline_s_rows_is_made_up_for() -> None:
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=(30, 2)), np.ones(30)])
    y = (rng.random(30) < expit(Z @ [1.0, -1.0, 0.2])).astype(float)
    truth = every_single_deletion(Z, y)
    penalty = np.array([1.0, 1.0, 0.0])
    points = np.column_stack([3 * rng.normal(size=(50, 2)), np.ones(50)])
    for size in (0.0, 1e-6, 1e-3):
        for k in (1, 2):
            made = rocerf.deletion.certificate.certify(Z, y, truth[0] + size * rng.normal(size=3), penalty, k)
            assert made.closed
            assert (made.lower(points) <= (points @ truth.T).min(axis=1) + 1e-9).all()


def test_the_training_design_is_what_the_pipeline_makes_to_the_bit() -> None:
    frame, y = applicants(80, missing=False)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT, sparse_threshold=0.0), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    np.testing.assert_array_equal(model.training_design(), images(pipeline, frame))
    rows, own = model.own_design(frame)
    assert own.all()
    np.testing.assert_array_equal(rows, images(pipeline, frame))
    np.testing.assert_array_equal(model.own_design(model.matrix(frame))[0], rows)
    later = model.without(frame.index[:7])
    np.testing.assert_array_equal(later.training_design(), images(pipeline, frame)[7:])
    between = model.matrix(frame)[:2].mean(axis=0)[None]  # half a job: no row of the user's columns
    rows, own = model.own_design(between)
    assert not own.any()
    np.testing.assert_array_equal(rows, model.design(between))
    ours = LogisticModel.fit(TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    np.testing.assert_array_equal(ours.training_design(), ours.design(ours.train.X))


def test_a_model_from_a_file_knows_the_rows_and_allows_for_the_pipeline_it_does_not_have(tmp_path) -> None:
    pipeline, frame, y = far_from_zero(5, 3e10, "float64")
    model = model_of(pipeline, frame, y)
    model.save(tmp_path / "model.npz")
    again = LogisticModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.training_design(), model.training_design())
    promise = Certified(again, 1)
    assert "not at hand" in " ".join(promise.assumptions)
    assert "not at hand" not in " ".join(Certified(model, 1).assumptions)
    rng = np.random.default_rng(1)
    for far in (1.0, 30.0, 1000.0):  # the farther, the more an error of the slopes weighs
        rows = pd.DataFrame(frame.to_numpy().mean(axis=0) + far * rng.normal(size=(200, 2)), columns=["a", "b"])
        truth = worst_scores(pipeline, frame, y, rows)
        assert (promise.bound(rows) <= truth + 1e-9 * far).all()
    connected = LogisticModel.load(tmp_path / "model.npz", pipeline=pipeline)
    np.testing.assert_allclose(Certified(connected, 1).bound(frame), Certified(model, 1).bound(frame), atol=1e-9)


def test_a_file_that_does_not_say_what_the_pipeline_made_carries_no_proof(tmp_path) -> None:
    pipeline, frame, y = far_from_zero(0, 10.0, "float64")
    model_of(pipeline, frame, y).save(tmp_path / "model.npz")
    state = State.from_bytes((tmp_path / "model.npz").read_bytes())
    others = {name: array for name, array in state.arrays.items() if name != "images"}
    replace(state, arrays=others).write(tmp_path / "old.npz")
    with pytest.raises(UnsupportedModelError, match="pipeline="):
        Certified(LogisticModel.load(tmp_path / "old.npz"), 1)
    assert Certified(LogisticModel.load(tmp_path / "old.npz", pipeline=pipeline), 1).impossible() is None


def test_narrow_numbers_are_said_wherever_they_are_not_refused(tmp_path) -> None:
    pipeline, frame, y = far_from_zero(1, 30.0, "float32")
    model = model_of(pipeline, frame, y)
    for promise in ("retrained", "first_order"):
        said = " ".join(Rocerf(model, 1, promise=promise).settings().assumptions)
        assert "computes in 32 bits" in said
    own = pipeline.decision_function(frame).astype(np.float64)
    gap = np.abs(own - model.design(model.train.X) @ model.deployed_theta).max()
    assert model.arithmetic.score_error == pytest.approx(gap, rel=1e-6, abs=1e-12)
    assert 0 < model.arithmetic.score_error < 0.5
    model.save(tmp_path / "m.npz")
    for other in (model.without(frame.index[:1]), LogisticModel.load(tmp_path / "m.npz")):
        assert other.arithmetic.narrow
        with pytest.raises(UnsupportedModelError, match="float64"):
            Certified(other, 1)
    wide = frame.astype("float64")
    assert not model_of(fitted(pipeline, wide, y), wide, y).arithmetic.narrow


def test_narrow_numbers_are_found_wherever_they_begin() -> None:
    frame, y = applicants(60)
    codes = OneHotEncoder(dtype=np.float32, sparse_output=False)
    narrow_codes, texts = columns(StandardScaler(), codes), frame[["job", "home"]]
    assert model_of(fitted(make_pipeline(codes, classifier()), texts, y), texts, y).arithmetic.bits == 32
    # Codes of 32 bits beside numbers of 64 are exact, and what the classifier sees has 64.
    assert model_of(fitted(make_pipeline(narrow_codes, classifier()), frame, y), frame, y).arithmetic.bits == 64
    X = np.random.default_rng(0).normal(size=(60, 2)) + 30.0
    labels = (X[:, 0] > 30).astype(int)
    labels[:5] = 1 - labels[:5]
    bare = LogisticRegression(max_iter=1000).fit((X - 30).astype(np.float32), labels)
    model = LogisticModel.from_sklearn(bare, TrainingSet((X - 30).astype(np.float32), labels))
    assert model.arithmetic.bits == 8 * bare.coef_.itemsize  # scikit-learn 1.7 fits 64 bits to rows of 32
    if bare.coef_.itemsize == 4:
        with pytest.raises(UnsupportedModelError, match="32 bits"):
            Certified(model, 1)


def test_a_retrained_model_gets_its_own_preprocessing_back_from_a_file_and_no_other(tmp_path) -> None:
    frame, y = applicants(60)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT, sparse_threshold=0.0), classifier()), frame, y)
    other = fitted(pipeline, frame.iloc[1:], y.iloc[1:])
    for rule in ("frozen", "refitted"):
        later = model_of(pipeline, frame, y, preprocessing=rule).without(frame.index[:6])
        later.save(tmp_path / f"{rule}.npz")
        again = LogisticModel.load(tmp_path / f"{rule}.npz", pipeline=pipeline)
        np.testing.assert_array_equal(again.training_design(), later.training_design())
        np.testing.assert_allclose(again.own_design(frame)[0], later.own_design(frame)[0], rtol=0, atol=1e-12)
        assert again.own_design(frame)[1].all()
    with pytest.raises(OptionError, match="makes something else"):
        LogisticModel.load(tmp_path / "frozen.npz", pipeline=other)


def test_a_budget_is_found_for_narrow_models_too_only_not_proven() -> None:
    pipeline, frame, y = far_from_zero(1, 30.0, "float32")
    model = model_of(pipeline, frame, y)
    accepted = frame[model.predict(frame) == 1].iloc[:3]
    budget = Rocerf(model, 1).removal_budget(accepted, most=1)
    assert budget.proofs == ()
    assert (budget.certified == 0).all()


def test_rows_that_the_pipeline_fails_on_are_proven_nothing_and_spoil_no_others() -> None:
    def refuse_large(rows: Any) -> Any:
        if (np.abs(np.asarray(rows)) > 1e6).any():
            raise ValueError("too large")
        return rows

    frame, y = applicants(40)
    numbers = frame[["age", "income"]].astype(float)
    pipeline = make_pipeline(FunctionTransformer(refuse_large), StandardScaler(), classifier())
    model = model_of(fitted(pipeline, numbers, y), numbers, y)
    people = numbers.iloc[:3].copy()
    people.iloc[1, 1] = 1e7
    bound = Certified(model, 1).bound(people)
    assert np.isnan(bound).tolist() == [False, True, False]


@pytest.mark.parametrize("fixed", [False, True])
def test_answers_are_numbers_that_columns_of_32_bits_hold(fixed: bool) -> None:
    # Dates as numbers: two neighbours of 32 bits lie 2 apart, which moves scores by more than the guard of a point.
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"since": 20200101 + rng.uniform(0, 50000, 300), "a": rng.normal(size=300)}).astype("float32")
    y = ((frame["since"] - 20225000) / 2e4 + frame["a"] + rng.normal(size=300) > 0).astype(int).to_numpy()
    pipeline = fitted(make_pipeline(StandardScaler(), LogisticRegression()), frame, y)
    schema = rocerf.FeatureSchema.from_frame(frame)
    model = model_of(pipeline, frame, y, schema=schema.edit("a", direction="fixed") if fixed else schema)
    recourses = Rocerf(model, 0, promise="plain", cost="l1").explain(frame[pipeline.predict(frame) == 0].head(15))
    assert "gave_up" not in [status.value for status in recourses.statuses]
    points = recourses.points[recourses.answered]
    assert len(points) >= 10
    assert (points.dtypes == "float32").all()
    assert (pipeline.predict(points) == 1).all()
