"""Certificates of erasure in words."""

from __future__ import annotations

from rocerf.ledger.records import ErasureCertificate
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
