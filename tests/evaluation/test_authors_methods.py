"""Methods by name with the authors' preset: whose procedure each is, k rounded down, and the points that count."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Rocerf
from rocerf.baselines import AuthorsRocerf, CChvae, Roar
from rocerf.baselines.roar_descent import Parts
from rocerf.evaluation.methods import MethodOptions, explained, explainer_named


def test_names_and_rounding() -> None:
    model = LogisticModel.fit(random_training_set(0, n=90))
    authors, corrected = MethodOptions(k="5%", preset="authors"), MethodOptions(k="5%")
    search = explainer_named("rocerf", model, authors)
    assert isinstance(search, AuthorsRocerf)
    assert search.k == 4
    for name, options, k in (("rocerf_exact", authors, 4), ("rocerf", corrected, 5), ("rocerf_exact", corrected, 5)):
        exact = explainer_named(name, model, options)
        assert isinstance(exact, Rocerf)
        assert (exact.promise.name, exact.k) == ("first_order", k)


def test_weights_are_for_the_authors_autoencoder_alone() -> None:
    model = LogisticModel.fit(random_training_set(0))
    options = MethodOptions(k=1, preset="authors", weights=Path("vae.npz"))
    given, trained = (explainer_named(name, model, options) for name in ("cchvae", "cchvae_trained"))
    assert isinstance(given, CChvae)
    assert isinstance(trained, CChvae)
    assert (given.weights, trained.weights) == (Path("vae.npz"), None)
    assert given.preset == trained.preset == "authors"


def test_all_ends_count_for_the_authors_and_answers_elsewhere() -> None:
    model = LogisticModel.fit(random_training_set(1, n=90, d=4), C=10.0)
    people = refused_people(model, 1, 6)
    found = explained(Roar(model, preset="authors", lam=3.0), people, Parts.one(6))
    assert np.isfinite(found.ends).all()
    assert not found.recourses.answered.all()  # else this would show nothing
    np.testing.assert_array_equal(found.recourses.answered, model.score(found.ends) >= 0)
    ours = explained(explainer_named("retrained", model, MethodOptions(k=1)), people)
    np.testing.assert_array_equal(ours.ends, ours.recourses.matrix)
