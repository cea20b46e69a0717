"""What a command of the tests left behind."""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str
