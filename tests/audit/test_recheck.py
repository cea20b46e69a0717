"""What an officer watches: letters after a deletion request, and how many deletions a letter survives."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import rocerf
from problems import random_training_set, refused_people
from rocerf import LogisticModel, Recourses, Rocerf
from rocerf.audit.recheck import recheck
from rocerf.baselines import Scfe
from rocerf.deletion.budget import largest_survived
from rocerf.errors import DataError, FileFormatError, IdError
from rocerf.promises import Plain, Retrained


@pytest.fixture(scope="module")
def model() -> LogisticModel:
    return LogisticModel.fit(random_training_set(1, n=120), C=1.0)


@pytest.fixture(scope="module")
def letters(model: LogisticModel) -> Recourses:
    people = np.vstack([refused_people(model, 1, 12), model.train.X[:1] * np.nan])
    return Rocerf(model, 3).explain(people)


@pytest.mark.slow
def test_recheck_equals_retraining_by_hand(model: LogisticModel, letters: Recourses) -> None:
    ids = model.train.ids[[5, 9]]
    result = recheck(model, letters, ids)
    later = model.without(ids)
    answered = letters.answered
    np.testing.assert_allclose(result.after[answered], later.score(letters.matrix[answered]))
    assert result.holds[answered].all()
    assert not result.holds[~answered].any()
    assert (
        str(result)
        == "12 of 12 answers still hold after deleting 2 rows and retraining (within the promise 'retrained' about 3)"
    )
    assert result.records()[12]["holds"] is None


def test_the_worst_rows_break_plain_letters_but_not_robust_ones(model: LogisticModel, letters: Recourses) -> None:
    plain = Scfe(model).explain(letters.people[:12])
    worst = letters[0].worst_ids
    broken = recheck(model, plain, worst)
    assert 0 in broken.broken
    assert "beyond the promise 'plain' about 0" in str(broken)
    assert recheck(model, letters, worst).holds[:12].all()
    document = json.loads(broken.to_json())
    assert document["within_promise"] is False
    assert "row-" not in broken.to_json()  # no trace of other people's rows


def test_letters_read_back_from_json_can_be_rechecked(model: LogisticModel, letters: Recourses) -> None:
    again = Recourses.from_json(letters.to_json())
    ids = model.train.ids[:3]
    np.testing.assert_allclose(recheck(model, again, ids).after[:12], recheck(model, letters, ids).after[:12])


def test_letters_of_another_model_are_refused(model: LogisticModel, letters: Recourses) -> None:
    other_rows = LogisticModel.fit(random_training_set(2, n=120), C=1.0)
    with pytest.raises(DataError, match="made with other rows"):
        recheck(other_rows, letters, [])
    other_penalty = LogisticModel.fit(model.train, C=0.1)
    with pytest.raises(DataError, match="scores their points differently"):
        recheck(other_penalty, letters, [])
    with pytest.raises(IdError, match="unknown"):
        recheck(model, letters, ["row-9999"])


def test_a_recheck_says_that_bins_are_taken_to_stay_as_they_are() -> None:
    """Erasure makes them anew: what holds with the bins as they are may not hold then."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.gamma(5.0, 400.0, 120)})
    paid = (frame["income"] + 500 * rng.normal(size=120) > 2000).astype(int)
    bins = KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    pipeline = make_pipeline(bins, LogisticRegression()).fit(frame, paid)
    binned = rocerf.from_pipeline(pipeline, frame, paid, retraining="exact")
    answers = Rocerf(binned, promise="plain").explain(frame[pipeline.predict(frame) == 0].head(2))
    said = recheck(binned, answers, binned.train.ids[:1])
    assert said.bins_kept
    assert said.preprocessing is None
    assert str(said).endswith("bins and curves are taken to stay as they are; where they are made anew others may hold")
    german = str(said.sentence.in_language("de"))
    assert "; Klassen und Kurven gelten als unverändert; wo sie neu gebildet werden" in german


def test_nothing_deleted_changes_nothing(model: LogisticModel, letters: Recourses) -> None:
    result = recheck(model, letters, [])
    np.testing.assert_array_equal(result.before, result.after)


@pytest.mark.slow
def test_largest_survived_against_attacks_at_every_number(model: LogisticModel, letters: Recourses) -> None:
    """Bisection finds what trying 1, 2, 3, ... finds."""
    from rocerf import Adversary

    points = letters.matrix[:6]
    found = largest_survived(model, points, 12)
    for x, number in zip(points, found, strict=True):
        scores = [Adversary(model, m).attack(x).score for m in range(1, 13)]
        broken = [m for m, score in enumerate(scores, start=1) if score < 0]
        assert number == (broken[0] - 1 if broken else 12)
    assert (found >= 3).all()
    assert (largest_survived(model, letters.people[:6], 5) == -1).all()


@pytest.mark.slow
def test_removal_budget_brackets_the_truth(model: LogisticModel, letters: Recourses) -> None:
    explainer = Rocerf(model, 3)
    budget = explainer.removal_budget(letters.matrix[:12], most=8)
    assert (budget.certified <= budget.found).all()
    assert (budget.certified >= 1).all()  # one deletion is proven by retraining after each
    assert (budget.found >= 3).all()
    assert budget.proofs == (1,)
    assert "proven" in str(budget)


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["retrained", "first_order", "certified"])
def test_a_saved_explainer_comes_back_with_what_it_learned(model: LogisticModel, tmp_path, promise: str) -> None:
    people = refused_people(model, 3, 10)
    k = 1 if promise == "certified" else 3
    explainer = Rocerf(model, k, promise=promise, cost="l1", delta=0.01)
    first = explainer.explain(people)
    explainer.save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer")
    second = again.explain(people)
    assert again.settings() == explainer.settings()
    # Starting from a full pool may end at a slightly different, never at a much dearer point.
    np.testing.assert_allclose(second.costs, first.costs, rtol=0.01)
    if promise == "retrained":
        assert len(again.promise.pool) >= len(explainer.promise.pool) > 1
        assert second.retrainings.sum() < first.retrainings.sum()
        ids = model.train.ids[again.promise.pool.deleted_rows[1]]
        later = model.without(ids)
        np.testing.assert_allclose(later.halfspaces(later.theta)[0], again.promise.pool.models.slopes[1], atol=1e-8)
    if promise == "certified":
        assert first.certified.all()
        assert second.certified.all()


def test_the_promise_s_own_options_are_saved(model: LogisticModel, tmp_path) -> None:
    promise = Retrained(model, 3, effort="thorough", slack=0.2)
    Rocerf(model, 3, promise=promise).save(tmp_path / "e")
    again = Rocerf.load(tmp_path / "e").promise
    assert (again.effort, again.slack) == ("thorough", 0.2)
    Rocerf(model, 0, promise=Plain(model)).save(tmp_path / "p")
    assert (Rocerf.load(tmp_path / "p").promise.name, Rocerf.load(tmp_path / "p").k) == ("plain", 0)


def test_a_folder_that_is_no_explainer_is_refused(tmp_path) -> None:
    with pytest.raises(FileFormatError, match=r"Rocerf\.save"):
        Rocerf.load(tmp_path)
