"""COMPAS as the authors load it: their training rows in their order, OpenXAI's test rows, recidivism as the label."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rocerf import load_dataset
from rocerf.data.authors_code import VARIABLE, weights_file
from rocerf.errors import DatasetUnavailableError, FileFormatError, OptionError
from shared_data import SHARED, needs_shared

TRAIN = SHARED / "rocerf_code" / "compas-train-oversampled.csv"


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(SHARED / "rocerf_code"))
    monkeypatch.setenv("ROCERF_COMPAS", str(SHARED / "openxai"))


@needs_shared
@pytest.mark.usefixtures("at_hand")
def test_rows_and_order_are_those_of_the_files() -> None:
    data = load_dataset("compas-as-published")
    for rows, file in ((data.train, TRAIN), (data.test, SHARED / "openxai" / "compas-test.csv")):
        published = pd.read_csv(file)
        assert rows.columns == tuple(published.columns.drop("two_year_recid"))
        np.testing.assert_array_equal(rows.X, published.drop(columns="two_year_recid").to_numpy())
        np.testing.assert_array_equal(rows.y, published["two_year_recid"].to_numpy())
    assert len(set(data.train.ids) | set(data.test.ids)) == 7682 + 1235
    assert [feature.name for feature in data.schema] == list(data.train.columns)
    assert data.train.favourable == 1


@needs_shared
@pytest.mark.usefixtures("at_hand")
def test_a_copy_of_their_repository_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "Data_Sets" / "COMPAS"
    folder.mkdir(parents=True)
    (folder / "compas-train.csv").write_bytes(TRAIN.read_bytes())
    expected = load_dataset("compas-as-published").train.checksum
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert load_dataset("compas-as-published").train.checksum == expected


@needs_shared
@pytest.mark.usefixtures("at_hand")
def test_other_rows_or_another_order_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    header, *rows = TRAIN.read_text().splitlines()
    (tmp_path / TRAIN.name).write_text("\n".join([header, *rows[1:], rows[0]]))
    with pytest.raises(FileFormatError, match="7682 oversampled rows"):
        load_dataset("compas-as-published")


def test_without_the_folder_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DatasetUnavailableError, match=rf"got none \({VARIABLE} is not set\); copy https://"):
        load_dataset("compas-as-published")
    assert weights_file("german") is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(DatasetUnavailableError, match="which has none"):
        load_dataset("compas-as-published")
    with pytest.raises(OptionError, match="only for compas"):
        load_dataset("compas-as-published", path=tmp_path)
