"""Ids of rows that were erased: nothing of the rows is left but a keyed hash of each id, so that none comes back.

A saved explainer, a table or a note of whose rows are whose from before a deletion still has the erased ids. A hash is
made with a key of the ledger, in the key file: with the database alone ids cannot even be tried; with both one can try
whether an id was ever erased, and learns nothing of the row or the person. Ids written alike are the same, as in
:func:`rocerf.ledger.previews.split`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from rocerf.ledger.core import Core
from rocerf.ledger.tables import ErasedIdRow


def note(session: Session, core: Core, ids: Iterable[Any]) -> int:
    """Keep the hashes of these ids, in this transaction; how many ids. Sorted, so that their order tells nothing."""
    tags = {core.keys.row_tag(one) for one in ids}
    new = sorted(tags - _known(session, tags))
    if new:
        session.execute(insert(ErasedIdRow), [{"tag": tag} for tag in new])
    return len(tags)


def among(session: Session, core: Core, ids: Iterable[Any]) -> list[Any]:
    """Those of these ids that rows had which were erased."""
    if session.scalar(select(ErasedIdRow.tag).limit(1)) is None:
        return []
    tags = [(one, core.keys.row_tag(one)) for one in ids]
    known = _known(session, [tag for _, tag in tags])
    return [one for one, tag in tags if tag in known]


def _known(session: Session, tags: Iterable[str]) -> set[str]:
    wanted, found = list(tags), set[str]()
    for start in range(0, len(wanted), 500):
        found.update(session.scalars(select(ErasedIdRow.tag).where(ErasedIdRow.tag.in_(wanted[start : start + 500]))))
    return found
