"""Whatever tells a lower bound or a score of the same point tells the same, over all conventions of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from pipelines import ONE_HOT, applicants, classifier, columns, fitted, model_of, usual
from problems import random_training_set
from rocerf import Adversary, LogisticModel, Rocerf, TrainingSet
from rocerf.audit.recheck import recheck
from rocerf.audit.removal_budget import removal_budget
from rocerf.promises import Certified, FirstOrder, Retrained
from rocerf.promises.plain import Plain

ROWS = 26


def ours(**options: Any) -> Callable[[int], LogisticModel]:
    """Our own fit with these options."""
    return lambda seed: LogisticModel.fit(random_training_set(seed, n=ROWS), **options)


def weighted(seed: int) -> LogisticModel:
    """Weights of rows and of classes, a threshold, the paper's penalty."""
    train = random_training_set(seed, n=ROWS, weights=True)
    return LogisticModel.fit(train, gamma=0.02, class_weight={0: 2.0, 1: 0.7}, threshold=0.6)


def from_sklearn(**options: Any) -> Callable[[int], LogisticModel]:
    """scikit-learn's fit on standardised columns, not quite at its optimum."""

    def made(seed: int) -> LogisticModel:
        train = random_training_set(seed, n=ROWS)
        X = (train.X - train.X.mean(axis=0)) / train.spread
        fit = LogisticRegression(tol=1e-3, **options).fit(X, train.y)
        return LogisticModel.from_sklearn(fit, TrainingSet(X, train.y), threshold=0.45)

    return made


def frozen_pipeline(numbers: Any) -> Callable[[int], LogisticModel]:
    """A pipeline as it is."""

    def made(seed: int) -> LogisticModel:
        frame, y = applicants(ROWS, seed)
        pipeline = fitted(make_pipeline(columns(numbers, ONE_HOT), classifier(tol=1e-4)), frame, y)
        return model_of(pipeline, frame, y, threshold=0.55)

    return made


def refitted_then_frozen(seed: int) -> LogisticModel:
    """A pipeline fitted again without a category, which it then refuses, and frozen after that."""
    frame, y = applicants(ROWS + 3, seed)
    frame["job"] = ["smith"] * 3 + [job if job != "smith" else "clerk" for job in frame["job"][3:]]
    model = model_of(fitted(usual("error"), frame, y), frame, y, preprocessing="refitted")
    later = model.without(frame.index[:3])
    assert later.parts is not None
    assert later.parts.handicap is not None
    return later.frozen


MODELS: dict[str, Callable[[int], LogisticModel]] = {
    "fixed penalty": ours(C=0.5),
    "weak penalty": ours(C=50.0),
    "mean penalty": ours(gamma=0.05, threshold=0.3),
    "no intercept": ours(C=1.0, fit_intercept=False),
    "raw columns": ours(C=0.1, scale=False),
    "weights": weighted,
    "scikit-learn": from_sklearn(C=2.0),
    "penalised intercept": from_sklearn(solver="liblinear", intercept_scaling=0.5),
    "scaled pipeline": frozen_pipeline(StandardScaler()),
    "pipeline by ranges": frozen_pipeline(MinMaxScaler()),
    "refitted, then frozen": refitted_then_frozen,
}


def points_of(model: LogisticModel, seed: int) -> np.ndarray:
    """Training rows and rows around them; of a pipeline such as its columns can hold, every category among them."""
    rng = np.random.default_rng(seed)
    X = model.train.X[rng.integers(0, len(model.train), 12)].copy()
    if model.schema is None:
        return np.vstack([X, X + 2 * rng.normal(size=X.shape) * model.train.spread])
    for place, feature in enumerate(model.schema.column_features):
        if feature.name == "income":
            X[:, place] += 30 * rng.normal(size=len(X))
    jobs = [place for place, feature in enumerate(model.schema.column_features) if feature.name == "job"]
    X[:, jobs] = np.eye(len(jobs))[np.arange(len(X)) % len(jobs)]
    return X


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", MODELS)
def test_all_readings_of_a_point_agree(kind: str, seed: int) -> None:
    model = MODELS[kind](seed)
    X = points_of(model, seed)
    size = 1.0 + np.abs(model.score(X))
    # Every deletion of one row, retrained by `without`: the truth.
    later = np.array([model.without([row]).score(X) for row in model.train.ids])
    truth = np.minimum(later.min(axis=0), Plain(model).read(X).values)

    promise = Certified(model, 1)
    assert promise.impossible() is None
    bound, reading = promise.bound(X), promise.read(X)
    read, (slopes, constants) = reading.values, reading.cuts(X)
    assert ((X @ slopes.T + constants - read[:, None]) / size[:, None] > -1e-8).all()  # cuts lie above the bound
    np.testing.assert_array_less(np.abs(bound - read) / size, 1e-9)
    assert (bound <= truth + 1e-9 * size).all()
    np.testing.assert_array_less(np.abs(bound - truth) / size, 1e-7)  # one deletion is enumerated, so it is tight

    # The adversary's, the pool's and the estimate's numbers are of the same score.
    attacks = Adversary(model, 1, effort="thorough").attack(X)
    np.testing.assert_allclose(attacks.scores, np.einsum("ij,ij->i", attacks.slopes, X) + attacks.constants, atol=1e-7)
    for attack, x in zip(attacks, X, strict=True):
        assert attack.score == pytest.approx(model.without(attack.deleted_ids).score(x[None])[0], abs=1e-7)
    np.testing.assert_array_less(np.abs(np.minimum(attacks.scores, Plain(model).read(X).values) - truth) / size, 1e-7)
    tested = Retrained(model, 1, effort="thorough", slack=0.0)
    np.testing.assert_array_less(np.abs(tested.read(X).foreseen - truth) / size, 1e-7)
    np.testing.assert_array_less(np.abs(tested.remembered(X).foreseen - truth) / size, 1e-7)
    assert (FirstOrder(model, 1).read(X).values <= Plain(model).read(X).values).all()

    budget = removal_budget(model, X, 1, proofs=[promise])
    clear = np.abs(truth) > 1e-6  # else rounding decides
    np.testing.assert_array_equal((budget.certified >= 1)[clear], (truth >= 0)[clear])
    np.testing.assert_array_equal((budget.found >= 1)[clear], (truth >= 0)[clear])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weights", "penalised intercept", "scaled pipeline", "refitted, then frozen"])
def test_recheck_says_what_the_model_says_and_never_less_than_was_proven(kind: str) -> None:
    model = MODELS[kind](2)
    denied = model.train.X[model.predict(model.train.X) == 0][:6]
    explainer = Rocerf(model, 1, promise="certified")
    recourses = explainer.explain(denied)
    assert recourses.certified.any()
    matrix = recourses.matrix[recourses.certified]
    proven = explainer.promise.bound(matrix)
    margins = recourses.margins[recourses.certified]
    if explainer.promise.allowance is None:
        np.testing.assert_allclose(margins, proven, atol=1e-8)
    assert (margins <= proven + 1e-8).all()
    nothing = recheck(model, recourses, [])
    np.testing.assert_allclose(nothing.after[recourses.certified], model.score(matrix), atol=1e-12)
    refit = None if model.retraining is None else "exact"  # a proof is about exact retraining
    for row in model.train.ids[::4]:
        after = recheck(model, recourses, [row], refit=refit).after[recourses.certified]
        np.testing.assert_allclose(after, model.without([row]).score(matrix), atol=1e-9)
        assert (after >= proven - 1e-9).all()


def test_a_category_that_is_refused_is_refused_in_every_reading() -> None:
    model = refitted_then_frozen(0)
    smiths = points_of(model, 0)
    jobs = [place for place, name in enumerate(model.train.columns) if name.startswith("job=")]
    smiths[:, jobs] = [float(model.train.columns[place] == "job=smith") for place in jobs]
    promise = Certified(model, 1)
    for values in (model.score(smiths), promise.bound(smiths), promise.read(smiths).values):
        assert (values < -900).all()
    assert (Adversary(model, 1).attack(smiths).scores < -900).all()


@pytest.mark.slow
def test_one_hot_encoders_that_drop_a_category_read_alike() -> None:
    frame, y = applicants(ROWS, 3)
    encoder = OneHotEncoder(drop="first")
    model = model_of(fitted(make_pipeline(columns(StandardScaler(), encoder), classifier()), frame, y), frame, y)
    promise = Certified(model, 2)
    if promise.impossible() is None:
        np.testing.assert_allclose(promise.bound(frame), promise.read(model.matrix(frame)).values, atol=1e-8)
    np.testing.assert_allclose(Certified(model, 1).bound(frame), Certified(model, 1).bound(model.matrix(frame)), atol=0)
