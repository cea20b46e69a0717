"""By when a deletion request must be answered: GDPR article 12(3), in calendar months.

The period runs from the day of receipt and ends on the day of the same number one month later; where that month has no
such day, on its last one (Regulation 1182/71, article 3(2)(c)). It may be extended by two further months, counted from
receipt too, if the person is told why within the first. A period that ends on a weekend or holiday may by the same
regulation run to the next working day: we do not use that, and never wait for proof of identity to start it. Days are
those of the organisation's own time zone (``Policy.zone``): a request that comes in at half past midnight in Berlin
comes in on that day, though it is still the day before in UTC.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, tzinfo

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


def deadline(received: datetime, *, extended: bool = False, zone: tzinfo = UTC) -> date:
    """The last day on which the request is answered in time, in the calendar of this zone.

    >>> deadline(datetime(2026, 3, 31, 12, tzinfo=UTC)), deadline(datetime(2026, 3, 31, 12, tzinfo=UTC), extended=True)
    (datetime.date(2026, 4, 30), datetime.date(2026, 6, 30))
    """
    return months_after(day_of(received, zone), MONTHS_EXTENDED if extended else MONTHS)


def check_extendable(received: datetime, now: datetime, zone: tzinfo = UTC) -> None:
    """Refuse an extension after the first month: the person had to be told within it."""
    first, today = deadline(received, zone=zone), day_of(now, zone)
    if today > first:
        raise OptionError(
            f"Expected the notice of an extension within one month of receipt (until {first}), got {today}; the "
            "request can no longer be extended: carry it out, or refuse it with a reason."
        )


def day_of(moment: datetime, zone: tzinfo = UTC) -> date:
    """The day that a moment is in, there.

    >>> from zoneinfo import ZoneInfo
    >>> day_of(datetime(2026, 1, 31, 23, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin"))
    datetime.date(2026, 2, 1)
    """
    if moment.tzinfo is None:
        raise OptionError(f"Expected a time with its zone, got {moment.isoformat()}; add one, such as UTC.")
    return moment.astimezone(zone).date()
