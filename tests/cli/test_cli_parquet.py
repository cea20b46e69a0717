"""The command line with training rows in Parquet: what it says of the same rows in a CSV file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from parquet_tables import table_of, written
from rocerf import TrainingSet, load_dataset, passes
from rocerf.cli import parquet_files
from rocerf.cli.app import app
from rocerf.cli.tables import read_table
from rocerf.errors import ColumnError

pytest.importorskip("pyarrow")

NAMED = ["--label", "good", "--favourable", "1", "--train-id-column", "who"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, data = tmp_path_factory.mktemp("files"), load_dataset("german")
    table = table_of(data.train)
    written(table, folder / "rows", 5)
    table.to_parquet(folder / "rows.parquet", index=False)
    table.to_csv(folder / "rows.csv", index=False)
    data.test.frame().iloc[:12].to_csv(folder / "people.csv", index=False)
    (folder / "gone.txt").write_text("\n".join(str(one) for one in table["who"][:3]))
    return folder


def command(*words: object) -> tuple[int, str]:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    return ran.exit_code, ran.output if ran.exception is None else f"{ran.output}{ran.exception}"


def explained(files: Path, name: str, *more: str) -> dict:
    out = files / f"{name}.json"
    people = ["--people", files / "people.csv", "--k", "3", "--promise", "first_order", "--out", out]
    code, said = command("explain", "--train", files / name, *NAMED, *people, *more)
    assert code == 0, said
    return json.loads(out.read_text())


def test_partitions_of_other_columns_are_refused_also_where_rows_are_read_whole(files: Path, tmp_path: Path) -> None:
    """PyArrow would fill a column that a partition lacks with nothing."""
    table = pd.read_parquet(files / "rows.parquet")
    name = table.columns[0]
    for number in (0, 1):
        folder = written(table, tmp_path / str(number), 3)
        path = folder / f"part-00{number}.parquet"
        pd.read_parquet(path).drop(columns=name).to_parquet(path, index=False)
        with pytest.raises(ColumnError, match=f"'{name}'.*part-001"):
            read_table(folder)


def test_explain_and_recheck(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = explained(files, "rows.csv")
    read = []
    whole = TrainingSet.from_parquet
    monkeypatch.setattr(TrainingSet, "from_parquet", lambda *a, **o: read.append(a) or whole(*a, **o))
    for name in ("rows", "rows.parquet"):
        found = explained(files, name)
        assert found["settings"]["data_checksum"] == truth["settings"]["data_checksum"]
        for mine, theirs in zip(found["people"], truth["people"], strict=True):
            assert mine["status"] == theirs["status"]
            values, others = (one.get("point") or [] for one in (mine, theirs))
            np.testing.assert_allclose(np.array(values, float), np.array(others, float), atol=1e-9)
        again = ["--recourses", files / f"{name}.json", "--deleted", files / "gone.txt"]
        code, said = command("recheck", "--train", files / name, *NAMED, *again)
        assert code == 0, said
        assert "still hold" in said
    assert len(read) == 4


def test_runners_by_name(files: Path) -> None:
    truth = explained(files, "rows", "--runner", "serial")
    assert explained(files, "rows", "--runner", "threads")["people"] == truth["people"]
    assert not passes._chosen
    people = ["--people", files / "people.csv", "--k", "3"]
    for words, said in (
        (["--runner", "cluster"], "Expected one of the runners serial, threads"),
        (["--runner", "dask"], "address of a scheduler"),
        (["--runner", "threads", "--scheduler", "tcp://nowhere:1"], "only with the runner 'dask'"),
    ):
        code, told = command("explain", "--train", files / "rows", *NAMED, *people, *words)
        assert code != 0
        assert said in told
    assert not passes._chosen


def test_what_is_wrong_is_said(files: Path) -> None:
    people = ["--people", files / "people.csv", "--k", "3"]
    for train, label, said in (("none.parquet", "good", "found none"), ("rows", "bad", "a column 'bad'")):
        named = ["--label", label, "--favourable", "1"]
        code, told = command("explain", "--train", files / train, *named, *people)
        assert code != 0
        assert said in told
    code, told = command("explain", "--train", files / "rows", "--label", "good", "--favourable", "yes", *people)
    assert code != 0
    assert "Expected the favourable label to be one of" in told


def test_a_pipeline_over_a_large_table(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers, and it is said what retraining means then; a small table is held, as ever."""
    skops = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = pd.read_csv(files / "rows.csv")
    fitted = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10)).fit(
        rows.drop(columns=["good", "who"]), rows["good"]
    )
    skops.dump(fitted, files / "pipeline.skops")
    words = ("--pipeline", str(files / "pipeline.skops"))
    held = explained(files, "rows", *words)
    monkeypatch.setattr(parquet_files, "LARGE", 0)
    monkeypatch.setattr(parquet_files.RowsInParquet, "frame", None)  # whoever reads all rows fails
    streamed = explained(files, "rows", *words)
    assert "answered" in {one["status"] for one in held["people"]}
    for mine, theirs in zip(streamed["people"], held["people"], strict=True):
        assert mine["status"] == theirs["status"]
    assert any("exact" in said for said in streamed["settings"]["assumptions"])
