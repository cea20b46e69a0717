"""The audit chain: every event carries a hash over itself and the hash before it.

An event that is edited, left out, put in or moved no longer fits its neighbours. That the last events were cut off is
seen because the end of the chain is kept twice more: in the database with a keyed hash, and in the key file. Sealed
parts are hashed as ciphertext, so the chain stays whole when a person's key is destroyed.

What it cannot show: that somebody who has both the database and the key file wrote all of it anew, and that database
and key file were put back together to an earlier moment. For those, note the end of the chain elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from sqlalchemy import event, select
from sqlalchemy.orm import Session

from rocerf.errors import FileFormatError, LedgerUnavailableError
from rocerf.ledger.keys import SUBJECT, KeyFile, sealed
from rocerf.ledger.records import ChainHead, ChainReport
from rocerf.ledger.tables import EventRow, HeadRow
from rocerf.words import Said

#: What the first event follows.
START = "0" * 64


def link(before: str, row: EventRow) -> str:
    """The hash of an event that follows this one."""
    parts = [
        before,
        str(row.seq),
        row.at.isoformat(),
        row.kind,
        row.actor,
        "" if row.subject is None else str(row.subject),
        row.facts,
        "" if row.sealed is None else row.sealed.hex(),
    ]
    # A list as JSON: no two different events are the same text.
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def begin(session: Session, keys: KeyFile) -> None:
    """Give a ledger without any event the end that its chain begins at; one that lost its end is left as it is."""
    if session.get(HeadRow, 1) is None and session.scalar(select(EventRow.seq).limit(1)) is None:
        session.add(HeadRow(id=1, seq=0, hash=START, mac=_mac(keys, 0, START)))


def append(
    session: Session,
    keys: KeyFile,
    at: datetime,
    kind: str,
    actor: str,
    facts: dict[str, Any],
    *,
    subject: int | None = None,
    private: bytes | None = None,
) -> int:
    """Add an event in this transaction; its number. Others who add one wait for the end of the transaction."""
    head = session.get(HeadRow, 1, with_for_update=True, populate_existing=True)
    if head is None:
        raise FileFormatError(
            "Expected an audit chain with its end, got one whose end was removed; take a backup of the database in "
            "which it is whole."
        )
    seq, content = head.seq + 1, None
    if private is not None and subject is not None:
        content = sealed(keys.of(SUBJECT, [subject])[subject], private, f"event/{seq}")
    written = json.dumps(facts, sort_keys=True, default=str)
    row = EventRow(seq=seq, at=at, kind=kind, actor=actor, subject=subject, facts=written, sealed=content, hash="")
    row.hash = link(head.hash, row)
    session.add(row)
    head.seq, head.hash, head.mac = seq, row.hash, _mac(keys, seq, row.hash)
    session.flush()
    _mark_when_kept(session, keys, seq, row.hash)
    return seq


def _mark_when_kept(session: Session, keys: KeyFile, seq: int, link: str) -> None:
    """Once the transaction is kept, the key file knows that the chain came so far; it would not be true before.

    Where the key file cannot be written just then, the event is kept all the same, and the next one is noted.
    """

    def mark(_: Session) -> None:
        with suppress(LedgerUnavailableError):
            keys.set_mark(seq, link)

    event.listen(session, "after_commit", mark, once=True)


def head_of(session: Session) -> ChainHead:
    """Where the chain ends, as the database says."""
    head = session.get(HeadRow, 1)
    return ChainHead(0, START) if head is None else ChainHead(head.seq, head.hash)


def note_mark(session: Session, keys: KeyFile) -> None:
    """Note in the key file how far the chain has come; after the transaction that came so far."""
    head = head_of(session)
    keys.set_mark(head.seq, head.hash)


def verify(session: Session, keys: KeyFile, anchor: ChainHead | None = None) -> ChainReport:
    """Go through the whole chain; ``anchor`` is an end that was noted elsewhere before."""
    mark = keys.mark()  # before the session looks: what others add meanwhile is not taken for lost
    head = session.get(HeadRow, 1)
    ends = [("ledger.chain_head", (head.seq, head.hash))] if head is not None else []
    ends += [("ledger.chain_mark", mark)] if mark is not None else []
    ends += [("ledger.chain_anchor", (anchor.seq, anchor.hash))] if anchor is not None else []
    faults, before, seq, seen = [], START, 0, {0: START}
    wanted = {end[0] for _, end in ends}
    for row in _events(session):
        if row.seq != seq + 1:
            faults.append(Said.of("ledger.chain_gap", after=seq, found=row.seq))
        if link(before, row) != row.hash:
            faults.append(Said.of("ledger.chain_link", seq=row.seq))
        seq, before = row.seq, row.hash
        if seq in wanted:
            seen[seq] = before
    if head is None:
        faults.append(Said.of("ledger.chain_no_head"))
    else:
        if head.seq != seq or head.hash != before:
            faults.append(Said.of("ledger.chain_end", head=head.seq, last=seq))
        if not hmac.compare_digest(head.mac, _mac(keys, head.seq, head.hash)):
            faults.append(Said.of("ledger.chain_mac"))
    faults += [Said.of("ledger.chain_lost", what=Said.of(key), seq=n) for key, (n, h) in ends[1:] if seen.get(n) != h]
    undetectable = [Said.of("ledger.chain_both")] if anchor is None else [Said.of("ledger.chain_since", seq=anchor.seq)]
    return ChainReport(seq, ChainHead(seq, before), tuple(faults), tuple(undetectable))


def _events(session: Session) -> Iterator[EventRow]:
    """All events in their order, few at a time in memory."""
    last = -1
    while True:
        rows = session.scalars(select(EventRow).where(EventRow.seq > last).order_by(EventRow.seq).limit(2000)).all()
        if not rows:
            return
        yield from rows
        last = rows[-1].seq
        session.expunge_all()


def _mac(keys: KeyFile, seq: int, link: str) -> str:
    return keys.mac(f"{seq}:{link}".encode())
