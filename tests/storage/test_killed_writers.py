"""Writers killed at random moments, and several at once: what is found is the old state or the new one, whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from length import share

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")

WRITERS = Path(__file__).resolve().parents[1] / "writers.py"


def told(folder: Path, seconds: float, **times: int) -> dict[str, Any]:
    """What the writing process says of each kind; ``_`` for the sign that keyword arguments cannot have."""
    kinds = [f"{kind.replace('_', '/')}={count}" for kind, count in times.items()]
    arguments = [sys.executable, str(WRITERS), str(folder), str(seconds), *kinds]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(place).resolve()) for place in sys.path)}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=300, env=here)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check_killed(found: dict[str, Any], kind: str, figures: list[str]) -> None:
    figures.append(f"{kind}: {found['kills']} kills, {found['drafts']} in the middle of writing, nothing mixed")
    assert found["wrong"] == []
    assert found["open"] == [], "what is left of an explainer is its owner's only"
    assert found["finished"]
    assert found["left"] == [], "the next writer removes what killed ones left"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("writers")
    return told(folder, 0.04, save=10, answers=8, letters=4, two=8, two_renames=8, between_renames=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["save", "answers", "letters"])
def test_killed_at_random_moments(kind: str, quick: dict[str, Any], figures: list[str]) -> None:
    check_killed(quick[kind], kind, figures)
    assert sum(quick[kind]["drafts"] for kind in ("save", "answers", "letters")), "no kill fell into the writing"


@pytest.mark.slow
def test_killed_at_length(tmp_path: Path, figures: list[str]) -> None:
    found = told(tmp_path / "w", 0.06, save=share(120), answers=share(40), letters=share(40), save_renames=share(40))
    for kind, told_of in found.items():
        check_killed(told_of, f"{kind}, at length", figures)
        assert told_of["drafts"], "no kill fell into the writing: nothing was tried"


@pytest.mark.slow
def test_killed_between_two_renames(quick: dict[str, Any]) -> None:
    """Then there is no folder; whoever reads or writes next gives it back its name."""
    found = quick["between/renames"]
    assert found["missing"]
    assert found["wrong"] == []
    assert found["well"]
    assert found["left"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two", "two/renames"])
def test_two_writers_of_one_folder(kind: str, quick: dict[str, Any]) -> None:
    found = quick[kind]
    assert found["wrong"] == []
    assert found["well"] == [True, True]
    assert found["reads"] > 0
    assert found["left"] == 0
