"""Runs the examples and writes what a reader sees: a page of the site with its figures, and a notebook, for each.

An example is a Python file in cells: ``# %%`` begins code, ``# %% [markdown]`` text in comments. What a cell prints is
kept, and so is its last line where that is a value, as a notebook would show it.

Usage: python tools/gallery.py [name ...]
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rocerf.drawing import Picture

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs" / "gallery"
WIDEST = 1280  # of a figure in a notebook, in dots

#: Attributes of SVG that are places and no words, and numbers in them that are longer than anybody sees.
PLACES = re.compile(r'\s(?:d|x|y|transform|points|width|height|viewBox)="[^"]*"')
LONG = re.compile(r"-?\d+\.\d{3,}")


class Cell(NamedTuple):
    """A cell: Markdown if it is not code."""

    is_code: bool
    text: str


@dataclass(frozen=True)
class Output:
    """What a cell printed, and the value of its last line (None if it has none)."""

    printed: str = ""
    value: Any = None


def read_cells(source: str) -> list[Cell]:
    """The cells of an example.

    >>> read_cells("# %% [markdown]\\n# # Title\\n# %%\\n1 + 1\\n")
    [Cell(is_code=False, text='# Title'), Cell(is_code=True, text='1 + 1')]
    """
    parts = re.split(r"^# %%( \[markdown\])?\n", source, flags=re.MULTILINE)
    cells = []
    for mark, body in zip(parts[1::2], parts[2::2], strict=True):
        text = "\n".join(re.sub(r"^# ?", "", line) for line in body.splitlines()) if mark else body
        cells.append(Cell(not mark, text.strip()))
    return cells


def run_cells(cells: Sequence[Cell], name: str = "example") -> list[Output]:
    """The cells' outputs, run one after the other in a folder that is gone afterwards. A warning is an error."""
    namespace: dict[str, Any] = {"__name__": name}
    before, outputs = Path.cwd(), []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            for cell in cells:
                outputs.append(_run(cell.text, namespace, name) if cell.is_code else Output())
        finally:
            os.chdir(before)
    return outputs


def _run(code: str, namespace: dict[str, Any], name: str) -> Output:
    tree, last = ast.parse(code), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        value = eval(compile(last, name, "eval"), namespace) if last is not None else None
    return Output(printed.getvalue(), value)


def shown_html(value: Any) -> str | None:
    """A value's own view as HTML, if it has one; without a style of its own, so that the page's applies."""
    view = getattr(value, "_repr_html_", None)
    made = None if view is None else view()
    if made is None:
        return None
    made = re.sub(r"<style.*?</style>\s*", "", made, flags=re.DOTALL)
    return made.replace(' border="1" class="dataframe"', "")


def page(name: str, cells: Sequence[Cell], outputs: Sequence[Output]) -> tuple[str, dict[str, str]]:
    """The page's Markdown, and its figures by file name."""
    parts: list[str] = []
    figures: dict[str, str] = {}
    for cell, output in zip(cells, outputs, strict=True):
        if not cell.is_code:
            parts.append(cell.text)
            continue
        parts.append(f"```python\n{cell.text}\n```")
        if output.printed.strip():
            parts.append(f"``` {{.text .printed}}\n{output.printed.rstrip()}\n```")
        if isinstance(output.value, Picture):
            file = f"{name}-{len(figures) + 1}.svg"
            figures[file] = _compact(output.value.svg)
            parts.append(f"![{output.value.alt}]({file})")
        elif output.value is not None:
            html = shown_html(output.value)
            parts.append(
                f"```text\n{output.value!r}\n```" if html is None else f'<div class="shown">\n{html.strip()}\n</div>'
            )
    about = f"*This page was made by running `examples/{name}.py`; open it as a [notebook]({name}.ipynb).*"
    parts.insert(1, about)
    return "\n\n".join(parts) + "\n", figures


def _compact(svg: str) -> str:
    """The drawing with places to a hundredth of a point, and without comments. What is written in it stays as it is."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = PLACES.sub(lambda found: LONG.sub(lambda n: f"{float(n[0]):.2f}".rstrip("0").rstrip("."), found[0]), svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    return svg if "xmlns=" in svg.split(">", 1)[0] else svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')


def notebook(cells: Sequence[Cell], outputs: Sequence[Output]) -> dict[str, Any]:
    """The notebook, in format 4.5."""
    made: list[dict[str, Any]] = []
    for number, (cell, output) in enumerate(zip(cells, outputs, strict=True)):
        head: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": cell.text.splitlines(keepends=True)}
        if not cell.is_code:
            made.append({"cell_type": "markdown", **head})
            continue
        count = sum(entry["cell_type"] == "code" for entry in made) + 1
        shown: list[dict[str, Any]] = []
        if output.printed:
            shown.append({"name": "stdout", "output_type": "stream", "text": output.printed.splitlines(keepends=True)})
        if output.value is not None:
            entry = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
            shown.append(entry | {"data": _bundle(output.value)})
        made.append({"cell_type": "code", "execution_count": count, **head, "outputs": shown})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _bundle(value: Any) -> dict[str, Any]:
    """A value as notebooks keep it: a figure as PNG, which is shown without trust."""
    if isinstance(value, Picture):
        return {"image/png": _png(value), "text/plain": [value.alt]}
    html = shown_html(value)
    return {"text/plain": [repr(value)]} | ({} if html is None else {"text/html": html.splitlines(keepends=True)})


def _png(picture: Picture) -> str:
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        picture.save(Path(folder) / "figure.png")
        with Image.open(Path(folder) / "figure.png") as image:
            small = image.convert("RGB")
    if small.width > WIDEST:
        small = small.resize((WIDEST, round(small.height * WIDEST / small.width)))
    kept = io.BytesIO()
    small.quantize(32).save(kept, "PNG", optimize=True)
    return base64.b64encode(kept.getvalue()).decode()


def main(names: Sequence[str] = ()) -> None:
    """Write the pages of these examples, or of all."""
    PAGES.mkdir(exist_ok=True)
    for path in sorted(EXAMPLES.glob("*.py")):
        if names and path.stem not in names:
            continue
        cells = read_cells(path.read_text("utf-8"))
        outputs = run_cells(cells, path.stem)
        text, figures = page(path.stem, cells, outputs)
        for old in PAGES.glob(f"{path.stem}-*.svg"):
            old.unlink()
        for file, drawing in figures.items():
            (PAGES / file).write_text(drawing, encoding="utf-8")
        (PAGES / f"{path.stem}.md").write_text(text, encoding="utf-8")
        kept = json.dumps(notebook(cells, outputs), indent=1, ensure_ascii=False) + "\n"
        (PAGES / f"{path.stem}.ipynb").write_text(kept, encoding="utf-8")
        print(f"{path.stem}: {len(figures)} figures")


if __name__ == "__main__":
    main(sys.argv[1:])
