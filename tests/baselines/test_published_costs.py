"""The authors' procedure on their own tables costs what the paper prints: German whole, COMPAS in some of its parts."""

from __future__ import annotations

import numpy as np
import pytest

from rocerf import LogisticModel, Rocerf, load_dataset
from rocerf.baselines import AuthorsRocerf, Roar
from rocerf.baselines.roar_descent import Parts
from rocerf.data.authors_code import VARIABLE
from rocerf.reproduction.as_published import parts_of, people_of
from shared_data import SHARED, needs_shared

#: The search is chaotic: what 19 people cost on average moves by a few percent with their ninth digit.
STARTS = 4


@pytest.mark.slow
def test_german_rocerf_by_search_is_far_above_its_optimum(figures: list[str]) -> None:
    data = load_dataset("german-as-published")
    model = LogisticModel.fit(data.train, C=100.0)
    people = people_of(data, "published")
    people = people[model.predict(people) == 0]
    noise = 1e-9 * model.train.spread * np.random.default_rng(0).standard_normal((STARTS, *people.shape))
    asked = (people + noise).reshape(-1, people.shape[1])
    found = AuthorsRocerf(model, "0.5%").explained(asked)
    steps = (found.ends - asked) / model.train.spread
    l2, l1 = np.sqrt((steps**2).sum(axis=1)).mean(), np.abs(steps).sum(axis=1).mean()
    figures.append(f"German ROCERF by the authors' search: L2 {l2:.3f}, L1 {l1:.2f} (paper 1.35, 9.44)")
    assert len(people) == 19
    assert found.recourses.settings.k == 4
    # The paper's standard errors are 0.14 and 1.08; an independent recomputation found 1.37 and 9.49.
    assert l2 == pytest.approx(1.37, rel=0.06)
    assert l1 == pytest.approx(9.49, rel=0.06)
    optimum = Rocerf(model, 4, promise="first_order").explain(people).costs.mean()
    assert l2 > 1.3 * optimum


@pytest.mark.slow
@needs_shared
def test_compas_roar_in_parts_of_the_authors_test_file(monkeypatch: pytest.MonkeyPatch, figures: list[str]) -> None:
    monkeypatch.setenv(VARIABLE, str(SHARED / "rocerf_code"))
    monkeypatch.setenv("ROCERF_COMPAS", str(SHARED / "openxai"))
    data = load_dataset("compas-as-published")
    model = LogisticModel.fit(data.train, C=100.0)
    people, labels = people_of(data, "published"), parts_of(data, "published")
    accepted = model.predict(people) == 1
    assert (accepted == (data.test.y == 1)).mean() == pytest.approx(0.654, abs=0.001)
    denied, labels = people[~accepted], labels[~accepted]
    assert len(denied) == 554
    found = Roar(model, preset="authors").explained(denied, parts=Parts(labels, len(denied)))
    counts = np.bincount(labels, minlength=100)[labels]
    steps = (found.ends - denied) / model.train.spread
    l2, l1 = np.sqrt((steps**2).sum(axis=1)), np.abs(steps).sum(axis=1)
    full = counts >= 5  # theirs does not end in smaller parts
    figures.append(f"COMPAS ROAR in parts: L2 {l2[full].mean():.3f}, L1 {l1[full].mean():.2f} (paper 1.08, 2.47)")
    assert l2[full].mean() == pytest.approx(1.09, abs=0.01)
    assert l1[full].mean() == pytest.approx(2.49, abs=0.02)
    assert l2.mean() == pytest.approx(1.107, abs=0.005)
    # Ends that the model refuses are counted and are no recourses.
    assert 0 < (~found.recourses.answered).sum() < 20
    np.testing.assert_array_equal(found.recourses.answered, model.score(found.ends) >= 0)
