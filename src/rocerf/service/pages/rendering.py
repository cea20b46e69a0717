"""Templates: escaped unless letters made the HTML, in the reader's language, with nothing inline.

Jinja escapes everything that is not :class:`rocerf.html.Html`, which only ``rocerf.letters`` makes for these pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rocerf.html import Html
from rocerf.service.pages import static
from rocerf.service.pages.texts import page_language, page_languages, speaker
from rocerf.visible import visible
from rocerf.words import Language

#: How much of a budget is left, as columns: key, least, most.
BUDGET_COLUMNS: tuple[tuple[str, int, int], ...] = (
    ("used", -(10**9), 0),
    ("one", 1, 1),
    ("few", 2, 4),
    ("many", 5, 10**9),
)

#: How pressing each state is; those not here are plain.
TONES: Mapping[str, str] = {
    "letter_states.issued": "good",
    "letter_states.rechecked": "good",
    "letter_states.broken": "bad",
    "letter_states.honoured": "warn",
    "request_states.approved": "good",
    "request_states.certified": "good",
    "request_states.on_hold": "warn",
    "request_states.refused": "bad",
    "version_states.current": "good",
    "version_states.retired": "warn",
}

#: Where each page is; what stands in braces is filled in.
PLACES: Mapping[str, str] = {
    "portfolio": "/",
    "login": "/login",
    "logout": "/logout",
    "language": "/language",
    "search": "/letters/search",
    "renew": "/letters/renew",
    "letter": "/letters/{id}",
    "letter_page": "/letters/{id}/page",
    "requests": "/requests",
    "request": "/requests/{id}",
    "certificate": "/requests/{id}/certificate",
    "models": "/models",
    "trail": "/trail",
    "verify_chain": "/trail/verify",
}


#: Facts whose values are codes -> where the names of those are.
FACT_CODES: Mapping[str, str] = {"how": "evidence", "broken": "policies", "role": "roles"}


@dataclass(frozen=True)
class Reader:
    """Who reads a page: how they are called, what they may see, and what their forms carry."""

    name: str
    role: str
    sees_people: bool
    sees_trail: bool = True
    csrf: str | None = None


@dataclass(frozen=True)
class Notice:
    """A sentence above a page: ``good``, ``warn``, ``bad`` or ``note``."""

    kind: str
    text: str


def place(name: str, **values: object) -> str:
    """The address of a page.

    >>> place("request", id=7)
    '/requests/7'
    """
    return PLACES[name].format(**values)


def written_moment(language: Language, moment: datetime) -> str:
    """A time in UTC, to the minute.

    >>> written_moment(page_language("en"), datetime(2026, 3, 1, 9, 5, tzinfo=UTC))
    '1 March 2026, 09:05 UTC'
    """
    moment = moment.astimezone(UTC)
    return f"{language.day(moment.date())}, {moment:%H:%M} UTC"


@cache
def environment() -> Environment:
    """The templates beside this file."""
    made = Environment(
        loader=PackageLoader("rocerf.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters["safe_letter"] = _letter_html
    made.globals.update(
        at=place,
        static=static.address,
        languages=page_languages(),
        say_in=lambda code, key: speaker(page_language(code))(key),
        tone=lambda kind, state: TONES.get(f"{kind}.{state}", "plain"),
        budget_columns=[key for key, _, _ in BUDGET_COLUMNS],
        choices={"policy": ("reissue", "honour"), "evidence": ("signed_in", "document", "in_person", "representative")},
    )
    return made


def _shown(value: Any) -> Any:
    """Text with its unseen signs written out: none turns the order of letters round, or ends a line."""
    return visible(value) if type(value) is str else value


def _letter_html(body: str) -> Markup:
    """HTML that ``rocerf.letters`` made and escaped; anything else is escaped here."""
    return Markup(body) if isinstance(body, Html) else Markup.escape(body)


def render(
    template: str,
    code: str,
    *,
    reader: Reader | None = None,
    back: str = "/",
    here: str = "",
    notice: Notice | None = None,
    **values: Any,
) -> str:
    """A page in the language of this code."""
    language = page_language(code)
    say = speaker(language)
    field = '<input type="hidden" name="csrf_token" value="{}">'
    menu = ("portfolio", "requests", "models") + (("trail",) if reader and reader.sees_trail else ())
    csrf = Markup(field).format(reader.csrf or "") if reader else Markup("")
    return (
        environment()
        .get_template(template)
        .render(
            language=code,
            say=say,
            number=language.number,
            written_day=language.day,
            written_moment=lambda moment: written_moment(language, moment),
            promise_name=lambda name: _named(language, "promises", name),
            event_name=lambda name: _named(language, "events", name),
            fact_name=lambda name: _named(language, "facts", name),
            fact_value=lambda name, value: _fact(language, name, value),
            ledger_say=lambda key, **values: language.say(f"ledger.{key}", **values),
            reader=reader,
            menu=menu,
            here=here,
            back=back,
            csrf=lambda: csrf,
            notice=notice,
            **values,
        )
    )


def _named(language: Language, kind: str, name: str) -> str:
    """The name of something that others may add to: a promise, an event; as it is called in code if it has none."""
    key = f"pages.{kind}.{name}"
    return language.say(key) if key in language.sentences else name.replace("_", " ")


def _fact(language: Language, name: str, value: Any) -> str:
    """The value of a fact; of codes that have a name of their own, the name."""
    if isinstance(value, Mapping):  # of people only how many: numbers of people are not for everybody
        return language.number(len(value)) if name == "subjects" else ", ".join(value)
    if isinstance(value, list | tuple):
        return ", ".join(_fact(language, name, one) for one in value)
    if isinstance(value, bool) or value is None:
        return "none" if value is None else language.say("letters.yes" if value else "letters.no")
    if isinstance(value, int | float):
        return language.number(value)
    if name in FACT_CODES:
        return _named(language, FACT_CODES[name], value)
    return language.day(date.fromisoformat(value)) if name == "deadline" else str(value)
