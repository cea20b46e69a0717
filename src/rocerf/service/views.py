"""What the ledger's records look like outside. An auditor and an administrator see no person: no number of a subject,
and no free text that somebody wrote about one. Margins are rounded, down, whatever the ledger holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from pydantic import BaseModel, Field

from rocerf.ledger import (
    AuditEvent,
    ChainReport,
    DeletionRequest,
    HistoryEntry,
    Job,
    LetterRecord,
    ModelVersion,
    Preview,
)
from rocerf.service.guard import Who
from rocerf.service.permissions import PEOPLE

#: Facts of events that are free text: they may name somebody, whatever they should.
FREE_TEXT = frozenset({"reason", "source"})

#: Examples of a hash, and of who did something.
SHA256 = "ca70e24a964d77e4a854a64bef70aabc09411a51fbd37b3f73fb68b21a43abd6"
ACTOR = "data-protection-officer:9f86d081884c"

#: Significant digits of margins: more would help to find out the parameters, and nobody else.
DIGITS = 2


def rounded(margin: float | None) -> float | None:
    """A margin rounded towards less, to two significant digits.

    >>> rounded(0.123456), rounded(-0.123456), rounded(None)
    (0.12, -0.13, None)
    """
    if margin is None or margin == 0 or not math.isfinite(margin):
        return None if margin is None or not math.isfinite(margin) else 0.0
    places = DIGITS - 1 - math.floor(math.log10(abs(margin)))
    scale = 10.0**places
    return round(math.floor(margin * scale * (1 + math.copysign(1e-12, margin))) / scale, max(places, 0))


def _sees(who: Who) -> bool:
    return who.role in PEOPLE


class ModelView(BaseModel):
    """A model version: what it promises; never what it is made of."""

    id: int = Field(examples=[1])
    state: str = Field(examples=["current"])
    label: str = Field(examples=["German credit"])
    promise: str = Field(examples=["retrained"])
    k: int = Field(examples=[4])
    training_rows: int | None = Field(examples=[800])
    created: datetime
    retired: datetime | None = Field(examples=[None])
    erased: datetime | None = Field(examples=[None])
    artefact_sha256: str = Field(examples=[SHA256])
    made_from: int | None = Field(examples=[None])
    rows_forgotten: int = Field(examples=[0])

    @classmethod
    def of(cls, version: ModelVersion) -> ModelView:
        """As it is shown."""
        return cls(**{**vars(version), "state": version.state.code})


class LetterView(BaseModel):
    """A letter as it stands, without its text."""

    id: int = Field(examples=[1])
    subject: int | None = Field(description="The person's number; none for those who see no person.", examples=[7])
    version: int
    state: str = Field(examples=["issued"])
    answered: bool = Field(examples=[True])
    promise: str = Field(examples=["retrained"])
    proven: bool
    k: int = Field(examples=[4])
    used: int = Field(description="Deletions since it was issued.", examples=[0])
    remaining: int = Field(description="Deletions that it still covers; below 0 beyond.", examples=[4])
    outstanding: bool = Field(examples=[True])
    margin: float | None = Field(description="Rounded down to two digits.", examples=[0.12])
    options: int
    language: str = Field(examples=["en"])
    issued: datetime
    valid_until: date | None = Field(examples=["2027-06-30"])
    replaces: int | None = Field(examples=[None])
    replaced_by: int | None = Field(examples=[None])
    reason: str

    @classmethod
    def of(cls, letter: LetterRecord, who: Who) -> LetterView:
        """As this caller sees it."""
        given = {
            **vars(letter),
            "state": letter.state.code,
            "margin": rounded(letter.margin),
            "remaining": letter.remaining,
            "outstanding": letter.outstanding,
        }
        return cls(**(given if _sees(who) else {**given, "subject": None, "reason": ""}))


class HistoryView(BaseModel):
    """One thing that happened to a letter."""

    at: datetime
    state: str = Field(examples=["issued"])
    used: int = Field(examples=[0])
    version: int
    reason: str = ""

    @classmethod
    def of(cls, entry: HistoryEntry, who: Who) -> HistoryView:
        """As this caller sees it."""
        shown = entry.reason if _sees(who) else ""
        return cls(at=entry.at, state=entry.state.code, used=entry.used, version=entry.version, reason=shown)


class DeletionView(BaseModel):
    """A deletion request as it stands."""

    id: int = Field(examples=[1])
    subject: int | None = Field(description="The person's number; none for those who see no person.", examples=[7])
    state: str = Field(examples=["identity_verified"])
    held_from: str | None = Field(examples=[None])
    received: datetime
    deadline: date
    extended: bool
    source: str = Field(examples=["privacy desk"])
    reason: str
    verified_by: str = Field(examples=[ACTOR])
    approved_by: str
    batch: int | None = Field(examples=[None])
    certificate: str | None = Field(examples=[None])
    open: bool = Field(examples=[True])

    @classmethod
    def of(cls, request: DeletionRequest, who: Who) -> DeletionView:
        """As this caller sees it."""
        given = {
            **vars(request),
            "state": request.state.code,
            "held_from": None if request.held_from is None else request.held_from.code,
            "open": request.open,
        }
        return cls(**(given if _sees(who) else {**given, "subject": None, "reason": "", "source": ""}))


class PreviewView(BaseModel):
    """What a deletion would do, in counts; it was found by really retraining, and nothing was kept of that."""

    requests: list[int]
    model_version: int
    made: datetime
    rows: int = Field(description="Training rows that would go.")
    rows_elsewhere: int = Field(description="Ids of the requests that are no rows of this model.", examples=[0])
    rows_of_others: int = Field(
        description="Ids of the requests that are noted as rows of people who did not ask.", examples=[0]
    )
    letters: int = Field(description="Outstanding letters that were looked at.", examples=[40])
    broken: int
    broken_within_promise: int = Field(examples=[0])
    beyond_promise: int = Field(examples=[0])
    withdrawn: int = Field(examples=[0])
    broken_letters: list[int] = Field(description="Their numbers, the first thousand.", examples=[[12]])

    @classmethod
    def of(cls, preview: Preview) -> PreviewView:
        """As it is shown."""
        return cls(**preview.summary(), broken_letters=list(preview.broken[:1000]))


class JobView(BaseModel):
    """Long work, to be polled until its state is "done" or "failed"."""

    id: int = Field(examples=[1])
    kind: str = Field(examples=["deletion"])
    state: str = Field(examples=["waiting"])
    step: str = Field(
        description="The last step that is done and kept; of a deletion: unlearn, recheck, reissue, source, erase, "
        "compact, certify. Empty before the first.",
        examples=["recheck"],
    )
    attempts: int = Field(examples=[0])
    created: datetime
    not_before: datetime
    finished: datetime | None = Field(examples=[None])
    error: str = Field(description="Why it failed, or what it waits for; it quotes no value.")
    result: dict[str, Any] = Field(examples=[{}])

    @classmethod
    def of(cls, job: Job) -> JobView:
        """As it is shown."""
        return cls(**{**vars(job), "state": job.state.code, "result": dict(job.result)})


class EventView(BaseModel):
    """One link of the audit chain."""

    seq: int = Field(examples=[12])
    at: datetime
    kind: str = Field(examples=["letters issued"])
    actor: str = Field(examples=["officer:9f86d081884c"])
    subject: int | None = Field(examples=[None])
    facts: Mapping[str, Any] = Field(examples=[{"letters": 3, "version": 1}])
    sealed: bool
    hash: str = Field(examples=[SHA256])

    @classmethod
    def of(cls, event: AuditEvent, who: Who) -> EventView:
        """As this caller sees it."""
        if _sees(who):
            return cls(**vars(event))
        facts = {name: fact for name, fact in event.facts.items() if name not in FREE_TEXT}
        if "subjects" in facts:  # by the numbers of people; how many is no secret
            facts["subjects"] = len(facts["subjects"])
        return cls(**{**vars(event), "subject": None, "facts": facts})


class HeadView(BaseModel):
    """The end of the audit chain; note it elsewhere."""

    seq: int = Field(examples=[12])
    hash: str = Field(examples=[SHA256])


class ChainView(BaseModel):
    """Whether the audit chain is whole."""

    whole: bool = Field(examples=[True])
    events: int = Field(examples=[12])
    head: HeadView
    faults: list[str] = Field(examples=[[]])
    undetectable: list[str] = Field(examples=[["whoever has both the database and the key file can write it anew"]])

    @classmethod
    def of(cls, report: ChainReport) -> ChainView:
        """As it is shown."""
        return cls(
            whole=report.whole,
            events=report.events,
            head=HeadView(seq=report.head.seq, hash=report.head.hash),
            faults=list(report.faults),
            undetectable=list(report.undetectable),
        )
