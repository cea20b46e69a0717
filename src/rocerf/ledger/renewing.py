"""New letters in place of old ones: made from the person's data as they are now, by the model as it is now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import Any

import pandas as pd
from sqlalchemy.orm import Session

from rocerf.explainer.explainer import Rocerf
from rocerf.ledger.core import Core
from rocerf.ledger.issuing import ASKED, DOCUMENT, LETTER, Written, written
from rocerf.ledger.people import DATA, PERSON
from rocerf.ledger.tables import LetterRow


@dataclass(frozen=True)
class Person:
    """Somebody with a letter: what they are called there, and their values by column."""

    letter: LetterRow
    name: str | int
    values: dict[str, Any]


def person_now(session: Session, core: Core, row: LetterRow) -> Person | None:
    """Who a letter's person is today: their data as last handed in, else as they were then."""
    found = core.get(session, PERSON, row.subject, DATA) or core.get(session, LETTER, row.id, ASKED)
    document = core.get(session, LETTER, row.id, DOCUMENT)
    if found is None or document is None:
        return None
    return Person(row, json.loads(document)["person"], dict(json.loads(found)))


def rewritten(core: Core, explainer: Rocerf, version: int, people: Sequence[Person]) -> tuple[Written, list[LetterRow]]:
    """A new letter for each person, not yet kept, and the old letters in the same order.

    People alike in language, last day and number of options are answered together. The last day stays that of the old
    letter, or is today where that has passed.
    """
    today = core.now().date()
    groups: dict[tuple[str, date | None, int], list[Person]] = {}
    for person in people:
        row = person.letter
        until = None if row.valid_until is None else max(row.valid_until, today)
        groups.setdefault((row.language, until, max(1, row.options)), []).append(person)
    batches = []
    for (language, until, options), group in groups.items():
        frame = pd.DataFrame([person.values for person in group], index=[person.letter.id for person in group])
        made = written(
            explainer,
            frame,
            valid_until=until,
            issued=today,
            version=version,
            language=language,
            options=options,
        )
        named = [replace(letter, person=one.name) for letter, one in zip(made.letters, group, strict=True)]
        batches.append(replace(made, letters=tuple(named)))
    return reduce(Written.joined, batches), [person.letter for group in groups.values() for person in group]
