"""CSV as spreadsheets write it: semicolons, decimal commas, tabs, codes with leading zeros, texts like numbers."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocerf.cli.csv_files import read_csv
from rocerf.cli.files import LabelledRows, read_people
from rocerf.cli.tables import read_table
from rocerf.errors import FileFormatError

NAMES = ("amount", "name", "months", "rate")
ROWS = (("1234,5", "Müller; Söhne", "12", "-0,25"), ("2,75", "Meier", "3", "1,5e-3"))


def _written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(("separator", "ending"), [(";", "csv"), ("\t", "csv"), ("\t", "tsv")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_decimal_commas_between_semicolons_and_tabs(tmp_path: Path, separator: str, ending: str, encoding: str) -> None:
    quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in ROWS]
    text = "\n".join(separator.join(row) for row in (NAMES, *quoted)) + "\n"
    frame = read_table(_written(tmp_path / f"a.{ending}", text, encoding))
    assert list(frame.columns) == list(NAMES)
    assert frame["amount"].tolist() == [1234.5, 2.75]
    assert frame["rate"].tolist() == [-0.25, 1.5e-3]
    assert frame["months"].dtype.kind == "i"
    assert frame["name"].tolist() == ["Müller; Söhne", "Meier"]


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=2, max_size=12))
def test_decimal_commas_keep_every_digit(tmp_path_factory: Any, numbers: list[float | None]) -> None:
    folder = tmp_path_factory.mktemp("commas")
    texts = ["" if one is None else repr(one) for one in (*numbers, 0.5)]  # the last one tells what a mark is
    points = _written(folder / "p.csv", "a,b\n" + "".join(f"{text},x\n" for text in texts))
    commas = _written(folder / "c.csv", "a;b\n" + "".join(f"{text.replace('.', ',')};x\n" for text in texts))
    pd.testing.assert_series_equal(read_csv(points)["a"], read_csv(commas)["a"])


def test_thousands_are_read_only_where_they_leave_no_doubt(tmp_path: Path) -> None:
    clear = read_csv(_written(tmp_path / "a.csv", "a;b\n1.234,50;x\n1.234.567;y\n"))
    assert clear["a"].tolist() == [1234.5, 1234567.0]
    versions = read_csv(_written(tmp_path / "v.csv", "a;b\n1.2.3;1,5\n1.234.567;2\n"))
    assert versions["a"].tolist() == ["1.2.3", "1.234.567"]
    with pytest.raises(FileFormatError, match="decimal commas in 'b' and points in 'a'"):
        read_csv(_written(tmp_path / "d.csv", "a;b\n1.234;1,5\n2.500;2\n"))


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_marks_that_may_be_for_thousands_are_refused_unless_another_number_tells(
    tmp_path: Path, mark: str, separator: str
) -> None:
    """1.234 and 999: a thousand times too little, where the mark is for thousands, and only for the larger ones."""

    def read(*cells: str, names: str = "a;b", **options: Any) -> pd.DataFrame:
        text = "\n".join([names, *cells]).replace("_", mark).replace(";", separator)
        return read_csv(_written(tmp_path / "a.csv", text + "\n"), **options)

    for doubtful in (["1_234;5", "999;6"], ["-12_500;x", "2_000;y"], ["1_234;1_500", ";2"]):
        with pytest.raises(FileFormatError, match="read in one way only"):
            read(*doubtful)
    for told in (["1_234;5", "0_125;6"], ["1_234;0_5", "2_500;2"], ["1_234;5", "2345;6"], ["1_2345;5", "1_234;6"]):
        assert read(*told)["a"][0] in (1.234, 1.2345)
    # What is not read as a number may look as it likes.
    assert read("1_234;5", "2_500;6", texts=["a"])["a"].tolist() == [f"1{mark}234", f"2{mark}500"]
    assert [str(one) for one in read("1_25;5", "2_5;6", id_column="a")["a"]] == [f"1{mark}25", f"2{mark}5"]


def test_points_between_semicolons_and_commas_in_texts_stay(tmp_path: Path) -> None:
    frame = read_csv(_written(tmp_path / "a.csv", "a;b\n1.5;1, 2\n2.5;3\n"))
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame["b"].tolist() == ["1, 2", "3"]
    quoted = read_csv(_written(tmp_path / "q.csv", 'a,b\n"1,5",x\n"2,5",y\n'))
    assert quoted["a"].tolist() == ["1,5", "2,5"]  # between commas nothing is guessed


@pytest.mark.parametrize(("encoding", "told"), [("cp1252", "WINDOWS-1252"), ("utf-16", "UTF-16")])
def test_other_encodings_are_refused_with_the_way_out(tmp_path: Path, encoding: str, told: str) -> None:
    path = _written(tmp_path / "a.csv", "a,b\n1,Müller\n", encoding)
    with pytest.raises(
        FileFormatError, match=f"in UTF-8, got bytes that do not decode as that .in line .*iconv -f {told}"
    ):
        read_table(path)


def test_what_is_no_text_at_all_is_not_to_be_converted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"PK\x03\x04\x14\x00\xff\x00")
    with pytest.raises(FileFormatError, match=r"no text .a spreadsheet or an archive.*export it as CSV"):
        read_table(tmp_path / "a.csv")


def test_codes_with_leading_zeros_are_texts(tmp_path: Path) -> None:
    text = "zip,month,share,count,when\n01067,07,0.5,0,07:15\n10115,12,00.25,10,12:00\n"
    plain = read_csv(_written(tmp_path / "a.csv", text))
    assert plain["zip"].tolist() == ["01067", "10115"]
    assert plain["month"].tolist() == ["07", "12"]
    assert plain["share"].tolist() == [0.5, 0.25]  # no plain digits
    assert plain["count"].tolist() == [0, 10]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    pd.testing.assert_frame_equal(read_csv(tmp_path / "a.csv.gz"), plain)
    gaps = read_csv(_written(tmp_path / "g.csv", "zip,x\n01067,1\n,2\n"))
    assert gaps["zip"].tolist()[0] == "01067"
    assert gaps["zip"].isna().tolist() == [False, True]


def test_what_is_a_text_among_the_training_rows_is_one_of_the_people(tmp_path: Path) -> None:
    train = pd.DataFrame({"code": ["A1", "20", "007"], "mixed": ["True", "False", None], "age": [30, 40, 50]})
    rows = LabelledRows(train, np.array([0, 1, 1]), 1)
    assert rows.text_columns() == ["code", "mixed"]
    path = _written(tmp_path / "p.csv", "code,mixed,age,note\n20,True,04,1\n007,,30,2\n")
    people = read_people(path, like=rows)
    assert people["code"].tolist() == ["20", "007"]
    assert people["mixed"].tolist()[0] == "True"
    assert people["mixed"].isna().tolist() == [False, True]
    assert people["age"].tolist() == [4, 30]  # a number among the training rows stays one


def test_a_person_whose_code_looks_like_a_number_is_answered(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 120
    table = pd.DataFrame({"code": rng.choice(["A1", "10", "20"], n), "x": rng.normal(size=n).round(3)})
    table["y"] = np.where(table["x"] + (table["code"] == "10") > 0.5, "good", "bad")
    table.to_csv(tmp_path / "rows.csv", index=False)
    _written(tmp_path / "people.csv", "code,x\n20,-1.0\n")
    shared = ("--train", "rows.csv", "--label", "y", "--favourable", "good", "--fit", "--k", "1")
    code, out, err = run("explain", *shared, "--people", "people.csv", "--promise", "plain", "--out", "a.json")
    assert (code, "invalid_input" in out, "answered" in out) == (0, False, True), out + err
    code, out, err = run("attack", *shared, "--points", "people.csv", "--effort", "quick", "--json")
    assert code == 0, err


def test_a_value_of_another_kind_is_named_as_what_it_is() -> None:
    from rocerf import FeatureSchema
    from rocerf.data.frames import Frames

    schema = FeatureSchema.from_frame(pd.DataFrame({"code": ["A1", "20"]}))
    frames = Frames.of(schema, pd.DataFrame({"code": ["A1", "20"]}))
    _, _, problems = frames.encode(pd.DataFrame({"code": [20, 30]}))
    assert problems[0] == "'code' is 20, expected one of the texts 20, A1"
