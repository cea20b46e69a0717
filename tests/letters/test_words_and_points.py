"""What is said is about what was checked: points, numbers in sentences, names and words cannot come apart from it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from every_deletion import lowest_scores
from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, Recourses, Rocerf, Status, TrainingSet
from rocerf.data.feature import Feature
from rocerf.errors import OptionError
from rocerf.letters.writing import told_apart
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import Outcome, Solution
from rocerf.types import Progress
from rocerf.words import language_named


def explained(**options: Any) -> tuple[LogisticModel, Rocerf, Recourses]:
    model = LogisticModel.fit(random_training_set(1, n=30, d=2))
    explainer = Rocerf(model, 1, **{"promise": "certified", **options})
    return model, explainer, explainer.explain(refused_people(model, 1, 6))


def test_no_point_can_be_moved_under_its_certificate() -> None:
    model, _, found = explained()
    points = found.points
    points -= 3.0  # the user's own copy
    truth = lowest_scores(model, found.matrix, 1)
    assert (found.margins <= truth + 1e-9).all()
    for name in ("matrix", "people", "costs", "margins", "scores"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        found[0].point[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        model.design.scale[0] = 9.0


@pytest.mark.parametrize("name", ["k", "model", "promise"])
def test_an_explainer_is_about_one_model_one_promise_and_one_k(name: str) -> None:
    _, explainer, _ = explained()
    with pytest.raises(AttributeError):
        setattr(explainer, name, 3)
    with pytest.raises(AttributeError):
        explainer.promise.k = 3  # type: ignore[misc]


def test_who_says_found_without_a_point_has_found_nothing() -> None:
    model, explainer, _ = explained()

    def boasting(master: Master, _: Progress | None) -> Solution:
        solution = Solution.blank(*master.X0.shape)
        solution.outcomes[:] = Outcome.FOUND
        return solution

    found = explainer.explain_by(boasting, refused_people(model, 1, 3))
    assert found.statuses == (Status.GAVE_UP,) * 3
    assert not found.certified.any()


def test_numbers_in_sentences_are_not_rounded() -> None:
    _, explainer, found = explained(delta=0.1234567891)
    assert "a score of at least 0.1234567891," in found[0].promise
    assert (found.margins[found.answered] >= 0.1234567891).all()
    for recourse in found:
        shown = [float(str(change).rsplit(" -> ", 1)[1]) for change in recourse.changes]
        assert shown == [change.after for change in recourse.changes]
    assert explainer.settings().delta == 0.1234567891


def test_scores_next_to_the_boundary_are_not_called_unreachable() -> None:
    train = random_training_set(2, n=40, d=2)
    base = LogisticModel.fit(train, C=1e-8)
    middle = 1 / (1 + np.exp(-float(np.median(base.score(train.X)))))
    model = LogisticModel.fit(train, C=1e-8, threshold=middle)
    scores = model.score(train.X)
    assert np.abs(scores).max() < 1e-6
    assert (scores >= 0).any()
    lower, upper = train.X.min(axis=0), train.X.max(axis=0)
    columns = [Feature(c, lower=a, upper=b) for c, a, b in zip(train.columns, lower, upper, strict=True)]
    found = Rocerf(model, 1, promise="first_order", schema=FeatureSchema(tuple(columns))).explain(train.X[scores < 0])
    assert Status.UNREACHABLE not in found.statuses


def test_a_budget_is_never_proven_beyond_what_was_asked() -> None:
    _, explainer, found = explained(promise="certified")
    budget = explainer.removal_budget(found.points[found.answered], most=1)
    assert (budget.certified <= budget.found).all()
    wider = Rocerf(explainer.model, 2, promise="certified").removal_budget(found.points[found.answered] * 1.0, most=1)
    assert (wider.certified <= wider.found).all()


def test_names_come_back_as_they_were() -> None:
    model, explainer, _ = explained()
    people = pd.DataFrame(refused_people(model, 1, 4), columns=list(model.train.columns))
    people.index = pd.Index([1, "1", 2**53 + 1, 0.5], dtype=object)
    again = Recourses.from_json(explainer.explain(people).to_json())
    assert again.names == (1, "1", 2**53 + 1, 0.5)


def test_columns_called_like_ours_and_like_our_way_out() -> None:
    train = random_training_set(3, n=30, d=2)
    frame = pd.DataFrame(train.X, columns=["cost", "recourse_cost"])
    model = LogisticModel.fit(TrainingSet(frame, train.y))
    table = Rocerf(model, 1, promise="first_order").explain(frame.head(5)).to_frame()
    assert {"cost", "recourse_cost", "recourse_recourse_cost"} <= set(table.columns)


@pytest.mark.parametrize("promise", ["certified", "retrained"])
def test_explainers_can_be_copied(promise: str) -> None:
    _, explainer, found = explained(promise=promise)
    for again in (copy.deepcopy(explainer), pickle.loads(pickle.dumps(explainer))):
        np.testing.assert_allclose(again.explain(found.people).margins, found.margins, atol=1e-9)


@pytest.mark.parametrize("signs", [{"thousands": "5"}, {"decimal_point": "-"}, {"thousands": "x"}])
def test_signs_in_numbers_are_no_digits(signs: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="no part of numbers"):
        replace(language_named("en"), **signs)


def test_categories_that_look_alike_are_told_apart() -> None:
    words = ["own", "own ", " own", "a b", "a  b", "a\nb", "rent"]
    shown = told_apart(words)
    assert len({" ".join(word.split()) for word in shown}) == len(words)
    assert shown[-1] == "rent"


def test_features_of_one_label_are_told_apart() -> None:
    model = LogisticModel.fit(random_training_set(4, n=30, d=2))
    schema = FeatureSchema(tuple(Feature(name, label="income") for name in model.train.columns))
    explainer = Rocerf(model, 1, promise="first_order", schema=schema)
    letters = explainer.letters(explainer.explain(refused_people(model, 4, 3)), valid_until=None)
    labels = {change.label for letter in letters for option in letter.options for change in option.changes}
    assert labels == {f"income ({name})" for name in model.train.columns}
