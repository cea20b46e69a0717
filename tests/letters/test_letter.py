"""Letters: what they say and what they must not, in text, HTML and JSON, for every way a request can end."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, datetime
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator, ValidationError

import rocerf
from letter_writing import SECRET, raw_model
from rocerf import FeatureSchema, Letter, LogisticModel, Recourses, Rocerf, Status, TrainingSet
from rocerf.errors import DataError, FileFormatError, OptionError
from rocerf.letters.letter import letter_schema
from rocerf.letters.page import sections
from rocerf.promises import Simulated
from rocerf.words import language_named

ENGLISH = language_named("en")

#: How requests end for people who get a letter without an option.
TOLD = [status for status in Status if status not in (Status.ANSWERED, Status.NO_FURTHER)]

ISSUED, UNTIL = date(2026, 11, 15), date(2027, 6, 30)
VALIDATOR = Draft202012Validator(letter_schema())


@pytest.fixture(scope="module")
def pipeline() -> tuple[Rocerf, pd.DataFrame, tuple[Recourses, ...]]:
    """An explainer about a pipeline, raw applicants, and up to two answers for each."""
    model, people = raw_model()
    explainer = Rocerf(model, 2, cost="mad")
    return explainer, people, explainer.alternatives(people[:20], 2)


@pytest.fixture(scope="module")
def letters(pipeline: Any) -> tuple[Letter, ...]:
    explainer, _, batches = pipeline
    return tuple(explainer.letters(batches, valid_until=UNTIL, issued=ISSUED, model_version="v7.1"))


def answered(letters: Any) -> Letter:
    return next(letter for letter in letters if len(letter.options) > 1)


def flat(text: str) -> str:
    return " ".join(text.split())


def every_form(letter: Letter) -> list[str]:
    return [letter.to_text(), letter.to_html(), letter.to_json(), repr(letter)]


# --- what a letter says ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_letter_says_what_to_change_in_words_and_units(pipeline: Any, letters: Any) -> None:
    _, people, batches = pipeline
    seen: set[str] = set()
    for person, letter in enumerate(letters):
        given = [batch[person] for batch in batches if batch.answered[person]]
        assert len(letter.options) == len(given)
        text = letter.to_text()
        row = people.iloc[person]
        for option in letter.options:
            for change in option.changes:
                seen.add(change.feature)
                assert change.label == {"income": "yearly income", "home": "housing", "phone": "telephone"}.get(
                    change.feature, change.feature
                )
                own = row[change.feature]
                if pd.isna(own):
                    assert (change.before, change.before_text) == (None, "not given")
                else:
                    assert change.before == own
                assert f"    now:       {change.before_text}\n    change to: {change.after_text}\n" in text
                if change.feature in ("income", "debt"):
                    assert change.after_text == f"{ENGLISH.number(change.after)} EUR"
                    assert change.unit == "EUR"
                if change.feature == "phone":
                    assert change.after_text in ("yes", "no")
                if change.feature == "home":
                    assert change.after_text == change.after
    assert {"income", "debt", "home"} <= seen


@pytest.mark.slow
def test_options_come_cheapest_first_and_differ(pipeline: Any, letters: Any) -> None:
    explainer, _, batches = pipeline
    swapped = explainer.letters(batches[::-1], valid_until=UNTIL, issued=ISSUED, model_version="v7.1")
    assert swapped == letters
    letter = answered(letters)
    assert "There are 2 options, and one of them is enough." in flat(letter.to_text())
    assert letter.to_text().index("\nOption 1\n") < letter.to_text().index("\nOption 2\n")
    changed = [{change.feature for change in option.changes} for option in letter.options]
    assert not changed[0] <= changed[1]
    twice = explainer.letters((*batches, batches[0]), valid_until=UNTIL, issued=ISSUED, model_version="v7.1")
    assert twice == letters
    alone = explainer.letters(batches[0], valid_until=UNTIL, issued=ISSUED)
    assert "Option 1" not in alone[letters.index(letter)].to_text()


def test_what_was_held_fixed_is_told(pipeline: Any, letters: Any) -> None:
    _, people, _ = pipeline
    for person, letter in enumerate(letters):
        if letter.options:
            (held,) = letter.held
            assert (held.feature, held.value, held.unit) == ("age", people["age"].iloc[person], "years")
            assert f"  - age: {people['age'].iloc[person]} years" in letter.to_text()


def test_what_is_held_follows_the_person() -> None:
    rows = pd.DataFrame({"age": [30, 70, 50, 40], "debt": [9.5, 1.25, 2.0, 7.0], "home": ["a", "b", "b", "a"]})
    schema = (
        FeatureSchema.from_frame(rows)
        .edit("debt", fixed_if="age >= 60")
        .edit("home", changes={"a": ["b"], "b": []}, label="flat")
    )
    model = LogisticModel.fit(TrainingSet(pd.DataFrame(_points(schema, rows), columns=schema.columns), [0, 1, 1, 0]))
    explainer = Rocerf(model, 1, promise="first_order", schema=schema.edit("age", direction="fixed"))
    recourses = explainer.explain(pd.DataFrame(_points(schema, rows), columns=schema.columns))
    statuses = [Status.UNREACHABLE] * 4
    recourses = replace(recourses, statuses=tuple(statuses), matrix=np.full_like(recourses.matrix, np.nan))
    held = [
        {detail.label: detail.text for detail in letter.held}
        for letter in explainer.letters(recourses, valid_until=None)
    ]
    assert held == [
        {"age": "30"},
        {"age": "70", "debt": "1.25", "flat": "b"},
        {"age": "50", "flat": "b"},
        {"age": "40"},
    ]


def _points(schema: FeatureSchema, rows: pd.DataFrame) -> Any:
    from rocerf.data.frames import Frames

    return Frames.of(schema, rows).encode(rows)[0]


def test_without_a_schema_nothing_is_held() -> None:
    train = TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    explainer = Rocerf(LogisticModel.fit(train), 1, promise="first_order")
    (letter,) = explainer.letters(explainer.explain([[0.5]]), valid_until=None)
    assert letter.held == ()
    assert "No detail was held fixed." in letter.to_text()


def test_the_promise_stands_in_its_exact_sentence(pipeline: Any, letters: Any) -> None:
    explainer, _, batches = pipeline
    for person, letter in enumerate(letters):
        for option in letter.options:
            assert option.promise.sentence == batches[0][person].promise == explainer.settings().sentence
            assert (option.promise.name, option.promise.k, option.promise.proven) == ("retrained", 2, False)
            assert option.promise.sentence in flat(letter.to_text())
            for assumption in explainer.settings().assumptions:
                assert assumption in flat(letter.to_text())


def test_validity_and_version(pipeline: Any, letters: Any) -> None:
    explainer, _, batches = pipeline
    text = flat(answered(letters).to_text())
    assert "Date: 15 November 2026" in text
    assert "valid until 30 June 2027." in text
    assert "speaks of version v7.1 of the model" in text
    open_ended = explainer.letters(batches, valid_until=None, issued=ISSUED)
    text = flat(answered(open_ended).to_text())
    assert "names no date until which it is valid" in text
    assert "the model in use on the date of this letter" in text
    today = explainer.letters(batches[0], valid_until=None)
    assert abs((today[0].issued - date.today()).days) <= 1
    timed = explainer.letters(batches[0], valid_until=datetime(2027, 6, 30, 12, 0), issued=ISSUED)
    assert timed[0].valid_until == UNTIL


def test_reasons_are_kept_apart_from_changes(pipeline: Any, letters: Any) -> None:
    explainer, _, batches = pipeline
    letter = answered(letters)
    assert "does not give the reasons for the decision; they come separately" in flat(letter.to_text())
    place = letters.index(letter)
    given = {letter.person: ["debt above <half> of income", "short history"]}
    told = explainer.letters(batches, valid_until=UNTIL, issued=ISSUED, refusal_reasons=given)
    assert told[place].refusal_reasons == ("debt above <half> of income", "short history")
    assert told[place - 1].refusal_reasons is None
    text = told[place].to_text()
    before, _, after = text.partition("The reasons for the decision\n")
    for reason in told[place].refusal_reasons or ():
        assert reason not in before
        assert f"  - {reason}" in after
    assert "they come separately" not in flat(text)
    assert "debt above &lt;half&gt; of income" in told[place].to_html()
    assert all(change not in after for option in letter.options for change in (c.after_text for c in option.changes))
    listed = [["one reason"] for _ in letters]
    assert explainer.letters(batches, valid_until=None, refusal_reasons=listed)[0].refusal_reasons == ("one reason",)


# --- what a letter must not say -------------------------------------------------------------------


def promises(model: LogisticModel) -> list[Rocerf]:
    few = Simulated(validity=0.9, shaping=5, choosing=10, checking=10)
    return [
        Rocerf(model, k, promise=promise)
        for promise, k in (("retrained", 3), ("certified", 1), ("first_order", 3), (few, 3))
    ]


@pytest.fixture(scope="module")
def numbers() -> tuple[LogisticModel, pd.DataFrame]:
    """Rows whose ids are found again wherever they turn up."""
    rng = np.random.default_rng(1)
    ids = [f"{SECRET}{i:03d}QX" for i in range(150)]
    rows = pd.DataFrame(rng.normal(size=(150, 3)) * [10, 1, 5], columns=["a", "b", "c"], index=ids)
    y = (rows @ [0.1, 1.0, 0.1] + rng.normal(size=150) > 0).astype(int)
    people = pd.DataFrame(rng.normal(-1.0, 1.0, (6, 3)) * [10, 1, 5], columns=["a", "b", "c"])
    return LogisticModel.fit(TrainingSet(rows, y)), people


@pytest.mark.slow
def test_no_trace_of_other_people_s_rows(numbers: Any, pipeline: Any, letters: Any) -> None:
    model, people = numbers
    for explainer in promises(model):
        recourses = explainer.explain(people)
        assert recourses.worst_ids is not None
        named = {str(row) for ids in recourses.worst_ids if ids is not None for row in ids}
        assert named or explainer.settings().promise in ("certified", "simulated")
        for letter in explainer.letters(recourses, valid_until=UNTIL):
            for form in every_form(letter):
                assert SECRET not in form
                assert model.train.checksum[:8] not in form
    for letter in letters:
        for form in every_form(letter):
            assert SECRET not in form
            assert pipeline[0].model.train.checksum[:8] not in form


@pytest.mark.slow
def test_proven_is_said_only_where_there_is_a_proof(numbers: Any) -> None:
    model, people = numbers
    proofs = {}
    for explainer in promises(model):
        for letter in explainer.letters(explainer.explain(people), valid_until=UNTIL, model_version="1"):
            text = flat(letter.to_text()).lower()
            assert "guarantee" not in text
            assert "will be accepted" not in text
            for option in letter.options:
                proofs[option.promise.name] = option.promise.proven
                text = text.replace(option.promise.sentence.lower(), "")
                for assumption in option.promise.assumptions:
                    text = text.replace(assumption.lower(), "")
                assert ("is proven to" in option.promise.sentence) == (option.promise.name == "certified")
            assert not re.search(r"\bpro(ven|of|ve)\b", text)
    assert proofs == {"retrained": False, "certified": True, "first_order": False, "simulated": False}


@pytest.mark.slow
def test_options_with_different_sentences_are_told_apart(numbers: Any) -> None:
    model, people = numbers
    few = Simulated(validity=0.7, shaping=5, choosing=10, checking=40)
    explainer = Rocerf(model, 30, promise=few, schema=FeatureSchema.free("abc"))
    batches = explainer.alternatives(people, 2)
    found = explainer.letters(batches, valid_until=UNTIL, digits=1)
    differing = [letter for letter in found if len({option.promise.sentence for option in letter.options}) > 1]
    assert differing
    text = flat(differing[0].to_text())
    for number, option in enumerate(differing[0].options, start=1):
        assert f"An application changed as in option {number} {option.promise.sentence}." in text


def test_english_words_are_exact() -> None:
    for key, sentence in ENGLISH.sentences.items():
        if key.startswith("letters."):
            said = str(sentence).lower()
            assert not re.search(r"guarantee|proven|\bproof|certain|will be accepted|will accept", said), key
            if re.search(r"accept(s|ed)?\b", said):
                assert re.search(r"model in use today|a way to be accepted", said), key


# --- people without an answer ---------------------------------------------------------------------


@pytest.mark.parametrize("status", TOLD)
def test_everybody_gets_a_letter_in_words_of_their_own(numbers: Any, status: Status) -> None:
    model, people = numbers
    explainer = Rocerf(model, 1, promise="first_order")
    recourses = explainer.explain(people)
    nobody = replace(
        recourses,
        statuses=(status,) * len(people),
        reasons=(f"{SECRET}: internal words",) * len(people),
        matrix=np.full_like(recourses.matrix, np.nan),
    )
    letter = explainer.letters(nobody, valid_until=UNTIL, model_version="v1")[0]
    assert (letter.status, letter.options) == (status, ())
    text = flat(letter.to_text())
    assert ENGLISH.say(f"letters.{status.code}") in text
    accepted = status is Status.ALREADY_ACCEPTED
    assert (ENGLISH.say("letters.accepted_today_only") if accepted else "This letter promises nothing.") in text
    assert SECRET not in "".join(every_form(letter))
    assert ENGLISH.say("letters.promise_title") not in text
    assert "valid until" not in text
    assert ("The reasons for the decision" in text) == (status is not Status.ALREADY_ACCEPTED)
    VALIDATOR.validate(json.loads(letter.to_json()))
    others = [ENGLISH.say(f"letters.{other.code}") for other in TOLD if other is not status]
    assert not any(other in text for other in others)


def test_real_requests_that_end_without_an_answer(pipeline: Any) -> None:
    explainer, people, _ = pipeline
    asked = people[:4].copy()
    asked.iloc[0, asked.columns.get_loc("home")] = "castle"
    asked.iloc[1, asked.columns.get_loc("income")] = 89_000.0
    asked.iloc[1, asked.columns.get_loc("debt")] = 0.0
    found = explainer.letters(explainer.explain(asked), valid_until=None)
    assert found[0].status is Status.INVALID_INPUT
    assert found[0].unreadable == ("housing",)
    assert "could not be read:\n  - housing" in found[0].to_text()
    assert found[1].status is Status.ALREADY_ACCEPTED
    fixed = explainer.schema
    for name in fixed.names:
        fixed = fixed.edit(name, direction="fixed")
    stuck = Rocerf(explainer.model, 2, schema=fixed, cost="l1")
    refused = people[explainer.model.predict(people) == 0][:1]
    (letter,) = stuck.letters(stuck.explain(refused), valid_until=None)
    assert letter.status is Status.UNREACHABLE
    assert len(letter.held) == 6
    assert "no judgement of you" in letter.to_text()


# --- JSON -----------------------------------------------------------------------------------------


def test_json_goes_both_ways_and_obeys_its_schema(letters: Any, tmp_path: Any) -> None:
    Draft202012Validator.check_schema(letter_schema())
    for letter in letters:
        text = letter.to_json(tmp_path / "letter.json")
        VALIDATOR.validate(json.loads(text))
        for source in (text, tmp_path / "letter.json", str(tmp_path / "letter.json")):
            again = Letter.from_json(source)
            assert again == letter
            assert again.to_html() == letter.to_html()
    assert set(letter_schema()["properties"]["status"]["enum"]) == {"answered", *(status.code for status in TOLD)}


@pytest.mark.parametrize(
    "spoiled",
    [
        {"format": "rocerf-letter/2"},
        {"options": []},
        {"status": "fine"},
        {"worst_ids": ["row-1"]},
        {"issued": "yesterday"},
        {"person": None},
    ],
)
def test_the_schema_refuses_other_documents(letters: Any, spoiled: dict[str, Any]) -> None:
    document = {**json.loads(answered(letters).to_json()), **spoiled}
    with pytest.raises(ValidationError):
        VALIDATOR.validate(document)


def test_the_schema_knows_proofs_only_from_certificates(letters: Any) -> None:
    document = json.loads(answered(letters).to_json())
    document["options"][0]["promise"]["proven"] = True
    with pytest.raises(ValidationError):
        VALIDATOR.validate(document)
    document["options"][0]["promise"]["name"] = "certified"
    VALIDATOR.validate(document)


@pytest.mark.parametrize("text", ["{}", "{", "nothing.json", '{"format": "rocerf-letter/2"}', '{"format": 3}'])
def test_other_files_are_no_letters(text: str) -> None:
    with pytest.raises(FileFormatError, match="rocerf-letter/1"):
        Letter.from_json(text)


# --- the page -------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects the text; refuses tags that are not closed in order, and anything that loads or runs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.open = "", []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "link", "img", "iframe", "object", "base", "form")
        assert not {name for name, _ in attrs} & {"src", "href", "style", "onclick", "onload", "action"}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += f"{data} "
        else:
            assert "url(" not in data
            assert "@import" not in data


def test_the_page_says_what_the_text_says_and_loads_nothing(letters: Any) -> None:
    for letter in letters:
        page = Page(letter.to_html())
        said, text = flat(page.text), flat(letter.to_text())
        assert letter.to_html().startswith('<!doctype html>\n<html lang="en">')
        for section in sections(letter):
            assert section.title in said
            for part in section.parts:
                for sentence in (getattr(part, "text", ""), *getattr(part, "texts", ())):
                    assert flat(sentence) in said
                    assert flat(sentence) in text
        for option in letter.options:
            for change in option.changes:
                assert f"{change.label} {change.before_text} {change.after_text}" in said


def test_everything_from_data_is_escaped(numbers: Any) -> None:
    model, people = numbers
    evil = "<script>alert('x')</script>&\"{k}"
    schema = (
        FeatureSchema.free(["a", "b", "c"]).edit("a", label=evil, unit=evil).edit("b", direction="fixed", label=evil)
    )
    explainer = Rocerf(model, 1, promise="first_order", schema=schema)
    people = people.set_axis([evil, *range(5)])
    letter = explainer.letters(
        explainer.explain(people), valid_until=UNTIL, model_version=evil, refusal_reasons={evil: [evil]}
    )[0]
    assert letter.options
    page = letter.to_html()
    assert "<script" not in page
    assert Page(page).text.count("alert('x')") == letter.to_text().count("alert('x')") >= 6
    assert Letter.from_json(letter.to_json()).to_text() == letter.to_text()


# --- sentences of one's own -----------------------------------------------------------------------


def test_a_closing_of_one_s_own(pipeline: Any) -> None:
    explainer, _, batches = pipeline
    ours = ENGLISH.replace({"letters.closing": "Questions? Ask Ms. Example."})
    (letter, *_) = explainer.letters(batches[0], valid_until=None, language=ours)
    assert letter.to_text().endswith("\n\nQuestions? Ask Ms. Example.\n")


# --- requests that make no sense ------------------------------------------------------------------


def test_letters_need_the_explainer_that_made_the_recourses(numbers: Any) -> None:
    model, people = numbers
    explainer = Rocerf(model, 2, promise="first_order")
    recourses = explainer.explain(people)
    for other, word in (
        (Rocerf(model, 3, promise="first_order"), "k, 3, got 2"),
        (Rocerf(model, 2), "promise, 'retrained', got 'first_order'"),
        (Rocerf(model, 2, promise="first_order", delta=0.5), "delta, 0.5"),
        (Rocerf(model, 2, promise="first_order", cost="l1"), "cost, 'l1'"),
        (Rocerf(model, 2, promise="first_order", max_changes=1), "max_changes, 1"),
        (
            Rocerf(model, 2, promise="first_order", schema=FeatureSchema.free("abc").edit("a", lower=0)),
            "this explainer's schema",
        ),
        (Rocerf(LogisticModel.fit(model.train, C=0.01), 2, promise="first_order"), "the model the recourses"),
    ):
        with pytest.raises(DataError, match=re.escape(word)):
            other.letters(recourses, valid_until=None)
    with pytest.raises(DataError, match="the same people"):
        explainer.letters((recourses, explainer.explain(people[:3])), valid_until=None)
    again = Recourses.from_json(recourses.to_json())
    assert explainer.letters(again, valid_until=None, issued=ISSUED) == explainer.letters(
        recourses, valid_until=None, issued=ISSUED
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"valid_until": date(2026, 1, 1)}, "valid on the day they are issued"),
        ({"valid_until": "2027-01-01"}, "valid_until as a datetime.date"),
        ({"valid_until": None, "issued": "today"}, "issued as a datetime.date"),
        ({"valid_until": None, "digits": 0}, "digits"),
        ({"valid_until": None, "digits": 16}, "digits from 1 to 15"),
        ({"valid_until": None, "digits": 2.5}, "digits"),
        ({"valid_until": None, "language": 3}, "language"),
        ({"valid_until": None, "refusal_reasons": {"nobody": ["x"]}}, "'nobody'"),
        ({"valid_until": None, "refusal_reasons": [["x"]]}, "for each of 6 people"),
        ({"valid_until": None, "refusal_reasons": "poor!!"}, "for each of 6 people"),
        ({"valid_until": None, "refusal_reasons": 5}, "for each of 6 people"),
        ({"valid_until": None, "refusal_reasons": {2: 3}}, "a list of sentences for each person"),
    ],
)
def test_options_that_make_no_sense(numbers: Any, options: dict[str, Any], word: str) -> None:
    model, people = numbers
    explainer = Rocerf(model, 1, promise="first_order")
    recourses = explainer.explain(people)
    with pytest.raises(OptionError, match=word):
        explainer.letters(recourses, **{"issued": ISSUED, **options})


def test_reasons_by_a_name_that_two_people_have_are_refused(numbers: Any) -> None:
    model, people = numbers
    explainer = Rocerf(model, 1, promise="first_order")
    recourses = explainer.explain(people.set_axis(list("aabcde")))
    with pytest.raises(OptionError, match="names that one person has, got 'a' of several"):
        explainer.letters(recourses, valid_until=None, refusal_reasons={"a": ["x"]})
    assert explainer.letters(recourses, valid_until=None, refusal_reasons={"b": ["x"]})[2].refusal_reasons == ("x",)


def test_letters_without_a_date_do_not_speak_of_one(numbers: Any) -> None:
    model, people = numbers
    explainer = Rocerf(model, 1, promise="first_order")
    letter = next(one for one in explainer.letters(explainer.explain(people), valid_until=None) if one.options)
    assert "When the date has passed" not in flat(letter.to_text())
    assert ENGLISH.say("letters.ask_again_undated") in flat(letter.to_text())


@pytest.mark.slow
def test_details_that_are_not_given_are_named() -> None:
    model, people = raw_model()
    people = people.assign(debt=np.where(np.arange(len(people)) % 2, people["debt"], np.nan))
    gone = people["debt"].isna()
    explainer = Rocerf(model, 1, promise="first_order", schema=model.schema.edit("debt", direction="fixed"))
    found = explainer.explain(people)
    letters = explainer.letters(found, valid_until=None)
    named = [letter.not_given for letter in letters]
    assert [bool(one) for one in named] == (gone.to_numpy() & found.answered).tolist()
    assert any(named)
    text = flat(next(letter for letter in letters if letter.not_given).to_text())
    assert ENGLISH.say("letters.not_given") in text


def test_a_further_batch_alone_makes_no_letters(pipeline: Any) -> None:
    explainer, people, _ = pipeline
    only = explainer.schema
    for name in ("debt", "kids", "home", "phone"):
        only = only.edit(name, direction="fixed")
    alone = Rocerf(explainer.model, 2, promise="first_order", schema=only)
    first, further = alone.alternatives(people[:20], 2)
    assert first.answered.any()
    assert set(further.statuses) >= {Status.NO_FURTHER}
    with pytest.raises(DataError, match=r"all options of .* together, got a further batch"):
        alone.letters(further, valid_until=None)
    assert all(len(letter.options) <= 1 for letter in alone.letters((first, further), valid_until=None))


@pytest.mark.slow
def test_what_has_no_price_was_held_fixed() -> None:
    model, people = raw_model()
    prices = {feature.name: 1.0 for feature in model.schema}
    prices["home"] = {"rent": {"own": 5.0}}
    explainer = Rocerf(model, 1, promise="first_order", cost=rocerf.CostTable(prices))
    asking = people[people["home"].isin(["rent", "own"])]
    for home, letter in zip(
        asking["home"], explainer.letters(explainer.explain(asking), valid_until=None), strict=True
    ):
        if letter.options:
            assert ("home" in {detail.feature for detail in letter.held}) == (home == "own")


@pytest.mark.parametrize("recourses", [(), [None], "answers.json", None, 3])
def test_what_is_no_recourses(numbers: Any, recourses: Any) -> None:
    with pytest.raises(OptionError, match="Expected recourses"):
        Rocerf(numbers[0], 1, promise="first_order").letters(recourses, valid_until=None)


def test_an_explainer_from_disk_writes_the_same_letters(pipeline: Any, letters: Any, tmp_path: Any) -> None:
    explainer, _, batches = pipeline
    explainer.save(tmp_path / "explainer")
    read = [Recourses.from_json(batch.to_json()) for batch in batches]
    again = Rocerf.load(tmp_path / "explainer", model=explainer.model)
    assert again.letters(read, valid_until=UNTIL, issued=ISSUED, model_version="v7.1") == letters
    alone = Rocerf.load(tmp_path / "explainer")  # without the pipeline: the same changes, and it is said
    told = alone.letters(read, valid_until=UNTIL, issued=ISSUED, model_version="v7.1")
    assert [[o.changes for o in letter.options] for letter in told] == [[o.changes for o in x.options] for x in letters]
    assert "the estimator that really retrains the model is not at hand" in next(x for x in told if x.options).to_json()


def test_a_simulated_promise_is_prepared_for_the_check(numbers: Any) -> None:
    model, people = numbers
    recourses = promises(model)[-1].explain(people)
    fresh = promises(model)[-1]
    assert all(
        letter.options for letter in fresh.letters(recourses, valid_until=None) if letter.status is Status.ANSWERED
    )
    assert fresh.promise.factor is not None


def test_german_credit_reads_like_a_letter() -> None:
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    people = data.test.frame()
    denied = people[model.predict(people) == 0].head(2)
    explainer = Rocerf(model, 4, promise="first_order", schema=data.schema, cost="l1")
    letter = explainer.letters(explainer.explain(denied), valid_until=UNTIL, issued=ISSUED)[0]
    assert all(len(line) <= 80 for line in letter.to_text().splitlines())
    assert re.search(r"  credit duration\n    now:       \d+ months\n    change to: \d+ months\n", letter.to_text())
    assert {detail.label for detail in letter.held} == {
        "age",
        "number of people the applicant must provide for",
        "foreign worker (1 yes, 2 no)",
        "credit history",
        "personal status and sex",
    }
