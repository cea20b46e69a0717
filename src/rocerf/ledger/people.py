"""Data subjects: which training rows are theirs, and their data as they are now; all under a key of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from rocerf.errors import OptionError
from rocerf.ledger.core import Core

#: Kind and parts of what is kept of a person.
PERSON, ROWS, DATA = "person", "rows", "data"


@dataclass(frozen=True, eq=False)
class People:
    """Data subjects, by what the user calls them (a text). In the database they are numbers without a name."""

    core: Core

    def assign_rows(self, rows: Mapping[str, Iterable[Any]], *, actor: str) -> int:
        """Note which training rows belong to whom, in place of what was noted of these people; how many people."""
        parts = {name: json.dumps([plain(number) for number in ids]).encode() for name, ids in rows.items()}
        with self.core.database.writing() as session:
            numbers = self.core.subjects(session, parts)
            self.core.put(session, ((PERSON, numbers[n], ROWS, numbers[n], content) for n, content in parts.items()))
            self.core.note(session, "rows assigned", actor, {"people": len(parts)})
        return len(parts)

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
