"""COMPAS from the user's own file, in every form it is met in, against the published tables."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rocerf.data import compas_source
from rocerf.data.compas import FINAL_COLUMNS
from rocerf.data.datasets import Dataset, list_datasets, load_dataset
from rocerf.data.schema import Direction, Kind
from rocerf.errors import DatasetUnavailableError, FileFormatError
from shared_data import SHARED, needs_shared

RAW46 = SHARED / "propublica" / "compas-scores-two-years.noid.csv.gz"
PAIR = ("compas-train.csv", "compas-test.csv")
# Identifying column and the column it stands before in ProPublica's file.
IDENTIFYING = {
    "name": "compas_screening_date",
    "first": "compas_screening_date",
    "last": "compas_screening_date",
    "dob": "age",
    "c_case_number": "c_offense_date",
    "r_case_number": "r_charge_degree",
    "vr_case_number": "vr_charge_degree",
}


@pytest.fixture(autouse=True)
def no_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the path given: no file of the user's, an empty cache, no network."""
    monkeypatch.delenv("ROCERF_COMPAS", raising=False)
    monkeypatch.setenv("ROCERF_CACHE", str(tmp_path / "empty-cache"))
    monkeypatch.setattr(compas_source, "_URL", "http://127.0.0.1:1/nothing.csv")


@cache
def published(part: str) -> pd.DataFrame:
    return pd.read_csv(SHARED / "openxai" / f"compas-{part}.csv")


@cache
def raw_text() -> str:
    return gzip.decompress(RAW46.read_bytes()).decode()


def whole_table() -> pd.DataFrame:
    return pd.concat([published("train"), published("test")], ignore_index=True)


def assert_published(data: Dataset) -> None:
    for rows, part in ((data.train, "train"), (data.test, "test")):
        table = published(part)
        assert rows.columns == tuple(table.columns.drop("risk"))
        np.testing.assert_array_equal(rows.X, table.drop(columns="risk").to_numpy())
        np.testing.assert_array_equal(rows.y, table["risk"].to_numpy())
    assert len(set(data.train.ids.tolist()) | set(data.test.ids.tolist())) == 6172


def with_identifying_columns(text: str) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for name, before in IDENTIFYING.items():
        place = rows[0].index(before)
        rows[0].insert(place, name)
        for row in rows[1:]:
            row.insert(place, "Doe, Jo" if name == "name" else "x")
    assert {len(row) for row in rows} == {53}
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue()


@needs_shared
def test_46_columns() -> None:
    data = load_dataset("compas", path=RAW46)
    assert_published(data)
    raw = pd.read_csv(RAW46)
    for rows in (data.train, data.test):
        np.testing.assert_array_equal(raw["age"].to_numpy()[rows.ids], rows.frame()["age"])
        np.testing.assert_array_equal(raw["score_text"].to_numpy()[rows.ids] != "High", rows.y == 1.0)


@needs_shared
def test_53_columns_and_rows_in_another_order(tmp_path: Path) -> None:
    head, *lines = with_identifying_columns(raw_text()).splitlines()
    file = tmp_path / "compas-scores-two-years.csv"
    file.write_text("\n".join([head, *reversed(lines)]) + "\n")
    data = load_dataset("compas", path=file)
    assert_published(data)
    assert load_dataset("compas", path=str(tmp_path)).train.ids.tolist() == data.train.ids.tolist()


@needs_shared
@pytest.mark.parametrize("packed", [False, True], ids=["csv", "csv.gz"])
def test_8_columns_in_one_shuffled_file(tmp_path: Path, packed: bool) -> None:
    order = np.random.default_rng(3).permutation(6172)
    table = whole_table().iloc[order].reset_index(drop=True)
    file = tmp_path / ("table.csv.gz" if packed else "table.csv")
    # Columns in another order as well: they are found by name.
    table[table.columns[::-1]].to_csv(file, index=False)
    data = load_dataset("compas", path=file)
    assert_published(data)
    np.testing.assert_array_equal(table.loc[data.test.ids, list(data.test.columns)].to_numpy(), data.test.X)


@needs_shared
@pytest.mark.parametrize("given", ["", *PAIR])
def test_the_pair_is_used_as_it_is(tmp_path: Path, given: str) -> None:
    # A split of one's own stays: the first 4,000 rows in this order.
    table = whole_table().iloc[::-1]
    table[:4000].to_csv(tmp_path / PAIR[0], index=False)
    table[4000:].to_csv(tmp_path / PAIR[1], index=False)
    data = load_dataset("compas", path=tmp_path / given)
    np.testing.assert_array_equal(data.train.X, table[:4000].drop(columns="risk").to_numpy())
    np.testing.assert_array_equal(data.test.X, table[4000:].drop(columns="risk").to_numpy())
    assert (data.train.ids[-1], data.test.ids[0], data.test.ids[-1]) == (3999, 4000, 6171)


@needs_shared
def test_the_published_pair_as_gzip(tmp_path: Path) -> None:
    for name in PAIR:
        (tmp_path / (name + ".gz")).write_bytes(gzip.compress((SHARED / "openxai" / name).read_bytes()))
    assert_published(load_dataset("compas", path=tmp_path / "compas-train.csv.gz"))


@needs_shared
def test_environment_variable_and_path_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCERF_COMPAS", str(RAW46))
    assert_published(load_dataset("compas"))
    with pytest.raises(DatasetUnavailableError, match=r"nowhere\.csv \(path=\.\.\.\), got no such file"):
        load_dataset("compas", path=tmp_path / "nowhere.csv")


def test_a_named_place_with_nothing_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCERF_COMPAS", str(tmp_path / "gone.csv"))
    with pytest.raises(DatasetUnavailableError, match=r"gone\.csv \(ROCERF_COMPAS\), got no such file"):
        load_dataset("compas")
    with pytest.raises(DatasetUnavailableError, match=r"got a folder without compas-scores-two-years.csv"):
        load_dataset("compas", path=tmp_path)


@needs_shared
def test_schema_and_listing() -> None:
    data = load_dataset("compas", path=RAW46)
    info = next(info for info in list_datasets() if info.name == "compas")
    assert (len(data.train), len(data.test), len(data.schema)) == (info.rows_train, info.rows_test, info.columns)
    data.schema.check_columns(data.train.columns)
    free = {feature.name for feature in data.schema if feature.direction is not Direction.FIXED}
    assert free == {"length_of_stay", "c_charge_degree_F"}
    stay = data.schema["length_of_stay"]
    assert (stay.lower, stay.upper, stay.unit) == (-1.0, 799.0, "days")
    assert all(f.lower == 0 and f.upper == 1 for f in data.schema if f.kind is Kind.BINARY)
    stays = np.concatenate([data.train.X[:, 3], data.test.X[:, 3]])
    assert int((stays == -1).sum()) == 183


@needs_shared
@pytest.mark.parametrize("lost", ["c_jail_in", "score_text"])
def test_a_raw_file_without_a_needed_column(tmp_path: Path, lost: str) -> None:
    pd.read_csv(io.StringIO(raw_text()), dtype=str).drop(columns=lost).to_csv(tmp_path / "raw.csv", index=False)
    with pytest.raises(FileFormatError, match=rf"Expected the columns .* got none named {lost}; use"):
        load_dataset("compas", path=tmp_path / "raw.csv")


@needs_shared
def test_a_raw_file_cut_short(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text("\n".join(raw_text().splitlines()[:101]))
    with pytest.raises(FileFormatError, match=r"Expected 6172 rows after ProPublica's filter .* got \d+ of 100; use"):
        load_dataset("compas", path=tmp_path / "raw.csv")


@needs_shared
def test_one_value_changed_is_noticed(tmp_path: Path) -> None:
    table = whole_table()
    table.loc[17, "age"] += 1
    table.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(FileFormatError, match="got as many rows with other values"):
        load_dataset("compas", path=tmp_path / "table.csv")


@needs_shared
def test_half_of_the_pair_is_not_enough(tmp_path: Path) -> None:
    shutil.copy(SHARED / "openxai" / PAIR[0], tmp_path / PAIR[0])
    with pytest.raises(FileFormatError, match=r"Expected 6172 rows .* got 4937; .* compas-test\.csv side by side"):
        load_dataset("compas", path=tmp_path / PAIR[0])


@needs_shared
def test_the_authors_oversampled_file_is_refused(tmp_path: Path) -> None:
    shutil.copy(SHARED / "rocerf_code" / "compas-train-oversampled.csv", tmp_path / PAIR[0])
    shutil.copy(SHARED / "openxai" / PAIR[1], tmp_path / PAIR[1])
    with pytest.raises(FileFormatError, match=r"Expected 6172 rows .* together, got 8917"):
        load_dataset("compas", path=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got something unreadable"),
        (b"\x1f\x8b\x08 broken gzip", "got something unreadable"),
        (b"\xff\xfe\x00 not text \xc3", "got something unreadable|got none named"),
        (b"a,b\n1,2\n", "got none named age"),
        (b"age,risk\n1,1\n", "got none named two_year_recid"),
        ((",".join(FINAL_COLUMNS) + "\n1,0,0,0,0,0,0,yes\n").encode(), "whole numbers in column 'risk'.*got 'yes'"),
        ((",".join(FINAL_COLUMNS) + "\n1.5,0,0,0,0,0,0,1\n").encode(), "whole numbers in column 'age'.*got '1.5'"),
        ((",".join(FINAL_COLUMNS) + "\n1,0,0,,0,0,0,1\n").encode(), "whole numbers in column 'length_of_stay'"),
        ((",".join(FINAL_COLUMNS) + "\n1,0,0,0,0,0,0,1\n").encode(), "Expected 6172 rows in .*, got 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "file.csv"
    file.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        load_dataset("compas", path=file)
