"""Ranges that hold: no point inside them breaks a rule, the model or, over all subsets of small tables, the promise."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from problems import random_training_set, refused_people, subsets
from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.objective import Penalty
from rocerf.recourse.ranges import Ranges, ranges_around, readable_range

#: Points drawn inside each person's box; over all problems of one promise more than 10^4.
DRAWN = 250


def _binned(seed: int, n: int) -> LogisticModel:
    """One column in bins, two as they are."""
    rng = np.random.default_rng(seed)
    edges = np.unique(np.concatenate([[0], rng.integers(1, 20, 3), [20]])).astype(float)
    codes = rng.normal(size=(len(edges) - 1, 1))
    bins = Pieces(np.array([0]), edges[:-1], edges[1:] - 1, codes, codes)
    matrix = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    design = AdditiveDesign(matrix, np.zeros(3), True, {0: bins})
    X = np.column_stack([rng.integers(0, 20, n), rng.normal(size=(n, 2))]).astype(float)
    y = (design(X)[:, :3].sum(axis=1) + 0.7 * rng.normal(size=n) > 0).astype(int)
    y[:6] = [0, 1, 0, 1, 0, 1]
    return LogisticModel(LogisticFit.minimised(TrainingSet(X, y), design, Penalty.fixed(0.5), None, 0.5))


def _problem(seed: int, n: int = 24) -> tuple[LogisticModel, FeatureSchema]:
    model = _binned(seed, n) if seed % 2 else LogisticModel.fit(random_training_set(seed, n=n, d=3), C=0.5)
    schema = FeatureSchema.free(model.train.columns)
    first, second, _ = model.train.columns
    if seed % 2:
        schema = schema.edit(first, kind="integer", lower=0, upper=19)
    if seed % 3 == 0:
        schema = schema.edit(second, upper=float(model.train.X[:, 1].max()) + 2.0)
    return model, schema


def _ranges(explainer: Rocerf, people: np.ndarray) -> tuple[Ranges, np.ndarray, np.ndarray]:
    recourses = explainer.explain(people)
    answered = np.flatnonzero(recourses.answered)
    X0, points = people[answered], recourses.matrix[answered]
    assert explainer.schema is not None
    allowed = explainer.problem(X0).allowed
    return ranges_around(explainer.gate, points, allowed, explainer.schema, overshoot=True), X0, points


def _drawn(rng: np.random.Generator, found: Ranges, place: int, schema: FeatureSchema) -> np.ndarray:
    """Points inside one box, ends included; where it has no end, ten standard deviations far."""
    low, high = (np.clip(end[place], -1e3, 1e3) for end in (found.low, found.high))
    points = rng.uniform(low, high, size=(DRAWN, len(low)))
    points = np.where(rng.random(points.shape) < 0.2, np.where(rng.random(points.shape) < 0.5, low, high), points)
    whole = [feature.kind.name == "INTEGER" for feature in schema.column_features]
    return np.where(whole, np.clip(np.rint(points), low, high), points)


@pytest.mark.parametrize("promise", ["certified", "plain", "retrained"])
def test_no_point_inside_a_range_breaks_rule_model_or_promise(promise: str) -> None:
    drawn = wide = 0
    for seed in range(14):
        model, schema = _problem(seed)
        k = 0 if promise == "plain" else 1
        explainer = Rocerf(model, k, promise=promise, schema=schema, cost="l1")
        found, X0, points = _ranges(explainer, refused_people(model, seed, 5))
        thetas = np.array([model.without(model.train.ids[list(S)]).theta if S else model.theta for S in subsets(24, k)])
        rng = np.random.default_rng(seed)
        for place in range(len(points)):
            inside = _drawn(rng, found, place, schema)
            allowed = explainer.problem(X0[[place] * DRAWN]).allowed
            assert allowed.holds(inside).all()
            assert (model.predict(inside) == 1).all()
            lowest = (model.design(inside) @ thetas.T).min(axis=1) - model.offset
            if promise != "retrained":  # of which nothing is proven: there it is the models found that count
                assert (lowest >= -1e-9).all()
            else:
                assert (explainer.promise.remembered(inside).foreseen >= -1e-9).all()  # type: ignore[attr-defined]
            drawn += DRAWN
            wide += bool(found.wide[place].any())
    assert drawn >= 10_000
    assert wide >= 20


def test_a_relation_takes_back_the_range_that_would_break_it() -> None:
    train = random_training_set(3, n=40, d=2)
    model = LogisticModel.fit(train)
    a, b = train.columns
    people = refused_people(model, 3, 4)
    free = FeatureSchema.free(train.columns)
    wide = _ranges(Rocerf(model, 0, promise="plain", schema=free, cost="l1"), people)[0]
    ruled = FeatureSchema(
        free.features, relations=[f"{a} + {b} <= 50", f"{a} - {b} <= 50", f"{b} - {a} <= 50", f"-{a} - {b} <= 50"]
    )
    kept = _ranges(Rocerf(model, 0, promise="plain", schema=ruled, cost="l1"), people)[0]
    assert wide.wide.any()
    assert not kept.wide.any()


def test_letters_name_ranges_in_both_languages_only_where_they_are_asked_for_or_a_bin() -> None:
    model, schema = _problem(1, 60)
    explainer = Rocerf(model, 1, schema=schema.edit(model.train.columns[0], unit="months"), cost="l1")
    recourses = explainer.explain(refused_people(model, 1, 8))
    day = date(2030, 1, 1)

    def texts(**options: object) -> str:
        letters = explainer.letters(recourses, valid_until=day, **options)  # type: ignore[arg-type]
        return " / ".join(change.after_text for one in letters for way in one.options for change in way.changes)

    assert "at least" not in texts()
    assert "at least" in texts(ranges=True) or "or less" in texts(ranges=True)
    assert "mindestens" in texts(ranges=True, language="de") or "höchstens" in texts(ranges=True, language="de")
    for plain, wide in zip(
        explainer.letters(recourses, valid_until=day),
        explainer.letters(recourses, valid_until=day, ranges=True),
        strict=True,
    ):
        assert [c.after for o in plain.options for c in o.changes] == [c.after for o in wide.options for c in o.changes]


@pytest.mark.parametrize("seed", range(50))
def test_readable_ends_lie_inside_and_hold_the_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, point, high = np.sort(rng.normal(size=3) * 10.0 ** rng.integers(-3, 5))
    for least, most in ((low, high), (-np.inf, high), (low, np.inf)):
        a, b = readable_range(least, most, point)
        assert least <= a <= point <= b <= most
