"""The session fails when shared/data is there and a test was skipped for want of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def run_session(place: Path, test: str, *, with_data: bool, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run pytest on a project of one test file, with our own conftest, in a folder of its own."""
    tests = place / "project" / "tests"
    tests.mkdir(parents=True)
    for name in ("conftest.py", "shared_data.py", "postgres.py"):
        shutil.copy(HERE / name, tests / name)
    (tests / "test_one.py").write_text(f"import pytest\nfrom shared_data import REASON, needs_shared\n\n{test}\n")
    (tests.parent / "pytest.ini").write_text("[pytest]\n")
    if with_data:
        (place / "shared" / "data").mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    # The other plugins take a second to load and play no part here.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tests)],
        cwd=tests.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


SKIPPED_ANYHOW = "@pytest.mark.skip(reason=REASON)\ndef test_compare():\n    pass\n\ndef test_other():\n    pass"
SKIPPED_RIGHTLY = "@needs_shared\ndef test_compare():\n    pass\n\ndef test_other():\n    pass"
SKIPPED_MODULE = "pytest.skip(REASON, allow_module_level=True)"
OTHER_REASON = "@pytest.mark.skip(reason='another reason')\ndef test_compare():\n    pass"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["one process", "xdist"])
def test_a_skip_with_the_data_there_fails_the_session(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, output = run_session(tmp_path, SKIPPED_ANYHOW, with_data=True, options=options)
    assert code == 1, output
    assert "skipped although shared/data is there" in output
    assert "1 passed, 1 skipped" in output


@pytest.mark.slow
def test_a_module_skipped_at_import_fails_the_session_too(tmp_path: Path) -> None:
    code, output = run_session(tmp_path, SKIPPED_MODULE, with_data=True)
    assert code == 1, output
    assert "skipped although shared/data is there" in output


@pytest.mark.slow
def test_without_the_data_the_skip_is_fine(tmp_path: Path) -> None:
    code, output = run_session(tmp_path, SKIPPED_RIGHTLY, with_data=False)
    assert (code, "1 passed, 1 skipped" in output) == (0, True), output


@pytest.mark.slow
def test_with_the_data_the_marked_test_runs(tmp_path: Path) -> None:
    code, output = run_session(tmp_path, SKIPPED_RIGHTLY, with_data=True)
    assert (code, "2 passed" in output) == (0, True), output


@pytest.mark.slow
def test_other_skips_are_nobodys_business(tmp_path: Path) -> None:
    code, output = run_session(tmp_path, OTHER_REASON, with_data=True)
    assert (code, "1 skipped" in output) == (0, True), output
