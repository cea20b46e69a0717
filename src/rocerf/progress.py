"""How far long work is, for people: a bar with the time left on a terminal, a line now and then elsewhere.

``progress=True`` asks for it wherever a function takes ``progress``; a function of your own is called with (done, in
all) instead. Nothing is shown of what ends within two seconds, and all of it goes to standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # the command line answers --help without numbers
    from rocerf.types import Progress

#: Called with what is done, how much of it, and how much there is in all.
Step: TypeAlias = Callable[[str, int, int], None]

#: What may be asked for: to be shown how far it is, or to call a function.
Telling: TypeAlias = "Progress | bool | None"

#: What there is in all where no things are counted, but the share that is done, in thousandths.
SHARES = 1000

#: Seconds before anything is shown, and between two lines where there is no terminal.
FIRST, NEXT = 2.0, 10.0

#: Seconds that are left from which on people are told what would take less.
LONG = 60.0


def left_in_words(seconds: float) -> str:
    """A time that is left, for people.

    >>> left_in_words(3), left_in_words(95), left_in_words(7300)
    ('3 s', '1 min 35 s', '2 h 1 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def counted(done: int, total: int) -> str:
    """How much is done, in things or as a share.

    >>> counted(3, 20), counted(104, SHARES)
    ('3 of 20', '10%')
    """
    return f"{100 * done // total}%" if total == SHARES else f"{done} of {total}"


class Since:
    """How long each kind of work is at it, and how much was done meanwhile.

    Work that falls back, as every pass over the rows does, has begun anew: the time between two passes is not theirs.
    """

    def __init__(self) -> None:
        self.begun: dict[str, tuple[float, int, int]] = {}

    def __call__(self, what: str, done: int, now: float) -> tuple[float, int]:
        """The seconds passed, and what was done in them."""
        begun, at_first, last = self.begun.get(what, (now, done, done))
        if done < last:
            begun, at_first = now, done
        self.begun[what] = (begun, at_first, done)
        return now - begun, done - at_first


class Lines:
    """A line now and then with what is done and about how long the rest takes; each kind of work has its own clock.

    Work of which nothing was done meanwhile has nothing to tell, unless it is at it for long.
    """

    def __init__(self, write: Callable[[str], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self.write, self.clock = write, clock
        self.since = Since()
        self.due = clock() + FIRST

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how far it is, if the last line is a while ago and there is something to say."""
        now = self.clock()
        passed, gone = self.since(what, done, now)
        if now < self.due or done >= total or passed < (FIRST if gone else NEXT):
            return
        self.due = now + NEXT
        left = f", about {left_in_words(passed / gone * (total - done))} left" if gone else ""
        self.write(f"{what}: {counted(done, total)}{left}")


class Foretold:
    """Says once, as soon as it can be told, that work will take minutes, and how to make it ``shorter``."""

    def __init__(self, step: Step, say: Callable[[str], Any], shorter: str, clock: Callable[[], float]) -> None:
        self.step, self.say, self.shorter, self.clock = step, say, shorter, clock
        self.since = Since()
        self.told = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """Pass it on, and say the word where it is due."""
        passed, gone = self.since(what, done, self.clock())
        if not self.told and gone > 0 and passed >= FIRST and passed / gone * (total - done) > LONG:
            self.told = True
            self.say(f"{what}: about {left_in_words(passed / gone * (total - done))} to go; {self.shorter}")
        self.step(what, done, total)


@contextmanager
def showing(*, quiet: bool = False, shorter: str = "") -> Iterator[Step]:
    """Something to call while work goes on; ``quiet`` shows nothing.

    Where it turns out that minutes are left, ``shorter`` says what takes less.
    """
    if quiet:
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console

    terminal = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if not terminal.is_terminal:
        lines = Lines(_to_stderr)
        yield Foretold(lines, _to_stderr, shorter, time.monotonic) if shorter else lines
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[counted]}"))
    with Bars(*columns, TimeRemainingColumn(), console=terminal, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total, counted="")
            bars.update(tasks[what], completed=done, total=total, counted=counted(done, total))

        yield Foretold(step, bars.console.print, shorter, time.monotonic) if shorter else step


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


@dataclass(frozen=True)
class Shown:
    """A function to be called with (done, in all) that shows how much is done of what."""

    step: Step
    what: str

    def __call__(self, done: int, total: int) -> None:
        """Show it."""
        self.step(self.what, done, total)


_steps: list[Step] = []  # whoever is within `following`, innermost last


@contextmanager
def following(step: Step) -> Iterator[None]:
    """Within this context ``step`` is told of pieces of work below those that are counted.

    >>> with following(lambda what, done, total: print(what, done, "of", total)):
    ...     tell_of_piece("cheapest points", 3, 12)
    cheapest points 3 of 12
    """
    _steps.append(step)
    try:
        yield
    finally:
        _steps.pop()


def tell_of_piece(what: str, done: int, total: int) -> None:
    """Say to whoever follows how much of a piece of work is done."""
    if total > 1 and _steps:
        _steps[-1](what, done, total)


@contextmanager
def shown(*asked: tuple[Telling, str]) -> Iterator[tuple[Progress | None, ...]]:
    """For each that was asked for, with what it is about: the user's own function, one that shows it, or None."""
    if not any(progress is True for progress, _ in asked):
        yield tuple(progress or None for progress, _ in asked)  # type: ignore[misc]
        return
    with showing() as step, following(step):
        yield tuple(Shown(step, what) if progress is True else progress or None for progress, what in asked)


def say_before(line: str) -> None:
    """One line on standard error, before anything is shown."""
    _to_stderr(line[:1].upper() + line[1:])
