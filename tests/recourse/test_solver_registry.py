"""Solvers by name: the package's own, one from outside, and the choices of the command line."""

from __future__ import annotations

from typing import Any

import pytest

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Rocerf
from rocerf.cli import options
from rocerf.errors import OptionError
from rocerf.promises import Plain
from rocerf.recourse.costs.registry import COSTS
from rocerf.recourse.solvers.cutting_plane import solve_by_cuts
from rocerf.recourse.solvers.solving import SOLVERS, register_solver


def test_a_solver_from_outside_is_used_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def careful(promise: Any, master: Any, delta: float, *, progress: Any = None) -> Any:
        asked.append(len(master.X0))
        return solve_by_cuts(promise, master, delta + 0.25, progress=progress)

    monkeypatch.setitem(SOLVERS, "careful", None)  # whatever happens, it is taken back
    monkeypatch.delitem(SOLVERS, "careful")
    register_solver("careful", careful, "cuts", "a quarter beyond what was asked for", knows_rules=False)
    model = LogisticModel.fit(random_training_set(0, n=60), C=1.0)
    people = refused_people(model, 0, 5)
    found = Rocerf(model, 0, promise=Plain(model), solver="careful").explain(people)
    assert asked == [5]
    assert found.settings.solver == "careful"
    assert (found.margins > 0.25).all()
    assert Rocerf(model, 0, promise=Plain(model)).solver == "cutting_plane"  # "auto" keeps to what it chose before
    with pytest.raises(OptionError, match=r"the solver 'careful' \(a quarter beyond what was asked for\), got steps"):
        Rocerf(model, 0, promise=Plain(model), solver="careful", max_changes=1)
    del SOLVERS["careful"]


@pytest.mark.parametrize("name", ["auto", "search"])
def test_a_name_is_given_once(name: str) -> None:
    with pytest.raises(OptionError, match="a new name for a solver"):
        register_solver(name, solve_by_cuts, "cuts", "")


def test_the_command_line_offers_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["rocerf", "explain"])  # without a command the registries are left alone
    assert [*options.CostName] == [*COSTS]
    assert [*options.SolverName] == [*SOLVERS, "auto"]
