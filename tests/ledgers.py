"""Small ledgers for tests: a table of two columns, people who were refused, and a clock that jumps when told to."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.ledger import Ledger, Policy

#: What nobody else has: to be looked for in every byte once this person is erased.
PLANTED = {"income": 73219.8125, "debt": -41987.65625}
UNTIL = date(2027, 3, 1)

#: Ledgers that a test opened, closed when it is over.
OPEN: list[Ledger] = []


class Clock:
    """A clock that stands still, and jumps when told to."""

    def __init__(self, start: datetime = datetime(2026, 1, 31, 12, tzinfo=UTC)) -> None:
        self.at = start

    def __call__(self) -> datetime:
        return self.at

    def jump(self, **by: float) -> None:
        self.at += timedelta(**by)


@cache
def rows(count: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of two columns in which row-7 stands out, and labels."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(count, 2)) * [9000.0, 4000.0] + [30000.0, 12000.0]
    labels = (values[:, 0] - values[:, 1] + 6000 * rng.normal(size=count) > 18000).astype(int)
    frame = pd.DataFrame(values.round(2), columns=list(PLANTED), index=[f"row-{i}" for i in range(count)])
    frame.loc["row-7"] = PLANTED
    return frame, labels


def harmful(count: int = 12) -> list[str]:
    """Rows of people who were accepted: without them, fewer are."""
    frame, labels = rows()
    return frame.index[labels == 1].tolist()[:count]


def fitted_without(gone: list[str]) -> LogisticModel:
    """The model of the rows left, fitted from nothing."""
    frame, labels = rows()
    left = ~frame.index.isin(gone)
    return LogisticModel.fit(TrainingSet(frame[left], labels[left]), C=0.5)


def explainer(**options: Any) -> Rocerf:
    frame, labels = rows()
    train = TrainingSet(frame, labels, np.array(frame.index.tolist()))
    chosen: dict[str, Any] = {"k": 3, "promise": "first_order", "schema": FeatureSchema.free(train.columns)}
    return Rocerf(LogisticModel.fit(train, C=0.5), **{**chosen, **options})


def asking(model: Any, count: int = 6) -> pd.DataFrame:
    """People whom the model refuses."""
    rng = np.random.default_rng(11)
    values = rng.normal(size=(400, 2)) * [9000.0, 4000.0] + [26000.0, 14000.0]
    frame = pd.DataFrame(values.round(2), columns=list(PLANTED), index=[f"person-{i}" for i in range(400)])
    return frame[model.predict(frame) == 0].iloc[:count]


def opened(folder: Path, clock: Clock | None = None, url: str | None = None, **policy: Any) -> Ledger:
    """A ledger in this folder, or in another database with its keys in the folder."""
    where = url or f"sqlite:///{folder}/ledger.db"
    ledger = Ledger.open(where, keys=folder / "ledger.keys", clock=clock or Clock(), policy=Policy(**policy))
    OPEN.append(ledger)
    return ledger


def filled(ledger: Ledger, count: int = 6, **options: Any) -> Ledger:
    """A ledger with a model, each row assigned to its own person, and letters for some who were refused."""
    made = explainer(**options)
    ledger.models.register(made, actor="admin")
    ledger.people.assign_rows({f"owner-{i}": [f"row-{i}"] for i in range(20)}, actor="admin")
    ledger.letters.issue(asking(made.model, count), valid_until=UNTIL, actor="officer")
    return ledger


def approved(ledger: Ledger, person: str, **options: Any) -> int:
    """The number of a request that only has to be carried out."""
    number = ledger.requests.receive(person, actor="desk", **options).id
    ledger.requests.verify_identity(number, actor="desk")
    ledger.requests.preview(number, actor="dpo")
    return ledger.requests.approve(number, actor="dpo").id
