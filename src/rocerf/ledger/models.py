"""Model versions: which model judges people, with its explainer kept under a key of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.errors import ErasedError, NotInLedgerError, TransitionError
from rocerf.explainer.explainer import Rocerf
from rocerf.ledger import erased, outside
from rocerf.ledger.core import Core, found_or_refused
from rocerf.ledger.keys import VERSION, opened, sealed
from rocerf.ledger.records import ModelVersion
from rocerf.ledger.sources import RowSource
from rocerf.ledger.states import RequestState, VersionState
from rocerf.ledger.tables import ArtefactRow, RequestRow, VersionRow
from rocerf.models.sklearn.skops_file import skops_pipeline
from rocerf.storage.state import State

FORMAT = "rocerf-ledger-explainer/1"
_PIPELINE = "rocerf-ledger-pipeline/1"


#: Makes an explainer of its states.
Load = Callable[[Mapping[str, State]], Rocerf]


def to_bytes(explainer: Rocerf, rows: RowSource | None = None) -> bytes:
    """An explainer as one state, a pipeline as skops writes it; with its training rows, unless ``rows`` has them."""
    states, pipeline = dict(explainer.state()), _pipeline_of(explainer)
    if pipeline is not None:
        from skops.io import dumps

        states["pipeline"] = State(_PIPELINE, {}, {"skops": np.frombuffer(dumps(pipeline), np.uint8)})
    return State.joined(FORMAT, states if rows is None else outside.without_rows(states, rows)).to_bytes()


def _states(content: bytes, source: str) -> dict[str, State]:
    whole = State.from_bytes(content, FORMAT, source)
    return {name: whole.part(name) for name in whole.values["parts"]}


def from_bytes(content: bytes, source: str, load: Load | None = None, rows: RowSource | None = None) -> Rocerf:
    """The inverse of :func:`to_bytes`; of a pipeline only scikit-learn's own steps are trusted."""
    states = outside.with_rows(_states(content, source), rows)
    if load is not None:
        return load(states)
    if "pipeline" not in states:
        return Rocerf.from_state(states)
    from rocerf.models.logistic.model import LogisticModel

    pipeline = skops_pipeline(states["pipeline"].arrays["skops"].tobytes())
    return Rocerf.from_state(states, model=LogisticModel.from_state(states["model"], pipeline=pipeline))


def _pipeline_of(explainer: Rocerf) -> Any | None:
    """The fitted pipeline that a logistic model came from: its state holds what it does, not how to fit it again."""
    parts = getattr(explainer.model, "parts", None)
    deployed = None if parts is None else parts.deployed
    return None if deployed is None else deployed.pipeline


@dataclass(frozen=True, eq=False)
class Models:
    """The model versions of a ledger: one judges people, those before it are retired and then erased."""

    core: Core
    #: Makes an explainer of its states, where ours cannot: with steps of a pipeline that are the user's own, say.
    load: Load | None = None
    #: Where training rows are that stay with the user; of versions without rows inside, they come from here.
    rows: RowSource | None = None
    _loaded: dict[int, Rocerf] = field(default_factory=dict, repr=False)

    def register(self, explainer: Rocerf, *, actor: str, label: str = "", reused_ids: bool = False) -> ModelVersion:
        """Make this the model that judges people. Letters of the one before stay, and are rechecked by this one.

        The explainer is prepared first (proven, simulated, calibrated), as :meth:`rocerf.Rocerf.save` does. Its
        training rows are kept inside, sealed; in a ledger that was opened with a row source (``rows=``), they stay
        there, and their ids alone are kept.

        A model that was trained on a row whose id was erased is refused: the deletion would be undone. Where these ids
        were given to other rows since (row numbers of a new table, say), ``reused_ids=True`` says so, and the audit
        trail notes that it was said and of how many.
        """
        content = to_bytes(explainer, self.rows)
        ids = {*explainer.model.train.ids.tolist(), *(() if self.rows is None else outside.given_out(self.rows))}
        with self.core.database.writing() as session:
            self._check_no_deletion(session)
            back = erased.among(session, self.core, ids)
            if back and not reused_ids:
                raise ErasedError(
                    f"Expected a model (and a row source) without rows that were erased, got {len(back)} of "
                    f"{len(ids)} rows under ids of erased ones; train it without them, or, where these ids were given "
                    "to other rows since, give those rows new ids, or say so (reused_ids=True, --reused-ids)."
                )
            made = self.add(session, explainer, content, label=label)
            facts = {"version": made, "sha256": self.hash_of(session, made), "rows_outside": self.rows is not None}
            self.core.note(session, "model registered", actor, facts | ({"reused_ids": len(back)} if back else {}))
        return self.get(made)

    def _check_no_deletion(self, session: Session) -> None:
        """Between unlearning and its certificate the model stays: letters are being held against that very one."""
        states = [RequestState.UNLEARNED.code, RequestState.RECHECKED.code, RequestState.PURGED.code]
        number = session.scalar(select(RequestRow.id).where(RequestRow.state.in_(states)).limit(1))
        if number is not None:
            raise TransitionError(
                f"Expected no deletion under way when a model is registered, got request {number}, whose rows the "
                "current model has unlearned and which is not certified yet; wait for its job, then register."
            )

    def add(
        self,
        session: Session,
        explainer: Rocerf,
        content: bytes,
        *,
        label: str,
        made_from: int | None = None,
        rows_forgotten: int = 0,
    ) -> int:
        """Put a version in as the current one, in this transaction; its number."""
        now = self.core.now()
        for before in session.scalars(select(VersionRow).where(VersionRow.state == VersionState.CURRENT.code)):
            before.state, before.retired = VersionState.RETIRED.code, now
        row = VersionRow(
            state=VersionState.CURRENT.code,
            label=label,
            promise=explainer.promise.name,
            k=explainer.k,
            training_rows=len(explainer.model.train),
            created=now,
            artefact_sha256="",
            made_from=made_from,
            rows_forgotten=rows_forgotten,
            rows_outside=self.rows is not None,
        )
        session.add(row)
        session.flush()
        ciphertext = sealed(self.core.keys.made(VERSION, [row.id])[row.id], content, f"version/{row.id}")
        row.artefact_sha256 = hashlib.sha256(ciphertext).hexdigest()
        session.add(ArtefactRow(version=row.id, ciphertext=ciphertext))
        session.flush()
        return row.id

    def current(self) -> ModelVersion:
        """The version that judges people."""
        with self.core.database.reading() as session:
            return version_of(self.current_row(session))

    def current_row(self, session: Session) -> VersionRow:
        """The row of the version that judges people."""
        row = session.scalar(select(VersionRow).where(VersionRow.state == VersionState.CURRENT.code))
        if row is None:
            raise NotInLedgerError(
                "Expected a ledger with a model, got one without; register one first (ledger.models.register)."
            )
        return row

    def get(self, number: int) -> ModelVersion:
        """The version of this number."""
        with self.core.database.reading() as session:
            return version_of(found_or_refused(session, VersionRow, number, "model version"))

    def all(self) -> tuple[ModelVersion, ...]:
        """All versions, newest first; of erased ones a hash is left."""
        with self.core.database.reading() as session:
            return tuple(map(version_of, session.scalars(select(VersionRow).order_by(VersionRow.id.desc()))))

    def explainer(self, number: int | None = None) -> Rocerf:
        """The explainer of a version, the current one by default; kept in memory until it is erased.

        It is always the one that was kept, never the one that was handed over: whoever restarts has the same.
        """
        with self.core.database.reading() as session:
            if number is None:
                number = self.current_row(session).id
            found_or_refused(session, VersionRow, number, "model version")
            kept = set(session.scalars(select(ArtefactRow.version)))
            self.dropped([version for version in self._loaded if version not in kept])  # erased by another process
            row = session.get(ArtefactRow, number) if number not in self._loaded or number not in kept else None
            if number not in kept:
                raise ErasedError(
                    f"Expected the explainer of model version {number}, got none: it was erased with the rows that it "
                    "had learned from; use the current version."
                )
            if row is None:
                return self._loaded[number]
            content = self._opened(row)
        loaded = from_bytes(content, f"model version {number}", self.load, self.rows)
        self._loaded[number] = loaded
        return loaded

    def ids(self, session: Session, number: int) -> list[Any]:
        """The ids of a version's training rows; the rows themselves are not asked for."""
        if number in self._loaded:
            return list(self._loaded[number].model.train.ids.tolist())
        return outside.ids_of(_states(self._opened(session.get_one(ArtefactRow, number)), f"model version {number}"))

    def _opened(self, row: ArtefactRow) -> bytes:
        key = self.core.keys.of(VERSION, [row.version]).get(row.version)
        return opened(key, row.ciphertext, f"version/{row.version}")

    def dropped(self, numbers: list[int]) -> None:
        """Nothing of these versions stays in memory."""
        for number in numbers:
            self._loaded.pop(number, None)

    def hash_of(self, session: Session, number: int) -> str:
        """The hash over a version's ciphertext."""
        return str(session.get_one(VersionRow, number).artefact_sha256)


def version_of(row: VersionRow) -> ModelVersion:
    """The row as a record."""
    return ModelVersion(
        id=row.id,
        state=VersionState(row.state),
        label=row.label,
        promise=row.promise,
        k=row.k,
        training_rows=row.training_rows,
        created=row.created,
        retired=row.retired,
        erased=row.erased,
        artefact_sha256=row.artefact_sha256,
        made_from=row.made_from,
        rows_forgotten=row.rows_forgotten,
        rows_outside=row.rows_outside,
    )
