"""Session rules: with shared/data at hand, no test may be skipped for want of it; measured figures are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# So that "from shared_data import ..." works from every test folder and under every import mode.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from shared_data import REASON, SHARED

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
