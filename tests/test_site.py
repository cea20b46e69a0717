"""The documentation site: every page is in it, every link leads somewhere, every public name is described."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rocerf

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == PAGES


def test_every_public_name_has_its_place_in_the_reference() -> None:
    reference = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    named = set(re.findall(r"^::: rocerf\.(\w+)$", reference, flags=re.MULTILINE))
    # Errors are a room of the reference; the run of the paper is a command, and its page is another.
    public = set(rocerf.__all__) - {"__version__", "RocerfError", "reproduction"}
    assert named - {"errors"} == public
    for name in public:
        assert getattr(rocerf, name).__doc__, name


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the documentation tools are not installed")
    for name in ("docs", "src", "tools", "mkdocs.yml", "CHANGELOG.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=tmp_path,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    built = {path.relative_to(tmp_path / "out" / "site").as_posix() for path in (tmp_path / "out").rglob("*.html")}
    assert {page.removesuffix(".md") + ".html" for page in PAGES} <= built
    for path in (tmp_path / "out" / "site").glob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", path.read_text("utf-8"))
        assert not [address for address in loaded if "canonical" not in address], path.name
