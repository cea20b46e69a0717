"""The German task `future_robustness` of recourse_bench, made again from what its configuration says, without its code.

Two versions of German credit with four attributes (duration, amount, age, personal status): Statlog's table is the
present, its correction (South German credit, which ROAR takes as its shift) the future. Numbers are scaled to 0..1 over
the whole table, the category becomes four 0/1 columns, the larger class is sampled down to the smaller, a fifth of each
class is the test part; the model (linear or a network of 64 and 32 units) is trained on the rest with Adam and seed 0.
The people are the test rows that the present model refuses. The future model is the same model trained on the future
table, prepared in the same way. Reported are the share of people whose point the future model accepts (none found
counts as refused) and the mean L1 length of the points found.

How the split is drawn is in no configuration that could be read. About 50 ways of drawing it were tried against the row
numbers that the benchmark's published results list, and the one that fitted was kept: it gives exactly their 50 people,
in order, for the network and for the linear model.

The classes below have the parts of its interface that :mod:`benchmarks.recourse_bench_methods` asks for.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

NUMBERS = ("duration", "amount", "age")
CATEGORY, TARGET = "personal_status_sex", "credit_risk"
#: Published in its results: rows of the table, in the order of its people.
_PEOPLE = {
    "mlp": "622 378 63 331 952 170 433 321 910 124 11 17 517 657 566 614 966 66 182 163 405 446 419 812 410 706 306 "
    "337 593 559 283 100 813 746 728 739 918 340 855 169 1 18 30 983 717 118 683 915 136 556",
    "linear": "622 378 63 952 888 433 730 321 454 910 124 11 17 517 657 566 614 966 405 446 812 410 706 306 593 338 "
    "813 645 746 522 728 739 701 918 628 340 292 169 1 18 672 983 542 118 915 973 833 136 556 328",
}
PUBLISHED_PEOPLE = {model: tuple(map(int, rows.split())) for model, rows in _PEOPLE.items()}
#: Published figures: (share the future model accepts, mean L1 of the points found).
PUBLISHED = {
    "mlp": {"ROAR": (0.68, 2.90), "RBR": (0.76, 0.49), "CVAS": (0.70, 0.32)},
    "linear": {"T-Rex": (1.00, 1.19), "PROBE": (0.76, 0.83)},
}


class Table:
    """A prepared data set: what is asked of the benchmark's own data sets, no more."""

    target_column = TARGET

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def get(self, target: bool = False) -> pd.DataFrame:
        """The label as a table of one column, or all others."""
        return self._frame[[TARGET]].copy() if target else self._frame.drop(columns=TARGET)

    def ordered_features(self) -> list[str]:
        """All columns."""
        return list(self._frame.columns)

    def attr(self, name: str) -> Any:
        """Which columns encode which attribute, and which way each may be moved."""
        columns = [c for c in self._frame.columns if c.startswith(CATEGORY)]
        if name == "encoding":
            return {CATEGORY: columns}
        return dict.fromkeys(NUMBERS, "same-or-increase") | dict.fromkeys(columns, "any")

    def clone(self) -> Table:
        """A copy."""
        return Table(self._frame.copy())

    def update(self, _flag: str, _value: object, df: pd.DataFrame) -> None:
        """Put another table in."""
        self._frame = df.copy()

    def freeze(self) -> None:
        """Nothing is locked here."""


@dataclass
class TorchModel:
    """Their linear model (no hidden units) or network: Adam on the cross entropy of two outputs."""

    hidden: tuple[int, ...]
    epochs: int
    rate: float
    _seed: int | None = 0
    _model: Any = None

    def fit(self, train_set: Any) -> None:
        """Train from the seed, 32 rows at a time."""
        state = torch.random.get_rng_state()
        torch.manual_seed(self._seed or 0)
        table = train_set.get(target=False)
        rows = torch.tensor(table.to_numpy("float32"))
        labels = torch.tensor(train_set.get(target=True).iloc[:, 0].to_numpy()).long()
        sizes = (rows.shape[1], *self.hidden, 2)
        layers: list[Any] = []
        for before, after in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        module = torch.nn.Sequential(*layers[:-1]) if self.hidden else layers[0]
        optimiser = torch.optim.Adam(module.parameters(), lr=self.rate)
        for _ in range(self.epochs):
            for batch in torch.randperm(len(rows)).split(32):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(module(rows[batch]), labels[batch]).backward()
                optimiser.step()
        self._model = module.eval()
        torch.random.set_rng_state(state)

    def get_class_to_index(self) -> dict[Any, int]:
        """Label to output."""
        return {0: 0, 1: 1}

    def accepts(self, points: pd.DataFrame) -> Any:
        """Whether each row gets label 1; a row with a gap is refused. Shape (m,), bool."""
        found = points.notna().all(axis=1).to_numpy()
        with torch.no_grad():
            chosen = self._model(torch.tensor(points.fillna(0.0).to_numpy("float32"))).argmax(dim=1).numpy()
        return (chosen == 1) & found


MODELS = {"linear": TorchModel((), 30, 0.03), "mlp": TorchModel((64, 32), 50, 0.01)}


def prepared(path: Path) -> tuple[Table, Table]:
    """Training and test part of one version of the table."""
    raw = pd.read_csv(path)[[*NUMBERS, CATEGORY, TARGET]]
    numbers = raw[list(NUMBERS)].astype("float64")
    numbers = (numbers - numbers.min()) / (numbers.max() - numbers.min())
    encoded = pd.get_dummies(raw[CATEGORY], prefix=f"{CATEGORY}_cat", dtype="float64")
    whole = pd.concat([numbers, encoded, raw[[TARGET]]], axis=1)
    size = int(whole[TARGET].value_counts().min())
    parts = [whole[whole[TARGET] == label].sample(n=size, random_state=0) for label in (0, 1)]
    balanced = pd.concat(parts).sample(frac=1.0, random_state=0)
    draw = np.random.default_rng(0)
    labels = balanced[TARGET].to_numpy()
    chosen = [draw.choice(np.flatnonzero(labels == label), size // 5, replace=False) for label in (0, 1)]
    test = draw.permutation(np.concatenate(chosen))
    train = draw.permutation(np.setdiff1d(np.arange(len(balanced)), test))
    return Table(balanced.iloc[train]), Table(balanced.iloc[test])


@dataclass(frozen=True)
class Task:
    """One model of the benchmark: its training rows, the people refused, and the model of the future."""

    train: Table
    people: pd.DataFrame
    model: TorchModel
    future: TorchModel

    def judged(self, points: pd.DataFrame) -> dict[str, float | None]:
        """What the benchmark reports about points: a row for each person, NaN where none was found."""
        found = points.notna().all(axis=1)
        lengths = (points - self.people).abs().sum(axis=1)[found]
        return {
            "found": float(found.mean()),
            "validity": float(self.model.accepts(points).mean()),
            "future_validity": float(self.future.accepts(points).mean()),
            "l1": float(lengths.mean()) if found.any() else None,
        }


def make_task(present: Path, future: Path, model: str) -> Task:
    """The task for "linear" or "mlp" from the two tables as files."""
    train, test = prepared(present)
    today, later = copy.deepcopy(MODELS[model]), copy.deepcopy(MODELS[model])
    today.fit(train)
    later.fit(prepared(future)[0])
    rows = test.get()
    return Task(train, rows[~today.accepts(rows)], today, later)
