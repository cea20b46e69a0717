"""What the published setting takes over from the paper's code: parts, numbers, and what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from rocerf import load_dataset
from rocerf.data.authors_code import VARIABLE
from rocerf.data.datasets import Dataset
from rocerf.reproduction.as_published import (
    CUT,
    READ_IN,
    drawn_order,
    left_out,
    parts_of,
    people_of,
    rows_in,
    weights_of,
    whole_parts,
)
from shared_data import SHARED, needs_shared


def scaled_in_parts(data: Dataset, parts: int) -> np.ndarray:
    """scikit-learn's scaler on each part by itself, in the columns of the training rows."""
    outer = StandardScaler().fit(data.train.X)
    pieces = np.array_split(data.test.X, parts)
    return outer.inverse_transform(np.concatenate([StandardScaler().fit_transform(piece) for piece in pieces]))


@needs_shared
def test_compas_is_standardised_in_100_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(SHARED / "rocerf_code"))
    monkeypatch.setenv("ROCERF_COMPAS", str(SHARED / "openxai"))
    data = load_dataset("compas-as-published")
    for model in ("lr", "nn"):
        np.testing.assert_allclose(people_of(data, "published", model), scaled_in_parts(data, 100), atol=1e-9)
    assert np.bincount(parts_of(data, "published")).tolist() == [13] * 35 + [12] * 65
    for count in READ_IN.values():
        np.testing.assert_allclose(people_of(data, "published", parts=count), scaled_in_parts(data, count), atol=1e-9)
        assert len(np.unique(parts_of(data, "published", parts=count))) == count
    risk = load_dataset("compas")
    np.testing.assert_allclose(people_of(risk, "published"), scaled_in_parts(risk, 1), atol=1e-9)
    assert not parts_of(risk, "published").any()


def test_adult_is_whole_for_logistic_models_and_in_300_parts_for_networks() -> None:
    data = load_dataset("adult")
    np.testing.assert_allclose(people_of(data, "published", "lr"), scaled_in_parts(data, 1), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(people_of(data, "published", "nn"), scaled_in_parts(data, 300), rtol=1e-9, atol=1e-6)
    assert people_of(data, "corrected", "nn") is data.test.X
    labels = parts_of(data, "published")
    assert (np.diff(labels) >= 0).all()
    assert len(np.unique(labels)) == CUT["adult"] == 300
    assert not parts_of(data, "corrected").any()


def test_shares_of_people_begin_with_whole_parts() -> None:
    rng = np.random.default_rng(0)
    in_file = np.sort(rng.integers(0, 7, 40))
    for order in (np.arange(40), drawn_order(in_file), rng.permutation(40)):
        labels = in_file[order]
        for first, last in ((0, 40), (0, 13), (13, 26), (26, 40), (40, 40)):
            share = whole_parts(labels, order, first, last)
            np.testing.assert_array_equal(share.taken[share.own], np.arange(first, last))
            np.testing.assert_array_equal(share.parts.labels, labels[share.taken])
            assert share.parts.total == 40
            # Whole parts, each in the order of the file: lambda is chosen on the people on whom it is for everybody.
            whole = np.flatnonzero(np.isin(in_file, labels[first:last]))
            np.testing.assert_array_equal(order[share.taken], whole)


def test_whoever_is_asked_is_drawn_and_not_the_first_of_the_file() -> None:
    """Everybody once; over many seeds everybody is as likely to be among the first; parts stay together, in order."""
    labels = np.sort(np.random.default_rng(1).integers(0, 9, 60))
    for parts in (labels, np.zeros(60, np.intp)):
        orders = [drawn_order(parts, seed) for seed in range(2000)]
        assert all(np.array_equal(np.sort(order), np.arange(60)) for order in orders[:50])
        sooner = np.mean([np.argsort(order) < 20 for order in orders], axis=0)  # how often among the first 20
        assert np.abs(sooner - 1 / 3).max() < (0.12 if parts.any() else 0.05)
    order = drawn_order(labels)
    assert not np.array_equal(order, np.arange(60))
    assert np.array_equal(order, drawn_order(labels))
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    assert len(starts) == len(np.unique(labels)) - 1
    assert all((np.diff(part) == 1).all() for part in np.split(order, starts))


def test_k_is_rounded_down_as_in_their_code() -> None:
    for n, k in ((800, 4), (4937, 24), (7682, 38), (36177, 180)):
        assert rows_in(0.005, n, "published") == k == int(0.5 * n / 100)
    assert [rows_in(0.005, n, "corrected") for n in (800, 4937, 36177)] == [4, 25, 181]


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for dataset in ("german", "compas", "adult"):
        assert weights_of("published", dataset) is None
        assert f"vae_{dataset}_rr_cfe" in left_out("published", dataset)["cchvae"]
        assert left_out("corrected", dataset) == {}
        (tmp_path / f"vae_{dataset}_rr_cfe.npz").touch()
        assert weights_of("published", dataset) is not None
        assert weights_of("corrected", dataset) is None
        assert left_out("published", dataset) == {}
    assert not any(left_out("published", name) for name in READ_IN)  # the same autoencoder
    assert list(left_out("published", "compas-risk")) == ["cchvae"]
