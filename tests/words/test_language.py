"""Languages: every one says all that English says, writes its own numbers, and is refused where it does not."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocerf.data.documents import yaml_document
from rocerf.errors import OptionError
from rocerf.words import Language, Said, known_languages, language_named
from rocerf.words.said import from_table, to_table

ENGLISH, GERMAN = language_named("en"), language_named("de")

numbers = st.floats(allow_nan=False, allow_infinity=False)


def filled_in(sentence: Any) -> set[str]:
    texts = [sentence] if isinstance(sentence, str) else [text for form, text in sentence.items() if form != "of"]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


# --- one file a language --------------------------------------------------------------------------


@pytest.mark.parametrize("code", known_languages())
def test_every_language_says_what_english_says(code: str) -> None:
    found = language_named(code)
    assert set(found.sentences) == set(ENGLISH.sentences)
    for key, sentence in ENGLISH.sentences.items():
        assert filled_in(found.sentences[key]) == filled_in(sentence), key
        assert isinstance(found.sentences[key], str) or "other" in found.sentences[key]


@pytest.mark.parametrize("code", known_languages())
def test_no_key_stands_twice_in_a_file(code: str) -> None:
    text = (files("rocerf.words") / f"{code}.yaml").read_text("utf-8")
    assert set(yaml_document(text)["sentences"]) >= {"letters", "recourse", "promises"}


def test_numbers_are_written_alike_in_every_language() -> None:
    """The same digits: a translation that rounds less or more would say something else."""

    def forms(sentence: Any) -> set[tuple[str, str]]:
        texts = [sentence] if isinstance(sentence, str) else [sentence["other"]]
        return {(name, form) for text in texts for _, name, form, _ in Formatter().parse(text) if name and form}

    for key, sentence in ENGLISH.sentences.items():
        assert forms(GERMAN.sentences[key]) == forms(sentence), key


# --- numbers, plurals and dates -------------------------------------------------------------------


@given(numbers)
def test_numbers_are_read_back(value: float) -> None:
    for language in (ENGLISH, GERMAN):
        assert language.parsed(language.number(value)) == value
        assert language.parsed(language.written(value)) == value


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.5, "", "0,5"),
        (2.0, "", "2"),
        (1e-6, "", "1e-06"),
        (1.5e-7, "", "1,5e-07"),
        (10_000, "", "10000"),
        (10_000, ",", "10.000"),
        (1234567.891, ",.2f", "1.234.567,89"),
        (0.000012345, ".2g", "1,2e-05"),
        (0.9534, ".1%", "95,3\N{NO-BREAK SPACE}%"),
        (0.995, ".10g%", "99,5\N{NO-BREAK SPACE}%"),
        (np.float64(0.25), "g", "0,25"),
        ("0.25", "", "0.25"),
        ("v1.2", "g", "v1.2"),
    ],
)
def test_german_numbers_in_sentences(value: Any, form: str, text: str) -> None:
    assert GERMAN.written(value, form) == text


def test_german_numbers_in_letters() -> None:
    assert [GERMAN.number(value) for value in (31234.5, 2024.0, -1234567.0, 0.07)] == [
        "31.234,5",
        "2024",
        "-1.234.567",
        "0,07",
    ]
    assert GERMAN.day(date(2026, 3, 1)) == "1. März 2026"


def test_plural_forms_follow_their_number() -> None:
    assert [GERMAN.say("audit.decisions", k=k) for k in (1, 2)] == ["1 Entscheidung", "2 Entscheidungen"]
    few = replace(
        ENGLISH.replace({"audit.decisions": {"one": "{k} a", "few": "{k} b", "other": "{k} c"}}),
        plural=lambda n: "one" if n == 1 else "few" if n < 5 else "many",
    )
    assert [few.say("audit.decisions", k=k) for k in (1, 3, 7)] == ["1 a", "3 b", "7 c"]
    in_words = ENGLISH.replace({"audit.decisions": {"one": "a single decision", "other": "{k} decisions"}})
    assert in_words.say("audit.decisions", k=1) == "a single decision"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"letters.valid_until": "valid for long"}, r"Expected \{date\} in the sentence letters.valid_until"),
        ({"letters.title": "To {person}"}, "Expected nothing in braces in the sentence letters.title"),
        ({"letters.promise": "{sentence} {k}"}, r"Expected \{sentence\}"),
        ({"letters.answered": "broken {"}, "braces are for {names} only"),
        ({"letters.answered": None}, "Expected a sentence as letters.answered"),
        ({"letters.promise": "{sentence.key}"}, r"Expected \{sentence\}"),
        ({"audit.decisions": {"one": "{k}", "other": "many"}}, r"Expected \{k\}"),
        ({"letters.clsoing": "Bye"}, "keys of sentences that are known, got 'letters.clsoing'"),
    ],
)
def test_sentences_that_drop_or_invent_something_are_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        ENGLISH.replace(changes)


@pytest.mark.parametrize(
    "changes", [{"months": ("January",)}, {"decimal_point": ","}, {"thousands": "5"}, {"day_format": "{day}"}]
)
def test_signs_that_could_not_be_read_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        replace(ENGLISH, **changes)


def test_a_language_that_lacks_a_sentence_is_refused(tmp_path: Path) -> None:
    text = (files("rocerf.words") / "de.yaml").read_text("utf-8")
    (tmp_path / "at.yaml").write_text(text, "utf-8")
    assert Language.read(tmp_path / "at.yaml").code == "at"
    assert Language.read(tmp_path / "at.yaml").sentences == GERMAN.sentences
    lines = text.splitlines(keepends=True)
    (tmp_path / "at.yaml").write_text("".join(line for line in lines if "no_date:" not in line), "utf-8")
    with pytest.raises(OptionError, match=r"the sentence 'letters.no_date' in the language 'at', got none"):
        Language.read(tmp_path / "at.yaml")
    for broken in ("", "sentences: 3", text.replace("months:", "weeks:"), text + "colour: red\n"):
        (tmp_path / "at.yaml").write_text(broken, "utf-8")
        with pytest.raises(OptionError, match=r"laid out as rocerf/words/en.yaml, got .*at.yaml"):
            Language.read(tmp_path / "at.yaml")


@pytest.mark.parametrize("language", ["xx", 3, None])
def test_unknown_languages_are_refused(language: Any) -> None:
    with pytest.raises(OptionError, match=r"a language of letters \(en, de.*\) or a Language, got"):
        language_named(language)


# --- sentences that know what they say ------------------------------------------------------------


def sentence() -> Said:
    check = Said.of("promises.held_out", accepted=np.int64(9), models=10, bound=0.6, confidence=0.95)
    return Said.of("recourse.promise_and_check", promise=Said.of("promises.plain"), check=check)


def test_a_sentence_is_said_in_every_language() -> None:
    said = sentence()
    assert said.startswith(
        "is accepted by the model as it is today; nothing is promised about deletions; accepted by 9"
    )
    assert said.in_language("de").endswith(
        "95\N{NO-BREAK SPACE}% Konfidenz von mindestens 60,0\N{NO-BREAK SPACE}% solcher Modelle"
    )


def test_a_sentence_stays_what_it_is() -> None:
    said = sentence()
    for again in (Said.from_list(said.to_list()), copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert again == said
        assert again.in_language(GERMAN) == said.in_language(GERMAN)


def test_what_was_said_is_the_text() -> None:
    said = sentence()
    table = to_table([said, "plain text"])
    assert table == {said: said.to_list()}
    assert isinstance(from_table(str(said), table), Said)
    for kept in (["promises.plain", {}], ["gone", {}], ["promises.held_out", {}], 3, [3], None):
        assert not isinstance(from_table(str(said), {str(said): kept}), Said)  # of another version, or damaged
    assert from_table("plain text", table) == "plain text"
