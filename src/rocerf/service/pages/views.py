"""What each page shows, as plain data: the router gathers it, templates only write it down.

A page for somebody who may see no person is given data in which no person is: ``None`` where a name would stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any


@dataclass(frozen=True)
class Budget:
    """How many further deletions a letter's promise still covers, of how many; both in training rows."""

    left: int
    of: int

    @property
    def kind(self) -> str:
        """How pressing it is: nothing left, the last one, more."""
        return "bad" if self.left <= 0 else "warn" if self.left == 1 else "plain"


@dataclass(frozen=True)
class LetterLine:
    """A letter in a list."""

    id: str
    person: str | None
    promise: str
    state: str
    budget: Budget
    issued: date
    valid_until: date | None
    answered: bool = True


@dataclass(frozen=True)
class RequestLine:
    """A deletion request in a list; ``next`` is what is due (a key of ``requests.due``), "" when nothing is."""

    id: str
    subject: str | None
    state: str
    received: date
    due: date
    days_left: int
    next: str


@dataclass(frozen=True)
class Part:
    """Which part of a long list is shown, of how many."""

    page: int = 1
    pages: int = 1


@dataclass(frozen=True)
class PromiseRow:
    """Of one promise, how many outstanding letters have how much of their budget left, by the columns' keys."""

    promise: str
    by_budget: tuple[int, ...]
    total: int


@dataclass(frozen=True)
class Portfolio:
    """The first page."""

    outstanding: int
    used_up: int
    open_requests: int
    overdue: int
    rows: tuple[PromiseRow, ...]
    letters: tuple[LetterLine, ...]
    requests: tuple[RequestLine, ...]
    #: How many letters are due to be replaced before their budget is used up.
    due: int = 0
    promise: str = ""
    budget: str = ""
    state: str = ""
    part: Part = Part()


@dataclass(frozen=True)
class Found:
    """All letters and requests of one person; ``known`` whether the ledger has anybody of this name."""

    person: str
    letters: tuple[LetterLine, ...]
    requests: tuple[RequestLine, ...]
    known: bool = True


@dataclass(frozen=True)
class Event:
    """Something that happened: to a letter, to a request, or in the audit trail."""

    number: int
    at: datetime
    kind: str
    by: str | None
    facts: tuple[tuple[str, Any], ...] = ()
    hash: str = ""


@dataclass(frozen=True)
class Act:
    """Something that this reader may do now: its key in ``acts``, where it is sent, what it asks for."""

    key: str
    to: str
    asks: tuple[str, ...] = ()
    grave: bool = False


@dataclass(frozen=True)
class LetterPage:
    """One letter: what the person reads (``body``, HTML made by letters), and what has happened to it."""

    line: LetterLine
    body: str | None
    model_version: str
    history: tuple[Event, ...]
    replaced_by: str | None = None
    replaces: str | None = None
    language: str = "en"
    acts: tuple[Act, ...] = ()


@dataclass(frozen=True)
class Affected:
    """What a deletion would do, or did, to one letter."""

    letter: str
    person: str | None
    promise: str
    breaks: bool
    uses: int
    budget: Budget

    @property
    def pressing(self) -> bool:
        """Whether it breaks, or has nothing left of what was promised."""
        return self.breaks or self.budget.left <= 0


@dataclass(frozen=True)
class Preview:
    """What carrying a request out would do, found before anything is touched."""

    at: datetime
    rows: int
    letters: int
    breaks: int
    withdrawn: int
    affected: tuple[Affected, ...]
    more: int = 0
    #: Row ids of the request that are no rows of the model.
    elsewhere: int = 0
    #: Row ids of the request that are noted as other people's.
    of_others: int = 0

    @property
    def nothing_known(self) -> bool:
        """Whether neither rows nor letters are kept of whoever asks: a name that was written otherwise looks so too."""
        return not (self.rows or self.elsewhere or self.withdrawn)


@dataclass(frozen=True)
class Step:
    """One step of a request: ``done``, ``next``, ``later`` or ``stopped``."""

    state: str
    mark: str
    at: datetime | None = None
    by: str | None = None


@dataclass(frozen=True)
class RequestPage:
    """One deletion request; ``working`` is how its job stands, "" where there is none."""

    line: RequestLine
    steps: tuple[Step, ...]
    preview: Preview | None
    acts: tuple[Act, ...]
    history: tuple[Event, ...]
    reason: str = ""
    extended: bool = False
    waits_for_other: bool = False
    certificate: bool = False
    working: str = ""
    #: What its job waits for outside: "source" (rows to be removed where the user has them), "reader" (somebody who
    #: reads an older state of the database), "" where it waits for a worker alone.
    waits_for: str = ""
    #: Why its job failed, in the service's words.
    failed: str = ""


@dataclass(frozen=True)
class ModelLine:
    """A version of the model; parameters are never shown, only whether they are still kept."""

    version: str
    label: str
    made: datetime
    rows: int | None
    forgotten: int
    promise: str
    k: int
    state: str
    letters: int
    checksum: str


@dataclass(frozen=True)
class Trail:
    """The audit trail, newest first; ``verdict`` is "whole" or "broken" where the chain was verified."""

    events: tuple[Event, ...]
    length: int
    page: int
    pages: int
    verdict: str = ""
    faults: tuple[str, ...] = ()
    undetectable: tuple[str, ...] = ()
    head: str = ""
