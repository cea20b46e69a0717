"""What a schema marks as private is printed nowhere, and letters still say that something was held fixed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from letter_writing import raw_model
from rocerf import Letter, Recourses, Rocerf, portfolio
from rocerf.data.feature import Direction
from rocerf.letters.letter import letter_schema


@pytest.fixture(scope="module")
def given() -> tuple[Rocerf, Recourses]:
    """Answers under a schema with a private number and a private category, whose values are telltale."""
    model, people = raw_model()
    schema = model.schema.edit("age", direction=Direction.FIXED, private=True, label="AGEISHERE")
    schema = schema.edit("home", direction=Direction.FIXED, private=True, label="HOMEISHERE")
    explainer = Rocerf(model, 2, promise="first_order", schema=schema.edit("kids", direction=Direction.FIXED))
    return explainer, explainer.explain(people[:12])


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_form_of_a_letter_prints_what_is_private(given: Any, language: str) -> None:
    explainer, answers = given
    letters = explainer.letters(answers, valid_until=None, language=language)
    told = [letter for letter in letters if letter.options]
    assert told
    for letter in told:
        assert letter.held_unlisted == 2
        assert [detail.feature for detail in letter.held] == ["kids"]
        for text in (letter.to_text(), letter.to_html(), letter.to_json(), letter._repr_html_(), repr(letter)):
            assert not re.search("AGEISHERE|HOMEISHERE|with <parents>|with &lt;parents", text)
        said = "2 further details were taken as they are" if language == "en" else "2 weitere Angaben wurden ebenfalls"
        assert said in " ".join(letter.to_text().split())
        Draft202012Validator(letter_schema()).validate(json.loads(letter.to_json()))
        assert Letter.from_json(letter.to_json()) == letter


def test_a_letter_that_lists_nothing_does_not_say_that_nothing_was_held(given: Any) -> None:
    explainer, answers = given
    letter = next(letter for letter in explainer.letters(answers, valid_until=None) if letter.options)
    alone = replace(letter, held=(), held_unlisted=1)
    text = " ".join(alone.to_text().split())
    assert "One detail was taken as it is" in text
    assert "No detail was held fixed" not in text
    assert "No detail was held fixed" in " ".join(replace(letter, held=(), held_unlisted=0).to_text().split())


def test_pictures_and_pages_do_not_show_it_and_portfolios_compare_it_only_by_name(given: Any) -> None:
    explainer, answers = given
    first = next(answer for answer in answers if answer.answered)
    shown = " ".join([repr(first), first._repr_html_(), answers._repr_html_(), first.plot().alt, answers.plot().alt])
    assert "ISHERE" not in shown
    seen = portfolio(explainer, answers)
    assert {row.attribute for row in seen.groups} == {"kids"}
    assert "ISHERE" not in seen.to_html()
    named = portfolio(explainer, answers, groups=["age"])
    assert named.groups
