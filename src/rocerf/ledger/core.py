"""What every part of the ledger works with: the database, the keys, the clock, the rules, and the audit chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from rocerf.errors import KeyReusedError, NotInLedgerError, OptionError
from rocerf.ledger import chain
from rocerf.ledger.database import Database
from rocerf.ledger.deadlines import day_of
from rocerf.ledger.failpoints import reached
from rocerf.ledger.keys import SUBJECT, KeyFile, opened, sealed
from rocerf.ledger.tables import Base, JobRow, LetterRow, PayloadRow, RequestRow, SubjectRow
from rocerf.ledger.written import as_written

#: What the time is; tests let it jump.
Clock = Callable[[], datetime]

#: What happens to letters that a deletion breaks.
Broken = Literal["reissue", "honour", "replace"]


@dataclass(frozen=True)
class Policy:
    """The rules that an organisation sets for itself.

    Parameters
    ----------
    broken : "reissue", "honour" or "replace"
        Letters that a deletion breaks. "reissue": those of which more rows were deleted than they speak about are made
        anew, from the person's data as they are now; one that breaks within its budget is **honoured**, because its
        word was given. "honour": all are kept to. "replace": all are made anew, also where that breaks a word given;
        how many of those is counted (``word_broken``).
    lead : timedelta
        Approved requests wait for others, to be carried out by one retraining, until so long before the first deadline.
    renew_at : float
        A new letter is due when no more than this share of the budget is left.
    four_eyes : bool
        The person who verified the identity may not approve the deletion as well, whatever tokens they have.
    zone : str
        The time zone in whose days deadlines and last days of letters are counted, such as "Europe/Berlin".
    lease, tries : timedelta, int
        How long a worker may be silent before another takes over its job, and how often a job is tried.
    """

    broken: Broken = "reissue"
    lead: timedelta = timedelta(days=7)
    renew_at: float = 0.25
    four_eyes: bool = False
    zone: str = "UTC"
    lease: timedelta = timedelta(seconds=60)
    tries: int = 5

    def __post_init__(self) -> None:
        if self.broken not in get_args(Broken):
            known = ", ".join(get_args(Broken))
            raise OptionError(f"Expected broken letters to be one of {known}, got {self.broken!r}; choose one.")
        if not 0.0 <= self.renew_at <= 1.0:
            raise OptionError(f"Expected renew_at as a share from 0 to 1, got {self.renew_at}; 0.25 is the default.")
        zone_named(self.zone)


def zone_named(name: str) -> tzinfo:
    """The time zone of this name. UTC needs no list of zones, which small machines do not have."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise OptionError(
            f"Expected a time zone such as Europe/Berlin, got {name!r}; name one, or install tzdata where zones are "
            "missing."
        ) from None


def utc_now() -> datetime:
    """What the machine's clock says."""
    return datetime.now(UTC)


@dataclass(frozen=True, eq=False)
class Core:
    """The shared ground; parts of the ledger hold it and nothing of each other's tables."""

    database: Database
    keys: KeyFile
    clock: Clock = utc_now
    policy: Policy = field(default_factory=Policy)

    def now(self) -> datetime:
        """The time, in UTC."""
        return self.clock().astimezone(UTC)

    @property
    def zone(self) -> tzinfo:
        """The organisation's own time zone."""
        return zone_named(self.policy.zone)

    def day(self, moment: datetime) -> date:
        """The day that a moment is in, where the organisation is."""
        return day_of(moment, self.zone)

    def today(self) -> date:
        """The day that it is there now."""
        return self.day(self.now())

    def note(
        self,
        session: Session,
        kind: str,
        actor: str,
        facts: dict[str, Any],
        *,
        subject: int | None = None,
        private: bytes | None = None,
    ) -> int:
        """Add a link to the audit chain in this transaction; ``private`` goes under the subject's key. Its number."""
        seq = chain.append(session, self.keys, self.now(), kind, actor, facts, subject=subject, private=private)
        reached(f"noted:{kind}")
        return seq

    def subject(self, session: Session, name: str) -> int:
        """The number of the person that the user calls so, a new one if there is none; their key is made."""
        return self.subjects(session, [name])[name]

    def subjects(self, session: Session, names: Iterable[str]) -> dict[str, int]:
        """As :meth:`subject` for many people at once."""
        tags = {name: self._tags(name) for name in names}
        known = self._known(session, tags)
        new = dict.fromkeys(own[0] for name, own in tags.items() if name not in known)
        if new:
            session.execute(insert(SubjectRow), [{"tag": tag} for tag in new])
            known = self._known(session, tags)
        self.keys.made(SUBJECT, known.values())
        return known

    def known_subject(self, session: Session, name: str) -> int:
        """The number of somebody who is in the ledger."""
        found = self._known(session, {name: self._tags(name)}).get(name)
        if found is None:
            raise NotInLedgerError(
                "Expected a person whom the ledger knows, got one whom it does not, or who was erased; check the "
                "reference."
            )
        return found

    def _tags(self, name: str) -> tuple[str, ...]:
        """The keyed hash of what somebody is called; then the one that earlier releases made where it was written
        otherwise."""
        return tuple(dict.fromkeys((self.keys.tag(as_written(name)), self.keys.tag(name))))

    def _known(self, session: Session, tags: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        """The numbers of those of these people who are there, by name.

        Whom an earlier release kept under the very name comes first: it told " A" from "A".
        """
        found = _found_tags(session, (tag for own in tags.values() for tag in own))
        numbers = {name: next((found[tag] for tag in own[::-1] if tag in found), None) for name, own in tags.items()}
        return {name: number for name, number in numbers.items() if number is not None}

    def print_of(self, *body: Any) -> str:
        """A keyed hash of what came with an idempotency key: another body under the same key is told from it."""
        return self.keys.tag("body\0" + json.dumps(body, sort_keys=True, default=str))

    def key_hash(self, key: str | None, use: str) -> str | None:
        """A caller's idempotency key as it is kept: a keyed hash, since it may name somebody."""
        return None if key is None else keyed(self.keys, hashlib.sha256(f"{use}\0{key}".encode()).hexdigest())

    def put(self, session: Session, parts: Iterable[tuple[str, int, str, int, bytes]]) -> None:
        """Keep personal parts: (kind, owner, part, subject, content), each under its subject's key, in place of any."""
        given = list(parts)
        keys = self.keys.of(SUBJECT, {subject for _, _, _, subject, _ in given})
        rows = [
            {
                "kind": kind,
                "owner": owner,
                "part": part,
                "subject": subject,
                "ciphertext": sealed(keys[subject], content, about(kind, owner, part)),
            }
            for kind, owner, part, subject, content in given
        ]
        for kind, part in {(row["kind"], row["part"]) for row in rows}:
            owners = [row["owner"] for row in rows if (row["kind"], row["part"]) == (kind, part)]
            for start in range(0, len(owners), 500):
                chosen = PayloadRow.owner.in_(owners[start : start + 500])
                session.execute(delete(PayloadRow).where(PayloadRow.kind == kind, PayloadRow.part == part, chosen))
        if rows:
            session.execute(insert(PayloadRow), rows)

    def get(self, session: Session, kind: str, owner: int, part: str) -> bytes | None:
        """One personal part, None if there is none."""
        row = session.get(PayloadRow, (kind, owner, part))
        if row is None:
            return None
        key = self.keys.of(SUBJECT, [row.subject]).get(row.subject)
        return opened(key, row.ciphertext, about(kind, owner, part))

    def get_many(self, session: Session, kind: str, part: str, owners: Iterable[int]) -> dict[int, bytes]:
        """As :meth:`get` for many owners at once; those without such a part are not in it."""
        wanted, rows = list(dict.fromkeys(owners)), list[PayloadRow]()
        for start in range(0, len(wanted), 500):
            chosen = PayloadRow.owner.in_(wanted[start : start + 500])
            rows += session.scalars(select(PayloadRow).where(PayloadRow.kind == kind, PayloadRow.part == part, chosen))
        keys = self.keys.of(SUBJECT, {row.subject for row in rows})
        return {row.owner: opened(keys.get(row.subject), row.ciphertext, about(kind, row.owner, part)) for row in rows}


def about(kind: str, owner: int, part: str) -> str:
    """What ciphertext is bound to."""
    return f"{kind}/{owner}/{part}"


#: How a hash begins that was made with a key. Before, idempotency keys were hashed without one.
KEYED = "keyed:"


def keyed(keys: KeyFile, hashed: str) -> str:
    """A hash hashed once more with a key: with the database alone nothing can be tried."""
    return KEYED + keys.tag(f"idempotency\0{hashed}")


def key_older_hashes(session: Session, keys: KeyFile) -> None:
    """Make what an earlier release kept of idempotency keys into what is kept now."""
    for table, column in ((RequestRow, "idempotency"), (JobRow, "idempotency"), (LetterRow, "issue_key")):
        for row in session.scalars(select(table).where(getattr(table, column).not_like(f"{KEYED}%"))):
            setattr(row, column, keyed(keys, getattr(row, column)))


def check_same_body(before: str | None, now: str) -> None:
    """Refuse an idempotency key that came before with something else (None: it was not noted with what)."""
    if before is not None and before != now:
        raise KeyReusedError(
            "Expected an idempotency key with the same request as before, got it with another one; send a new key: "
            "nothing was done."
        )


def found_or_refused(session: Session, table: type[Base], number: int, what: str) -> Any:
    """The row of this number."""
    row = session.get(table, number)
    if row is None:
        raise NotInLedgerError(f"Expected the number of a {what} in the ledger, got {number}; check the number.")
    return row


def _found_tags(session: Session, tags: Iterable[str]) -> dict[str, int]:
    wanted, found = list(tags), {}
    for start in range(0, len(wanted), 500):
        query = select(SubjectRow.tag, SubjectRow.id).where(SubjectRow.tag.in_(wanted[start : start + 500]))
        found.update({str(tag): number for tag, number in session.execute(query)})
    return found
