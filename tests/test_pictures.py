"""Pictures and notebook views: by what they contain."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocerf
from rocerf.errors import FileFormatError


@pytest.fixture(scope="module")
def answers() -> tuple[Any, Any]:
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train)
    people = data.test.frame()
    people = people[model.predict(people) == 0].head(6)
    explainer = rocerf.Rocerf(model, 2, promise="first_order", schema=data.schema, cost="l1")
    return model, explainer.explain(people)


def texts(svg: str) -> str:
    return " ".join(re.findall(r">([^<>]+)</text>", svg))


def test_one_answer_shows_every_change_with_both_values(answers: Any) -> None:
    model, recourses = answers
    recourse = next(r for r in recourses if r.answered)
    picture = recourse.plot(model.train)
    shown = texts(picture.svg)
    for change in recourse.changes:
        assert all(word in shown for word in change.label.split())
        for value in (change.before, change.after):
            assert (value if isinstance(value, str) else f"{value:,.6g}") in shown
        assert str(change) in picture.alt
    assert "training rows" in shown
    assert 'role="img"' in picture.svg
    assert "training rows" not in texts(recourse.plot().svg)


def test_somebody_without_an_answer_is_drawn_with_the_reason(answers: Any) -> None:
    model, _ = answers
    person = np.full((1, len(model.train.columns)), np.nan)
    (recourse,) = rocerf.Rocerf(model, 2, promise="first_order").explain(person)
    assert str(recourse.reason) in recourse.plot().alt
    assert str(recourse.reason) in unescape(recourse._repr_html_())


def test_a_batch_shows_costs_and_the_changes_asked_for_most(answers: Any) -> None:
    _, recourses = answers
    picture = recourses.plot()
    labels = {change.label for recourse in recourses for change in recourse.changes}
    assert any(label.split()[0] in texts(picture.svg) for label in labels)
    assert f"{int(recourses.answered.sum())} of {len(recourses)} people answered" in picture.alt


def test_attacks_say_how_many_survive(answers: Any) -> None:
    model, recourses = answers
    attacks = rocerf.Adversary(model, 2, effort="quick").attack(recourses.points[recourses.answered])
    kept = int((attacks.scores >= 0).sum())
    assert f"{kept} of {len(attacks)} points survive" in attacks.plot().alt
    assert attacks._repr_html_().count("<tr>") == len(attacks) + 1


def test_notebooks_show_texts_of_users_as_text(answers: Any) -> None:
    _, recourses = answers
    html = recourses._repr_html_()
    assert html.count("<tr>") == len(recourses) + 1
    recourse = recourses[0]
    for change in recourse.changes:
        assert change.label.replace("<", "&lt;") in recourse._repr_html_()
    schema = rocerf.FeatureSchema((rocerf.Feature("a<b>"),))
    assert "a&lt;b&gt;" in schema._repr_html_()


def test_pictures_are_kept_in_the_format_of_their_ending(answers: Any, tmp_path: Path) -> None:
    _, recourses = answers
    picture = recourses.plot()
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileFormatError, match="ending in svg, png or pdf"):
        picture.save(tmp_path / "a.xyz")
