"""Routes about letters: issued by an officer, read by whoever works with people, counted by everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from rocerf.errors import DataError, SchemaError
from rocerf.ledger import LetterState
from rocerf.service.fields import After, Column, IdempotencyKey, Limit, Number, Person, Reason, Value, not_past
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger, own_key
from rocerf.service.problems import documented
from rocerf.service.views import HistoryView, LetterView

router = guarded_router(prefix="/api/v1", tags=["letters"])

#: More at once would keep a client waiting; `rocerf explain` and the library issue any number.
MOST_AT_ONCE = 100


class PersonNow(BaseModel):
    """A person with their data as they are now, in the model's own columns."""

    model_config = ConfigDict(extra="forbid")

    person: Person
    values: dict[Column, Value] = Field(
        min_length=1, max_length=2000, examples=[{"duration": 24, "amount": 3500.0, "housing": "rent"}]
    )


class NewLetters(BaseModel):
    """People who are to have a letter each."""

    model_config = ConfigDict(extra="forbid")

    people: list[PersonNow] = Field(min_length=1, max_length=MOST_AT_ONCE)
    valid_until: date | None = Field(default=None, description="Their last day.", examples=["2027-06-30"])
    language: Literal["en", "de"] = "en"
    options: int = Field(default=1, ge=1, le=3, description="Ways to be accepted that each letter may name.")


class Letters(BaseModel):
    """Letters, by number."""

    letters: list[LetterView]


class Portfolio(BaseModel):
    """Letters in counts."""

    states: dict[str, int] = Field(examples=[{"issued": 40, "broken": 1}])
    outstanding: list[dict[str, Any]] = Field(
        examples=[[{"promise": "retrained", "k": 4, "remaining": 3, "letters": 12}]]
    )
    due: int = Field(default=0, description="Outstanding letters for which a new one is due.", examples=[2])


class OfPerson(BaseModel):
    """Whose letters to find; in a body, since addresses are logged on their way."""

    model_config = ConfigDict(extra="forbid")

    person: Person


class Because(BaseModel):
    """Why."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason


class History(BaseModel):
    """What happened to a letter, in order."""

    history: list[HistoryView]


class LetterDocument(BaseModel):
    """What the person reads, as the JSON schema of letters has it."""

    model_config = ConfigDict(extra="allow")

    format: Literal["rocerf-letter/1"]
    language: str = Field(examples=["en"])
    person: str | int = Field(examples=["customer-17"])
    issued: date
    valid_until: date | None
    status: str = Field(examples=["answered"])
    message: str = Field(examples=["This letter says what could be changed."])
    options: list[dict[str, Any]] = Field(
        examples=[[{"changes": [{"feature": "duration", "label": "credit duration", "from": 42, "to": 23}]}]]
    )


@contextmanager
def _quoting_nobody(people: list[PersonNow]) -> Iterator[None]:
    """Errors without the values that they quote to who calls the library: answers are kept on their way."""
    try:
        yield
    except (DataError, SchemaError) as error:
        said = str(error)
        for value in {value for one in people for value in one.values.values() if isinstance(value, str)}:
            said = said.replace(repr(value), "'...'")
        raise type(error)(said) from None


@router.post("/letters", status_code=201, responses=documented(401, 403, 409, 413, 422, 429, 503))
def issue(ledger: TheLedger, caller: Caller, wanted: NewLetters, key: IdempotencyKey = None) -> Letters:
    """A letter for each person, in their order; whoever cannot be answered gets one that says so.

    Their data are kept, under a key of their own: should a deletion break the letter, the new one is made from them.
    """
    import pandas as pd

    names = [one.person for one in wanted.people]
    frame = pd.DataFrame([dict(one.values) for one in wanted.people], index=pd.Index(names, dtype=object))
    with _quoting_nobody(wanted.people):
        issued = ledger.letters.issue(
            frame,
            valid_until=not_past(wanted.valid_until, ledger.core.today()),
            actor=caller.actor,
            language=wanted.language,
            options=wanted.options,
            idempotency_key=own_key(caller, key),
        )
    return Letters(letters=[LetterView.of(letter, caller) for letter in issued])


@router.get("/letters", responses=documented(401, 403, 422, 429, 503))
def letters(
    ledger: TheLedger,
    caller: Caller,
    after: After = 0,
    limit: Limit = 100,
    state: LetterState | None = None,
    outstanding: Annotated[bool | None, Query(description="Only those that count still, or only others.")] = None,
    due: Annotated[bool, Query(description="Those alone for which a new letter is due, instead.")] = False,
) -> Letters:
    """Letters by number."""
    if due:
        ripe = ledger.letters.due(pending=ledger.requests.pending_rows())
        found = tuple(one for one in ripe if one.id > after)[:limit]
    else:
        found = ledger.letters.find(state=state, outstanding=outstanding, after=after, limit=limit)
    return Letters(letters=[LetterView.of(letter, caller) for letter in found])


@router.post("/letters/search", responses=documented(401, 403, 404, 413, 422, 429, 503))
def letters_of(ledger: TheLedger, caller: Caller, whose: OfPerson) -> Letters:
    """All letters of one person."""
    found = ledger.letters.find(person=whose.person, limit=1000)
    return Letters(letters=[LetterView.of(letter, caller) for letter in found])


@router.get("/portfolio", responses=documented(401, 403, 429, 503))
def portfolio(ledger: TheLedger) -> Portfolio:
    """Letters by state, and outstanding ones by promise and what is left of their budget."""
    due = ledger.letters.count_due(pending=ledger.requests.pending_rows())
    return Portfolio(**ledger.letters.portfolio(), due=due)


@router.get("/letters/{number}", responses=documented(401, 403, 404, 422, 429, 503))
def letter(ledger: TheLedger, caller: Caller, number: Number) -> LetterView:
    """A letter as it stands."""
    return LetterView.of(ledger.letters.get(number), caller)


@router.get("/letters/{number}/history", responses=documented(401, 403, 404, 422, 429, 503))
def history(ledger: TheLedger, caller: Caller, number: Number) -> History:
    """What happened to a letter."""
    return History(history=[HistoryView.of(entry, caller) for entry in ledger.letters.history(number)])


@router.get("/letters/{number}/document", responses=documented(401, 403, 404, 410, 422, 429, 503))
def document(ledger: TheLedger, number: Number) -> LetterDocument:
    """What the person reads, as a document."""
    return LetterDocument(**json.loads(ledger.letters.document(number).to_json()))


@router.get(
    "/letters/{number}/text",
    response_class=PlainTextResponse,
    responses=documented(401, 403, 404, 410, 422, 429, 503),
)
def text(ledger: TheLedger, number: Number) -> PlainTextResponse:
    """What the person reads, as plain text."""
    return PlainTextResponse(ledger.letters.document(number).to_text())


@router.post("/letters/{number}/withdraw", responses=documented(401, 403, 404, 409, 413, 422, 429, 503))
def withdraw(ledger: TheLedger, caller: Caller, number: Number, why: Because) -> LetterView:
    """Take a letter back."""
    return LetterView.of(ledger.letters.withdraw(number, reason=why.reason, actor=caller.actor), caller)
