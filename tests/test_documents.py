"""Every Python block of the README and the docs runs, in order, as a reader would run it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [page for page in PAGES if "```python" in page.read_text("utf-8")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", document.read_text("utf-8"), flags=re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(document.name), "exec"), namespace)


def test_the_readme_s_first_answer_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The comments beside the prints are what is printed."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)
    assert block is not None
    exec(compile(block.group(1), "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*#\s*(.+)$", block.group(1), flags=re.MULTILINE)
    assert len(printed) == len(promised) == 2
    assert printed[0].startswith(promised[0].removesuffix("...)"))
    assert printed[1] == promised[1]


def test_the_readme_s_figures_are_those_of_the_recorded_runs() -> None:
    """The table is written by tools/readme_figures.py from docs/results; nobody typed a figure."""
    sys.path.insert(0, str(ROOT / "tools"))
    from readme_figures import figures

    text = (ROOT / "README.md").read_text("utf-8")
    shown = re.search(r"<!-- figures:.*?-->\n(.*?)<!-- /figures -->", text, flags=re.DOTALL)
    assert shown is not None
    assert shown[1] == figures()


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
