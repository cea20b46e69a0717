"""The kinds of values that requests bring, each with its limits: nothing that a database or a model cannot take."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, TypeAlias

from fastapi import Header, Path, Query
from pydantic import AwareDatetime, Field, StringConstraints

from rocerf.errors import OptionError

#: Texts without control characters: databases refuse some, and nobody means them.
_PLAIN = r"^[^\x00-\x1f\x7f]*$"
_LARGEST = 2**53

Number: TypeAlias = Annotated[int, Path(ge=1, le=2**31 - 1, examples=[1])]
Person: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=_PLAIN), Field(examples=["customer-17"])
]
Reason: TypeAlias = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"),
    Field(examples=["the identity could not be verified"]),
]
Source: TypeAlias = Annotated[
    str, StringConstraints(max_length=100, pattern=r"^[A-Za-z0-9 ._:/-]*$"), Field(examples=["privacy desk"])
]
#: A number, a category or a row id, as JSON has them.
Whole: TypeAlias = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST, strict=True)]
Real: TypeAlias = Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False, strict=True)]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=200, pattern=_PLAIN, strict=True)]
RowId: TypeAlias = Whole | Text
Value: TypeAlias = Whole | Real | Text | bool | None
Column: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_PLAIN)]

After: TypeAlias = Annotated[int, Query(ge=0, le=2**31 - 1, description="Only numbers above this one: the last seen.")]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
IdempotencyKey: TypeAlias = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=8,
        max_length=200,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="A random text of the caller's: the same request sent twice with it is carried out once.",
        examples=["8e03978e-40d5-43dd-bc93-6894a57f9324"],
    ),
]
Moment: TypeAlias = AwareDatetime


def not_later(moment: datetime | None, now: datetime) -> datetime | None:
    """A time at which something was received: in the past, and not so long ago that it must be a mistake."""
    if moment is not None and not now - timedelta(days=3660) <= moment <= now + timedelta(minutes=5):
        raise OptionError(
            "Expected a time of receipt within the last ten years and not in the future, got another; leave it out for "
            "now."
        )
    return None if moment is None else moment.astimezone(UTC)


def not_past(day: date | None, today: date) -> date | None:
    """The last day of a letter: today or later, within ten years."""
    if day is not None and not today <= day <= today + timedelta(days=3660):
        raise OptionError("Expected a last day from today on, within ten years, got another; choose a later one.")
    return day
