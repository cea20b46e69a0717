"""What a deletion would do, found by really doing it apart from everything that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.ledger.core import Core, found_or_refused
from rocerf.ledger.models import Models
from rocerf.ledger.outstanding import Outstanding
from rocerf.ledger.people import People, notes_of_others
from rocerf.ledger.records import LetterBudget, Preview
from rocerf.ledger.tables import LetterRow, RequestRow
from rocerf.ledger.written import as_written


def preview(core: Core, models: Models, people: People, numbers: Sequence[int]) -> Preview:
    """Retrain as the deletion will, look at every outstanding letter, and keep nothing of it."""
    from rocerf.ledger.requests import rows_named

    version = models.current().id
    explainer = models.explainer(version)
    with core.database.reading() as session:
        rows = [found_or_refused(session, RequestRow, number, "deletion request") for number in numbers]
        named = list(dict.fromkeys(i for row in rows for i in rows_named(core, people, session, row)))
        subjects = [row.subject for row in rows]
        letters = Outstanding.of(session, core).without(subjects)
        withdrawn = _letters_of(session, subjects)
        of_others = _rows_of_others(session, core, people, subjects, named)
    ours, elsewhere = split(explainer.model.train.ids.tolist(), named)
    holds = np.ones(len(letters), bool)
    if ours:
        holds, _ = letters.held_by(explainer.forget(ours).model, lambda number: models.explainer(number).model)
    budgets = [
        LetterBudget(
            letter=int(letters.numbers[place]),
            promise=letters.promises[place],
            k=int(letters.k[place]),
            used_before=int(letters.used[place]),
            used_after=int(letters.used[place]) + len(ours),
            breaks=not holds[place],
        )
        for place in range(len(letters))
    ]
    return Preview(
        requests=tuple(numbers),
        version=version,
        made=core.now(),
        rows=len(ours),
        rows_elsewhere=len(elsewhere),
        rows_of_others=of_others,
        letters=len(budgets),
        budgets=tuple(budgets),
        withdrawn=tuple(withdrawn),
    )


def split(own: Sequence[Any], ids: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Ids of rows of a model, whose ``own`` they are, and others (already forgotten, or of another table).

    An id that came as text, as from a form, means the row whose id is written so: "17" is row 17, unless there is a row
    "17". That a row stays because of how its id was written must not happen; nor that one of several rows whose ids are
    written alike goes because another was meant: such an id is none of the model's.
    """
    exact, written = set(own), _Alike(own)
    found = [i if i in exact else written.row(i) for i in ids]
    ours = list(dict.fromkeys(row for row in found if row is not None))
    return ours, [i for i, row in zip(ids, found, strict=True) if row is None]


class _Alike:
    """Rows by how their ids are written."""

    def __init__(self, own: Sequence[Any]) -> None:
        self._as_given = {str(row): row for row in own}
        self._alike: dict[str, Any] = {}
        for row in own:
            text = as_written(row)
            self._alike[text] = None if text in self._alike else row

    def row(self, name: Any) -> Any:
        """The row whose id is the same text, else the only one that is written like it; None where there is none."""
        return self._as_given.get(str(name), self._alike.get(as_written(name)))


def _rows_of_others(session: Session, core: Core, people: People, subjects: Sequence[int], named: Sequence[Any]) -> int:
    """How many of the ids that came with the requests are noted as rows of people who did not ask: a slip of the pen,
    or a row that two people share. Looked for only where ids came that are not noted as the askers' own."""
    own = {as_written(i) for number in subjects for i in people.rows(session, number)}
    further = set(map(as_written, named)) - own
    if not further:
        return 0
    noted = notes_of_others(session, core, further, subjects).values()
    return len(further & {as_written(i) for ids in noted for i in ids})


def _letters_of(session: Session, subjects: Sequence[int]) -> list[int]:
    return list(session.scalars(select(LetterRow.id).where(LetterRow.subject.in_(subjects)).order_by(LetterRow.id)))
