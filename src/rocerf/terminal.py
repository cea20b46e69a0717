"""What the commands print with: tables and progress bars for people, JSON for machines, one sentence for errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


def fail(message: str, code: int = 2) -> NoReturn:
    """End the program with one sentence on standard error."""
    print(f"rocerf: {' '.join(message.splitlines())}", file=sys.stderr)  # noqa: T201
    raise SystemExit(code)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=1) + "\n")


def console(*, stderr: bool = False) -> Any:
    """Where people read."""
    from rich.console import Console

    return Console(stderr=stderr)


def table(title: str, columns: list[str]) -> Any:
    """A table, first column to the left, the others to the right."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for place, name in enumerate(columns):
        made.add_column(name, justify="left" if place == 0 else "right", overflow="fold", no_wrap=place == 0)
    return made


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on standard error; none for machines or when that is not a terminal."""
    terminal = console(stderr=True)
    if quiet or not terminal.is_terminal:
        yield lambda _what, _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeRemainingColumn(), console=terminal, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield step
