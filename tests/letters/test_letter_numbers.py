"""The numbers of letters: rounded in the safe direction, checked as they are written, and true when read back."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rocerf
from letter_writing import as_read_by_people, as_read_by_programs, put_into, raw_model
from rocerf import FeatureSchema, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.letters.numbers import rounded_number
from rocerf.promises import Simulated
from rocerf.promises.plain import Plain
from rocerf.words import language_named

ENGLISH = language_named("en")

numbers = st.floats(-1e7, 1e7, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-6)


def letters_of(explainer: Rocerf, recourses: Any, **options: Any) -> Any:
    return explainer.letters(recourses, valid_until=None, issued=date(2026, 11, 15), **options)


# --- one number -----------------------------------------------------------------------------------


@given(numbers, numbers, st.integers(1, 8), st.integers(0, 4))
def test_a_rounded_number_lies_farther_on_but_not_much(value: float, own: float, digits: int, further: int) -> None:
    change = value - own
    if abs(change) < 1e-6:
        return
    found = rounded_number(value, own, digits, further=further)
    assert (found - value) * np.sign(change) >= 0
    assert abs(found - value) <= 0.1 * abs(change) * (1 + 1e-9)


@given(numbers, numbers, st.integers(1, 8), st.floats(0, 1), st.floats(0, 1))
def test_a_rounded_number_stays_within_limits(
    value: float, own: float, digits: int, below: float, above: float
) -> None:
    if value == own:
        return
    limits = (min(own, value) - below, max(own, value) + above)
    found = rounded_number(value, own, digits, limits)
    assert limits[0] <= found <= limits[1]
    assert (found > own) == (value > own)
    assert found != own


@pytest.mark.parametrize(
    ("value", "own", "digits", "expected"),
    [
        (31234.567, 20000.0, 3, 31300.0),
        (31234.567, 20000.0, 5, 31235.0),
        (31234.567, 40000.0, 3, 31200.0),
        (31234.567, 31150.0, 3, 31235.0),  # three digits would overshoot the change
        (0.1234, 0.5, 3, 0.123),
        (-2.3456, 1.0, 2, -2.4),
        (1e-17, 5.0, 3, 0.0),  # nothing but a rounding error above 0
        (1500.0, 900.0, 3, 1500.0),
    ],
)
def test_rounding_by_hand(value: float, own: float, digits: int, expected: float) -> None:
    assert rounded_number(value, own, digits) == expected


def test_at_a_limit_it_is_rounded_back() -> None:
    assert rounded_number(145.79, 5681.16, 3, (145.79, np.inf)) == 146.0
    assert rounded_number(145.7912, 146.0, 3, (145.7912, np.inf)) == 145.8
    assert rounded_number(0.3, 0.2, 3, (0.2, 0.3)) == 0.3
    assert rounded_number(7.123, 5.0, 2, (7.123, 7.123)) == 7.123  # nowhere else to go


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_numbers_are_read_back_exactly(value: float) -> None:
    assert ENGLISH.parsed(ENGLISH.number(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (2024.0, "2024"),
        (12345.0, "12,345"),
        (-1234567.25, "-1,234,567.25"),
        (1e-7, "0.0000001"),
    ],
)
def test_numbers_as_people_write_them(value: float, text: str) -> None:
    assert ENGLISH.number(value) == text


# --- every number of a letter, read back and judged again -----------------------------------------


def assert_true(explainer: Rocerf, recourses: Any, letters: Any) -> int:
    """Read every option back from JSON and from the text, put it into the person's row, judge it anew; how many."""
    batches = recourses if isinstance(recourses, tuple) else (recourses,)
    schema = batches[0].schema
    lower, upper = schema.box(np.nan_to_num(batches[0].people))
    count = 0
    for person, letter in enumerate(letters):
        own = batches[0].people[person]
        told = as_read_by_programs(letter)
        assert told == as_read_by_people(letter, schema)
        for option in told:
            point = put_into(schema, own, option)
            assert (lower[person] <= point).all()
            assert (upper[person] >= point).all()
            assert explainer.model.predict(point[None])[0] == 1
            assert explainer.promise.read(point[None], explainer.delta).values[0] >= explainer.delta
            whole = [f.kind != "continuous" for f in schema.column_features]
            assert (point[whole] == np.rint(point[whole])).all()
            count += 1
    return count


PROMISES = [("first_order", 4), ("retrained", 2), ("certified", 1), ("plain", 0)]


@pytest.fixture(scope="module")
def german() -> tuple[Any, LogisticModel, FeatureSchema]:
    """German credit with amounts and durations as numbers with decimals."""
    data = rocerf.load_dataset("german")
    schema = data.schema.edit("amount", kind="continuous").edit("duration", kind="continuous")
    return data, LogisticModel.fit(data.train), schema


@pytest.mark.parametrize(("promise", "k"), PROMISES)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_number_of_german_letters_is_true(german: Any, promise: Any, k: int, seed: int) -> None:
    data, model, schema = german
    people = data.test.frame()
    denied = people[model.predict(people) == 0].sample(8, random_state=seed)
    cost = "l1" if seed else "l2"
    given = Plain(model) if promise == "plain" else promise
    explainer = Rocerf(model, k, promise=given, schema=schema, cost=cost)
    recourses = explainer.explain(denied)
    letters = letters_of(explainer, recourses)
    assert [letter.status for letter in letters] == list(recourses.statuses)
    assert assert_true(explainer, recourses, letters) == recourses.answered.sum() > 5
    assert any(option.rounded for letter in letters for option in letter.options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"cost": "l1", "max_changes": 2}, {"cost": "mad", "delta": 0.2}])
def test_every_number_of_letters_about_a_pipeline_is_true(options: dict[str, Any]) -> None:
    model, people = raw_model()
    explainer = Rocerf(model, 2, **options)
    batches = explainer.alternatives(people[:15], 2)
    letters = letters_of(explainer, batches)
    assert assert_true(explainer, batches, letters) == sum(batch.answered.sum() for batch in batches) > 10
    # And in the user's own columns and types, by the user's own pipeline.
    accepted = 0
    for name, letter in zip(people.index, letters, strict=False):
        for option in as_read_by_programs(letter):
            row = people.loc[[name]].copy()
            for column, value in option.items():
                row[column] = value
            assert (row.dtypes == people.dtypes).all()
            assert model.parts.deployed.pipeline.predict(row)[0] == "granted"
            accepted += 1
    assert accepted > 10


def test_every_number_is_true_and_checked_by_other_models_for_the_simulated_promise(two_numbers: Any) -> None:
    model, _ = two_numbers
    people = pd.DataFrame(np.random.default_rng(5).normal([40, 4.5], [5, 0.5], (12, 2)), columns=["a", "b"])
    explainer = Rocerf(model, 10, promise=Simulated(validity=0.9, shaping=5, choosing=10, checking=10))
    recourses = explainer.explain(people)
    letters = letters_of(explainer, recourses, digits=1)
    assert assert_true(explainer, recourses, letters) == recourses.answered.sum() > 5
    fared = [letter.options[0].promise.sentence for letter in letters if letter.options]
    # What the checking models say is about the rounded point, not about the one before.
    points = [put_into(recourses.schema, recourses.people[i], as_read_by_programs(letters[i])[0])
              for i in np.flatnonzero(recourses.answered)]  # fmt: skip
    counts = explainer.promise.held_out(np.array(points)).accepted
    assert (counts != recourses.held_out.accepted[recourses.answered]).any()
    assert all(f"accepted by {count} of 10 models" in said for count, said in zip(counts, fared, strict=True))


@pytest.mark.slow
def test_every_number_is_true_for_a_network(network: Any) -> None:
    X = np.random.default_rng(3).normal(size=(60, 2)) * [2.0, 20.0] + [0.0, 5.0]
    denied = X[network.predict(X) == 0][:6]
    explainer = Rocerf(network, 3, promise="local_linear")
    recourses = explainer.explain(denied)
    letters = letters_of(explainer, recourses)
    answered = [person for person, letter in enumerate(letters) if letter.options]
    assert len(answered) > 2
    for person in answered:
        (option,) = as_read_by_programs(letters[person])
        point = put_into(recourses.schema, denied[person], option)
        assert network.predict(point[None])[0] == 1
        assert explainer.promise.for_person(denied[person]).read(point[None]).values[0] >= 0


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from(["l2", "l1"]))
def test_small_random_problems(seed: int, digits: int, cost: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) * 10.0 ** rng.integers(-3, 6, 3)
    y = (X / X.std(axis=0) @ rng.normal(size=3) + rng.normal(size=60) > 0).astype(int)
    model = LogisticModel.fit(TrainingSet(pd.DataFrame(X, columns=["a", "b", "c"]), y))
    schema = FeatureSchema.from_frame(pd.DataFrame(X, columns=["a", "b", "c"]), quantiles=(0.02, 0.98))
    explainer = Rocerf(model, 1, promise="first_order", schema=schema, cost=cost)
    recourses = explainer.explain(X[:10])
    letters = letters_of(explainer, recourses, digits=digits)
    assert assert_true(explainer, recourses, letters) == recourses.answered.sum()


# --- what was checked is what is said -------------------------------------------------------------


@pytest.fixture
def two_numbers() -> tuple[LogisticModel, pd.DataFrame]:
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"a": rng.normal(50, 10, 200), "b": rng.normal(5, 1, 200)})
    y = (rows["a"] / 10 + rows["b"] + rng.normal(size=200) > 10).astype(int)
    return LogisticModel.fit(TrainingSet(rows, y)), pd.DataFrame({"a": [40.123], "b": [4.5678]})


def decimals(value: float) -> int:
    return len(ENGLISH.number(value).partition(".")[2])


def test_more_digits_where_the_rounded_point_breaks_a_relation(two_numbers: Any) -> None:
    model, person = two_numbers
    free = FeatureSchema.free(["a", "b"])
    exact = Rocerf(model, 1, schema=free).explain(person)
    (plain,) = letters_of(Rocerf(model, 1, schema=free), exact)
    total = float(exact.matrix[0].sum())
    # A budget on the sum that leaves the optimum where it is but no room for three digits.
    tight = Rocerf(model, 1, schema=free.relate(f"a + b <= {total + 4e-4!r}"))
    recourses = tight.explain(person)
    (letter,) = letters_of(tight, recourses)
    to = {change.feature: change.after for change in letter.options[0].changes}
    rounded = {change.feature: change.after for change in plain.options[0].changes}
    assert sum(rounded.values()) > total + 4e-4 >= sum(to.values())
    assert max(map(decimals, to.values())) > max(map(decimals, rounded.values()))
    assert letter.options[0].rounded


def test_the_exact_point_where_nothing_rounded_will_do(two_numbers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, person = two_numbers
    explainer = Rocerf(model, 1)
    recourses = explainer.explain(person)
    score = model.deployed_score
    monkeypatch.setattr(
        type(model), "deployed_score", lambda _, X: np.where((recourses.matrix[:1] == X).all(axis=1), score(X), -1.0)
    )
    (letter,) = letters_of(explainer, recourses)
    assert [change.after for change in letter.options[0].changes] == recourses.matrix[0].tolist()
    assert not letter.options[0].rounded
    assert ENGLISH.say("letters.rounded") not in letter.to_text()


@pytest.mark.parametrize("what", ["model", "promise", "rules"])
def test_no_change_is_named_that_fails_when_checked_again(
    two_numbers: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    model, person = two_numbers
    explainer = Rocerf(model, 1, promise="first_order")
    recourses = explainer.explain(person)
    assert recourses.answered.all()
    if what == "model":
        monkeypatch.setattr(type(model), "deployed_score", lambda _, X: np.full(len(X), -1e-9))
    elif what == "promise":
        monkeypatch.setattr(explainer.promise, "check", lambda X, *_: np.full(len(X), -1e-9))
    else:
        monkeypatch.setattr(
            "rocerf.recourse.master.feasible_set.FeasibleSet.holds", lambda self, X: np.zeros(len(X), bool)
        )
    (letter,) = letters_of(explainer, recourses)
    assert letter.status is Status.GAVE_UP
    assert letter.options == ()


def test_whole_numbers_steps_and_categories_are_not_rounded(two_numbers: Any) -> None:
    model, person = two_numbers
    schema = FeatureSchema.free(["a", "b"]).edit("a", step=0.7).edit("b", kind="integer")
    explainer = Rocerf(model, 1, schema=schema)
    recourses = explainer.explain(person.assign(b=4.0))
    (letter,) = letters_of(explainer, recourses, digits=1)
    to = {change.feature: change.after for change in letter.options[0].changes}
    np.testing.assert_allclose([to.get("a", 40.123), to.get("b", 4)], recourses.matrix[0], rtol=1e-12)
    assert decimals(to["a"]) == 3  # 40.123 and whole steps of 0.7, without the dust of binary fractions
    assert not letter.options[0].rounded


def test_a_step_beside_a_number_leaves_the_number_to_be_rounded(two_numbers: Any) -> None:
    model, person = two_numbers
    explainer = Rocerf(model, 1, schema=FeatureSchema.free(["a", "b"]).edit("a", step=0.7))
    recourses = explainer.explain(person)
    (letter,) = letters_of(explainer, recourses)
    to = {change.feature: change.after for change in letter.options[0].changes}
    np.testing.assert_allclose(to["a"], recourses.matrix[0, 0], rtol=1e-12)
    assert to["b"] > recourses.matrix[0, 1]
    assert decimals(to["b"]) == 2
    assert letter.options[0].rounded


def test_a_person_s_own_numbers_are_shown_with_few_digits_but_kept_exactly(two_numbers: Any) -> None:
    model, person = two_numbers
    schema = FeatureSchema.free(["a", "b"]).edit("a", direction="fixed")
    explainer = Rocerf(model, 1, schema=schema)
    (letter,) = letters_of(explainer, explainer.explain(person.assign(a=1 / 3, b=0.1 + 0.2)))
    (change,), (held,) = letter.options[0].changes, letter.held
    assert (change.before, change.before_text) == (0.1 + 0.2, "0.3")
    assert (held.value, held.text) == (1 / 3, "0.333333")
    (letter,) = letters_of(explainer, explainer.explain(person.assign(a=-1293903.04, b=0.1234567890123)))
    assert letter.held[0].text == "-1,293,903.04"


def test_a_small_change_is_told_from_the_own_number_as_it_is(two_numbers: Any) -> None:
    model, person = two_numbers
    schema = FeatureSchema.free(["a", "b"]).edit("a", direction="fixed")
    explainer = Rocerf(model, 0, promise=Plain(model), schema=schema)
    edge = explainer.explain(person).matrix[0, 1]
    near = person.assign(b=edge - 1e-5)  # all but accepted
    (letter,) = letters_of(explainer, explainer.explain(near))
    ((change,),) = (option.changes for option in letter.options)
    assert ENGLISH.parsed(change.before_text) == near["b"].iloc[0]
    assert ENGLISH.parsed(change.after_text) == change.after


def test_what_has_not_changed_is_as_it_was(german: Any) -> None:
    data, model, schema = german
    people = data.test.frame()
    denied = people[model.predict(people) == 0].head(6)
    explainer = Rocerf(model, 4, promise="first_order", schema=schema, cost="l1")
    recourses = explainer.explain(denied)
    for person, letter in enumerate(letters_of(explainer, recourses)):
        changed = {change.feature for option in letter.options for change in option.changes}
        assert changed == {change.feature for change in recourses[person].changes}
        for option in letter.options:
            for change in option.changes:
                if change.feature in denied.columns:
                    assert change.before == denied.iloc[person][change.feature]
        for detail in letter.held:
            if detail.feature in denied.columns:
                assert detail.value == denied.iloc[person][detail.feature]


@pytest.mark.slow
def test_fewer_digits_cost_a_little_more(german: Any) -> None:
    data, model, schema = german
    people = data.test.frame()
    denied = people[model.predict(people) == 0].head(6)
    explainer = Rocerf(model, 4, promise="first_order", schema=schema)
    recourses = explainer.explain(denied)
    written = [
        [ENGLISH.number(c.after) for letter in letters_of(explainer, recourses, digits=digits) for o in letter.options
         for c in o.changes if c.feature == "amount"]
        for digits in (1, 3, 6)
    ]  # fmt: skip
    lengths = [np.mean([len(text.replace(",", "").replace(".", "").strip("0")) for text in texts]) for texts in written]
    assert lengths[0] < lengths[1] < lengths[2]


def test_plain_counterfactuals_get_letters_that_promise_nothing(two_numbers: Any) -> None:
    model, person = two_numbers
    recourses = Scfe(model).explain(person)
    explainer = Rocerf(model, 0, promise=Plain(model))
    (letter,) = letters_of(explainer, recourses)
    assert "nothing is promised about deletions" in letter.options[0].promise.sentence
    assert assert_true(explainer, recourses, (letter,)) == 1
