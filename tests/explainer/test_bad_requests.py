"""Requests that cannot be served: bad options are errors that say what to do, hard cases are answers with a reason."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, refused_people
from rocerf import Feature, FeatureSchema, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.errors import ColumnError, OptionError, SchemaError
from rocerf.promises import FirstOrder, Plain

first_order = partial(Rocerf, promise="first_order")

MODEL = LogisticModel.fit(random_training_set(21), C=1.0)
PEOPLE = refused_people(MODEL, 0, 5)

NAMES = ["income", "debt", "age"]
FRAME_MODEL = LogisticModel.fit(
    TrainingSet(pd.DataFrame(MODEL.train.X, columns=NAMES), MODEL.train.y.astype(int)), C=1.0
)


def frame_of(matrix: np.ndarray, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(matrix, columns=NAMES).assign(**columns)


# --- options --------------------------------------------------------------------------------------

WHOLE = r"k to be a whole number of rows or a share such as '0\.5%', got .*write k='0\.5%'"
BAD_K = [
    *[(k, WHOLE) for k in (-1, 0.5, 2.5, "x", "", "%", "-1%", "3.5", "inf", "inf%", "nan%", True, [3])],
    *[(k, WHOLE) for k in (np.nan, np.inf)],
    (None, 'Expected k, the number of deletions to withstand, got none; give a number or a share like "0.5%"'),
    (60, "smaller than the 60 training rows, got 60; no model is left"),
    (1000, "smaller than the 60 training rows, got 1000"),
    ("100%", "smaller than the 60 training rows, got 60"),
    ("250%", "smaller than the 60 training rows, got 150"),
]


@pytest.mark.parametrize(("k", "message"), BAD_K)
def test_bad_k(k: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        first_order(MODEL, k)


@pytest.mark.parametrize(
    ("k", "expected"),
    [(0, 0), (4, 4), (np.int64(4), 4), (4.0, 4), ("4", 4), ("0%", 0), ("0.1%", 1), ("10%", 6), (" 5 % ", 3), (59, 59)],
)
def test_good_k(k: Any, expected: int) -> None:
    explainer = first_order(MODEL, k)
    assert (explainer.k, explainer.promise.k, explainer.settings().k) == (expected,) * 3
    assert type(explainer.k) is int


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"promise": "firm"}, "promise to be one of .*first_order.*got 'firm'"),
    ({"promise": None}, "promise to be one of .*or a promise object, got None"),
    ({"promise": 3}, "or a promise object, got 3; the objects are in rocerf.promises"),
    ({"cost": "l3"}, "cost to be one of l2, l1, mad, percentile or a CostTable, got 'l3'"),
    ({"cost": None}, "cost to be one of l2, l1, mad, percentile or a CostTable, got None"),
    ({"solver": "guess"}, "solver to be one of auto, cutting_plane, sequential, penalty, cells, search, got 'guess'"),
    ({"schema": ["income"]}, "schema to be a FeatureSchema, got list; make one with"),
    *[({"seed": seed}, f"seed to be a whole number >= 0, got {seed!r}") for seed in (-1, 0.5, "x", None)],
    *[
        ({"delta": delta}, "delta to be a number >= 0 or 'calibrate', got .*; 0 asks for no extra margin")
        for delta in (-0.1, np.nan, np.inf, "wide", None, True, [0.1], np.array([0.1, 0.2]))
    ],
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Rocerf(MODEL, 3, **options)


def test_a_promise_about_another_k_would_be_told_wrongly() -> None:
    with pytest.raises(OptionError, match="a promise about k=3 deletions, got one about 2; give both the same k"):
        Rocerf(MODEL, 3, promise=FirstOrder(MODEL, 2))
    with pytest.raises(OptionError, match="got one about 0"):
        Rocerf(MODEL, 3, promise=Plain(MODEL))
    assert Rocerf(MODEL, 2, promise=FirstOrder(MODEL, 2)).settings().k == 2


class Curved(Plain):
    """A promise with slopes that are no cuts."""

    concave = False


class Opaque(Plain):
    """A promise with values only."""

    concave = False
    smooth = False


def test_the_cutting_plane_solver_needs_cuts() -> None:
    with pytest.raises(OptionError, match="solver='sequential' for the promise 'plain', which has no cuts"):
        Rocerf(MODEL, 0, promise=Curved(MODEL), solver="cutting_plane")
    assert Rocerf(MODEL, 0, promise=Curved(MODEL)).solver == "sequential"


@pytest.mark.parametrize("solver", ["cutting_plane", "sequential", "penalty"])
def test_solvers_that_follow_slopes_need_slopes(solver: str) -> None:
    with pytest.raises(OptionError, match="solver='search' for the promise 'plain', which has no slopes"):
        Rocerf(MODEL, 0, promise=Opaque(MODEL), solver=solver)
    assert Rocerf(MODEL, 0, promise=Opaque(MODEL)).solver == "search"


@pytest.mark.parametrize("solver", ["sequential", "penalty", "search"])
def test_a_promise_that_searches_at_every_reading_is_not_read_thousands_of_times(solver: str) -> None:
    with pytest.raises(OptionError, match="solver='cutting_plane' for the promise 'retrained', whose every reading is"):
        Rocerf(MODEL, 2, promise="retrained", solver=solver)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("promise", "solvers"),
    [
        (FirstOrder(MODEL, 2), ["cutting_plane", "sequential", "penalty", "search"]),
        (Curved(MODEL), ["sequential", "penalty", "search"]),
        (Opaque(MODEL), ["search"]),
    ],
)
def test_every_solver_that_can_solve_may_be_named_and_does_solve(promise: Any, solvers: list[str]) -> None:
    costs = []
    for solver in solvers:
        explainer = Rocerf(MODEL, promise.k, promise=promise, solver=solver)
        assert explainer.solver == explainer.settings().solver == solver
        recourses = explainer.explain(PEOPLE)
        assert recourses.answered.all()
        assert (promise.read(recourses.matrix).values >= 0).all()
        costs.append(recourses.costs)
    assert (np.array(costs) < 1.1 * np.min(costs, axis=0)).all()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x0", "x1"], r"the model's 3 columns, got one for 2 \(missing \['x2'\]"),
        (["x0", "x1", "x2", "x3"], r"not in the data \['x3'\]"),
        (["x1", "x0", "x2"], "the order differs"),
    ],
)
def test_a_schema_for_other_columns(names: list[str], message: str) -> None:
    for explainer in (lambda schema: first_order(MODEL, 3, schema=schema), lambda schema: Scfe(MODEL, schema=schema)):
        with pytest.raises(SchemaError, match=message):
            explainer(FeatureSchema.free(names))


@pytest.mark.parametrize("model", [LogisticRegression(), MODEL.train, None, "german"])
def test_not_a_model_of_ours(model: Any) -> None:
    for make in (lambda: first_order(model, 3), lambda: Scfe(model)):
        with pytest.raises(OptionError, match=rf"a rocerf model, got {type(model).__name__}; wrap .*from_sklearn"):
            make()


# --- people as a table ----------------------------------------------------------------------------

BAD_PEOPLE: list[tuple[Any, str]] = [
    (PEOPLE[:, :2], "people with 3 columns as in the training rows, got 2; pass the same columns"),
    (np.column_stack([PEOPLE, PEOPLE]), "people with 3 columns as in the training rows, got 6"),
    (PEOPLE[0], r"a 2-D table .*for one person pass X\.reshape\(1, -1\)"),
    (PEOPLE[None], "a 2-D table"),
    ([["a", "b", "c"]], "a table of numbers for the people"),
    ([[1.0, 2.0, 3.0], [1.0]], "a table of numbers for the people"),
    (None, "for the people"),
    (frame_of(PEOPLE).drop(columns="debt"), "the model's 3 columns, got none named 'debt'; add or rename"),
    (frame_of(PEOPLE, debt="high"), "in column 'debt' .for example 'high'.; encode it as numbers"),
    (frame_of(PEOPLE)[["income", "debt", "age", "debt"]], "each column once, got 'debt' several times; drop"),
]


@pytest.mark.parametrize(("people", "message"), BAD_PEOPLE)
@pytest.mark.parametrize(
    "make", [lambda: first_order(FRAME_MODEL, 3), lambda: Scfe(FRAME_MODEL)], ids=["rocerf", "scfe"]
)
def test_people_that_are_no_table_of_the_model_s_columns(make: Any, people: Any, message: str) -> None:
    with pytest.raises(ColumnError, match=message):
        make().explain(people)


def test_nobody_asking() -> None:
    for people in (np.empty((0, 3)), frame_of(PEOPLE)[:0]):
        recourses = first_order(FRAME_MODEL, 3).explain(people)
        assert len(recourses) == 0
        assert list(recourses) == []
        assert recourses.points.shape == (0, 3)
        assert recourses.answered.shape == recourses.costs.shape == (0,)
        assert recourses.to_frame().shape == (0, 7)


def test_bad_rows_are_answered_and_the_others_go_on() -> None:
    expected = first_order(MODEL, 3).explain(PEOPLE)
    people = np.insert(PEOPLE, [0, 2, 5], np.nan, axis=0)
    people[0] = [np.nan, 1.0, np.inf]
    people[3, 1:] = 1.0
    people[7] = [1.0, -np.inf, 1.0]
    recourses = first_order(MODEL, 3).explain(people)
    bad = [0, 3, 7]
    assert [i for i, status in enumerate(recourses.statuses) if status is Status.INVALID_INPUT] == bad
    said = "the person's values cannot be used: missing or not finite"
    assert [recourses.reasons[i] for i in bad] == [f"{said}: x0, x2", f"{said}: x0", f"{said}: x1"]
    assert np.isnan(recourses.matrix[bad]).all()
    assert np.isnan(recourses.costs[bad]).all()
    good = np.delete(np.arange(8), bad)
    assert recourses.answered[good].all()
    np.testing.assert_allclose(recourses.matrix[good], expected.matrix, atol=1e-9)


def test_many_bad_columns_are_named_in_short() -> None:
    wide = LogisticModel.fit(random_training_set(22, d=8))
    recourses = first_order(wide, 2).explain(np.full((1, 8), np.nan))
    assert recourses.reasons[0].endswith(": x0, x1, x2, x3, x4, ...")


def test_missing_values_of_pandas_are_missing() -> None:
    people = frame_of(PEOPLE.round(), age=pd.array([40, None, 30, 20, None], dtype="Int64"))
    recourses = first_order(FRAME_MODEL, 3).explain(people)
    found = [status is Status.INVALID_INPUT for status in recourses.statuses]
    assert found == [False, True, False, False, True]


def test_a_frame_comes_back_as_a_frame_with_its_index() -> None:
    expected = first_order(MODEL, 3).explain(PEOPLE)
    index = ["e", "a", "d", "b", "c"]
    people = frame_of(PEOPLE, note="hello", extra=1.0).set_axis(index)[["age", "note", "extra", "debt", "income"]]
    recourses = first_order(FRAME_MODEL, 3).explain(people)
    assert isinstance(recourses.points, pd.DataFrame)
    assert list(recourses.points.index) == index
    assert list(recourses.points.columns) == ["age", "debt", "income"]  # the model's columns, in the people's order
    np.testing.assert_allclose(recourses.points[NAMES].to_numpy(), expected.matrix, rtol=1e-9)
    assert list(recourses.to_frame().columns[-3:]) == ["age", "debt", "income"]
    np.testing.assert_array_equal(recourses.people, PEOPLE)
    assert (FRAME_MODEL.score(recourses.points) >= 0).all()


def test_an_array_comes_back_as_an_array() -> None:
    for model in (MODEL, FRAME_MODEL):
        recourses = first_order(model, 3).explain(PEOPLE.tolist())
        assert isinstance(recourses.points, np.ndarray)
        assert recourses.index is None


def test_a_frame_is_matched_by_position_where_the_model_knows_no_names() -> None:
    recourses = first_order(MODEL, 3).explain(frame_of(PEOPLE).set_axis(list("vwxyz")))
    np.testing.assert_array_equal(recourses.matrix, first_order(MODEL, 3).explain(PEOPLE).matrix)
    assert isinstance(recourses.points, pd.DataFrame)
    assert list(recourses.points.index) == list("vwxyz")


def test_the_people_given_are_left_alone() -> None:
    people = PEOPLE.copy()
    first_order(MODEL, 3).explain(people)
    np.testing.assert_array_equal(people, PEOPLE)
    people[0] = 0.0  # still the caller's to write to


# --- people who get a reason instead of a point -----------------------------------------------------


def schema(**rules: Any) -> FeatureSchema:
    """Only x0 may move, by these rules."""
    fixed = [Feature(name, direction="fixed") for name in ("x1", "x2")]
    return FeatureSchema((Feature("x0", **rules), *fixed))


def with_score(model: LogisticModel, score: float) -> np.ndarray:
    """A person at this score, moved there from the mean along x0."""
    slopes, constants = model.halfspaces(model.theta[None])
    person = model.train.X.mean(axis=0)
    person[0] += (score - (slopes[0] @ person + constants[0])) / slopes[0, 0]
    return person[None]


@pytest.mark.parametrize("solver", ["cutting_plane", "penalty"])
def test_already_accepted(solver: str) -> None:
    for explainer in (first_order(MODEL, 3, solver=solver), Scfe(MODEL)):
        recourse = explainer.explain(with_score(MODEL, 0.5))[0]
        assert recourse.status is Status.ALREADY_ACCEPTED
        assert recourse.reason == "the model accepts this person as they are; no change is needed"
        assert not recourse.answered
        assert np.isnan(recourse.point).all()
        assert recourse.changes == ()


def bound_at(score: float) -> dict[str, float]:
    """A bound on x0 that lets a person from ``with_score`` rise to this score and no further."""
    at = float(with_score(MODEL, score)[0, 0])
    return {"upper": at} if with_score(MODEL, score + 1)[0, 0] > at else {"lower": at}


@pytest.mark.parametrize("cost", ["l2", "l1"])
def test_unreachable_not_robust_and_answered_differ_by_the_bound_alone(cost: str) -> None:
    person = with_score(MODEL, -1.0)
    free = first_order(MODEL, 3, cost=cost, schema=schema()).explain(person)[0]
    needed = float(MODEL.score(free.point[None])[0])  # what the promise costs along x0, in score units
    assert needed > 0.05
    for score, status, word in [
        (-0.01, Status.UNREACHABLE, "even by the model as it is today"),
        (needed - 0.01, Status.NOT_ROBUST, "none was found inside the bounds that keeps the promise about deletions"),
        (needed + 0.01, Status.ANSWERED, "keeps the promise"),
    ]:
        recourse = first_order(MODEL, 3, cost=cost, schema=schema(**bound_at(score))).explain(person)[0]
        assert recourse.status is status
        assert word in recourse.reason
        assert np.isfinite(recourse.point).all() == np.isfinite(recourse.cost) == (status is Status.ANSWERED)
    plain = Scfe(MODEL, cost=cost, schema=schema(**bound_at(needed - 0.01))).explain(person)[0]
    assert plain.answered  # the bound is in the way of the promise only


@pytest.mark.slow
def test_the_penalty_solver_gives_up_where_it_cannot_show_impossibility() -> None:
    recourse = first_order(MODEL, 3, solver="penalty", schema=schema(**bound_at(-0.01))).explain(
        with_score(MODEL, -1.0)
    )[0]
    assert recourse.status is Status.GAVE_UP
    assert "without showing that there is none" in recourse.reason


def test_nothing_may_change() -> None:
    frozen = FeatureSchema(tuple(Feature(name, direction="fixed") for name in MODEL.train.columns))
    assert first_order(MODEL, 3, schema=frozen).explain(PEOPLE).statuses == (Status.UNREACHABLE,) * 5


@pytest.mark.parametrize("solver", ["cutting_plane", "penalty"])
def test_contradiction(solver: str) -> None:
    person = with_score(MODEL, -1.0)
    above = schema(direction="increase", upper=float(person[0, 0]) - 1.0)
    below = schema(direction="decrease", lower=float(person[0, 0]) + 1.0)
    for rules in (above, below):
        recourse = first_order(MODEL, 3, schema=rules, solver=solver).explain(person)[0]
        assert recourse.status is Status.CONTRADICTION
        assert "contradict the rules" in recourse.reason
        accepted = first_order(MODEL, 3, schema=rules, solver=solver).explain(with_score(MODEL, 0.5))[0]
        assert accepted.status is Status.ALREADY_ACCEPTED


# --- promises that nobody can be given --------------------------------------------------------------


def few_refused(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """60 rows, so many of them labelled "refused", overlapping the others."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2))
    X[:rows] -= 1.0
    return X, np.where(np.arange(60) < rows, "refused", "granted")


PERSON = np.array([[-30.0, -30.0]])


def test_k_deletions_that_could_remove_a_class_make_the_promise_impossible() -> None:
    X, y = few_refused(4)
    model = LogisticModel.fit(TrainingSet(X, y, favourable="granted"), C=1.0)
    people = np.vstack([PERSON, X.mean(axis=0), [[np.nan, 0.0]]])
    recourses = first_order(model, 4).explain(people)
    assert recourses.statuses == (Status.PROMISE_IMPOSSIBLE, Status.ALREADY_ACCEPTED, Status.INVALID_INPUT)
    expected = "4 deletions can remove every training row labelled 'refused', and then no model can be trained"
    assert recourses.reasons[0] == expected
    assert not recourses.answered.any()
    assert first_order(model, 3).explain(people)[0].status is Status.ANSWERED
    assert Scfe(model).explain(people)[0].status is Status.ANSWERED


def test_an_impossible_promise_is_not_calibrated() -> None:
    X, y = few_refused(4)
    X[:4] -= 2.0
    model = LogisticModel.fit(TrainingSet(X, y, favourable="granted"), C=1.0)
    assert (model.predict(X) == 0).any()
    recourses = first_order(model, 50, delta="calibrate").explain(PERSON)  # half of random deletions leave one class
    assert recourses.statuses == (Status.PROMISE_IMPOSSIBLE,)
    assert recourses.settings.delta == 0.0


def test_the_favourable_class_can_be_the_one_that_vanishes() -> None:
    X, y = few_refused(4)
    model = LogisticModel.fit(TrainingSet(X, y, favourable="refused"), C=1.0)
    reason = first_order(model, 4).explain(X.mean(axis=0)[None])[0].reason
    assert "labelled 'refused'" in reason


@pytest.mark.parametrize("how", ["liblinear", "no intercept"])
def test_a_class_may_vanish_where_the_intercept_is_penalised_or_absent(how: str) -> None:
    X, y = few_refused(4)
    train = TrainingSet(X, y, favourable="granted")
    if how == "liblinear":
        fitted = LogisticRegression(solver="liblinear", tol=1e-10, max_iter=10_000).fit(X, y)
        model = LogisticModel.from_sklearn(fitted, train, retraining="exact")  # scikit-learn could not
    else:
        model = LogisticModel.fit(train, C=1.0, fit_intercept=False)
    recourse = first_order(model, 4).explain(PERSON)[0]
    assert recourse.status is Status.ANSWERED
    assert recourse.margin >= 0
    assert model.without(range(4)).optimality < 1e-9  # and retraining without the class does work
