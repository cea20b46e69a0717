"""Certificates of erasure: what was removed from where, and in words."""

from __future__ import annotations

import secrets
from datetime import date, datetime
from typing import Any

from sqlalchemy.orm import Session

from rocerf.ledger.chain import head_of
from rocerf.ledger.core import Core
from rocerf.ledger.records import ChainHead, ErasureCertificate, SourceCheck
from rocerf.ledger.tables import BatchRow, CertificateRow, RequestRow
from rocerf.words import language_named


def as_text(certificate: ErasureCertificate, language: str = "en") -> str:
    """What the person reads: dates, what was removed from where, and what is left to others."""
    known = language_named(language)

    def say(key: str, **values: object) -> str:
        return known.say(f"ledger.{key}", **values)

    title = say("certificate_title" if certificate.complete else "certificate_title_masked")
    model = say("certificate_model", rows=certificate.rows) if certificate.rows else say("certificate_no_rows")
    removed = [f"  {count} {say(f'removed_{name}', count=count)}" for name, count in certificate.removed.items()]
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
            title,
            say("certificate_number", number=certificate.number, request=certificate.request),
            "",
            dates,
            model,
            *certificate.source_text(language),
            *([say("certificate_row_hashes", hashes=certificate.row_hashes)] if certificate.row_hashes else []),
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


def source_sentences(certificate: ErasureCertificate, language: str = "en") -> tuple[str, ...]:
    """What was found where training rows stay with the user; nothing where they were kept inside."""
    found, known = certificate.source, language_named(language)
    if found is None:
        return ()
    values = {"source": found.source, "checked": known.day(found.checked.date()), "sha256": found.sha256}
    said = [("source_outside", {}), *([("source_gone", {"rows": found.gone})] if found.gone else [])]
    said += [("source_masked", {"rows": found.masked})] if found.masked else []
    said += [("source_proof" if found.sha256 else "source_asked", {})]
    return tuple(known.say(f"ledger.{key}", **{**values, **more}) for key, more in said)


#: What no ledger can reach, whatever its database; PostgreSQL has more.
BEYOND = ("key_backups", "letters_sent", "source", "untold_copies", "disk", "memory")


def certify(session: Session, core: Core, batch: BatchRow, request: RequestRow) -> None:
    """Write the certificate of a request, in this transaction."""
    facts, number = dict(batch.facts), secrets.token_hex(8)
    own: dict[str, int] = facts["subjects"][str(request.subject)]
    told = {"request": request.id, "certificate": number, "rows": request.rows}
    core.note(session, "erasure certified", batch.actor, told, subject=request.subject)
    head = head_of(session)
    document: dict[str, Any] = {
        "received": request.received.astimezone(core.zone).isoformat(),  # the days that a reader sees are those there
        "deadline": request.deadline.isoformat(),
        "certified": core.now().astimezone(core.zone).isoformat(),
        "subject": request.subject,
        "rows": request.rows,
        "version_before": batch.version_before,
        "version_after": batch.version_after,
        "removed": {
            "keys": 1 + len(facts["versions"]),
            **own,
            _versions_named(facts): len(facts["versions"]),
            "copies": facts["copies"],
        },
        "hashes": {f"version {version}": sha for version, sha in facts["versions"].items()},
        "beyond_reach": [*_beyond(facts, request), *(() if core.database.is_sqlite else ("wal_archive",))],
        "source": _source(facts, request),
        "row_hashes": facts.get("row_hashes", {}).get(str(request.id), 0),
        "chain": [head.seq, head.hash],
    }
    session.add(CertificateRow(request=request.id, number=number, document=document))
    session.flush()


def _versions_named(facts: dict[str, Any]) -> str:
    """How erased versions are called: of those that never had rows inside it is not said that rows went with them."""
    inside = facts.get("rows_were_inside", True) or not facts["versions"]
    return "versions" if inside else "versions_without_rows"


def _source(facts: dict[str, Any], request: RequestRow) -> dict[str, Any] | None:
    """What was found at the source about this request's rows."""
    checked = facts.get("source")
    if checked is None or request.rows == 0:
        return None
    return {**{name: checked[name] for name in ("source", "checked", "sha256")}, **checked["requests"][str(request.id)]}


def _beyond(facts: dict[str, Any], request: RequestRow) -> tuple[str, ...]:
    """What is out of reach; a source that was looked at is not, but copies of it are."""
    if _source(facts, request) is None:
        return BEYOND
    return tuple("source_copies" if name == "source" else name for name in BEYOND)


def certificate_of(row: CertificateRow) -> ErasureCertificate:
    """The row as a record."""
    document = row.document
    source = document.get("source")
    if source is not None:
        source = SourceCheck(**{**source, "checked": datetime.fromisoformat(source["checked"])})
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
        source=source,
        row_hashes=document.get("row_hashes", 0),
    )
