"""By when a deletion request must be answered: GDPR article 12(3), in calendar months.

The period runs from the day of receipt and ends on the day of the same number one month later; where that month has no
such day, on its last one (Regulation 1182/71, article 3(2)(c)). It may be extended by two further months, counted from
receipt too, if the person is told why within the first. A period that ends on a weekend or holiday may by the same
regulation run to the next working day: we do not use that, and never wait for proof of identity to start it. Days are
those of UTC.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime

from rocerf.errors import OptionError

#: Months until a request must be answered, and in all once it was extended.
MONTHS, MONTHS_EXTENDED = 1, 3


def months_after(day: date, months: int) -> date:
    """The day of the same number so many months later, or the last of that month.

    >>> months_after(date(2026, 1, 31), 1), months_after(date(2024, 1, 31), 1), months_after(date(2026, 11, 30), 3)
    (datetime.date(2026, 2, 28), datetime.date(2024, 2, 29), datetime.date(2027, 2, 28))
    """
    years, place = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, place + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def deadline(received: datetime, *, extended: bool = False) -> date:
    """The last day on which the request is answered in time.

    >>> deadline(datetime(2026, 3, 31, 12, tzinfo=UTC)), deadline(datetime(2026, 3, 31, 12, tzinfo=UTC), extended=True)
    (datetime.date(2026, 4, 30), datetime.date(2026, 6, 30))
    """
    return months_after(_day(received), MONTHS_EXTENDED if extended else MONTHS)


def check_extendable(received: datetime, now: datetime) -> None:
    """Refuse an extension after the first month: the person had to be told within it."""
    first = deadline(received)
    if _day(now) > first:
        raise OptionError(
            f"Expected the notice of an extension within one month of receipt (until {first}), got {_day(now)}; the "
            "request can no longer be extended: carry it out, or refuse it with a reason."
        )


def _day(moment: datetime) -> date:
    if moment.tzinfo is None:
        raise OptionError(f"Expected a time with its zone, got {moment.isoformat()}; add one, such as UTC.")
    return moment.astimezone(UTC).date()
