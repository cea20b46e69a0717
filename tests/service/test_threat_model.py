"""The figures of docs/threat-model.md, worked out anew: what somebody with two versions of a model computes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rocerf
from rocerf.ledger.access import Role
from rocerf.types import Array
from service_desk import desk_in

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


def cosine(one: Array, other: Array) -> float:
    return abs(float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)))


def forgotten(model: rocerf.LogisticModel, row: int) -> float:
    """With everything made anew: slopes in the user's own columns, curvature of the rows left, no scaling known."""
    later = model.forget([model.train.ids[row]])
    (before,), (constant,) = model.halfspaces(model.theta[None])
    (after,), (moved,) = later.halfspaces(later.theta[None])
    rows = np.column_stack([later.train.X, np.ones(len(later.train))])
    share = 1.0 / (1.0 + np.exp(-rows @ np.append(after, moved)))
    pull = ((rows * (share * (1.0 - share))[:, None]).T @ rows) @ np.append(before - after, constant - moved)
    mean, spread = model.train.X.mean(axis=0), model.train.X.std(axis=0)
    return cosine((pull[:-1] / pull[-1] - mean) / spread, (model.train.X[row] - mean) / spread)


@pytest.fixture(scope="module")
def measured() -> dict[str, list[float]]:
    model = rocerf.LogisticModel.fit(rocerf.load_dataset("german").train)
    design, objective = model.training_design(), model.objective
    hessian = objective.gradient_and_hessian(model.theta)[1]
    found: dict[str, list[float]] = {name: [] for name in ("frozen", "anew", "bare", "old", "scaling")}
    for row in np.random.default_rng(0).choice(len(design), 40, replace=False):
        change = model.theta - model.without([model.train.ids[row]]).theta
        found["frozen"].append(cosine(hessian @ change, design[row]))
        found["bare"].append(cosine(change, design[row]))
        found["anew"].append(forgotten(model, int(row)))
        # At the old optimum all gradients add up to nothing: those of the others give that of the row.
        pull = objective.without(np.array([row])).gradient_and_hessian(model.theta)[0]
        found["old"].append(float(np.abs(pull / pull[-1] - design[row]).max()))
        others = np.delete(model.train.X, row, axis=0).sum(axis=0)
        found["scaling"].append(
            float(np.abs(len(design) * model.train.X.mean(axis=0) - others - model.train.X[row]).max())
        )
    gradients = model.row_gradients()
    effects = model.curvature().solve(gradients)
    found["effects"] = [float(np.abs(effects @ hessian - gradients).max() / np.abs(gradients).max())]
    return found


def figures(pattern: str) -> list[float]:
    found = re.search(pattern, PAGE.read_text("utf-8"))
    assert found is not None, pattern
    return [float(text) for text in found.groups()]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("frozen", r"scaling frozen\) .*cosine at least ([\d.]+), median ([\d.]+)"),
        ("anew", r"made anew .*cosine at least ([\d.]+), median ([\d.]+)"),
    ],
)
def test_two_versions_give_the_row_back_nearly(measured: dict[str, list[float]], name: str, pattern: str) -> None:
    lowest, median = figures(pattern)
    assert round(min(measured[name]), 3) == lowest
    assert round(float(np.median(measured[name])), 3) == median


def test_parameters_alone_give_a_direction(measured: dict[str, list[float]]) -> None:
    lowest, highest = figures(r"nothing else .*cosine ([\d.]+) to ([\d.]+)")
    assert (round(min(measured["bare"]), 2), round(max(measured["bare"]), 2)) == (lowest, highest)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("old", r"old parameters and all other rows .*error (\de-\d+)"),
        ("scaling", r"scaled the old data.*error (\de-\d+)"),
        ("effects", r"effect of the row.*error (\de-\d+)"),
    ],
)
def test_what_gives_the_row_back_exactly(measured: dict[str, list[float]], name: str, pattern: str) -> None:
    """The order of magnitude is that of rounding; it may differ a little from machine to machine."""
    (stated,) = figures(pattern)
    assert max(measured[name]) < 30 * stated
    assert stated < 1e-10


def test_an_officer_who_halves_the_way_gets_the_border(tmp_path: Path) -> None:
    """Made-up people, refused or accepted: all that an officer may ask for."""
    desk = desk_in(tmp_path, letters=1)
    officer = desk.client(Role.OFFICER)
    debts, low, high = np.array([0.0, 10_000.0, 20_000.0]), np.full(3, -2e5), np.full(3, 2e5)
    asked = 0
    for _ in range(40):
        middle = (low + high) / 2
        people = [
            {"person": f"nobody-{asked + place}", "values": {"income": float(income), "debt": float(debt)}}
            for place, (income, debt) in enumerate(zip(middle, debts, strict=True))
        ]
        answer = officer.post("/api/v1/letters", json={"people": people}).json()["letters"]
        asked += len(people)
        accepted = np.array([letter["reason"] == "already_accepted" for letter in answer])
        low, high = np.where(accepted, low, middle), np.where(accepted, middle, high)
    slope, constant = np.polyfit(debts, (low + high) / 2, 1)
    model = desk.ledger.models.explainer().model
    (own,), (shift,) = model.halfspaces(model.theta[None])
    error = max(abs(slope / (-own[1] / own[0]) - 1), abs(constant / (-shift / own[0]) - 1))
    people_asked, stated = figures(r"with (\d+) such people: slopes to a relative error of (\de-\d+)")
    assert (asked, error < stated) == (people_asked, True)
    issued = [
        event for event in desk.ledger.audit.events(kind="letters issued", limit=100) if "officer:" in event.actor
    ]
    assert sum(event.facts["letters"] for event in issued) == asked  # it shows


def test_it_is_one_page() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) < 70
