"""Both databases, for every test that asks for ``database``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledgers import OPEN


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No test leaves a connection behind."""
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Addresses of new, empty databases."""
    if request.param == "postgresql":
        fresh: Callable[[], str] = request.getfixturevalue("postgres").fresh
        return fresh
    places = iter(range(1000))
    return lambda: f"sqlite:///{tmp_path}/{next(places)}.db"
