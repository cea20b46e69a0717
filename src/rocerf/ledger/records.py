"""What comes out of the ledger: plain values that nobody can change, without ciphertext and without a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

from rocerf.ledger.states import OUTSTANDING, JobState, LetterState, RequestState, VersionState


@dataclass(frozen=True)
class ModelVersion:
    """One trained model with its explainer. ``artefact_sha256`` is over the ciphertext, and stays when it is erased."""

    id: int
    state: VersionState
    label: str
    promise: str
    k: int
    training_rows: int | None
    created: datetime
    retired: datetime | None
    erased: datetime | None
    artefact_sha256: str
    #: The version this one was made from by forgetting rows, and how many rows those were.
    made_from: int | None
    rows_forgotten: int
    #: Whether its training rows stay with the user (a row source), and the ledger has only their ids.
    rows_outside: bool = False


@dataclass(frozen=True)
class LetterRecord:
    """One letter, without anything of the person: ``ledger.letters.document`` opens what they read.

    ``used`` counts the deletions carried out since it was issued, of the ``k`` that it speaks about. ``answered`` is
    false for letters that name no change; those promise nothing, and are never rechecked. ``margin`` is rounded down to
    two digits: full precision helps nobody but whoever wants the parameters.
    """

    id: int
    subject: int
    version: int
    state: LetterState
    answered: bool
    promise: str
    proven: bool
    k: int
    used: int
    margin: float | None
    options: int
    language: str
    issued: datetime
    valid_until: date | None
    replaces: int | None
    replaced_by: int | None
    reason: str

    @property
    def remaining(self) -> int:
        """Deletions that the promise still covers; below 0 once there were more than it speaks about."""
        return self.k - self.used

    @property
    def outstanding(self) -> bool:
        """Whether the person may still act on it, and every deletion is checked against it."""
        return self.answered and self.state in OUTSTANDING


@dataclass(frozen=True)
class HistoryEntry:
    """One thing that happened to a letter."""

    at: datetime
    state: LetterState
    used: int
    version: int
    reason: str = ""


@dataclass(frozen=True)
class DeletionRequest:
    """One person's request to be deleted. ``reason`` is there where it was refused, put on hold or extended."""

    id: int
    subject: int
    state: RequestState
    #: Where a request on hold goes back to.
    held_from: RequestState | None
    received: datetime
    deadline: date
    extended: bool
    source: str
    reason: str
    verified_by: str
    approved_by: str
    batch: int | None
    certificate: str | None
    #: The colleague who verified the identity, "" where nobody noted one; somebody else approves under four eyes.
    verified_person: str = ""

    @property
    def open(self) -> bool:
        """Whether something is still to be done."""
        return self.state not in (RequestState.REFUSED, RequestState.CERTIFIED)


@dataclass(frozen=True)
class LetterBudget:
    """What a deletion uses of one letter's budget."""

    letter: int
    promise: str
    k: int
    used_before: int
    used_after: int
    breaks: bool

    @property
    def within(self) -> bool:
        """Whether the promise covers all deletions up to then."""
        return self.used_after <= self.k


@dataclass(frozen=True)
class Preview:
    """What carrying out these requests would do; nothing was touched to find it out.

    ``rows`` counts the training rows that would go, ``rows_elsewhere`` ids of the requests that are no rows of this
    model. The model was really retrained as it will be, so the letters named are the very ones that will break, unless
    another deletion or a new letter comes first (``version`` and ``letters`` say what this is about).
    """

    requests: tuple[int, ...]
    version: int
    made: datetime
    rows: int
    rows_elsewhere: int
    letters: int
    budgets: tuple[LetterBudget, ...]
    #: Letters of the people who ask: they are withdrawn, and their content is erased.
    withdrawn: tuple[int, ...]
    #: Ids that came with the requests and are noted as rows of people who did not ask.
    rows_of_others: int = 0

    @property
    def broken(self) -> tuple[int, ...]:
        """Outstanding letters that would break."""
        return tuple(budget.letter for budget in self.budgets if budget.breaks)

    @property
    def broken_within_promise(self) -> tuple[int, ...]:
        """Those among them whose promise covers so many deletions: a promise would not be kept."""
        return tuple(budget.letter for budget in self.budgets if budget.breaks and budget.within)

    @property
    def beyond_promise(self) -> tuple[int, ...]:
        """Letters that would hold, but whose budget would be used up: their promise says nothing any more."""
        return tuple(budget.letter for budget in self.budgets if not budget.breaks and not budget.within)

    def summary(self) -> dict[str, Any]:
        """The counts, for pages and for the answer of a hook; names no person and no row."""
        return {
            "requests": list(self.requests),
            "model_version": self.version,
            "made": self.made.isoformat(),
            "rows": self.rows,
            "rows_elsewhere": self.rows_elsewhere,
            "rows_of_others": self.rows_of_others,
            "letters": self.letters,
            "broken": len(self.broken),
            "broken_within_promise": len(self.broken_within_promise),
            "beyond_promise": len(self.beyond_promise),
            "withdrawn": len(self.withdrawn),
        }

    def kept(self, most: int = 200) -> dict[str, Any]:
        """The counts and the letters it is about, as they are kept with a request: those that break first, then those
        with the least left, so many at most."""
        worst = sorted(self.budgets, key=lambda one: (not one.breaks, one.k - one.used_after, one.letter))[:most]
        return {**self.summary(), "budgets": [list(vars(one).values()) for one in worst]}


@dataclass(frozen=True)
class Job:
    """Long work, to be polled. ``step`` is the last one that is done and kept; ``result`` names no person."""

    id: int
    kind: str
    state: JobState
    step: str
    attempts: int
    created: datetime
    not_before: datetime
    finished: datetime | None
    error: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditEvent:
    """One link of the audit chain. ``facts`` name no person; ``sealed`` tells whether there is a part under a key."""

    seq: int
    at: datetime
    kind: str
    actor: str
    subject: int | None
    facts: Mapping[str, Any]
    sealed: bool
    hash: str


@dataclass(frozen=True)
class ChainHead:
    """The end of the audit chain. Note it elsewhere: with it, ``ledger.audit.verify`` finds any later rewriting."""

    seq: int
    hash: str


@dataclass(frozen=True)
class ChainReport:
    """Whether the audit chain is whole. ``faults`` say what was found, ``undetectable`` what could not be."""

    events: int
    head: ChainHead
    faults: tuple[str, ...]
    undetectable: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing was found."""
        return not self.faults


@dataclass(frozen=True)
class SourceCheck:
    """What was found where training rows stay with the user: of a person's ``rows``, ``gone`` are no longer stored at
    ``source`` and ``masked`` are stored there still, but not given out: those are **not** erased. ``sha256`` is over
    what was looked at, "" where the source could only be asked."""

    source: str
    checked: datetime
    rows: int
    gone: int
    masked: int
    sha256: str


@dataclass(frozen=True)
class ErasureCertificate:
    """What was removed from where, for one request. It names nobody: ``subject`` is a number that leads nowhere now.

    ``removed`` counts by place, ``hashes`` are of ciphertext that is gone, ``beyond_reach`` names
    what is left to others (``ledger.beyond_...`` among our sentences). ``source`` is there where training rows stay
    with the user: what the ledger found there.
    """

    number: str
    request: int
    subject: int
    received: datetime
    deadline: date
    certified: datetime
    rows: int
    version_before: int | None
    version_after: int | None
    removed: Mapping[str, int]
    hashes: Mapping[str, str]
    beyond_reach: tuple[str, ...]
    chain: ChainHead
    source: SourceCheck | None = None
    #: Keyed hashes of the ids of the person's rows that stay, so that these rows are not taken in again.
    row_hashes: int = 0

    @property
    def complete(self) -> bool:
        """Whether no row of the person is stored any more in any place that was looked at."""
        return self.source is None or self.source.masked == 0

    @property
    def in_time(self) -> bool:
        """Whether it was done by the deadline."""
        return self.certified.date() <= self.deadline

    def to_json(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self), default=lambda value: value.isoformat(), indent=1, ensure_ascii=False)

    def source_text(self, language: str = "en") -> tuple[str, ...]:
        """What is said about rows that stay with the user; nothing where they were kept inside."""
        from rocerf.ledger.certificates import source_sentences

        return source_sentences(self, language)

    def to_text(self, language: str = "en") -> str:
        """What the person reads."""
        from rocerf.ledger.certificates import as_text

        return as_text(self, language)
