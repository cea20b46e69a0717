"""Session rules: with shared/data at hand, no test may be skipped for want of it; measured figures are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# So that "from shared_data import ..." works from every test folder and under every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from postgres import postgres  # noqa: F401 (a fixture for all)
from shared_data import REASON, SHARED

# Processes that tests start find the package where this one does, in whatever folder they run, installed or not.
_places = [str(Path(place).resolve()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
if (_found := find_spec("rocerf")) is not None and _found.origin is not None:
    _places.insert(0, str(Path(_found.origin).resolve().parents[1]))
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_places))

_skipped_for_want_of_data: list[str] = []
_figures: list[str] = []


def _remember(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.skipped and REASON in str(report.longrepr):
        _skipped_for_want_of_data.append(report.nodeid)


# The report hooks also run in the controller of pytest-xdist, where the tests themselves do not.
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _remember(report)
    if report.when == "teardown":
        _figures.extend(line for name, lines in report.user_properties if name == "figures" for line in lines)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _remember(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    harmless = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if SHARED.is_dir() and _skipped_for_want_of_data and session.exitstatus in harmless:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _figures:
        terminalreporter.section("measured figures")
        for line in _figures:
            terminalreporter.line(line)
    if SHARED.is_dir() and _skipped_for_want_of_data:
        terminalreporter.section("skipped although shared/data is there: the session fails", red=True)
        for nodeid in _skipped_for_want_of_data:
            terminalreporter.line(nodeid)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Lines of measured figures that a test wants printed at the end of the run, under xdist too."""
    lines: list[str] = []
    yield lines
    request.node.user_properties.append(("figures", lines))


class Bare:
    """A model that can only be asked its score: neither slopes nor parameters."""

    def __init__(self, model: Any) -> None:
        for name in (
            *("train", "matrix", "score", "deployed_score", "predict", "without", "refitted", "restored"),
            *("removable_class", "assumptions", "state", "save", "threshold", "offset", "frames", "schema"),
            *("preprocessing", "own_refit", "own_rows", "known_by", "forget", "class_counts"),
        ):
            setattr(self, name, getattr(model, name))


@pytest.fixture
def bare() -> Callable[[Any], Any]:
    """Strips a model of everything but its decisions."""
    return Bare


@pytest.fixture(scope="session")
def network() -> Any:
    """A small network on a ring, whose boundary is curved."""
    from rocerf import NeuralModel, TrainingSet

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1.0, 10.0] + [0.0, 5.0]
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = ((z**2).sum(axis=1) + 0.3 * rng.normal(size=300) < 1.6).astype(int)
    return NeuralModel.fit(TrainingSet(X, y), seed=0, width=8, epochs=150, learning_rate=0.1)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command line here, in an empty folder, as the installed script does."""
    from command_line import Run
    from rocerf.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rocerf.progress.FIRST", float("inf"))  # what is slow here need not be slow elsewhere

    def run(*arguments: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["rocerf", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Run(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run
