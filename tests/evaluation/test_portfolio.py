"""All answers at once: counts against counting by hand, deletions against refits, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocerf
from rocerf import LogisticModel, Rocerf, Status, portfolio
from rocerf.errors import DataError, OptionError
from rocerf.evaluation.portfolio import Portfolio
from rocerf.promises import Plain


@pytest.fixture(scope="module")
def seen() -> tuple[Rocerf, rocerf.Recourses, Portfolio]:
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    people = data.test.X[:40]
    robust = Rocerf(model, 8, promise="first_order", schema=data.schema, max_changes=2)
    recourses = robust.explain(people)
    return robust, recourses, portfolio(robust, recourses, groups=["age", "personal-status-sex"])


def test_counts_are_those_of_the_answers(seen: tuple[Rocerf, rocerf.Recourses, Portfolio]) -> None:
    _, recourses, found = seen
    asking = [status is not Status.ALREADY_ACCEPTED for status in recourses.statuses]
    assert found.people == 40
    assert found.asking == sum(asking)
    assert found.answered == int(recourses.answered.sum())
    assert found.answered + sum(count for _, count in found.without) == found.asking
    assert found.cost == pytest.approx(recourses.costs[recourses.answered].mean())
    names = [change.label for one in recourses if one.answered for change in one.changes]
    assert dict(found.changes) == {name: names.count(name) for name in set(names)}
    for attribute in {row.attribute for row in found.groups}:
        own = [row for row in found.groups if row.attribute == attribute]
        assert sum(row.refused for row in own) == found.asking
        assert sum(row.answered for row in own) == found.answered
        assert sum(row.survived for row in own) == found.survived


def test_deletions_break_what_refits_say(seen: tuple[Rocerf, rocerf.Recourses, Portfolio]) -> None:
    explainer, recourses, found = seen
    assert found.broken
    assert found.broken == tuple(sorted(found.broken, key=lambda pair: (-pair[1], pair[0])))
    assert all(1 <= rows <= 8 for rows, _ in found.broken)
    assert found.survived <= found.answered - found.broken[0][1]
    points = recourses.matrix[recourses.answered]
    attack = rocerf.Adversary(explainer.model, 8, effort="quick").attack(points)
    worst = attack[int(attack.scores.argmin())]
    refused = int((explainer.model.without(worst.deleted_ids).score(points) < 0).sum())
    assert found.broken[0][1] >= min(refused, 1)


def test_the_page_says_what_was_found(seen: tuple[Rocerf, rocerf.Recourses, Portfolio], tmp_path: Path) -> None:
    _, _, found = seen
    found.write(tmp_path / "deep" / "page.html")
    page = (tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert f"{found.answered} of {found.asking}" in page
    assert "tested, not proven" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://www.w3.org", "")
    assert json.dumps(found.to_dict())


def test_nobody_and_strange_groups() -> None:
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    explainer = Rocerf(model, 0, promise=Plain(model), schema=data.schema)
    accepted = data.test.X[model.predict(data.test.X) == 1][:3]
    nobody = portfolio(explainer, accepted)
    assert repr(nobody).startswith("Portfolio(0 of 0 refused people answered, no deletion was tried; ")
    assert (nobody.asking, nobody.answered, nobody.cost, nobody.broken) == (0, 0, None, ())
    assert "<h1>" in nobody.to_html()
    with pytest.raises(OptionError, match="groups by attributes of the schema, got 'shoe'"):
        portfolio(explainer, accepted, groups=["shoe"])


def test_nothing_is_said_to_survive_where_nothing_was_tried() -> None:
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    denied = data.test.X[model.predict(data.test.X) == 0][:4]
    found = portfolio(Rocerf(model, promise="plain", schema=data.schema), denied, groups=["age"])
    assert found.answered == 4
    for said in (repr(found), found.to_html(), found.plot().alt):
        assert "no deletion was tried" in said.lower()
        assert "survived" not in said


def test_answers_of_another_promise_or_model_are_refused() -> None:
    """They would be counted under a promise that nobody gave for them."""
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    denied = data.test.X[model.predict(data.test.X) == 0][:2]
    plain = Rocerf(model, promise="plain").explain(denied)
    robust = Rocerf(model, 4, promise="first_order")
    with pytest.raises(DataError, match="promise 'first_order', got some made with 'plain'"):
        portfolio(robust, plain)
    with pytest.raises(DataError, match="k 4, got some made with 2"):
        portfolio(robust, Rocerf(model, 2, promise="first_order").explain(denied))
    with pytest.raises(DataError, match="made with other rows"):
        portfolio(robust.forget(data.train.ids[:1]), robust.explain(denied))


def test_the_command_writes_the_page(run: Any, tmp_path: Path) -> None:
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    explainer = Rocerf(model, 2, promise="first_order", schema=data.schema)
    denied = data.test.X[model.predict(data.test.X) == 0][:5]
    explainer.explain(denied).to_json(tmp_path / "answers.json")
    explainer.save(tmp_path / "kept")
    done = run(
        "portfolio", "--answers", tmp_path / "answers.json", "--explainer", tmp_path / "kept",
        "--out", tmp_path / "page.html", "--group", "age", "--json",
    )  # fmt: skip
    assert json.loads(done.out)["asking"] == 5
    assert (tmp_path / "page.html").exists()
    assert np.isfinite(json.loads(done.out)["cost"])
