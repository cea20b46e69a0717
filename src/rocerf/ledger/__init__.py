"""The ledger: letters issued, deletion requests, and what each does to the other. No HTTP in here.

**Opening.** ``Ledger.open("sqlite:///ledger.db")``, or ``Ledger.open("postgresql://...", keys="ledger.keys")``; tables
are made and migrated. ``rows=FileRows("rows.parquet", label=...)`` leaves training rows with the user (``sources.py``);
without it they are kept inside, sealed. ``clock=`` is injected, ``policy=Policy(...)`` holds the organisation's own
rules (``broken``: "reissue", "honour" or "replace"; ``lead``: how long before the first deadline a batch is carried
out; ``renew_at``; ``four_eyes``; ``lease`` and ``tries`` of jobs). Every method is safe to call from several threads
and processes. A person is called by a text of the user's (``person``, the index of tables); records know only a number
(``subject``) that leads nowhere once the person is erased. ``actor`` is who does it, for the audit trail: never a data
subject.

**Parts.** What they give back are frozen records (``records.py``).

- ``ledger.models``:
  ``register(explainer, actor=, label="") -> ModelVersion``, ``current()``, ``get(n)``, ``all()``,
  ``explainer(n=None) -> Rocerf``.
- ``ledger.people``:
  ``assign_rows({person: ids}, actor=)``, ``rows_of(person)``, ``update(person, values, actor=)`` (their data as they
  are now: new letters are made from these), ``data_of(person)``, ``number_of(person)``.
- ``ledger.letters``:
  ``issue(frame, valid_until=, actor=, language="en", options=1, idempotency_key=None) -> tuple[LetterRecord, ...]``
  (frame in the model's columns, index: who), ``get(n)``, ``find(state=, person=, outstanding=, after=, limit=)``,
  ``document(n) -> rocerf.Letter`` (what the person reads), ``history(n)``, ``withdraw(n, reason=, actor=)``,
  ``expire()``, ``portfolio()`` (counts), ``due()`` (little is left of the budget),
  ``renew([n, ...] or None, actor=) -> Job`` (None: all that are due).
- ``ledger.requests``:
  ``receive(person, actor=, rows=None, received=None, source="", idempotency_key=None) -> DeletionRequest``,
  ``verify_identity(n, actor=, how="", colleague=None)``, ``preview(n or [n, ...], actor=, keep=True) -> Preview``,
  ``approve(n, actor=, colleague=None)``, ``refuse(n, reason=, actor=)``, ``hold(n, reason=, actor=)``,
  ``resume(n, actor=)``, ``extend(n, reason=, actor=)``, ``get(n)``, ``find(state=, person=, after=, limit=)``,
  ``by_deadline(limit=)``.
- ``ledger.deletions``:
  ``carry_out(n or [n, ...], actor=, broken=None, idempotency_key=None) -> Job`` (approved requests, one retraining),
  ``due() -> (n, ...)`` (what must be carried out now), ``certificate(n) -> ErasureCertificate``
  (``to_text(language)``, ``to_json()``).
- ``ledger.jobs``:
  ``get(n) -> Job``, ``find(state=, after=, limit=)``, ``retry(n, actor=)``. ``rocerf.ledger.worker.Worker(ledger)``
  does them: ``run_once() -> Job | None``, ``run(stop: threading.Event, every=1.0)`` (also expires letters and carries
  out what is due).
- ``ledger.copies``:
  ``backup(path, actor=)``, ``tell(path, actor=, kind=)``, ``paths()``: what every deletion removes.
- ``ledger.audit``:
  ``events(after=, limit=, kind=, subject=)``, ``verify(anchor=None) -> ChainReport``, ``head()``,
  ``note(kind, actor=, facts=)`` (events of the caller's own).

**Errors** are :class:`rocerf.errors.LedgerError`: ``TransitionError`` (that step is not open from here),
``NotInLedgerError``, ``ErasedError``, ``LeaseLostError``, ``LedgerUnavailableError`` (try again later); bad values are
``OptionError`` as everywhere. States are enums with ``code`` and ``sentence`` (``states.py`` has the tables of ways).

**Where things are.** Tables in ``tables.py`` (another room's tables are declared on the same ``Base`` in a module of
its own, with a step of its own under ``migrations/versions``). Everything personal is ciphertext under a key per
person, and the keys are in another file (``keys.py``); the audit chain (``chain.py``) is over ciphertext.
"""

from __future__ import annotations

from rocerf.errors import MissingExtraError

try:
    import alembic as _alembic  # noqa: F401
    import cryptography as _cryptography  # noqa: F401
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ImportError as error:  # pragma: no cover (the tests have them)
    raise MissingExtraError(error.name or "sqlalchemy", "service", "The ledger") from error

from rocerf.ledger.core import Policy
from rocerf.ledger.ledger import Ledger
from rocerf.ledger.records import (
    AuditEvent,
    ChainHead,
    ChainReport,
    DeletionRequest,
    ErasureCertificate,
    HistoryEntry,
    Job,
    LetterBudget,
    LetterRecord,
    ModelVersion,
    Preview,
    SourceCheck,
)
from rocerf.ledger.sources import CalledRows, FileRows, Look, RowSource
from rocerf.ledger.states import JobState, LetterState, RequestState, VersionState

__all__ = [
    "AuditEvent",
    "CalledRows",
    "ChainHead",
    "ChainReport",
    "DeletionRequest",
    "ErasureCertificate",
    "FileRows",
    "HistoryEntry",
    "Job",
    "JobState",
    "Ledger",
    "LetterBudget",
    "LetterRecord",
    "LetterState",
    "Look",
    "ModelVersion",
    "Policy",
    "Preview",
    "RequestState",
    "RowSource",
    "SourceCheck",
    "VersionState",
]
