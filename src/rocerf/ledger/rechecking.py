"""What a deletion does to outstanding letters: each is held against the new model, its budget counts down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from rocerf.ledger.core import Core
from rocerf.ledger.issuing import LETTER, POINT, Written, packed
from rocerf.ledger.letters import move, replaced
from rocerf.ledger.models import Models
from rocerf.ledger.outstanding import Outstanding
from rocerf.ledger.renewing import people_now, rewritten
from rocerf.ledger.states import OUTSTANDING, LetterState, check_letter
from rocerf.ledger.tables import BatchRow, LetterEventRow, LetterRow

#: Rows that one statement names at most.
CHUNK = 500


def recheck(session: Session, core: Core, models: Models, batch: BatchRow, leaving: Sequence[int]) -> dict[str, Any]:
    """Hold every outstanding letter of those who stay against the version after; counts."""
    after = batch.version_after
    assert after is not None
    new = models.explainer(after).model
    letters = Outstanding.of(session, core).without(leaving, after)
    holds, moved = letters.held_by(new, lambda number: models.explainer(number).model)
    for state in OUTSTANDING:
        check_letter(state, LetterState.RECHECKED)
        check_letter(state, LetterState.BROKEN)
    now, used = core.now(), letters.used + batch.rows
    for state, chosen in ((LetterState.RECHECKED, holds), (LetterState.BROKEN, ~holds)):
        places = np.flatnonzero(chosen)
        for start in range(0, len(places), CHUNK):
            numbers = letters.numbers[places[start : start + CHUNK]].tolist()
            values = {"state": state.code, "used": LetterRow.used + batch.rows, "checked_by": after}
            session.execute(update(LetterRow).where(LetterRow.id.in_(numbers)).values(values))
        events = [
            {
                "letter": int(letters.numbers[place]),
                "at": now,
                "state": state.code,
                "used": int(used[place]),
                "version": after,
                "reason": "",
            }
            for place in places
        ]
        if events:
            session.execute(insert(LetterEventRow), events)
    changed = [p for p in range(len(letters)) if not np.array_equal(moved[p], letters.points[p]) and holds[p]]
    core.put(
        session,
        (
            (LETTER, int(letters.numbers[p]), POINT, int(letters.subjects[p]),
             packed(moved[p], letters.missing[p], letters.boxes[p]))
            for p in changed
        ),
    )  # fmt: skip
    within = int((~holds & (used <= letters.k)).sum())
    return {"letters": len(letters), "broken": int((~holds).sum()), "broken_within_promise": within}


def prepared(
    session: Session, core: Core, models: Models, batch: BatchRow, leaving: Sequence[int]
) -> tuple[Written, list[int]] | None:
    """New letters for those that this batch broke, written but not kept, and whom each replaces."""
    rows = [row for row in _broken(session, batch, leaving) if not _honoured(batch, row)]
    if not rows:
        return None
    people = people_now(session, core, rows)
    if not people:
        return None
    assert batch.version_after is not None
    found = rewritten(core, models.explainer(batch.version_after), batch.version_after, people)
    return None if found is None else (found[0], [row.id for row in found[1]])


def settle(
    session: Session,
    core: Core,
    batch: BatchRow,
    leaving: Sequence[int],
    prepared: tuple[Written, list[int]] | None,
) -> dict[str, Any]:
    """Keep the new letters in place of the old ones, or honour these; counts."""
    rows = _broken(session, batch, leaving)
    kept = [row for row in rows if _honoured(batch, row)]
    move(session, core, kept, LetterState.HONOURED)
    facts = {"honoured": len(kept), "reissued": 0, "without_recourse": 0}
    facts["word_broken"] = sum(_within(row) for row in rows) - sum(map(_within, kept))
    # Nothing readable is left of these people: their letters stay broken, for somebody to look at.
    facts["unwritten"] = len(rows) - len(kept) - (0 if prepared is None else len(prepared[1]))
    if prepared is None:
        return facts
    made, old = prepared
    after = batch.version_after
    assert after is not None
    return facts | replaced(session, core, made, [session.get_one(LetterRow, number) for number in old], after)


def _within(row: LetterRow) -> bool:
    """Whether the letter spoke about as many deletions as there were: it should have held."""
    return row.used <= row.k


def _honoured(batch: BatchRow, row: LetterRow) -> bool:
    """Whether the lender keeps to a broken letter: always where its word was given, unless told otherwise."""
    return batch.broken == "honour" or (batch.broken == "reissue" and _within(row))


def _broken(session: Session, batch: BatchRow, leaving: Sequence[int]) -> list[LetterRow]:
    """Letters that the version after refused, of people who stay."""
    query = select(LetterRow).where(
        LetterRow.state == LetterState.BROKEN.code,
        LetterRow.checked_by == batch.version_after,
        LetterRow.subject.not_in(leaving),
    )
    return list(session.scalars(query.order_by(LetterRow.id)))
