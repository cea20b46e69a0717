"""The demonstration: sane figures, a page that says what is promised, and nobody's row in it."""

from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import rocerf
from rocerf import TrainingSet
from rocerf.data.schema import Direction, Kind
from rocerf.evaluation import demo as demonstration
from rocerf.evaluation.demo import FRACTIONS, Demo, amounts_only, run_demo
from rocerf.evaluation.plots import draw_costs, draw_survival
from rocerf.evaluation.report import demo_report, write_demo_report

pytestmark = pytest.mark.slow  # minutes of retraining and of commands

SECRET = "TRAINROW"
PEOPLE = 4


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo(trials=3, people=PEOPLE)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Demo]:
    """Makes a demonstration that takes seconds: two promises, a quick adversary, few deletions."""
    monkeypatch.setattr(demonstration, "WAYS", (("first_order", "0.5%"), ("retrained", "0.5%")))
    monkeypatch.setattr(demonstration, "AUDIT_EFFORT", "quick")
    monkeypatch.setattr(demonstration, "MOST_DELETIONS", 5)
    return partial(run_demo, trials=3, people=PEOPLE)


@pytest.mark.slow
def test_the_figures_are_sane(demo: Demo) -> None:
    assert (demo.denied, demo.applicants, demo.trials, demo.seed) == (PEOPLE, 200, 3, 0)
    assert 0.7 < demo.accuracy < 0.85
    promises = ["plain", "plain", "first_order", "first_order", "retrained", "retrained", "certified"]
    assert [method.recourses.settings.promise for method in demo.methods] == promises
    assert [method.recourses.settings.k for method in demo.methods] == [0, 0, 4, 16, 4, 16, 1]
    costs = np.array([method.recourses.costs for method in demo.methods])
    assert np.isfinite(costs).all()  # everybody is answered where everything may change
    plain, rival, first, first_more, kept, kept_more, proven = costs
    assert rival.mean() == pytest.approx(kept.mean(), rel=2e-3)  # for the same money
    assert np.ptp(demo.method("margin").recourses.scores) < 0.01  # and one margin for everybody
    assert (plain < proven).all()
    assert (plain < first).all()
    assert (first < kept).all()
    assert (first_more < kept_more).all()
    assert (kept < kept_more).all()
    for method in demo.methods:
        assert method.mean_cost == pytest.approx(method.recourses.costs.mean())
        assert [v.fraction for v in method.validity] == list(FRACTIONS)
        assert [len(v.by_trial) for v in method.validity] == [1, 3, 3, 3, 3, 3]
        assert method.validity[0].mean == 1.0
    assert 0.1 < np.mean([v.mean for v in demo.methods[0].validity[1:]]) < 0.9
    assert min(v.mean for v in demo.method("retrained 0.5%").validity) >= 0.95


def test_worst_case_deletion_tells_the_promises_apart(demo: Demo) -> None:
    for key in ("plain", "first_order 0.5%", "first_order 2%"):
        assert demo.method(key).survivors == 0
    for key in ("retrained 0.5%", "retrained 2%", "certified 1"):
        method = demo.method(key)
        assert method.survivors == PEOPLE
        assert (method.survived >= method.audited_k).all()
        assert method.share_after(method.audited_k) == 1.0
    assert demo.method("plain").share_after(1) == 0.0
    assert demo.method("first_order 0.5%").share_after(4) == 0.0
    assert "does not close" in demo.abstention


@pytest.mark.slow
def test_one_person_is_enough(small: Callable[..., Demo]) -> None:
    demo = small(trials=1, people=1)
    assert (demo.denied, demo.refused, demo.applicants) == (1, 45, 200)
    assert demo.example is None  # amounts and durations alone do not serve the first of them
    page = demo_report(demo)
    assert "45 of 200 applicants refused, the first 1 of them shown" in page
    assert "nobody of those shown can be answered" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()
    assert demo.to_dict()["refused"] == 45


def test_the_example_is_one_person_under_two_methods(demo: Demo) -> None:
    example = demo.example
    assert example is not None
    assert 1 <= example.number <= demo.denied
    assert 0 < example.answered <= demo.denied
    np.testing.assert_array_equal(example.plain.person, example.robust.person)
    assert example.plain.cost < example.robust.cost
    for recourse in (example.plain, example.robust):
        assert recourse.answered
        for change in recourse.changes:
            assert demo.dataset.schema[change.feature].kind in (Kind.CONTINUOUS, Kind.INTEGER)
            assert change.unit == demo.dataset.schema[change.feature].unit


def test_amounts_only_fixes_every_category(demo: Demo) -> None:
    fixed = [f.direction is Direction.FIXED for f in amounts_only(demo.dataset.schema) if f.kind is Kind.BINARY]
    assert len(fixed) > 40
    assert all(fixed)


def test_the_dictionary_is_json(demo: Demo) -> None:
    document = demo.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["data_checksum"] == demo.dataset.train.checksum
    for method, shown in zip(demo.methods, document["methods"], strict=True):
        assert shown["mean_cost"] == method.mean_cost
        assert shown["answered"] == PEOPLE
        assert shown["worst_case"]["survive"] == method.survivors
        assert [float(fraction) for fraction in shown["validity"]] == list(FRACTIONS)
        assert shown["validity"]["0.02"] == [method.validity[3].mean, method.validity[3].standard_error]


@pytest.mark.slow
def test_the_seed_decides_the_deletions_and_nobody_is_named(
    small: Callable[..., Demo], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same again with ids of rows that cannot be mistaken for anything else; and with another seed."""
    calls: list[tuple[str, int, int]] = []
    first, other = small(progress=lambda *call: calls.append(call)), small(seed=1).to_dict()
    assert calls[:16] == [("random deletions", done, 16) for done in range(1, 17)]
    assert calls[16:] == [("worst deletions", done, 4) for done in range(1, 5)]
    assert other["methods"][0]["validity"] != first.to_dict()["methods"][0]["validity"]
    assert other["methods"][0]["mean_cost"] == first.methods[0].mean_cost
    data = rocerf.load_dataset("german")
    ids = [f"{SECRET}-{i}" for i in range(len(data.train))]
    marked = dataclasses.replace(data, train=TrainingSet(data.train.frame(), data.train.y.astype(int), ids))
    monkeypatch.setattr(demonstration, "load_dataset", {"german": marked}.__getitem__)
    again = small()
    assert again.to_dict() == first.to_dict()
    assert demo_report(again) == demo_report(first)
    assert SECRET in str(again.method("retrained 0.5%").recourses[0].worst_ids)  # they are known inside
    assert SECRET not in demo_report(again)
    assert SECRET not in json.dumps(again.to_dict())


# --- the page ---------------------------------------------------------------------------------------


def words_of(page: str) -> str:
    """The page's text without tags, drawings and styles, white space made even."""
    page = re.sub(r"<(svg|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", page).split())


def test_the_report_says_exactly_what_is_promised(demo: Demo) -> None:
    text = words_of(demo_report(demo))
    for method in demo.methods:
        settings = method.recourses.settings
        if settings.k in (0, 1, 4):
            assert escape(settings.sentence) in text
    assert escape("not a proof, and the worst deletions can break it") in text
    assert "this is tested, not proven" in text
    # "proven" is said of the certificate alone, and where it is denied.
    for place in re.finditer("proven", text):
        around = text[max(0, place.start() - 60) : place.end() + 25]
        assert any(word in around for word in ("is proven to stay accepted", "not proven", "nothing is proven")), around


def test_the_report_shows_the_figures(demo: Demo) -> None:
    page = demo_report(demo)
    for method in demo.methods:
        row = re.search(rf"<tr><td>{escape(method.name)}</td>(.*?)</tr>", page)
        assert row is not None
        cells = re.findall(r"<td>(.*?)</td>", row[1])
        assert cells[0] == f"{method.mean_cost:.2f}"
        assert cells[1:-1] == [f"{validity.mean:.1%}" for validity in method.validity[1:]]
        assert cells[-1] == f"{method.survivors} of {PEOPLE} (k = {method.audited_k})"
    text = words_of(page)
    assert f"decides about new applicants: 45 of 200 applicants refused, the first {PEOPLE} of them shown" in text
    assert f"refused applicant number {demo.example.number}" in text
    for change in demo.example.robust.changes:
        assert escape(change.label) in text
    assert demo.dataset.train.checksum[:16] in text


def test_the_report_is_written_where_it_was_asked_for(demo: Demo, tmp_path: Path) -> None:
    path = write_demo_report(demo, tmp_path / "new" / "demo.html")
    assert path.read_text("utf-8") == demo_report(demo)


# --- the figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [lambda methods: draw_survival(methods, 24), draw_costs])
def test_the_same_figure_is_the_same_text(demo: Demo, draw: Any) -> None:
    before = dict(mpl.rcParams)
    first, again = draw(demo.methods), draw(demo.methods)
    assert first == again
    assert dict(mpl.rcParams) == before  # our style stays inside
    assert first.startswith("<svg")
    root = ET.fromstring(first)
    shown = " ".join("".join(element.itertext()) for element in root.iter() if element.tag.endswith("text"))
    for method in demo.methods:
        assert method.name in shown
    assert first != draw(demo.methods[:2])
