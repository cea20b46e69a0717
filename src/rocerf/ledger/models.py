"""Model versions: which model judges people, with its explainer kept under a key of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.errors import ErasedError, NotInLedgerError
from rocerf.explainer.explainer import Rocerf
from rocerf.ledger.core import Core, found_or_refused
from rocerf.ledger.keys import VERSION, opened, sealed
from rocerf.ledger.records import ModelVersion
from rocerf.ledger.states import VersionState
from rocerf.ledger.tables import ArtefactRow, VersionRow
from rocerf.models.sklearn.skops_file import skops_pipeline
from rocerf.storage.state import State

FORMAT = "rocerf-ledger-explainer/1"
_PIPELINE = "rocerf-ledger-pipeline/1"


#: Makes an explainer of its states.
Load = Callable[[Mapping[str, State]], Rocerf]


def to_bytes(explainer: Rocerf) -> bytes:
    """An explainer as one state; it holds all training rows, and a pipeline as skops writes it."""
    states, pipeline = dict(explainer.state()), _pipeline_of(explainer)
    if pipeline is not None:
        from skops.io import dumps

        states["pipeline"] = State(_PIPELINE, {}, {"skops": np.frombuffer(dumps(pipeline), np.uint8)})
    return State.joined(FORMAT, states).to_bytes()


def from_bytes(content: bytes, source: str, load: Load | None = None) -> Rocerf:
    """The inverse of :func:`to_bytes`; of a pipeline only scikit-learn's own steps are trusted."""
    whole = State.from_bytes(content, FORMAT, source)
    states = {name: whole.part(name) for name in whole.values["parts"]}
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
    _loaded: dict[int, Rocerf] = field(default_factory=dict, repr=False)

    def register(self, explainer: Rocerf, *, actor: str, label: str = "") -> ModelVersion:
        """Make this the model that judges people. Letters of the one before stay, and are rechecked by this one.

        The explainer is prepared first (proven, simulated, calibrated), as :meth:`rocerf.Rocerf.save` does.
        """
        content = to_bytes(explainer)
        with self.core.database.writing() as session:
            made = self.add(session, explainer, content, label=label)
            self.core.note(session, "model registered", actor, {"version": made, "sha256": self.hash_of(session, made)})
        return self.get(made)

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
            key = self.core.keys.of(VERSION, [number]).get(number)
            content = opened(key, row.ciphertext, f"version/{number}")
        loaded = from_bytes(content, f"model version {number}", self.load)
        self._loaded[number] = loaded
        return loaded

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
    )
