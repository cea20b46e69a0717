"""Certificates of erasure: what was removed from where, and in words."""

from __future__ import annotations

import secrets
from datetime import date, datetime
from typing import Any

from sqlalchemy.orm import Session

from rocerf.ledger.chain import head_of
from rocerf.ledger.core import Core
from rocerf.ledger.records import ChainHead, ErasureCertificate
from rocerf.ledger.tables import BatchRow, CertificateRow, RequestRow
from rocerf.words import language_named


def as_text(certificate: ErasureCertificate, language: str = "en") -> str:
    """What the person reads: dates, what was removed from where, and what is left to others."""
    known = language_named(language)

    def say(key: str, **values: object) -> str:
        return known.say(f"ledger.{key}", **values)

    model = say("certificate_model", rows=certificate.rows) if certificate.rows else say("certificate_no_rows")
    removed = [f"  {count} {say(f'removed_{name}')}" for name, count in certificate.removed.items()]
    hashes = [f"  {name}: {value}" for name, value in certificate.hashes.items()]
    beyond = [f"  {say(f'beyond_{name}')}" for name in certificate.beyond_reach]
    dates = say(
        "certificate_dates",
        received=known.day(certificate.received.date()),
        deadline=known.day(certificate.deadline),
        certified=known.day(certificate.certified.date()),
    )
    return "\n".join(
        [
            say("certificate_title"),
            say("certificate_number", number=certificate.number, request=certificate.request),
            "",
            dates,
            model,
            "",
            f"{say('certificate_removed')}:",
            *removed,
            *([f"{say('certificate_hashes')}:", *hashes] if hashes else []),
            f"{say('certificate_beyond')}:",
            *beyond,
            "",
            say("certificate_chain", seq=certificate.chain.seq, hash=certificate.chain.hash),
        ]
    )


#: What no ledger can reach, whatever its database; PostgreSQL has more.
BEYOND = ("key_backups", "letters_sent", "source", "disk", "memory")


def certify(session: Session, core: Core, batch: BatchRow, request: RequestRow) -> None:
    """Write the certificate of a request, in this transaction."""
    facts, number = dict(batch.facts), secrets.token_hex(8)
    own: dict[str, int] = facts["subjects"][str(request.subject)]
    told = {"request": request.id, "certificate": number, "rows": request.rows}
    core.note(session, "erasure certified", batch.actor, told, subject=request.subject)
    head = head_of(session)
    document: dict[str, Any] = {
        "received": request.received.isoformat(),
        "deadline": request.deadline.isoformat(),
        "certified": core.now().isoformat(),
        "subject": request.subject,
        "rows": request.rows,
        "version_before": batch.version_before,
        "version_after": batch.version_after,
        "removed": {
            "keys": 1 + len(facts["versions"]),
            **own,
            "versions": len(facts["versions"]),
            "copies": facts["copies"],
        },
        "hashes": {f"version {version}": sha for version, sha in facts["versions"].items()},
        "beyond_reach": [*BEYOND, *(() if core.database.is_sqlite else ("wal_archive",))],
        "chain": [head.seq, head.hash],
    }
    session.add(CertificateRow(request=request.id, number=number, document=document))
    session.flush()


def certificate_of(row: CertificateRow) -> ErasureCertificate:
    """The row as a record."""
    document = row.document
    return ErasureCertificate(
        number=row.number,
        request=row.request,
        subject=document["subject"],
        received=datetime.fromisoformat(document["received"]),
        deadline=date.fromisoformat(document["deadline"]),
        certified=datetime.fromisoformat(document["certified"]),
        rows=document["rows"],
        version_before=document["version_before"],
        version_after=document["version_after"],
        removed=dict(document["removed"]),
        hashes=dict(document["hashes"]),
        beyond_reach=tuple(document["beyond_reach"]),
        chain=ChainHead(*document["chain"]),
    )
