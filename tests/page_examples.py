"""One example of each page's data, and a letter with everything in it, for tests of templates without a ledger."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from rocerf.ledger import ChainHead, ErasureCertificate, LetterState
from rocerf.letters.letter import Detail, Letter, LetterChange, LetterPromise, Option
from rocerf.letters.page import body_html
from rocerf.recourse.result import Status
from rocerf.service.pages.rendering import Reader
from rocerf.service.pages.views import (
    Act,
    Affected,
    Budget,
    Event,
    Found,
    LetterLine,
    LetterPage,
    ModelLine,
    Part,
    Portfolio,
    Preview,
    PromiseRow,
    RequestLine,
    RequestPage,
    Step,
    Trail,
)
from rocerf.words import language_named

#: What no page may pass on as markup.
NASTY = "<script>alert('x')</script>"
AT = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)


def letter(code: str = "en", person: str = "A-17") -> Letter:
    """A letter with two changes."""
    changes = (
        LetterChange("amount", "credit amount", 9000, 5200, "9,000 DM", "5,200 DM", "DM"),
        LetterChange("months", "duration", 48, 24, "48 months", "24 months", "months"),
    )
    promise = LetterPromise("retrained", "survived the strongest deletion that our search could find", 4, False)
    return Letter(
        person,
        Status.ANSWERED,
        (Option(changes, promise),),
        (Detail("age", "age", 41, "41 years", "years"),),
        issued=date(2026, 11, 2),
        valid_until=date(2027, 5, 2),
        model_version="2026-11",
        language=language_named(code),
    )


def letter_line(number: int, left: int, person: str | None = "A-17", state: str = "issued") -> LetterLine:
    """A letter in a list."""
    return LetterLine(str(number), person, "retrained", state, Budget(left, 4), date(2026, 11, 2), date(2027, 5, 2))


def request_line(
    number: int, days: int, state: str = "received", due: str = "verify", subject: Any = "S-4"
) -> RequestLine:
    """A request in a list."""
    return RequestLine(str(number), subject, state, date(2026, 11, 1), date(2026, 12, 1), days, due)


def reader(role: str = "data-protection-officer") -> Reader:
    """Somebody signed in."""
    return Reader("Desk 3", role, role in ("officer", "data-protection-officer"), role != "officer", "c" * 64)


def certificate() -> ErasureCertificate:
    """A certificate of an erasure."""
    return ErasureCertificate(
        number="E-4",
        request=4,
        subject=7,
        received=AT,
        deadline=date(2026, 12, 18),
        certified=AT,
        rows=2,
        version_before=1,
        version_after=2,
        removed={"keys": 1, "payloads": 5, "letters": 1, "versions": 1},
        hashes={"version 1": "ab" * 32},
        beyond_reach=("letters_sent", "source"),
        chain=ChainHead(12, "cd" * 32),
    )


def pages(code: str = "en", person: str | None = "A-17") -> dict[str, dict[str, Any]]:
    """Template -> what it is given."""
    portfolio = Portfolio(
        outstanding=1234,
        used_up=3,
        open_requests=3,
        overdue=1,
        rows=(PromiseRow("certified", (0, 2, 10, 200), 212), PromiseRow("retrained", (3, 19, 400, 600), 1022)),
        letters=(letter_line(7, -1, person), letter_line(8, 1, person, "rechecked"), letter_line(9, 4, person)),
        requests=(
            request_line(4, -2, "approved", "carry_out", person),
            request_line(5, 5, "identity_verified", "preview", person),
            request_line(6, 28, subject=person),
        ),
        due=3,
        part=Part(2, 3),
    )
    found = Found(str(person), portfolio.letters, portfolio.requests)
    history = (
        Event(1, AT, "letter_issued", "officer:1a2b"),
        Event(2, AT, "letter_rechecked", None, (("reason", person or ""),)),
    )
    affected = (
        Affected("7", person, "retrained", True, 2, Budget(-1, 4)),
        Affected("8", person, "retrained", False, 2, Budget(1, 4)),
    )
    request = RequestPage(
        request_line(4, 12, "previewed", "approve", person),
        (
            Step("received", "done", AT),
            Step("identity_verified", "done", AT, "data-protection-officer:9f"),
            Step("previewed", "done", AT),
            Step("approved", "next"),
            Step("unlearned", "later"),
            Step("rechecked", "later"),
            Step("purged", "later"),
            Step("certified", "later"),
        ),
        Preview(AT, 2, 1234, 1, 1, affected, 1232),
        (
            Act("approve", "/requests/4/approve"),
            Act("hold", "/requests/4/hold", ("reason",)),
            Act("refuse", "/requests/4/refuse", ("reason",), grave=True),
        ),
        history,
    )
    return {
        "login.html": {},
        "problem.html": {"heading": "Nothing here", "text": "Look elsewhere.", "request_id": "5f0c", "detail": NASTY},
        "portfolio.html": {
            "view": portfolio,
            "here": "portfolio",
            "may_write": True,
            "states": [one.code for one in LetterState],
        },
        "found.html": {"view": found, "here": "portfolio"},
        "letter.html": {
            "view": LetterPage(
                letter_line(7, 2, person),
                None if person is None else body_html(letter(code, person)),
                "2026-11",
                history,
                language=code,
            )
        },
        "requests.html": {
            "open": portfolio.requests,
            "part": Part(1, 2),
            "part_closed": Part(3, 3),
            "closed": (request_line(1, 0, "certified", "", None),),
            "may_receive": True,
            "here": "requests",
        },
        "request.html": {"view": request, "here": "requests"},
        "certificate.html": {"view": certificate(), "here": "requests"},
        "trail.html": {
            "view": Trail(
                tuple(
                    Event(n, AT, "request_received", "officer:1a2b", (("request", 4),), "0123456789ab" * 5)
                    for n in (3, 2)
                ),
                3,
                1,
                2,
                "broken",
                ("event 3 does not fit",),
                ("whoever has both can rewrite",),
                "ab" * 32,
            ),
            "here": "trail",
        },
        "models.html": {
            "versions": (
                ModelLine("2", "German credit", AT, 998, 2, "retrained", 4, "current", 12, "cd" * 32),
                ModelLine("1", "", AT, None, 0, "retrained", 4, "erased", 0, "ef" * 32),
            ),
            "here": "models",
        },
    }
