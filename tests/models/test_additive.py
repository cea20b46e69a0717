"""Pipelines that add up column by column: what they add is found by asking, and is what they add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)

import rocerf
from pipelines import ONE_HOT, applicants, classifier, columns, fitted, log_odds, model_of
from rocerf import LogisticModel
from rocerf.errors import UnsupportedModelError
from rocerf.models.additive import AdditiveDesign, Pieces


def _bins(**options: Any) -> KBinsDiscretizer:
    return KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf", **options)


#: Preprocessing of the numbers, and whether rows have gaps.
ADDITIVE: dict[str, tuple[Any, bool]] = {
    "logarithm": (FunctionTransformer(lambda X: np.log1p(X.astype(float))), False),
    "bins": (_bins(), False),
    "codes of bins": (make_pipeline(_bins(encode="ordinal"), StandardScaler()), False),
    "indicator": (SimpleImputer(add_indicator=True), True),
    "filled in, then bins": (make_pipeline(SimpleImputer(add_indicator=True), _bins(encode="ordinal")), True),
    "clipped": (MinMaxScaler(clip=True), False),
    "power": (PowerTransformer(), False),
    "filled in, then power": (make_pipeline(SimpleImputer(), PowerTransformer()), True),
    "splines": (make_pipeline(StandardScaler(), SplineTransformer(n_knots=4)), False),
    "squares": (make_pipeline(StandardScaler(), FunctionTransformer(lambda X: np.hstack([X, X**2]))), False),
}


def _taken(name: str, n: int = 150) -> tuple[LogisticModel, Any, pd.DataFrame, pd.Series]:
    numbers, missing = ADDITIVE[name]
    frame, y = applicants(n, missing=missing)
    pipeline = fitted(make_pipeline(columns(numbers, ONE_HOT), classifier()), frame, y)
    return model_of(pipeline, frame, y), pipeline, frame, y


@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_pipelines_are_taken_over_with_their_scores_and_retraining(name: str) -> None:
    model, pipeline, frame, y = _taken(name)
    assert isinstance(model.design, AdditiveDesign)
    truth = log_odds(pipeline, frame)
    np.testing.assert_array_equal(model.deployed_score(frame), truth)
    np.testing.assert_allclose(model.score(frame), truth, atol=1e-6)
    np.testing.assert_allclose(model.score(model.train.X), truth, atol=1e-6)
    own, made = model.own_design(frame)
    assert made.all()
    np.testing.assert_allclose(model.design(model.train.X), own, atol=1e-6)
    gone = frame.index[:9]
    images = pipeline[:-1].transform(frame)
    again = classifier().fit(images[9:], y.iloc[9:])  # the preprocessing stays
    np.testing.assert_allclose(model.without(gone).score(frame), again.decision_function(images), atol=1e-5)


@pytest.mark.parametrize("name", ["bins", "filled in, then bins", "splines"])
def test_files_keep_the_pieces(name: str, tmp_path: Any) -> None:
    model, pipeline, frame, _ = _taken(name)
    model.save(tmp_path / "model.npz")
    again = LogisticModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.score(frame), model.score(frame))
    connected = LogisticModel.load(tmp_path / "model.npz", pipeline=pipeline)
    np.testing.assert_array_equal(connected.deployed_score(frame), log_odds(pipeline, frame))


@pytest.mark.parametrize("kind", ["float64", "int64"])
def test_bins_end_where_the_pipeline_says_to_the_last_digit(kind: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.gamma(3.0, 40.0, 200).astype(kind), "b": rng.normal(size=200)})
    y = (frame["a"] / 100 + frame["b"] + rng.normal(size=200) > 1.2).astype(int)
    bins = _bins(encode="onehot-dense")
    pipeline = fitted(make_pipeline(bins, classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    edges = pipeline[0].bin_edges_[0][1:-1]
    at = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), edges - 1, edges + 1])
    at = np.unique(np.floor(at)) if kind == "int64" else at
    people = pd.DataFrame({"a": at.astype(kind), "b": 0.0})
    np.testing.assert_allclose(model.score(people), log_odds(pipeline, people), atol=1e-9)


def test_a_gap_is_what_the_pipeline_makes_of_it_and_comes_out_as_a_gap() -> None:
    model, pipeline, frame, _ = _taken("filled in, then bins")
    assert model.frames is not None
    assert "income" in model.frames.marks
    gaps = frame[frame["income"].isna()]
    np.testing.assert_allclose(model.score(model.matrix(gaps)), log_odds(pipeline, gaps), atol=1e-9)
    assert model.frames.decode(model.matrix(gaps))["income"].isna().all()
    # A number that is like the filled-in one is no gap: the indicator tells them apart.
    given = gaps.assign(income=frame["income"].mean())
    np.testing.assert_allclose(model.score(given), log_odds(pipeline, given), atol=1e-9)


def test_pieces_that_would_be_fitted_again_are_refused_with_the_way_out() -> None:
    frame, y = applicants()
    pipeline = fitted(make_pipeline(columns(_bins(), ONE_HOT), classifier()), frame, y)
    with pytest.raises(UnsupportedModelError, match=r"'age'.*use 'frozen'.*otherwise='estimator'"):
        rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")


def test_products_of_one_column_with_itself_add_up_and_of_two_do_not() -> None:
    frame, y = applicants()
    alone = make_pipeline(StandardScaler(), PolynomialFeatures(3, include_bias=False))
    pipeline = fitted(make_pipeline(alone, classifier()), frame[["income"]], y)
    assert isinstance(model_of(pipeline, frame[["income"]], y).design, AdditiveDesign)
    pipeline = fitted(make_pipeline(alone, classifier()), frame[["income", "age"]], y)
    with pytest.raises(UnsupportedModelError, match="not in 'income', 'age'"):
        rocerf.from_pipeline(pipeline, frame[["income", "age"]], y)


@pytest.mark.parametrize("seed", range(20))
def test_upper_lines_are_never_below_and_exact_within_a_piece(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 9))
    ends = np.sort(rng.normal(size=2 * m))
    low, high = ends[::2], ends[1::2]
    start, end = rng.normal(size=(2, m, 2))
    flat = rng.random(m) < 0.5
    pieces = Pieces(np.arange(2), low, high, start, np.where(flat[:, None], start, end))
    weights = rng.normal(size=(3, 2))
    first, last = np.sort(rng.uniform(low[0], high[-1], 2))
    at_low, at_high = pieces.upper_line(first, last, weights)
    inside = np.concatenate([np.linspace(a, b, 50) for a, b in zip(low, high, strict=True)])
    inside = inside[(inside >= first) & (inside <= last)]
    share = ((inside - first) / (last - first))[:, None]
    truth = pieces(inside) @ weights.T
    assert (at_low + share * (at_high - at_low) >= truth - 1e-12).all()
    c = int(rng.integers(m))
    at_low, at_high = pieces.upper_line(low[c], high[c], weights)
    np.testing.assert_allclose(at_low, start[c] @ weights.T)
    np.testing.assert_allclose(at_high, pieces.end[c] @ weights.T)


def test_a_code_in_the_midst_of_many_numbers_is_a_piece_of_its_own() -> None:
    rng = np.random.default_rng(0)
    income, other = rng.gamma(3, 1000, 9000).round(2), rng.normal(size=9000)
    income[::60] = 4321.0
    frame = pd.DataFrame({"income": income, "other": other})
    y = pd.Series((income / 3000 + other + rng.normal(size=9000) > 1).astype(int)).where(income != 4321.0, 0)
    codes = FunctionTransformer(lambda X: np.column_stack([X, np.asarray(X)[:, 0] == 4321.0]))
    pipeline = fitted(make_pipeline(codes, StandardScaler(), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    asked = pd.DataFrame({"income": [4320.99, 4321.0, 4321.01], "other": 0.0})
    np.testing.assert_allclose(model.score(asked), pipeline.decision_function(asked), atol=1e-6)
