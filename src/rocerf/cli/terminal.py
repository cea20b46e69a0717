"""What the commands print with: tables and progress bars for people, JSON for machines, one sentence for errors.

Ids, categories and paths come from other people: nothing of them is read as markup, as a code for an emoji, or obeyed
by the terminal as a control sequence.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from rocerf.visible import one_line, visible

#: Columns up to which a table is made as wide as its title.
NARROWEST = 60


def fail(message: str, code: int = 2) -> NoReturn:
    """End the program with one sentence on standard error."""
    print(f"rocerf: {one_line(message)}", file=sys.stderr)  # noqa: T201
    raise SystemExit(code)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print_document(json.dumps(document, indent=1))


def print_document(text: str) -> None:
    """A text for programs or for a file, on standard output in UTF-8, whatever the terminal would like."""
    _reconfigure(sys.stdout, encoding="utf-8")
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def print_text(text: str) -> None:
    """Several lines for people on standard output, as they are."""
    _reconfigure(sys.stdout, errors="backslashreplace")
    sys.stdout.write(text)


def _reconfigure(stream: Any, **how: str) -> None:
    """Change how a stream writes, if it can be changed; a terminal that lacks a letter shows its number instead."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(**how)


def say(text: str) -> None:
    """One line for people on standard output."""
    console().print(visible(text), soft_wrap=True)


def say_aside(text: str) -> None:
    """One line for people on standard error."""
    console(stderr=True).print(visible(text), soft_wrap=True)


def console(*, stderr: bool = False) -> Any:
    """Where people read."""
    from rich.console import Console

    _reconfigure(sys.stderr if stderr else sys.stdout, errors="backslashreplace")
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def table(title: str, columns: list[str]) -> Any:
    """A table, first column to the left, the others to the right."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", min_width=min(len(title), NARROWEST))
    for place, name in enumerate(columns):
        made.add_column(name, justify="left" if place == 0 else "right", overflow="fold", no_wrap=place == 0)
    return made
