"""The plain counterfactual with a constant margin: the projection on a moved boundary, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import rocerf
from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel
from rocerf.baselines import Margin, Scfe, margin_of_cost
from rocerf.errors import OptionError
from rocerf.evaluation.methods import MethodOptions, explainer_named
from rocerf.recourse.result import Status


@pytest.mark.parametrize("margin", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_point_is_the_projection_on_the_moved_boundary(seed: int, margin: float) -> None:
    """Oracle: the foot of the perpendicular on ``f(z) = margin``, by hand over standardised columns."""
    model = LogisticModel.fit(random_training_set(seed, weights=seed == 1), C=3.0)
    people = refused_people(model, seed, 8)
    found = Margin(model, margin=margin).explain(people)
    w = model.theta[:-1]
    short = margin - model.score(people)
    assert found.costs == pytest.approx(short / np.linalg.norm(w), rel=1e-4)
    centre, spread = model.train.X.mean(axis=0), model.train.spread
    z = (people - centre) / spread + (short / (w @ w))[:, None] * w
    assert found.matrix == pytest.approx(centre + z * spread, rel=1e-3, abs=1e-4)
    in_l1 = Margin(model, margin=margin, cost="l1").explain(people)
    assert in_l1.costs == pytest.approx(short / np.abs(w).max(), rel=1e-4)


def test_without_a_margin_it_is_the_plain_counterfactual() -> None:
    model = LogisticModel.fit(random_training_set(0), C=1.0)
    people = refused_people(model, 0, 6)
    np.testing.assert_array_equal(Margin(model, margin=0).explain(people).matrix, Scfe(model).explain(people).matrix)


@pytest.mark.parametrize("cost", ["l2", "l1"])
def test_a_rival_at_one_price_is_the_margin_that_costs_as_much(cost: str) -> None:
    """Oracle: costs of a linear model are affine in the margin, so two prices give the slope."""
    model = LogisticModel.fit(random_training_set(1), C=2.0)
    people = refused_people(model, 1, 8)
    none, one = (Margin(model, margin=m, cost=cost).explain(people).costs.mean() for m in (0.0, 1.0))
    for wanted in (1.3 * none, 4.0 * none):
        rival = margin_of_cost(model, people, wanted, cost=cost)
        assert rival.margin == pytest.approx((wanted - none) / (one - none), rel=5e-3)
        assert (1 - 1e-3) * wanted <= rival.explain(people).costs.mean() <= wanted
    with pytest.raises(OptionError, match="plain counterfactual asks for"):
        margin_of_cost(model, people, 0.5 * none, cost=cost)


def test_a_rival_at_a_high_price_is_looked_for_far_above_the_usual_margin() -> None:
    model = LogisticModel.fit(random_training_set(0), C=1.0)
    people = refused_people(model, 0, 4)
    rival = margin_of_cost(model, people, 100.0)
    assert rival.explain(people).costs.mean() == pytest.approx(100.0, rel=2e-3)


def test_a_network_s_points_clear_the_margin_and_cost_more() -> None:
    data = rocerf.load_dataset("german")
    model = NeuralModel.fit(data.train, epochs=40, seed=0)
    people = data.test.X[model.predict(data.test.X) == 0][:5]
    plain, found = Scfe(model).explain(people), Margin(model, margin=1.5).explain(people)
    assert found.answered.all()
    assert (found.scores >= 1.5).all()
    assert found.scores == pytest.approx(np.full(len(people), 1.5), abs=0.02)  # no farther than asked for
    assert (found.costs > plain.costs).all()


def test_a_margin_out_of_reach_is_said_without_a_word_on_deletions() -> None:
    model = LogisticModel.fit(random_training_set(0, d=2), C=1.0)
    person = refused_people(model, 0, 1)
    plain = Margin(model, margin=0).explain(person).matrix[0]
    bounds = np.sort(np.stack([person[0], plain + 0.01 * (plain - person[0])]), axis=0)
    schema = FeatureSchema.free(model.train.columns)
    for name, (low, high) in zip(model.train.columns, bounds.T, strict=True):
        schema = schema.edit(name, lower=float(low), upper=float(high))
    assert Margin(model, margin=0, schema=schema).explain(person).answered.all()
    found = Margin(model, margin=5, schema=schema).explain(person)
    assert found.statuses == (Status.NOT_ROBUST,)
    assert found.reasons == (
        "some allowed changes are accepted today, but none inside the bounds with a score of at least 5",
    )


def test_it_is_asked_for_by_name() -> None:
    model = LogisticModel.fit(random_training_set(0), C=1.0)
    people = refused_people(model, 0, 4)
    found = explainer_named("margin", model, MethodOptions(k=1, own={"margin": 0.7})).explain(people)
    assert model.score(found.matrix) == pytest.approx(np.full(4, 0.7), abs=1e-4)
    assert (found.settings.method, found.settings.promise, found.settings.k) == ("margin", "plain", 0)


@pytest.mark.parametrize("wrong", [{"margin": -0.1}, {"margin": "much"}, {"preset": "authors"}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    model = LogisticModel.fit(random_training_set(0), C=1.0)
    with pytest.raises(OptionError, match="Expected"):
        Margin(model, **wrong)  # type: ignore[arg-type]
