"""Before a deletion is certified: are the rows gone where the user has them?

The ids are needed for this look, and nothing of them may stay after it; so it comes before the ids are erased, and a
deletion whose rows are still at the source waits there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from rocerf.errors import PostponedError, RowSourceError
from rocerf.ledger.core import Core
from rocerf.ledger.models import Models
from rocerf.ledger.people import People
from rocerf.ledger.previews import split
from rocerf.ledger.requests import rows_named
from rocerf.ledger.tables import BatchRow, RequestRow, VersionRow


def source_check(
    session: Session, core: Core, models: Models, people: People, batch: BatchRow, asked: Sequence[RequestRow]
) -> dict[str, Any] | None:
    """What the source says about the rows of each request; None where all rows are inside. Rows that are still given
    out postpone the deletion."""
    if batch.rows == 0 or not session.get_one(VersionRow, batch.version_before).rows_outside:
        return None
    source = models.rows
    if source is None:
        raise RowSourceError(
            "Expected the source of the training rows, to see that they are gone there, got none; open the ledger with "
            "it (Ledger.open(rows=...), rocerf worker --rows ...)."
        )
    assert batch.version_before is not None
    own = models.ids(session, batch.version_before)
    by_request = {row.id: split(own, rows_named(core, people, session, row))[0] for row in asked}
    looked = source.look(list(dict.fromkeys(i for ids in by_request.values() for i in ids)))
    if looked.there:
        raise PostponedError(
            f"Expected the rows of this deletion to be gone at {source.name}, got {len(looked.there)} of "
            f"{batch.rows} that it still gives out; remove them there (or mask them), and the deletion goes on by "
            "itself: the model has unlearned them already."
        )
    gone, masked = set(looked.gone), set(looked.masked)
    return {
        "source": source.name,
        "checked": core.now().astimezone(core.zone).isoformat(),
        "sha256": looked.sha256,
        "requests": {
            str(number): {"rows": len(ids), "gone": len(gone & set(ids)), "masked": len(masked & set(ids))}
            for number, ids in by_request.items()
        },
    }
