"""Data subjects: which training rows are theirs, and their data as they are now; all under a key of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.errors import ErasedError, NotInLedgerError, OptionError, TransitionError
from rocerf.ledger import erased
from rocerf.ledger.core import Core
from rocerf.ledger.models import Models
from rocerf.ledger.states import RequestState
from rocerf.ledger.tables import PayloadRow, RequestRow
from rocerf.ledger.written import as_written

#: Kind and parts of what is kept of a person.
PERSON, ROWS, DATA = "person", "rows", "data"


@dataclass(frozen=True, eq=False)
class People:
    """Data subjects, by what the user calls them (a text). In the database they are numbers without a name."""

    core: Core
    models: Models

    def assign_rows(self, rows: Mapping[str, Iterable[Any]], *, actor: str) -> int:
        """Note which training rows belong to whom, in place of what was noted of these people; how many people.

        Ids of rows that were erased are refused, unless the current model has a row of that id again.
        """
        given = {name: [plain(number) for number in ids] for name, ids in rows.items()}
        parts = {name: json.dumps(ids).encode() for name, ids in given.items()}
        with self.core.database.writing() as session:
            self._check_not_erased(session, {number for ids in given.values() for number in ids})
            numbers = self.core.subjects(session, parts)
            self._check_settled(session, {numbers[name]: content for name, content in parts.items()})
            self.core.put(session, ((PERSON, numbers[n], ROWS, numbers[n], content) for n, content in parts.items()))
            self.core.note(session, "rows assigned", actor, {"people": len(parts)})
        return len(parts)

    def _check_not_erased(self, session: Session, ids: set[Any]) -> None:
        """Nobody notes again whose the rows were that are erased."""
        gone = erased.among(session, self.core, ids)
        if gone:
            with suppress(NotInLedgerError):  # a ledger without a model
                own = set(map(as_written, self.models.ids(session, self.models.current_row(session).id)))
                gone = [one for one in gone if as_written(one) not in own]
        if gone:
            raise ErasedError(
                f"Expected ids of rows that are not erased, got {len(gone)} of {len(ids)} that are; leave them out. "
                "Where another row has such an id now, register the model that learned from it first, or give it a new "
                "id."
            )

    def _check_settled(self, session: Session, given: Mapping[int, bytes]) -> None:
        """Whose deletion was previewed keeps the rows that were: what is approved is what was looked at."""
        states = [RequestState.PREVIEWED, RequestState.APPROVED, RequestState.UNLEARNED, RequestState.RECHECKED]
        seen = (*states, RequestState.ON_HOLD, RequestState.PURGED)
        query = select(RequestRow.subject).where(RequestRow.state.in_([state.code for state in seen]))
        under_way = [number for number in session.scalars(query) if number in given]
        known = self.core.get_many(session, PERSON, ROWS, under_way)
        if any(set(json.loads(known.get(n, b"[]"))) != set(json.loads(given[n])) for n in under_way):
            raise TransitionError(
                "Expected no other rows for somebody whose deletion was previewed already, got some: they would go "
                "without having been looked at. Leave these people out, or refuse their request and take it in anew."
            )

    def rows_of(self, name: str) -> tuple[Any, ...]:
        """The ids of the training rows that are noted as this person's."""
        with self.core.database.reading() as session:
            return self.rows(session, self.core.known_subject(session, name))

    def rows(self, session: Session, number: int) -> tuple[Any, ...]:
        """As :meth:`rows_of`, by number."""
        found = self.core.get(session, PERSON, number, ROWS)
        return () if found is None else tuple(json.loads(found))

    def update(self, name: str, values: Mapping[str, Any], *, actor: str) -> None:
        """Keep a person's data as they are now, by column: new letters are made from these."""
        with self.core.database.writing() as session:
            number = self.core.subject(session, name)
            self.core.put(session, [(PERSON, number, DATA, number, as_json(values))])
            self.core.note(session, "person updated", actor, {}, subject=number)

    def data_of(self, name: str) -> dict[str, Any] | None:
        """A person's data as they were last handed in; None if there are none."""
        with self.core.database.reading() as session:
            found = self.core.get(session, PERSON, self.core.known_subject(session, name), DATA)
            return None if found is None else dict(json.loads(found))

    def number_of(self, name: str) -> int:
        """The number by which letters and requests know this person."""
        with self.core.database.reading() as session:
            return self.core.known_subject(session, name)


def notes_of_others(
    session: Session, core: Core, written: set[str], leaving: Iterable[int]
) -> dict[int, tuple[Any, ...]]:
    """What is noted of people other than these, by their number, where any id is one of these as it is written."""
    query = select(PayloadRow.owner).where(PayloadRow.kind == PERSON, PayloadRow.part == ROWS)
    others = list(session.scalars(query.where(PayloadRow.owner.not_in(list(leaving)))))
    noted = {owner: json.loads(ids) for owner, ids in core.get_many(session, PERSON, ROWS, others).items()}
    return {owner: tuple(ids) for owner, ids in noted.items() if written & set(map(as_written, ids))}


def as_json(values: Mapping[str, Any]) -> bytes:
    """A person's values as JSON that gives every number back exactly; missing ones are null."""
    return json.dumps({str(name): plain(value) for name, value in values.items()}).encode()


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's numbers are Python's, what is missing is None."""
    import pandas as pd

    value = value.item() if hasattr(value, "item") else value
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, str | int | float | bool):
        raise OptionError(
            f"Expected numbers, texts and yes/no as values and ids, got {type(value).__name__}; convert it first."
        )
    return value
