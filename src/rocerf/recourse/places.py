"""Whose answer is asked for: by name, or by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocerf.data.columns import some
from rocerf.errors import IdError


def place_of(names: Sequence[Any], asked: int | str) -> int:
    """The place of the only person called so; a number is a place, counted from the end where it is below 0.

    >>> place_of(["A3", "A4"], "A4"), place_of(["A3", "A4"], -2)
    (1, 0)
    """
    if isinstance(asked, str):
        return _named(names, asked)
    try:
        return range(len(names))[asked]
    except IndexError:  # of this kind it stays, since Python asks for places until there is none
        known = f"a place from 0 to {len(names) - 1}" if names else "answers, got none"
        raise IndexError(f"Expected {known}, not {asked}; whole numbers are places, texts are names.") from None


def _named(names: Sequence[Any], asked: str) -> int:
    places = [place for place, known in enumerate(names) if known == asked]
    if len(places) == 1:
        return places[0]
    got = f"{len(places)} of that name" if places else f"nobody, but {some(names)}" if names else "nobody"
    raise IdError(f"Expected one person called {asked!r}, got {got}; name one by place instead, from 0.")
