"""One change of an answer, in words: with all its digits, or in a few to be looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rocerf.words import exact


@dataclass(frozen=True)
class Change:
    """One attribute of a recourse: from the person's value to the recommended one, a number or a category."""

    feature: str
    label: str
    before: Any
    after: Any
    unit: str = ""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        before = _shown(self.before) + ("" if self.before is None else unit)
        return f"{self.label}: {before} -> {_shown(self.after)}{unit}"

    @property
    def brief(self) -> str:
        """The same in six digits or so, to be looked at: the point itself has them all.

        >>> Change("price", "price", 128000.0, 475304.58469598193, "USD").brief
        'price: 128000 USD -> 475305 USD'
        """
        short = replace(self, before=_brief(self.before), after=_brief(self.after))
        return str(self if short.before == short.after else short)


def _shown(value: Any) -> str:
    """A value with all its digits: what is shown is what was checked."""
    return exact(value) if isinstance(value, float) else "missing" if value is None else str(value)


def _brief(value: Any) -> Any:
    """A value in six digits, or in as many as a large number has before the point."""
    if not isinstance(value, float):
        return value
    text = f"{value:.6g}"
    return f"{value:.0f}" if "e+" in text else text
