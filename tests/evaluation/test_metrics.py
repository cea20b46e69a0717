"""Validity under random deletions, against plain loops over scikit-learn refits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import ColumnError, DataError, OptionError
from rocerf.evaluation import Validity, average_validity, validity_curves


@pytest.fixture(scope="module")
def model() -> LogisticModel:
    rows = random_training_set(41)
    X = (rows.X - rows.X.mean(0)) / rows.spread
    return LogisticModel.fit(TrainingSet(X, rows.y.astype(int), ids=rows.ids), C=0.8, scale=False)


@pytest.fixture(scope="module")
def points(model: LogisticModel) -> np.ndarray:
    """40 points just inside today's boundary, where deletions decide."""
    rng = np.random.default_rng(0)
    slopes, constants = model.halfspaces(model.theta[None])
    start = rng.normal(size=(40, 3))
    wanted = rng.uniform(0.0, 0.2, size=40)
    return start + np.outer((wanted - start @ slopes[0] - constants[0]) / (slopes[0] @ slopes[0]), slopes[0])


def test_average_validity_is_what_a_loop_of_refits_counts(model: LogisticModel, points: np.ndarray) -> None:
    found = average_validity(model, points, 0.1, trials=12, seed=3)
    train = model.train
    shares = []
    for ids in random_deletions(train, 6, 12, seed=3):
        keep = ~np.isin(train.ids, ids)
        assert keep.sum() == 54
        refit = LogisticRegression(C=0.8, tol=1e-12, max_iter=100_000).fit(train.X[keep], train.y[keep])
        shares.append(np.mean([refit.predict(point[None])[0] == 1 for point in points]))
    np.testing.assert_array_equal(found.by_trial, shares)
    assert len(set(shares)) > 3  # deletions did matter
    assert (found.fraction, found.mean) == (0.1, pytest.approx(np.mean(shares)))
    assert found.standard_error == pytest.approx(np.std(shares, ddof=1) / math.sqrt(12))
    assert str(found) == f"{found.mean:.1%} ± {found.standard_error:.1%}"


def test_a_single_trial_has_no_standard_error() -> None:
    assert Validity(0.1, np.array([0.75])).standard_error == 0.0


def test_deleting_nothing_asks_the_model_itself_once(model: LogisticModel, points: np.ndarray) -> None:
    people = np.vstack([points, points - 100 * model.theta[:3]])
    found = average_validity(model, people, 0.0, trials=50)
    assert found.by_trial.tolist() == [0.5]


def test_the_same_seed_gives_the_same_figures(model: LogisticModel, points: np.ndarray) -> None:
    first, again, other = (average_validity(model, points, 0.1, trials=8, seed=seed).by_trial for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.tolist() != other.tolist()
    longer = average_validity(model, points, 0.1, trials=11, seed=1).by_trial
    np.testing.assert_array_equal(longer[:8], first)  # trials can be added to


def test_methods_are_judged_by_the_same_retrained_models(model: LogisticModel, points: np.ndarray) -> None:
    fractions = [0.0, 0.05, 0.2]
    curves = validity_curves(model, {"a": points, "b": points[::-1], "c": points[:20]}, fractions, trials=6, seed=4)
    assert list(curves) == ["a", "b", "c"]
    for place, fraction in enumerate(fractions):
        a, b, c = (curves[name][place] for name in "abc")
        assert a.fraction == fraction
        np.testing.assert_allclose(a.by_trial, b.by_trial)  # the same people in another order
        for validity, matrix in ((a, points), (c, points[:20])):
            alone = average_validity(model, matrix, fraction, trials=6, seed=4)
            np.testing.assert_allclose(validity.by_trial, alone.by_trial)


def test_unanswered_people_are_left_out(model: LogisticModel, points: np.ndarray) -> None:
    gaps = np.insert(points, [0, 7, 40], np.nan, axis=0)
    gaps[0, 1:] = 0.0
    full, part = (average_validity(model, matrix, 0.1, trials=5) for matrix in (points, gaps))
    np.testing.assert_array_equal(full.by_trial, part.by_trial)


def test_frames_are_matched_by_name(model: LogisticModel, points: np.ndarray) -> None:
    named = LogisticModel.fit(
        TrainingSet(pd.DataFrame(model.train.X, columns=list("abc")), model.train.y.astype(int), ids=model.train.ids),
        C=0.8,
        scale=False,
    )
    frame = pd.DataFrame(points, columns=list("abc"))[["c", "a", "b"]]
    found = average_validity(named, frame, 0.1, trials=5)
    np.testing.assert_array_equal(found.by_trial, average_validity(model, points, 0.1, trials=5).by_trial)


@pytest.mark.parametrize(("fraction", "rows"), [(0.0, 0), (0.001, 1), (0.05, 3), (0.051, 4), (0.98, 59)])
def test_a_fraction_is_rounded_up_to_rows(
    model: LogisticModel, points: np.ndarray, monkeypatch: pytest.MonkeyPatch, fraction: float, rows: int
) -> None:
    asked = []

    def remember(train: Any, count: int, trials: int, *, seed: int) -> list[Any]:
        asked.append(count)
        return random_deletions(train, 0, trials, seed=seed)

    monkeypatch.setattr("rocerf.evaluation.metrics.random_deletions", remember)
    average_validity(model, points, fraction, trials=1)
    assert asked == [rows]


def test_progress_counts_every_retraining(model: LogisticModel, points: np.ndarray) -> None:
    calls: list[tuple[int, int]] = []
    validity_curves(
        model, {"a": points}, [0.0, 0.05, 0.1], trials=4, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(done, 9) for done in range(1, 10)]


BAD: list[tuple[dict[str, Any], str]] = [
    *[
        ({"fraction": fraction}, "a fraction of rows from 0 up to .* 1, got .*; write 0.01 for one percent")
        for fraction in (-0.1, 1.0, 5, math.nan, "0.1", None, True)
    ],
    ({"fraction": 0.999}, "to delete between 0 and 59 of 60 rows, got 60; delete fewer"),
    *[({"trials": trials}, "trials to be a whole number >= 1, got ") for trials in (0, -1, 2.5, "3", None)],
    *[({"seed": seed}, "seed to be a whole number >= 0, got ") for seed in (-1, 0.5, None)],
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_options(model: LogisticModel, points: np.ndarray, change: dict[str, Any], message: str) -> None:
    options = {"fraction": 0.1, "trials": 2, "seed": 0, **change}
    with pytest.raises(OptionError, match=message):
        average_validity(model, points, **options)


def test_bad_points(model: LogisticModel, points: np.ndarray) -> None:
    with pytest.raises(DataError, match="at least one answered point for 'points', got none; check the recourses'"):
        average_validity(model, np.full((3, 3), np.nan), 0.1)
    with pytest.raises(DataError, match="at least one answered point for 'mine'"):
        validity_curves(model, {"mine": np.empty((0, 3))}, [0.1])
    with pytest.raises(ColumnError, match="people with 3 columns as in the training rows, got 2"):
        average_validity(model, points[:, :2], 0.1)


def test_random_deletions_are_distinct_rows_drawn_evenly(model: LogisticModel) -> None:
    drawn = random_deletions(model.train, 6, 300, seed=0)
    assert len(drawn) == 300
    assert all(len(set(ids.tolist())) == 6 for ids in drawn)
    assert len({tuple(ids) for ids in drawn}) == 300
    counts = pd.Series(np.concatenate(drawn)).value_counts()
    assert len(counts) == 60
    assert counts.between(10, 55).all()  # 30 expected, within five standard deviations
    again = random_deletions(model.train, 6, 300, seed=0)
    assert all((one == other).all() for one, other in zip(drawn, again, strict=True))
