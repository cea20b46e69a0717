"""The wheel and the sdist hold what they have to and nothing else; versions agree."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rocerf

ROOT = Path(__file__).parent.parent
pytest.importorskip("hatchling", reason="building needs hatchling (extra dev)")


@pytest.fixture(scope="module")
def tool() -> Any:
    return importlib.import_module("tools.check_release")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def test_the_wheel_holds_what_it_has_to(tool: Any, built: tuple[Path, Path]) -> None:
    assert tool.wheel_problems(built[0]) == []


def test_the_sdist_holds_what_the_tests_need(tool: Any, built: tuple[Path, Path]) -> None:
    assert tool.sdist_problems(built[1]) == []


def test_what_does_not_belong_is_found(tool: Any, built: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / built[0].name
    with zipfile.ZipFile(built[0]) as whole, zipfile.ZipFile(other, "w") as changed:
        for name in whole.namelist():
            if name != "rocerf/words/de.yaml":
                changed.writestr(name, whole.read(name))
        changed.writestr("tests/test_x.py", "")
        changed.writestr("rocerf/data/embedded/compas.csv", "")
    problems = tool.wheel_problems(other)
    assert problems.pop().endswith("bytes, at most 3,000,000 are meant")  # it is not compressed
    assert set(problems) == {
        "beside the package: tests/test_x.py",
        "not meant to be there: data/embedded/compas.csv",
        "missing: words/de.yaml",
        "not in the sources: data/embedded/compas.csv",
    }


def test_an_sdist_without_tests_or_with_pictures_is_found(tool: Any, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"")
    with tarfile.open(tmp_path / "rocerf-1.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "x.png", "rocerf-1/docs/x.png")
    problems = tool.sdist_problems(tmp_path / "rocerf-1.tar.gz")
    assert "missing: tests" in problems
    assert "left out on purpose: docs/x.png" in problems


def test_the_same_version_everywhere(built: tuple[Path, Path]) -> None:
    assert all(rocerf.__version__ in path.name for path in built)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {rocerf.__version__}\n" in citation
    released = re.search(r"^date-released: (.*)$", citation, flags=re.MULTILINE)
    assert released
    assert f"\n## [{rocerf.__version__}] - {released[1]}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_what_is_supported_is_said_once_and_the_same(tool: Any) -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert tuple(re.findall(r"Python :: (3\.\d+)\"", project)) == tool.SUPPORTED
    assert f'requires-python = ">={tool.SUPPORTED[0]}"' in project


def test_the_changelog_is_about_this_version_and_has_each_heading_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first, *parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert first.startswith("[Unreleased]\n")
    dated = [re.match(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)\n", part) for part in parts]
    assert all(dated)
    versions = [tuple(map(int, one.groups()[:3])) for one in dated if one]
    assert versions == sorted(set(versions), reverse=True)  # newest first
    assert ".".join(map(str, versions[0])) == rocerf.__version__
    for part in (first, *parts):
        headings = re.findall(r"^### (.*)$", part, flags=re.MULTILINE)
        assert len(headings) == len(set(headings))
        assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        assert not re.search(r"^### .*\n+(?=### |## |\Z)", part, flags=re.MULTILINE), "a heading without a line"


def test_no_line_of_the_changelog_is_cut_off_or_said_twice() -> None:
    items = re.findall(r"^- (.*(?:\n  .*)*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    assert not [item[-60:] for item in items if not item.endswith((".", "!", ")"))]
    openings = [item[:90] for item in items]
    assert not [opening for opening in set(openings) if openings.count(opening) > 1]


def test_every_extra_has_a_trial_and_the_core_a_lower_bound(tool: Any) -> None:
    extras = importlib.import_module("tools.try_extras")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras.TRIALS) == set(project["optional-dependencies"]) - {"dev"}
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+", pin) for pin in tool.oldest())
    assert len(tool.oldest()) == len(project["dependencies"])
    said = (ROOT / "docs/stability.md").read_text("utf-8")
    names = {pin.partition("==")[0]: pin.partition("==")[2] for pin in tool.oldest()}
    assert all(f"{name} {version}" in said for name, version in names.items()), "docs/stability.md lists what was tried"
