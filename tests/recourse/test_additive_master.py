"""The master problem over pieces: as cheap as the cheapest of all points, on problems small enough to list them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import rocerf
from rocerf import FeatureSchema, Rocerf, TrainingSet
from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.master import cells
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.highs import minimised
from rocerf.recourse.master.master import Master

TOP = 9


def _whole_pieces(rng: np.random.Generator, place: int) -> Pieces:
    """Levels of the whole numbers from 0 to TOP, some of them joined to bins, some to a line."""
    edges = np.unique(np.concatenate([[0], rng.integers(1, TOP, 3), [TOP + 1]]))
    low, high = edges[:-1].astype(float), edges[1:].astype(float) - 1
    start = rng.normal(size=(len(low), 2))
    end = np.where(rng.random(len(low))[:, None] < 0.6, start, rng.normal(size=(len(low), 2)))
    end = np.where((low == high)[:, None], start, end)
    return Pieces(np.array([place, place + 1]), low, high, start, end)


def _problem(seed: int, *, curve: bool = False) -> tuple[AdditiveDesign, TrainingSet, FeatureSchema]:
    """Two whole-numbered columns by pieces, one affine, one yes or no; four design columns."""
    rng = np.random.default_rng(seed)
    matrix = np.zeros((4, 4))
    matrix[:, 2:] = rng.normal(size=(4, 2))
    pieces = {0: _whole_pieces(rng, 0), 1: _whole_pieces(rng, 2)}
    if curve:  # every whole number a piece of its own, more than there are cells at first
        at = np.arange(TOP + 1.0)
        pieces[0] = Pieces(np.array([0, 1]), at, at, *[np.column_stack([np.log1p(at), np.sqrt(at)])] * 2)
    X = np.column_stack([rng.integers(0, TOP + 1, (40, 3)), rng.integers(0, 2, 40)]).astype(float)
    schema = FeatureSchema.free("abcd").edit("d", kind="binary")
    for name in "abc":
        schema = schema.edit(name, kind="integer", lower=0, upper=TOP)
    return AdditiveDesign(matrix, rng.normal(size=4), True, pieces), TrainingSet(X, rng.integers(0, 2, 40)), schema


ALL = np.array(list(itertools.product(*[range(TOP + 1)] * 3, range(2))), float)


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("curve", [False, True])
@pytest.mark.parametrize("cost", ["l1", "l2", "percentile"])
@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_point_is_the_cheapest_of_all_that_are_listed(
    seed: int, cost: str, curve: bool, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if curve:
        monkeypatch.setattr(cells, "MOST_CELLS", 3)
        monkeypatch.setattr(cells, "FIRST_CELLS", 2)
    design, train, schema = _problem(seed, curve=curve)
    rng = np.random.default_rng(100 + seed)
    prices, X0 = cost_named(cost, train, schema), train.X[:3]
    master = Master.over(X0, prices, FeasibleSet.around(X0, schema, most), design)
    slopes = rng.normal(size=(3, 3, 4))
    own = np.einsum("pmd,pd->pm", slopes, design.lifted(X0))
    constants = -own - rng.uniform(-0.2, 1.2, (3, 3))
    answer = master.cheapest(np.arange(3), slopes, constants, 0.0)
    for person, x0 in enumerate(X0):
        behind = (design.lifted(ALL) @ slopes[person].T + constants[person] >= 0.0).all(axis=1)
        behind &= most is None or (x0 != ALL).sum(axis=1) <= (most or 0)
        assert answer.found[person] == behind.any()
        if behind.any():
            best = prices.of(ALL[behind], np.tile(x0, (int(behind.sum()), 1))).min()
            found = answer.points[[person]]
            assert (design.lifted(found) @ slopes[person].T + constants[person] >= -1e-6).all()
            assert prices.of(found, x0[None])[0] == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("cost", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(4))
def test_a_curve_of_numbers_is_followed_to_its_cheapest_point(seed: int, cost: str) -> None:
    rng = np.random.default_rng(seed)
    knots = np.linspace(0.5, 20.0, 4001)
    added = np.column_stack([np.log(knots), np.sin(knots / 3)])
    curve = Pieces(np.arange(2), knots[:-1], knots[1:], added[:-1], added[1:], (0.5, 20.0))
    matrix = np.column_stack([np.zeros(2), rng.normal(size=2)])
    design = AdditiveDesign(matrix, np.zeros(2), True, {0: curve})
    train = TrainingSet(np.column_stack([rng.uniform(1, 19, 50), rng.normal(size=50)]), rng.integers(0, 2, 50))
    prices, x0 = cost_named(cost, train, None), train.X[0]
    slope = rng.normal(size=2)
    constant = -float(design.lifted(x0[None])[0] @ slope) - 0.6
    master = Master.over(x0[None], prices, FeasibleSet.around(x0[None], None), design)
    answer = master.cheapest(np.array([0]), slope[None, None], np.array([[constant]]), 0.0)
    # For each first value, the second that just does.
    first = np.linspace(0.5, 20.0, 200_001)
    lacking = -(curve(first) @ slope + constant)
    second = lacking / float(matrix[:, 1] @ slope)
    stays = (curve(first) + matrix[:, 1] * x0[1]) @ slope + constant >= 0
    points = np.column_stack([first, np.where(stays, x0[1], second)])
    best = prices.of(points, np.tile(x0, (len(points), 1))).min()
    assert answer.found[0]
    assert design.lifted(answer.points)[0] @ slope + constant >= -1e-6
    assert prices.of(answer.points, x0[None])[0] == pytest.approx(best, rel=1e-3)
    assert prices.of(answer.points, x0[None])[0] <= best + 1e-6


def test_curves_under_l2_take_few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, knots = np.random.default_rng(0), np.linspace(0.5, 20.0, 20_001)
    heights = np.column_stack([np.log(knots), np.sin(knots / 3)])
    curves = {
        column: Pieces(np.arange(2) + 2 * column, knots[:-1], knots[1:], heights[:-1], heights[1:], (0.5, 20.0))
        for column in range(3)
    }
    design = AdditiveDesign(np.zeros((6, 3)), np.zeros(6), True, curves)
    train = TrainingSet(rng.uniform(1, 19, (50, 3)), rng.integers(0, 2, 50))
    prices, x0 = cost_named("l2", train, None), train.X[0]
    slopes = np.tile([1.0, 0.3], 3) + 0.1 * rng.normal(size=(1, 2, 6))
    constants = -(slopes @ design.lifted(x0[None])[0]) - [[0.8, 1.0]]
    programs: list[float] = []

    def counted(*arguments: Any, **options: Any) -> Any:
        programs.append(0.0)
        return minimised(*arguments, **options)

    monkeypatch.setattr("rocerf.recourse.master.mixed_program.minimised", counted)
    master = Master.over(x0[None], prices, FeasibleSet.around(x0[None], None), design)
    answer = master.cheapest(np.array([0]), slopes, constants, 0.0)
    assert answer.found[0]
    assert answer.gaps[0] == 0
    assert (slopes[0] @ design.lifted(answer.points)[0] + constants[0] >= -1e-6).all()
    assert len(programs) <= 20


@pytest.mark.parametrize("trees", [False, True])
def test_a_step_that_an_edge_lies_on_is_not_left_by_a_rounding_error(trees: bool) -> None:
    """1.0999999999999999 is of the bin below 1.1, and nobody who moves in steps of 0.1 has it."""
    rng = np.random.default_rng(4)
    tenths = rng.integers(0, 16, 200) * 2 + 1 if trees else rng.integers(1, 31, 200)  # the middle of two is a step
    frame = pd.DataFrame({"share": tenths / 10, "age": rng.integers(20, 60, 200)}).round(1)
    paid = (3 - frame["share"] + (frame["age"] - 40) / 20 + rng.normal(size=200) > 1.8).astype(int)
    if trees:
        fitted: Any = GradientBoostingClassifier(n_estimators=8, random_state=0)
        model: Any = rocerf.from_pipeline(fitted.fit(frame, paid), frame, paid, otherwise="estimator")
    else:
        bins = KBinsDiscretizer(6, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
        fitted = make_pipeline(bins, LogisticRegression())
        model = rocerf.from_pipeline(fitted.fit(frame, paid), frame, paid, retraining="exact")
    schema = model.frames.schema.edit("share", step=0.1, lower=0.1, upper=3.1).edit("age", direction="fixed")
    explainer = Rocerf(model, promise="plain", schema=schema, cost="l1")
    people = frame[fitted.predict(frame) == 0].head(25)
    found = explainer.explain(people)
    assert found.answered.sum() > 5
    shares = found.points["share"][found.answered]
    assert (shares == shares.round(1)).all()
    allowed = np.arange(1, 32) / 10
    for place in np.flatnonzero(found.answered):
        rows = pd.DataFrame({"share": allowed, "age": people["age"].iloc[place]})
        nearest = np.abs(allowed - people["share"].iloc[place])[fitted.predict(rows) == 1].min()
        assert abs(shares[people.index[place]] - people["share"].iloc[place]) == pytest.approx(nearest)
    letters = explainer.letters(found, valid_until=None)
    assert [bool(letter.options) for letter in letters] == found.answered.tolist()
