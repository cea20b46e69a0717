"""Whatever says "certified" or "proven" is true against every deletion: all conventions, types, rules, files, letters.

Each case is a small model of some kind, a schema, a cost, a k and a way by which the answer reaches the person. The
truth is brute force over all deletions by code of its own (:mod:`every_deletion`), about the rows that the user's own
pipeline makes where there is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import rocerf
from every_deletion import lowest_scores
from length import share
from letter_writing import as_read_by_people, as_read_by_programs, put_into
from rocerf import FeatureSchema, LogisticModel, Recourses, Rocerf, TrainingSet
from rocerf.data.feature import Feature
from rocerf.errors import RocerfError

#: Room for the rounding of the brute force itself.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """A model, people it may refuse, and how design rows of points are made by the user's own object."""

    name: str
    model: LogisticModel
    people: Any
    pipeline: Any = None
    frame: Any = None

    def truth(self, matrix: np.ndarray, k: int, frame: Any = None) -> np.ndarray:
        """Lowest score over all deletions at points (P, d), which the user has as rows of ``frame``."""
        if self.pipeline is None:
            return lowest_scores(self.model, matrix, k)
        return lowest_scores(self.model, matrix, k, design=self.own(self.frame), images=self.own(frame))

    def own(self, frame: pd.DataFrame) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = self.pipeline[:-1].transform(frame)
        rows = np.asarray(rows.todense() if hasattr(rows, "todense") else rows, dtype=np.float64)
        return np.column_stack([rows, np.ones(len(rows))]) if self.model.design.intercept else rows


def table(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    kind = rng.integers(4)
    X = rng.standard_t(1.5, size=(n, d)) if kind == 0 else rng.normal(size=(n, d))
    if kind == 1:
        X = X * 10.0 ** rng.integers(-4, 5, size=d) + 10.0 ** rng.integers(-2, 5, size=d)
    if kind == 2:
        X[:, -1] = rng.integers(0, 2, size=n)
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=d) * rng.choice([0.8, 2.0, 6.0])
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    y[:4] = [0, 1, 0, 1]
    return X, y


def plain_models(rng: np.random.Generator) -> Case:
    n, d = int(rng.integers(14, 23)), int(rng.integers(1, 4))
    X, y = table(rng, n, d)
    weights = rng.uniform(0.2, 3.0, size=n) if rng.random() < 0.3 else None
    options: dict[str, Any] = {
        "scale": bool(rng.random() < 0.7),
        "fit_intercept": bool(rng.random() < 0.8),
        "threshold": float(rng.choice([0.5, 0.3, 0.8])),
    }
    if rng.random() < 0.3:
        options["class_weight"] = {0: 2.0, 1: 0.5}
    options |= {"gamma": 10.0 ** rng.uniform(-3, -1)} if rng.random() < 0.4 else {"C": 10.0 ** rng.uniform(-2, 2)}
    model = LogisticModel.fit(TrainingSet(X, y, sample_weight=weights), **options)
    return Case(f"fit {options}", model, X[rng.integers(n, size=14)] + rng.normal(size=(14, d)) * model.train.spread)


def taken_over(rng: np.random.Generator) -> Case:
    n, d = int(rng.integers(14, 23)), int(rng.integers(1, 4))
    X, y = table(rng, n, d)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    solver = str(rng.choice(["lbfgs", "liblinear", "newton-cg"]))
    fitted = LogisticRegression(C=float(10.0 ** rng.uniform(-2, 1)), solver=solver, tol=1e-8, max_iter=10_000).fit(X, y)
    model = LogisticModel.from_sklearn(fitted, TrainingSet(X, y))
    return Case(f"from_sklearn {solver}", model, X[rng.integers(n, size=14)] + rng.normal(size=(14, d)))


def pipelines(rng: np.random.Generator) -> Case:
    n = int(rng.integers(18, 25))
    size = 10.0 ** rng.integers(0, 4)
    frame = pd.DataFrame(
        {
            "income": (rng.gamma(5.0, 10.0, n) + size * rng.integers(0, 2) * 10).round(2),
            "cars": rng.integers(0, 4, n),
            "home": rng.choice(["own", "rent"], n),
        },
        index=[f"row-{i}" for i in range(n)],
    )
    y = (frame["income"].rank() / n + (frame["home"] == "own") + rng.normal(0, 0.5, n) > 1.0).astype(int)
    y.iloc[:4] = [0, 1, 0, 1]
    scaler = StandardScaler() if rng.random() < 0.5 else MinMaxScaler()
    encode = make_column_transformer((scaler, ["income", "cars"]), (OneHotEncoder(drop="first"), ["home"]))
    pipeline = make_pipeline(encode, LogisticRegression(C=0.5, tol=1e-8, max_iter=10_000)).fit(frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y)
    assert isinstance(model, LogisticModel)
    people = frame.iloc[rng.integers(n, size=12)].set_axis([f"p{i}" for i in range(12)])
    return Case("pipeline", model, people, pipeline, frame)


def rules(case: Case, rng: np.random.Generator) -> FeatureSchema | None:
    """Sometimes none, else bounds close to somebody, steps, directions."""
    if case.pipeline is not None:
        return None
    made = []
    for column, values in zip(case.model.train.columns, case.model.train.X.T, strict=True):
        draw, spread = rng.random(), float(values.std()) or 1.0
        if draw < 0.3:
            own = float(case.people[rng.integers(len(case.people)), len(made)])
            made.append(
                Feature(column, lower=own - 3 * spread, upper=own + spread * float(rng.choice([1e-9, 0.5, 3.0])))
            )
        elif draw < 0.45:
            made.append(Feature(column, step=spread / 4))
        elif draw < 0.55:
            made.append(Feature(column, direction="increase"))
        else:
            made.append(Feature(column))
    return FeatureSchema(tuple(made)) if rng.random() < 0.6 else None


def told(case: Case, rng: np.random.Generator, folder: Path) -> Iterator[tuple[str, Rocerf, Recourses]]:
    """The same question by several ways: each gives recourses that may say certified."""
    k = int(rng.integers(1, 3))
    options = {
        "cost": str(rng.choice(["l2", "l1"])),
        "schema": rules(case, rng),
        "delta": float(rng.choice([0.0, 0.0, 0.02])),
    }
    explainer = Rocerf(case.model, k, promise="certified", **options)
    found = explainer.explain(case.people)
    yield "explain", explainer, found
    path = folder / "answers.json"
    found.to_json(path)
    yield "json", explainer, Recourses.from_json(path)
    if rng.random() < 0.5:
        explainer.save(folder / "explainer")
        loaded = Rocerf.load(folder / "explainer", model=case.model if rng.random() < 0.5 else None)
        yield "load", loaded, loaded.explain(case.people)
    if rng.random() < 0.3:
        for batch in explainer.alternatives(case.people, 2)[1:]:
            yield "alternatives", explainer, batch


def check(case: Case, way: str, explainer: Rocerf, found: Recourses) -> int:
    """The certified points of a batch, held against the truth; how many there were."""
    proven = found.certified
    if not proven.any():
        return 0
    frame = found.points[proven] if case.pipeline is not None else None
    truth = case.truth(found.matrix[proven], explainer.k, frame)
    rounding = ROUNDING * (1 + np.abs(found.scores[proven]))
    assert (found.margins[proven] <= truth + rounding).all(), (case.name, way)
    assert (truth >= explainer.delta - rounding).all(), (case.name, way)
    return int(proven.sum())


def check_letters(case: Case, explainer: Rocerf, found: Recourses) -> int:
    """The points that letters call proven, as a person and as a program read them."""
    letters = explainer.letters(found, valid_until=None, issued=date(2026, 11, 16))
    points = []
    for place, letter in enumerate(letters):
        for read in (as_read_by_programs(letter), as_read_by_people(letter, found.schema)):
            for option, values in zip(letter.options, read, strict=True):
                if option.promise.proven:
                    points.append(put_into(found.schema, found.people[place], values))
    if not points:
        return 0
    matrix = np.array(points)
    frame = None if found.frames is None else found.frames.decode(matrix)
    assert (case.truth(matrix, explainer.k, frame) >= explainer.delta - 1e-8).all(), case.name
    return len(points)


def run(wanted: int, seed: int, tmp_path: Path) -> tuple[int, int]:
    """Cases until so many results were called certified; how many there were, and how many cases."""
    makers: list[Callable[[np.random.Generator], Case]] = [plain_models, plain_models, taken_over, pipelines]
    certified = cases = 0
    while certified < wanted:
        rng = np.random.default_rng([seed, cases])
        folder = tmp_path / str(cases)
        folder.mkdir()
        cases += 1
        try:
            case = makers[cases % len(makers)](rng)
        except RocerfError:  # no such model: another one
            continue
        for way, explainer, found in told(case, rng, folder):
            certified += check(case, way, explainer, found)
            if way == "explain":
                certified += check_letters(case, explainer, found)
        assert cases < 10 * wanted
    return certified, cases


def test_certified_is_true_against_every_deletion(tmp_path: Path, figures: list[str]) -> None:
    certified, cases = run(300, 0, tmp_path)
    figures.append(f"what is called certified, against every deletion: {certified} results, none false, {cases} cases")


@pytest.mark.slow
def test_certified_is_true_against_every_deletion_in_thousands(tmp_path: Path, figures: list[str]) -> None:
    certified, cases = run(share(5000, 5), 1, tmp_path)
    figures.append(f"what is called certified, against every deletion: {certified} results, none false, {cases} cases")


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["margins", "moved"])
def test_a_weaker_gate_is_noticed(gate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These cases are no test if they pass whatever the gate does."""
    import rocerf.explainer.explainer as module
    from rocerf.promises.certified import Certified

    if gate == "margins":  # bounds that are read a little too high
        real = Certified.check_exactly
        monkeypatch.setattr(Certified, "check_exactly", lambda self, X, delta, rows: real(self, X, delta, rows) + 0.05)
    else:  # points that are moved behind the gate's back
        real_leaving = module.Gate.first_passing

        def moved(self: Any, *arguments: Any, **options: Any) -> Any:
            verdict = real_leaving(self, *arguments, **options)
            people = arguments[1].X0
            return type(verdict)(people + 0.999 * (verdict.points - people), verdict.margins, verdict.reasons)

        monkeypatch.setattr(module.Gate, "first_passing", moved)
    with pytest.raises(AssertionError):
        run(300, 2, tmp_path)
