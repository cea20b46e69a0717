"""The ledger's tables. What is personal is only in ``payloads``, as ciphertext under a key that is kept elsewhere.

Whoever adds a table declares it on :class:`Base` (in a module of their own, if it is another room's) and adds a step
under ``migrations/versions``; a test compares the two.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Date,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Moment(TypeDecorator[datetime]):
    """A time in UTC; SQLite keeps no zones, so none but this one is ever stored."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """As UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """What all tables share: names of constraints that migrations can speak of, and types."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 (SQLAlchemy reads it so)
        datetime: Moment,
        date: Date,
        dict[str, Any]: JSON,
        str: String,
        int: Integer,
        bool: Boolean,
        float: Float,
        bytes: LargeBinary,
    }


#: Numbers are never given twice, though rows be deleted: a number on a certificate must not become another person's.
_NUMBERED = {"sqlite_autoincrement": True}


class SubjectRow(Base):
    """A person. ``tag`` is a keyed hash of what the user calls them, None once they are erased: then nothing leads
    from the name to the number."""

    __tablename__ = "subjects"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    tag: Mapped[str | None] = mapped_column(unique=True)
    erased: Mapped[datetime | None]


class PayloadRow(Base):
    """What is personal: parts of letters, requests and people, each under its subject's key."""

    __tablename__ = "payloads"
    kind: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[int] = mapped_column(primary_key=True)
    part: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[int] = mapped_column(ForeignKey("subjects.id"), index=True)
    ciphertext: Mapped[bytes]


class VersionRow(Base):
    """A model version; its explainer is in ``artefacts``, under a key of its own."""

    __tablename__ = "versions"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(index=True)
    label: Mapped[str]
    promise: Mapped[str]
    k: Mapped[int]
    training_rows: Mapped[int | None]
    created: Mapped[datetime]
    retired: Mapped[datetime | None]
    erased: Mapped[datetime | None]
    artefact_sha256: Mapped[str]
    made_from: Mapped[int | None] = mapped_column(ForeignKey("versions.id"))
    rows_forgotten: Mapped[int] = mapped_column(default=0)
    #: Whether its training rows stay with the user, and only their ids are in the artefact.
    rows_outside: Mapped[bool] = mapped_column(default=False)


class ArtefactRow(Base):
    """A saved explainer as ciphertext: model with all training rows, pool or certificate, options."""

    __tablename__ = "artefacts"
    version: Mapped[int] = mapped_column(ForeignKey("versions.id"), primary_key=True)
    ciphertext: Mapped[bytes]


class LetterRow(Base):
    """A letter; person, point and text are payloads."""

    __tablename__ = "letters"
    __table_args__ = (Index("ix_letters_state_answered", "state", "answered"), _NUMBERED)
    id: Mapped[int] = mapped_column(primary_key=True)
    subject: Mapped[int] = mapped_column(ForeignKey("subjects.id"), index=True)
    version: Mapped[int] = mapped_column(ForeignKey("versions.id"))
    #: The version that accepted or refused its points last, in whose columns they are kept.
    checked_by: Mapped[int] = mapped_column(ForeignKey("versions.id"))
    state: Mapped[str]
    answered: Mapped[bool]
    promise: Mapped[str]
    proven: Mapped[bool]
    k: Mapped[int]
    used: Mapped[int] = mapped_column(default=0)
    margin: Mapped[float | None]
    options: Mapped[int]
    language: Mapped[str]
    issued: Mapped[datetime]
    valid_until: Mapped[date | None] = mapped_column(index=True)
    #: A letter is replaced once: however often the step is tried, the second new letter is refused here.
    replaces: Mapped[int | None] = mapped_column(ForeignKey("letters.id"), unique=True)
    #: Of a batch of letters that must not be issued twice, the caller's key and the place in it, as a keyed hash.
    issue_key: Mapped[str | None] = mapped_column(unique=True)
    #: A keyed hash of what this letter was asked for with; gone when the person is erased.
    issue_body: Mapped[str | None]
    #: Why there is no answer, as a code. Reasons in words are payloads.
    reason: Mapped[str] = mapped_column(Text, default="")


class LetterEventRow(Base):
    """What happened to a letter."""

    __tablename__ = "letter_events"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    letter: Mapped[int] = mapped_column(ForeignKey("letters.id"), index=True)
    at: Mapped[datetime]
    state: Mapped[str]
    used: Mapped[int]
    version: Mapped[int]
    reason: Mapped[str] = mapped_column(Text, default="")


class BatchRow(Base):
    """Deletion requests that are carried out by one retraining, and how far that has come."""

    __tablename__ = "batches"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    #: The last step that is done and kept.
    step: Mapped[str] = mapped_column(default="")
    created: Mapped[datetime]
    actor: Mapped[str]
    broken: Mapped[str]
    version_before: Mapped[int | None] = mapped_column(ForeignKey("versions.id"))
    version_after: Mapped[int | None] = mapped_column(ForeignKey("versions.id"))
    rows: Mapped[int] = mapped_column(default=0)
    #: What was done, in counts: names no person and no row.
    facts: Mapped[dict[str, Any]] = mapped_column(default=dict)


class RequestRow(Base):
    """A deletion request; whose, and which rows, are payloads."""

    __tablename__ = "requests"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    subject: Mapped[int] = mapped_column(ForeignKey("subjects.id"), index=True)
    state: Mapped[str] = mapped_column(index=True)
    held_from: Mapped[str | None]
    received: Mapped[datetime]
    deadline: Mapped[date] = mapped_column(index=True)
    extended: Mapped[bool] = mapped_column(default=False)
    source: Mapped[str] = mapped_column(default="")
    #: Reasons are payloads; here are those from before they were.
    reason: Mapped[str] = mapped_column(Text, default="")
    verified_by: Mapped[str] = mapped_column(default="")
    approved_by: Mapped[str] = mapped_column(default="")
    #: The people behind the two; "" where nobody knows.
    verified_person: Mapped[str] = mapped_column(default="")
    approved_person: Mapped[str] = mapped_column(default="")
    batch: Mapped[int | None] = mapped_column(ForeignKey("batches.id"), index=True)
    #: Counts of the last preview.
    preview: Mapped[dict[str, Any] | None]
    idempotency: Mapped[str | None] = mapped_column(unique=True)
    idempotency_body: Mapped[str | None]
    rows: Mapped[int] = mapped_column(default=0)


class CertificateRow(Base):
    """A certificate of erasure; it names nobody."""

    __tablename__ = "certificates"
    request: Mapped[int] = mapped_column(ForeignKey("requests.id"), primary_key=True)
    number: Mapped[str] = mapped_column(unique=True)
    document: Mapped[dict[str, Any]]


class JobRow(Base):
    """Long work with a lease: whoever holds ``token`` may keep what it did."""

    __tablename__ = "jobs"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    options: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(index=True)
    step: Mapped[str] = mapped_column(default="")
    attempts: Mapped[int] = mapped_column(default=0)
    created: Mapped[datetime]
    not_before: Mapped[datetime]
    worker: Mapped[str] = mapped_column(default="")
    token: Mapped[str] = mapped_column(default="")
    leased_until: Mapped[datetime | None]
    finished: Mapped[datetime | None]
    error: Mapped[str] = mapped_column(Text, default="")
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    idempotency: Mapped[str | None] = mapped_column(unique=True)
    idempotency_body: Mapped[str | None]


class EventRow(Base):
    """A link of the audit chain: ``hash`` is over everything else here and the hash before."""

    __tablename__ = "events"
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    kind: Mapped[str]
    actor: Mapped[str]
    subject: Mapped[int | None] = mapped_column(index=True)
    facts: Mapped[str] = mapped_column(Text)
    sealed: Mapped[bytes | None]
    hash: Mapped[str]


class HeadRow(Base):
    """The one row that says where the audit chain ends, with a keyed hash of that."""

    __tablename__ = "chain_head"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str]
    mac: Mapped[str]


class ErasedIdRow(Base):
    """A keyed hash of the id of a row that was erased; whose it was and when, nothing says."""

    __tablename__ = "erased_ids"
    tag: Mapped[str] = mapped_column(primary_key=True)


class CopyRow(Base):
    """A file or folder in our reach that holds what is in the ledger: a backup, or a saved explainer."""

    __tablename__ = "copies"
    __table_args__ = _NUMBERED
    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    path: Mapped[str] = mapped_column(Text)
    made: Mapped[datetime]
    removed: Mapped[datetime | None]
