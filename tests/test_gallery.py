"""The gallery: every example runs, and its page and notebook are of the example as it is."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shared_data import SHARED, needs_shared

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "gallery"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

#: Examples that need more than the core: a module that must be there, or a table that may not be shipped.
NEEDS = {"torch_network": "torch", "deletion_request": "sqlalchemy"}


def marked(path: Path) -> Any:
    return pytest.param(path, id=path.stem, marks=[needs_shared] if path.stem == "bail_compas" else [])


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules["gallery"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def masked(text: str) -> str:
    """Without its numbers, which differ from machine to machine in the last digits, and without empty ends."""
    return re.sub(r"[-+]?\d[\d,.]*(?:e[-+]\d+)?", "#", text).strip()


def parts_of(notebook: dict[str, Any]) -> list[tuple[bool, str]]:
    return [(cell["cell_type"] == "code", "".join(cell["source"])) for cell in notebook["cells"]]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_page_and_notebook_are_of_this_source(path: Path, tool: ModuleType) -> None:
    cells = tool.read_cells(path.read_text("utf-8"))
    assert cells[0].text.startswith("# ")
    notebook = json.loads((PAGES / f"{path.stem}.ipynb").read_text("utf-8"))
    assert parts_of(notebook) == [tuple(cell) for cell in cells], "run tools/gallery.py"
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(cells)
    page = (PAGES / f"{path.stem}.md").read_text("utf-8")
    assert re.findall(r"^```python\n(.*?)\n```$", page, flags=re.DOTALL | re.MULTILINE) == [
        cell.text for cell in cells if cell.is_code
    ]
    drawn = re.findall(rf"^!\[.+\]\(({path.stem}-\d+\.svg)\)$", page, flags=re.MULTILINE)
    assert sorted(drawn) == sorted(file.name for file in PAGES.glob(f"{path.stem}-*.svg"))
    assert drawn


@pytest.mark.slow
@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_examples_print_what_their_pages_show(path: Path, tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are compared without numbers; figures by the number of them, and by the words that say what they show."""
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason=f"needs {NEEDS[path.stem]}")
    if path.stem == "bail_compas":
        monkeypatch.setenv("ROCERF_COMPAS", str(SHARED / "openxai"))
    cells = tool.read_cells(path.read_text("utf-8"))
    page, figures = tool.page(path.stem, cells, tool.run_cells(cells, path.stem))
    kept = (PAGES / f"{path.stem}.md").read_text("utf-8")
    assert masked(page) == masked(kept), "run tools/gallery.py"
    assert set(figures) == {file.name for file in PAGES.glob(f"{path.stem}-*.svg")}


def test_the_gallery_is_small_and_names_no_place_on_a_disk() -> None:
    files = list(PAGES.iterdir())
    assert sum(file.stat().st_size for file in files) < 2_000_000
    for file in files:
        assert not re.search(r"/(?:tmp|home|work|root)/", file.read_text("utf-8")), file.name


def test_a_warning_in_an_example_is_an_error(tool: ModuleType) -> None:
    cells = tool.read_cells("# %%\nimport warnings\nwarnings.warn('old')\n")
    with pytest.raises(UserWarning, match="old"):
        tool.run_cells(cells)


def test_values_are_shown_as_a_notebook_would(tool: ModuleType) -> None:
    cells = tool.read_cells("# %% [markdown]\n# # Title\n# %%\nprint('a')\n2 + 3\n# %%\nvalue = None\nvalue\n")
    outputs = tool.run_cells(cells)
    assert [(output.printed, output.value) for output in outputs] == [("", None), ("a\n", 5), ("", None)]
    page, figures = tool.page("example", cells, outputs)
    assert "``` {.text .printed}\na\n```" in page
    assert "```text\n5\n```" in page
    assert not figures
    first = tool.notebook(cells, outputs)["cells"][1]
    assert first["outputs"][1]["data"] == {"text/plain": ["5"]}


def test_numbers_that_are_read_are_not_rounded_with_those_that_are_places(tool: ModuleType) -> None:
    drawn = '<svg aria-label="score 0.0049"><path d="M 1.23456 2"/><text x="3.98765">0.005</text></svg>'
    made = tool._compact(drawn)
    assert 'd="M 1.23 2"' in made
    assert 'x="3.99">0.005<' in made
    assert "score 0.0049" in made
