"""What the command line says before it keeps somebody waiting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from problems import random_training_set, refused_people
from rocerf import LogisticModel
from rocerf.promises.first_order import FirstOrder


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    train = random_training_set(1, n=60)
    rows = train.frame()
    people = rows.iloc[:0].copy()
    for place, person in enumerate(refused_people(LogisticModel.fit(train), 0, 2)):
        people.loc[place] = person
    rows["label"] = train.y.astype(int)
    rows.to_csv(tmp_path / "train.csv", index=False)
    people.to_csv(tmp_path / "people.csv", index=False)
    given = {"train": "train.csv", "label": "label", "favourable": "1", "people": "people.csv", "k": "1"}
    given["promise"] = "first_order"
    return ["explain", *(text for name, value in given.items() for text in (f"--{name}", value))]


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, ""), (50.0, ""), (660.0, "About 11 minutes before"), (9e3, "hours")]
)
def test_a_long_wait_is_announced_on_standard_error(
    seconds: float | None, said: str, arguments: list[str], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FirstOrder, "expected_seconds", lambda self: seconds)
    monkeypatch.setattr(FirstOrder, "shorter", "ask for less")
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert json.loads(out)  # which stays the only thing there
    if said:
        assert said in err
        assert "; ask for less" in err
        assert err.count("\n") == 1
    else:
        assert err == ""
