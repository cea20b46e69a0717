"""The authors' searches cut short, for tests of what is around them: what they find has tests of its own."""

from __future__ import annotations

from functools import partial

import pytest

from rocerf.baselines.registry import BASELINES
from rocerf.baselines.rocerf_authors import AuthorsRocerf
from rocerf.evaluation import methods

#: Steps of a search for one person, a fiftieth of the authors'.
STEPS = 2_000


def fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCFE and ROCERF as published take few steps in this test."""
    monkeypatch.setitem(BASELINES, "scfe", partial(BASELINES["scfe"], max_steps=STEPS))
    monkeypatch.setattr(methods, "AuthorsRocerf", partial(AuthorsRocerf, max_steps=STEPS))
