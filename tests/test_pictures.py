"""Pictures and notebook views: by what they contain."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocerf
from rocerf.errors import DataError, FileFormatError, OptionError
from rocerf.recourse.change import Change
from rocerf.recourse.pictures import _bins, _legend


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
        assert change.brief in picture.alt
    assert "training rows" in shown
    assert 'role="img"' in picture.svg
    assert "training rows" not in texts(recourse.plot().svg)


@pytest.mark.parametrize(("low", "high"), [(0, 29), (19, 83), (0, 999), (5, 5)])
def test_the_shade_of_whole_numbers_has_no_holes_where_rows_are(low: int, high: int) -> None:
    evenly = np.repeat(np.arange(low, high + 1), 3).astype(float)
    counts, _ = np.histogram(evenly, bins=_bins(evenly, low, high))
    assert counts.sum() == len(evenly)
    assert len(set(counts[:-1])) <= 1  # but for the last bin, which the end of the line may cut
    assert len(_bins(evenly + 0.25, low, high)) == 41


def test_marks_that_are_not_drawn_are_not_explained() -> None:
    """Of categories there is neither a line with ends nor a shade of training rows."""
    words, number = (0.0, 1.0, None), (3.0, 9.0, None)
    assert _legend([words]) == "from the square to the triangle"
    assert "the line spans" in _legend([words, number])
    assert "shade" not in _legend([words, number])
    assert _legend([words, (3.0, 9.0, np.ones(4))]).endswith("the shade is where training rows are")


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


def test_an_answer_is_told_in_few_digits_and_changes(answers: Any) -> None:
    _, recourses = answers
    moved = [Change("a", f"column {place}", 1.0, 0.1 + 1e6 / 7**place, "EUR") for place in range(30)]
    recourse = replace(recourses[0], changes=tuple(moved))
    said = repr(recourse)
    assert "column 0: 1 EUR -> 1000000 EUR; column 1: 1 EUR -> 142857 EUR; column 2: 1 EUR -> 20408.3 EUR" in said
    assert said.endswith("; and 24 more)")
    assert len(said) < 300
    for view in (recourse._repr_html_(), replace(recourse, changes=tuple(moved[:3])).plot().alt):
        assert "20408.3 EUR" in view
        assert not re.search(r"\.\d{8}", view.partition("Cost")[0])
    nearly = Change("a", "a", 0.3, 0.3000000001)
    assert nearly.brief == str(nearly)  # what six digits cannot tell apart keeps all of them


def test_who_has_no_answer_is_not_attacked(answers: Any) -> None:
    model, recourses = answers
    people = np.asarray(recourses.people)
    people = np.vstack([people[:2], np.full(people.shape[1], np.nan), people[2:3]])
    some = rocerf.Rocerf(model, 2, promise="first_order").explain(people)
    assert some.answered.tolist() == [True, True, False, True]
    adversary = rocerf.Adversary(model, 2, effort="quick")
    np.testing.assert_array_equal(adversary.attack(some).scores, adversary.attack(some.matrix[some.answered]).scores)
    with pytest.raises(DataError, match="a recourse with a point to attack, got Recourse"):
        adversary.attack(some[2])
    with pytest.raises(DataError, match="got 1 that are missing altogether"):
        adversary.attack(some.matrix)


def test_comparisons_show_themselves_in_a_line_and_in_notebooks(answers: Any) -> None:
    model, recourses = answers
    seen = rocerf.evaluation.worst_deletions(model, {"mine": recourses}, 3)
    assert repr(seen) == f"WorstDeletions(accepted after the worst 3 found: mine {seen.accepted('mine')[3]:.0%})"
    assert "<th>after 3</th>" in seen._repr_html_()
    found = rocerf.evaluation.compare(model, recourses.people, 2, methods=["scfe", "margin"], trials=2)
    assert repr(found) == f"Comparison(scfe, margin on {found.people} refused people; k=2 of 800 rows)"
    assert found._repr_html_().count("<tr>") == 3
    assert f"{found.rows[0]['l2']:.3g}" in found._repr_html_()


def test_attacks_say_how_many_survive(answers: Any) -> None:
    model, recourses = answers
    attacks = rocerf.Adversary(model, 2, effort="quick").attack(recourses.points[recourses.answered])
    kept = int((attacks.scores >= 0).sum())
    assert f"{kept} of {len(attacks)} points survive" in attacks.plot().alt
    assert attacks._repr_html_().count("<tr>") == len(attacks) + 1
    for place, attack in enumerate(attacks):
        word = "accepted" if attacks.scores[place] >= 0 else "refused"
        assert word in attack.plot().alt
        shown = attack._repr_html_()
        assert f"<td>{word}</td>" in shown
        assert not any(f">{row}<" in shown for row in attack.deleted_ids)  # other people's rows are not named


def test_scores_after_the_worst_deletions_are_those_of_models_really_retrained(answers: Any) -> None:
    """Held against an oracle: the rows that the adversary names are deleted, and the model is retrained."""
    model, recourses = answers
    people = np.asarray(recourses.people)
    plain = rocerf.Rocerf(model, 2, promise="plain").explain(people)
    robust = rocerf.Rocerf(model, 2, promise="retrained").explain(people)
    seen = rocerf.evaluation.worst_deletions(model, {"plain": plain, "retrained": robust}, 3, seed=5)
    assert seen.most == 3
    assert seen.promised == {"retrained": 2}
    for name, given in (("plain", plain), ("retrained", robust)):
        points = given.matrix[given.answered]
        lowest = model.score(points)
        for size in range(4):
            if size:
                found = rocerf.Adversary(model, size, effort="quick", seed=5).attack(points).deleted_ids
                retrained = [model.without(ids).score(points[[place]])[0] for place, ids in enumerate(found)]
                lowest = np.minimum(lowest, retrained)
            np.testing.assert_allclose(seen.scores[name][size], lowest, atol=1e-9)
    assert seen.accepted("plain")[2] == 0.0
    assert seen.accepted("retrained")[2] == 1.0
    picture = seen.plot()
    assert "promised: 2" in texts(picture.svg)
    assert "plain 100% and 0%" in picture.alt
    with pytest.raises(OptionError, match="at least one method"):
        rocerf.evaluation.worst_deletions(model, {}, 3)
    with pytest.raises(DataError, match="'none' to attack, got missing values"):
        rocerf.evaluation.worst_deletions(model, {"none": np.full((1, people.shape[1]), np.nan)}, 3)


def test_a_portfolio_says_how_many_keep_their_answer(answers: Any) -> None:
    model, recourses = answers
    explainer = rocerf.Rocerf(model, 2, promise="first_order", schema=recourses.schema, cost="l1")
    seen = rocerf.portfolio(explainer, recourses, groups=["age"])
    picture = seen.plot()
    assert f"{seen.answered} have a recourse, {seen.survived} survived" in picture.alt
    for row in seen.groups:
        assert row.group in texts(picture.svg)
        assert row.group in unescape(seen._repr_html_())
    assert "tested, not proven" in seen._repr_html_()


def test_letters_and_pictures_show_themselves_in_notebooks(answers: Any) -> None:
    model, recourses = answers
    explainer = rocerf.Rocerf(model, 2, promise="first_order", schema=recourses.schema, cost="l1")
    (letter, *_) = explainer.letters(explainer.explain(np.asarray(recourses.people)[:1]), valid_until=None)
    assert unescape(letter._repr_html_()) == f"<pre>{letter.to_text()}</pre>"
    shown = recourses.plot()._repr_html_()
    assert shown.startswith("<figure><svg")
    assert 'aria-label="' in shown


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
