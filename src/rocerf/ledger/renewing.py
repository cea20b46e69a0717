"""New letters in place of old ones: made from the person's data as they are now, by the model as it is now."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import Any

import pandas as pd
from sqlalchemy.orm import Session

from rocerf.errors import DataError, SchemaError
from rocerf.explainer.explainer import Rocerf
from rocerf.ledger.core import Core
from rocerf.ledger.issuing import ASKED, DOCUMENT, LETTER, Written, written
from rocerf.ledger.people import DATA, PERSON
from rocerf.ledger.tables import LetterRow


@dataclass(frozen=True)
class Person:
    """Somebody with a letter: what they are called there, their values by column, and those it was made from."""

    letter: LetterRow
    name: str | int
    values: dict[str, Any]
    then: dict[str, Any]


def people_now(session: Session, core: Core, rows: Sequence[LetterRow]) -> list[Person]:
    """Who the people of letters are today: their data as last handed in, else as they were then.

    Of whom nothing is left is left out.
    """
    data = core.get_many(session, PERSON, DATA, (row.subject for row in rows))
    asked = core.get_many(session, LETTER, ASKED, (row.id for row in rows))
    documents = core.get_many(session, LETTER, DOCUMENT, (row.id for row in rows))
    found = [(row, data.get(row.subject) or asked.get(row.id), documents.get(row.id)) for row in rows]
    return [
        Person(row, json.loads(document)["person"], dict(json.loads(values)), json.loads(asked.get(row.id) or values))
        for row, values, document in found
        if values is not None and document is not None
    ]


def rewritten(
    core: Core, explainer: Rocerf, version: int, people: Sequence[Person]
) -> tuple[Written, list[LetterRow]] | None:
    """A new letter for each person, not yet kept, and the old letters in the same order; None if there are none.

    People alike in language, last day and number of options are answered together. The last day stays that of the old
    letter, or is today where that has passed. Of somebody whose data as they are now cannot be read by this model (text
    for a number, say) those count that the old letter was made from; who cannot be read then either is left out: what
    one person handed in must not keep another from being erased.
    """
    today = core.today()
    groups: dict[tuple[str, date | None, int], list[Person]] = {}
    for person in people:
        row = person.letter
        until = None if row.valid_until is None else max(row.valid_until, today)
        groups.setdefault((row.language, until, max(1, row.options)), []).append(person)
    batches = list[tuple[Written, list[Person]]]()
    for (language, until, options), group in groups.items():

        def write(
            frame: pd.DataFrame, until: date | None = until, language: str = language, o: int = options
        ) -> Written:
            given: dict[str, Any] = {"valid_until": until, "issued": today, "language": language}
            return written(explainer, frame, version=version, options=o, **given)

        batches += _readable(write, group)
    if not batches:
        return None
    return reduce(Written.joined, [made for made, _ in batches]), [one.letter for _, group in batches for one in group]


def _readable(write: Callable[[pd.DataFrame], Written], group: list[Person]) -> list[tuple[Written, list[Person]]]:
    """Letters for those of a group who can be read: all at once or, where that fails, one by one."""
    try:
        made = write(pd.DataFrame([person.values for person in group], index=[person.letter.id for person in group]))
    except (DataError, SchemaError):  # it may quote what somebody handed in: it goes no farther
        if len(group) > 1:
            return [found for person in group for found in _readable(write, [person])]
        person = group[0]
        return [] if person.values == person.then else _readable(write, [replace(person, values=person.then)])
    named = [replace(letter, person=one.name) for letter, one in zip(made.letters, group, strict=True)]
    return [(replace(made, letters=tuple(named)), group)]
