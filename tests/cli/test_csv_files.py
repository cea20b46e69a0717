"""CSV in and out: no cell that a spreadsheet obeys, every text back as it was, and no guesses about ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.cli.csv_files import neutral, original, read_csv
from rocerf.cli.files import read_people, write_recourses
from rocerf.cli.tables import write_records
from rocerf.errors import ColumnError, FileFormatError

EVIL = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", "'=1", "''@", "＝1"]
TAME = ["A-17", "'quoted", "-5", "+49301234", "-1.5e3", "", "x=1", "NA"]


@pytest.mark.parametrize("text", EVIL)
def test_no_text_is_obeyed_and_every_text_comes_back(text: str) -> None:
    assert neutral(text) == f"'{text}"
    assert original(neutral(text)) == text


@pytest.mark.parametrize("cell", [*TAME, -5.0, -3, None, True, float("-inf")])
def test_other_cells_stay_as_they_are(cell: Any) -> None:
    assert neutral(cell) is cell
    assert original(cell) is cell


def test_answers_as_csv(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = LogisticModel.fit(TrainingSet(pd.DataFrame(X, columns=["=a", "b"]), (X.sum(1) > 0).astype(int)))
    people = pd.DataFrame(-np.abs(X[: len(EVIL)]) - 1, columns=["=a", "b"], index=EVIL)
    found = Rocerf(model, 1, promise="first_order", schema=FeatureSchema.free(["=a", "b"])).explain(people)
    assert found.answered.any()
    write_recourses(found, tmp_path / "a.csv")
    cells = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    for text in (*cells.columns, *cells["person"], *cells["status"], *cells["reason"]):
        assert text[0] not in "=+-@\t\r"
    assert (pd.to_numeric(cells["b"]) < 0).any()  # numbers are numbers, below zero too
    again = read_people(tmp_path / "a.csv", id_column="person")
    assert list(again.index) == EVIL
    assert list(again.columns[-2:]) == ["=a", "b"]
    np.testing.assert_array_equal(again[["=a", "b"]].to_numpy(), found.matrix)
    frame = found.to_frame()  # a DataFrame is no spreadsheet
    assert list(frame.index) == EVIL
    assert "=a" in frame.columns


def test_a_feature_called_person_has_a_column_of_its_own(tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(60, 2))
    table = pd.DataFrame(X, columns=["person", "status"])
    model = LogisticModel.fit(TrainingSet(table, (X.sum(1) > 0).astype(int)))
    found = Rocerf(model, 1, promise="first_order").explain(table[model.predict(table) == 0].head(3))
    write_recourses(found, tmp_path / "a.csv")
    names = (tmp_path / "a.csv").read_text("utf-8").splitlines()[0].split(",")
    assert names == ["recourse_person", "recourse_status", "reason", "cost", "margin", "person", "status"]
    assert len(read_csv(tmp_path / "a.csv")) == 3


def test_records_and_tables_of_others(tmp_path: Path) -> None:
    write_records([{"person": "=x", "score": -1.5}], tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text("utf-8") == "person,score\n'=x,-1.5\n"
    assert read_csv(tmp_path / "r.csv")["person"].tolist() == ["'=x"]  # not answers of ours: nothing is taken away


IDS = {
    "zeros": (["007", "7"], ["007", "7"]),
    "words for missing": (["NA", "null", "nan", "None"], ["NA", "null", "nan", "None"]),
    "whole numbers": (["7", "12"], [7, 12]),
    "numbers": (["1.0", "2.5"], [1.0, 2.5]),
    "long numbers": (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
    "exponents": (["1e5", "2e5"], ["1e5", "2e5"]),
    "spaces": ([" a", "a"], [" a", "a"]),
    "truth": (["True", "False"], ["True", "False"]),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_kept_as_they_are_written(kind: str, tmp_path: Path) -> None:
    written, expected = IDS[kind]
    (tmp_path / "p.csv").write_text("who,x\n" + "".join(f"{text},{i}\n" for i, text in enumerate(written)), "utf-8")
    assert read_people(tmp_path / "p.csv", id_column="who").index.tolist() == expected


def test_tables_that_pandas_would_bend(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n", "utf-8")
    with pytest.raises(ColumnError, match="'a' 2 times"):
        read_csv(tmp_path / "twice.csv")
    (tmp_path / "commas.csv").write_text("a,b\n1,2,\n3,4,\n", "utf-8")  # pandas: the first column names the rows
    assert read_csv(tmp_path / "commas.csv").to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    (tmp_path / "commas.csv").write_text("a,b\n1,2,9\n3,4,9\n", "utf-8")
    with pytest.raises(FileFormatError, match=r"as many cells in each row of commas\.csv as names"):
        read_csv(tmp_path / "commas.csv")
    (tmp_path / "good.csv").write_bytes("\ufeffa,b\r\n1,2\r\n".encode())
    assert read_csv(tmp_path / "good.csv").to_dict("list") == {"a": [1], "b": [2]}
