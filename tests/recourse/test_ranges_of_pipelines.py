"""Ranges of bins, curves and codes: held against the user's own pipeline, the models found, or all on small tables."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer, StandardScaler

import rocerf
from pipelines import classifier, fitted, model_of
from problems import subsets
from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.objective import Penalty
from rocerf.recourse.ranges import Ranges, ranges_around

#: Points drawn inside each person's box.
DRAWN = 600


class WithCodes(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Another transformer, but that special codes count as a number of their own, far from all others."""

    def __init__(self, inner: Any = None, special_codes: tuple[float, ...] = (), becomes: float = 0.0) -> None:
        self.inner, self.special_codes, self.becomes = inner, special_codes, becomes

    def fit(self, X: Any, y: Any = None) -> WithCodes:
        self.inner_ = self.inner.fit(np.asarray(X, float), y)
        return self

    def transform(self, X: Any) -> Any:
        X = np.asarray(X, float)
        return np.where(np.isin(X, self.special_codes), self.becomes, self.inner_.transform(X))


def _codes() -> KBinsDiscretizer:
    return KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf")


def _stated(explainer: Rocerf, people: pd.DataFrame) -> tuple[Ranges, np.ndarray, np.ndarray, Any]:
    recourses = explainer.explain(people)
    answered = np.flatnonzero(recourses.answered)
    X0, points = recourses.people[answered], recourses.matrix[answered]
    missing = [recourses.missing[i] for i in answered] if recourses.missing is not None else None
    allowed = explainer.problem(X0, missing).allowed
    schema = recourses.schema
    found = ranges_around(explainer.gate, points, allowed, schema, missing, recourses.frames, overshoot=True)
    return found, X0, points, recourses


def _drawn(rng: np.random.Generator, found: Ranges, place: int, whole: np.ndarray, count: int = DRAWN) -> np.ndarray:
    low, high = (np.clip(end[place], -1e3, 1e5) for end in (found.low, found.high))
    points = rng.uniform(low, high, size=(count, len(low)))
    points = np.where(rng.random(points.shape) < 0.2, np.where(rng.random(points.shape) < 0.5, low, high), points)
    return np.where(whole, np.clip(np.rint(points), low, high), points)


def _with_hidden_code(kind: str, binned: bool, code: float, n: int = 300) -> tuple[Any, pd.DataFrame, pd.Series]:
    """A pipeline with a code that refuses whoever has it, inside the range of its column; no row has it."""
    rng = np.random.default_rng(5)
    values = rng.uniform(0, 100, 3 * n)
    values = np.rint(values) if kind == "int64" else values
    a = values[values != code][:n]
    frame = pd.DataFrame({"a": a.astype(kind), "b": rng.normal(size=n)})
    y = ((a - 50) / 25 + frame["b"] + 0.7 * rng.normal(size=n) > 0).astype(int)
    inner = _codes() if binned else StandardScaler()
    coded = WithCodes(inner, (code,), -60.0)
    steps = make_column_transformer((coded, ["a"]), (StandardScaler(), ["b"]))
    return fitted(make_pipeline(steps, classifier()), frame, y), frame, y


@pytest.mark.parametrize("binned", [False, True])
@pytest.mark.parametrize("kind", ["int64", "float64"])
def test_no_range_holds_a_code_that_no_training_row_has(kind: str, binned: bool) -> None:
    held = missed = 0
    for code in (77.0, 83.0, 91.0, *(() if kind == "int64" else (78.53125,))):
        pipeline, frame, y = _with_hidden_code(kind, binned, code)
        model = model_of(pipeline, frame, y)
        found = np.array([code])
        known = float(model.design(np.array([[code, 0.0]]))[0, 0])
        missed += abs(known + 60.0) > 1.0  # taking the pipeline over did not see it
        refused = frame[pipeline.predict(frame) == 0].head(8)
        schema = FeatureSchema.from_frame(frame).edit("b", direction="fixed")
        model = model_of(pipeline, frame, y, schema=schema)
        ranges, _, points, _ = _stated(Rocerf(model, 0, promise="plain", cost="l1"), refused)
        for place in range(len(points)):
            wide = ranges.high[place, 0] > ranges.low[place, 0]
            assert not (wide and ranges.low[place, 0] <= found[0] <= ranges.high[place, 0])
            held += wide
        rng = np.random.default_rng(0)
        for place in range(len(points)):
            inside = _drawn(rng, ranges, place, np.array([kind == "int64", False]))
            rows = pd.DataFrame(inside, columns=["a", "b"]).astype({"a": kind})
            assert (pipeline.predict(rows) == 1).all()
    assert held
    assert missed or (kind, binned) == ("int64", True)


def _german(numbers: Any) -> tuple[Any, LogisticModel, pd.DataFrame]:
    data = rocerf.load_raw("german")
    train = data.train[["duration", "amount", "savings", "age", "housing"]]
    steps = make_column_transformer(
        (numbers, ["duration", "amount"]),
        (StandardScaler(), ["age"]),
        (OneHotEncoder(sparse_output=False), ["savings", "housing"]),
    )
    pipeline = fitted(make_pipeline(steps, classifier()), train, data.y_train)
    schema = FeatureSchema.from_frame(train, immutable=["age", "savings", "housing"])
    model = rocerf.from_pipeline(pipeline, train, data.y_train, schema=schema, retraining="exact")
    return pipeline, model, train


GERMAN = {
    "bins": KBinsDiscretizer(5, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    "curves": make_pipeline(StandardScaler(), SplineTransformer(4)),
}


@pytest.mark.parametrize("promise", ["plain", "retrained"])
@pytest.mark.parametrize("kind", GERMAN)
def test_ranges_over_bins_of_german_hold_for_the_pipeline_and_all_models_found(kind: str, promise: str) -> None:
    pipeline, model, train = _german(GERMAN[kind])
    people = train[pipeline.predict(train) == 0].head(18)
    explainer = Rocerf(model, 0 if promise == "plain" else 2, promise=promise, cost="l1")
    found, X0, points, recourses = _stated(explainer, people)
    whole = np.array([feature.kind.name == "INTEGER" for feature in recourses.schema.column_features])
    drawn = wide = across = 0
    rng = np.random.default_rng(3)
    for place in range(len(points)):
        inside = _drawn(rng, found, place, whole)
        assert explainer.problem(np.tile(X0[place], (DRAWN, 1))).allowed.holds(inside).all()
        assert (pipeline.predict(model.frames.decode(inside)) == 1).all()  # type: ignore[union-attr]
        if promise == "retrained":
            models = explainer.promise.pool.models  # type: ignore[attr-defined]
            assert len(models) > 1
            assert (models.scores(inside) >= explainer.gate.delta - 1e-6).all()
        drawn += DRAWN
        wide += bool(found.wide[place].any())
        for column, pieces in model.design.pieces.items():  # type: ignore[union-attr]
            ends = np.array([found.low[place, column], found.high[place, column]])
            across += int(len(set(pieces.piece_of(ends).tolist())) > 1)
    assert drawn >= 10_000
    assert wide >= 10
    assert across >= 5


def _two_binned(seed: int, n: int) -> LogisticModel:
    """Two columns in bins, of every other seed in the order of their codes, and one as it is."""
    rng = np.random.default_rng(seed)
    pieces = {}
    for column in (0, 1):
        edges = np.unique(np.concatenate([[0], rng.integers(1, 20, 4), [20]])).astype(float)
        codes = rng.normal(size=(len(edges) - 1, 1))
        codes = codes if seed % 2 else np.sort(codes, axis=0)
        pieces[column] = Pieces(np.array([column]), edges[:-1], edges[1:] - 1, codes, codes)
    design = AdditiveDesign(np.diag([0.0, 0.0, 1.0]), np.zeros(3), True, pieces)
    X = np.column_stack([rng.integers(0, 20, (n, 2)), rng.normal(size=n)]).astype(float)
    y = (design(X)[:, :3].sum(axis=1) + 0.7 * rng.normal(size=n) > 0).astype(int)
    y[:6] = [0, 1, 0, 1, 0, 1]
    return LogisticModel(LogisticFit.minimised(TrainingSet(X, y), design, Penalty.fixed(0.3), None, 0.5))


@pytest.mark.parametrize("k", [1, 2])
def test_certified_ranges_over_bins_hold_for_every_subset(k: int) -> None:
    across = answered = lower = 0
    for seed in range(16):
        model = _two_binned(seed, 22)
        a, b, _ = model.train.columns
        schema = FeatureSchema.free(model.train.columns)
        schema = schema.edit(a, kind="integer", lower=0, upper=19).edit(b, kind="integer", lower=0, upper=19)
        explainer = Rocerf(model, k, promise="certified", schema=schema, cost="l1")
        X = model.train.X
        frame = pd.DataFrame(X[model.predict(X) == 0][:6], columns=list(model.train.columns))
        if explainer.promise.impossible() is not None or not len(frame):
            continue
        found, X0, points, _ = _stated(explainer, frame)
        thetas = np.array([model.without(model.train.ids[list(S)]).theta for S in subsets(22, k)])
        rng = np.random.default_rng(seed)
        for place in range(len(points)):
            inside = _drawn(rng, found, place, np.array([True, True, False]))
            assert explainer.problem(np.tile(X0[place], (DRAWN, 1))).allowed.holds(inside).all()
            assert (model.design(inside) @ thetas.T - model.offset >= -1e-9).all()
            answered += 1
            lower += bool((model.score(inside) < model.score(points[[place]]) - 1e-6).any())
            for column, pieces in model.design.pieces.items():  # type: ignore[union-attr]
                ends = np.array([found.low[place, column], found.high[place, column]])
                across += int(len(set(pieces.piece_of(ends).tolist())) > 1)
    assert answered >= 10
    assert across >= 5
    assert lower >= 1  # what the answer has to spare is used


def test_letters_name_neighbouring_bins_in_one_range() -> None:
    pipeline, model, train = _german(GERMAN["bins"])
    explainer = Rocerf(model, 0, promise="plain", cost="l1")
    answers = explainer.explain(train[pipeline.predict(train) == 0].head(12))

    def texts(**options: Any) -> list[str]:
        letters = explainer.letters(answers, valid_until=None, **options)
        return [change.after_text for one in letters for way in one.options for change in way.changes]

    own_bins, onwards = texts(), texts(ranges=True)
    assert len(own_bins) == len(onwards)
    assert own_bins != onwards


def test_without_the_pipeline_at_hand_no_range_is_stated(tmp_path: Path) -> None:
    pipeline, model, train = _german(GERMAN["bins"])
    people = train[pipeline.predict(train) == 0].head(6)
    explainer = Rocerf(model, 0, promise="plain", cost="l1")
    assert _stated(explainer, people)[0].wide.any()
    model.save(tmp_path / "model.npz")
    alone = LogisticModel.load(tmp_path / "model.npz")
    connected = LogisticModel.load(tmp_path / "model.npz", pipeline=pipeline)
    assert explainer.schema is not None
    for read, some in ((alone, False), (connected, True)):
        again = Rocerf(read, 0, promise="plain", cost="l1", schema=explainer.schema)
        assert bool(_stated(again, people)[0].wide.any()) == some


SCORECARD = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from optbinning import BinningProcess, Scorecard
from sklearn.linear_model import LogisticRegression
import rocerf
from rocerf.letters.numbers import stated_ranges

data = rocerf.load_raw("german")
train = data.train[["duration", "amount", "savings", "age", "housing"]].copy()
train["amount"] += 0.25
schema = rocerf.FeatureSchema.from_frame(train, immutable=["age", "savings", "housing"])
own = LogisticRegression(solver="newton-cholesky", tol=1e-8)
codes = [13, 16, 41, 1700.125, 2000.5, 3000.0625, 5000.5]
kinds = {"categorical_variables": ["savings", "housing"], "special_codes": codes}
card = Scorecard(BinningProcess(list(train.columns), **kinds), own)
rest = ~train["duration"].isin(codes).to_numpy()
train, y = train[rest], np.asarray(data.y_train)[rest]
card.fit(train, y)
model = rocerf.from_pipeline(card, train, y, schema=schema)
explainer = rocerf.Rocerf(model, 2, cost="l1")
answers = explainer.explain(train[model.predict(train) == 0].head(20))
found = stated_ranges(explainer, answers, overshoot=True)
rng, drawn, inside = np.random.default_rng(0), 0, 0
for person in np.flatnonzero(answers.answered):
    low, high = found.low[person], found.high[person]
    points = rng.uniform(low, high, size=(600, len(low)))
    for column in np.flatnonzero(high > low):
        held = [code for code in codes if low[column] <= code <= high[column]]
        points[: len(held), column] = held
        inside += len(held)
    whole = [feature.kind.name != "CONTINUOUS" for feature in schema.column_features]
    points = np.where(whole, np.clip(np.rint(points), low, high), points)
    assert (card.predict_proba(model.frames.decode(points))[:, 1] >= 0.5).all()
    assert (explainer.promise.pool.models.of_lifted(model.design.lifted(points)) >= -1e-6).all()
    drawn += len(points)
assert drawn >= 10_000, drawn
assert found.wide.any()
print("held")
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("optbinning") is None, reason="optbinning is not installed")
def test_ranges_of_a_scorecard_with_special_codes_hold() -> None:
    # In a process of its own: of two libraries called libhighs only the first can be loaded.
    run = subprocess.run([sys.executable, "-c", SCORECARD], capture_output=True, text=True, timeout=600, check=False)
    assert run.stdout.strip().endswith("held"), run.stderr
