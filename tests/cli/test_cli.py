"""Every command with good and bad input: exit codes, what is said where, and what must not be said."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from skops.io import dump

import rocerf
from command_line import Run
from rocerf import LogisticModel, Recourses, Rocerf, Status, TrainingSet
from rocerf.cli import options
from rocerf.cli.app import app, main
from rocerf.cli.examples import EXAMPLES
from rocerf.data.datasets import list_datasets
from rocerf.words import known_languages

first_order = partial(Rocerf, promise="first_order")

SECRET = "TRAINROW"
COLUMNS = ["income", "debt", "age"]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


class Files(NamedTuple):
    folder: Path
    rows: pd.DataFrame  # index: ids
    labels: pd.Series
    people: pd.DataFrame  # index: who

    @property
    def train(self) -> Path:
        return self.folder / "train.csv"

    @property
    def asking(self) -> Path:
        return self.folder / "people.csv"

    def training_set(self) -> TrainingSet:
        return TrainingSet(self.rows, self.labels, favourable="yes")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """90 training rows with telltale ids, and 9 people: refused, accepted, and one with a missing value."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(5)
    raw = rng.normal(size=(90, 3)) * [900.0, 40.0, 9.0] + [2500.0, 100.0, 45.0]
    score = (raw - raw.mean(0)) / raw.std(0) @ [1.5, -1.0, 0.3]
    rows = pd.DataFrame(raw.round(2), columns=COLUMNS, index=[f"{SECRET}-{i:04d}" for i in range(90)])
    labels = pd.Series(np.where(score + rng.logistic(size=90) > 0, "yes", "no"), index=rows.index, name="granted")
    rows.join(labels).to_csv(folder / "train.csv", index_label="row_id")
    people = rows[score < -0.5].head(7).reset_index(drop=True)
    people = pd.concat([people, people.tail(1).assign(income=9000.0), people.head(1).assign(debt=np.nan)])
    people.index = [*(f"person-{i}" for i in range(8)), "nobody"]
    people.to_csv(folder / "people.csv", index_label="who")
    return Files(folder, rows, labels, people)


def explain_arguments(files: Files, **changes: object) -> list[object]:
    """A good ``rocerf explain``, some options replaced; None drops one."""
    options: dict[str, object] = {
        "train": files.train,
        "label": "granted",
        "favourable": "yes",
        "people": files.asking,
        "k": 3,
        "promise": "first_order",
        "id-column": "who",
        "train-id-column": "row_id",
    }
    options.update({name.replace("_", "-"): value for name, value in changes.items()})
    given = [(f"--{name}", value) for name, value in options.items() if value is not None]
    rules = [] if "schema" in changes else ["--free"]
    return ["explain", *(part for pair in given for part in pair), *rules]


def as_json(run: Any, files: Files, *extra: object, **changes: object) -> Recourses:
    code, out, err = run(*explain_arguments(files, **changes), *extra, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == out.rstrip("\n").count("\n") + 1
    json.loads(out)
    return Recourses.from_json(out)


def assert_same(found: Recourses, expected: Recourses) -> None:
    assert found.statuses == expected.statuses
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=1e-9)
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-9)
    assert found.settings == expected.settings
    assert found.columns == expected.columns


# --- demo and datasets ---------------------------------------------------------------------------


@pytest.mark.slow
def test_demo_prints_a_table_and_writes_a_page_that_loads_nothing(run: Any, tmp_path: Path) -> None:
    code, out, err = run("demo", "--trials", 2, "--people", 4, "--out", "deep/report.html")
    assert (code, err) == (0, "")
    assert "45 of 200 applicants refused, the first 4 of them shown" in " ".join(out.split())
    assert "Report: deep/report.html" in out
    page = (tmp_path / "deep" / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == page.count("</svg>") == 2
    for loading in (
        r"""(?:src|href)\s*=\s*["']?\s*(?!#)""",
        r"@import",
        r"url\((?!#)",
        r"<script",
        r"<link",
        r"<iframe",
    ):
        assert re.findall(loading, page.replace('xlink:href="#', "")) == [], loading


@pytest.mark.slow
def test_demo_json_is_the_only_thing_printed(run: Any, tmp_path: Path) -> None:
    code, out, err = run("demo", "--trials", 2, "--people", 1, "--seed", 3, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert (document["trials"], document["seed"], document["denied"]) == (2, 3, 1)
    assert document["report"] == str(Path("out") / "demo.html")
    assert (tmp_path / "out" / "demo.html").is_file()
    assert [method["k"] for method in document["methods"]] == [0, 0, 4, 16, 4, 16, 1]


def test_datasets_lists_every_data_set(run: Any) -> None:
    code, out, err = run("datasets")
    assert (code, err) == (0, "")
    for info in list_datasets():
        assert re.search(rf"│ {info.name} +│ +{info.rows_train} │ +{info.rows_test} │ +{info.columns} │", out)
        assert f"{info.name}: {info.title}." in " ".join(out.split())


def test_datasets_as_json(run: Any) -> None:
    code, out, err = run("datasets", "--json")
    assert (code, err) == (0, "")
    known = json.loads(out)
    assert [row["name"] for row in known] == [info.name for info in list_datasets()]
    assert known[0]["rows_train"] == 800


# --- explain: the same answers as the library -----------------------------------------------------


def test_explain_gives_the_library_s_answers(run: Any, files: Files) -> None:
    expected = first_order(LogisticModel.fit(files.training_set(), C=1.0), 3).explain(files.people)
    found = as_json(run, files)
    assert_same(found, expected)
    assert found.index is not None
    assert found.index.tolist() == list(files.people.index)
    counts = {status: found.statuses.count(status) for status in set(found.statuses)}
    assert counts[Status.INVALID_INPUT] == 1
    assert counts[Status.ALREADY_ACCEPTED] == 1
    assert counts[Status.ANSWERED] == 7


def test_explain_prints_a_summary(run: Any, files: Files) -> None:
    code, out, err = run(*explain_arguments(files))
    assert (code, err) == (0, "")
    assert "9 people, k = 3 of 90 rows" in out
    for row in (r"answered +│ +7", r"already_accepted +│ +1", r"invalid_input +│ +1"):
        assert re.search(row, out)
    assert re.search(r"Mean cost \d+\.\d{3} \(l2\)\.", out)
    sentence = as_json(run, files).settings.sentence
    assert f"Promise: {sentence}." in out
    assert re.search(r"person person-0: income: [\d.]+ -> [\d.]+", out)
    assert "write all of them with --out answers.csv or --json" in out


def test_explain_writes_csv(run: Any, files: Files, tmp_path: Path) -> None:
    code, out, err = run(*explain_arguments(files, out="new/folder/answers.csv"))
    assert (code, err) == (0, "")
    assert "Written: new/folder/answers.csv" in out
    assert "person 1" not in out
    table = pd.read_csv(tmp_path / "new" / "folder" / "answers.csv")
    assert list(table.columns) == ["person", "status", "reason", "cost", "margin", *COLUMNS]
    assert table["person"].tolist() == list(files.people.index)
    expected = as_json(run, files)
    np.testing.assert_allclose(table[COLUMNS], expected.matrix, rtol=1e-12)
    assert table["status"].tolist() == [status.code for status in expected.statuses]


def test_explain_writes_json(run: Any, files: Files, tmp_path: Path) -> None:
    code, _, err = run(*explain_arguments(files, out="answers.json"))
    assert (code, err) == (0, "")
    assert_same(Recourses.from_json(tmp_path / "answers.json"), as_json(run, files))


def test_explain_writes_and_prints_json_at_once(run: Any, files: Files, tmp_path: Path) -> None:
    printed = as_json(run, files, out="answers.json")
    assert_same(Recourses.from_json(tmp_path / "answers.json"), printed)


def test_explain_reads_parquet_and_gzip(run: Any, files: Files, tmp_path: Path) -> None:
    expected = as_json(run, files)
    pd.read_csv(files.train).to_parquet(tmp_path / "train.parquet")
    pd.read_csv(files.asking).to_parquet(tmp_path / "people.pq")
    assert_same(as_json(run, files, train="train.parquet", people="people.pq"), expected)
    for name in ("train", "people"):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress((files.folder / f"{name}.csv").read_bytes()))
    assert_same(as_json(run, files, train="train.csv.gz", people="people.csv.gz"), expected)


def test_explain_takes_k_as_a_share(run: Any, files: Files) -> None:
    assert as_json(run, files, k="3%").settings.k == 3  # 2.7 rows, rounded up
    assert_same(as_json(run, files, k="3%"), as_json(run, files, k="3"))


def test_explain_without_an_id_column_numbers_the_people(run: Any, files: Files, tmp_path: Path) -> None:
    files.people.to_csv(tmp_path / "plain.csv", index=False)
    found = as_json(run, files, people="plain.csv", id_column=None)
    assert found.index is not None
    assert found.index.tolist() == list(range(9))
    assert_same(found, as_json(run, files))


def test_explain_finds_people_s_columns_by_name(run: Any, files: Files, tmp_path: Path) -> None:
    files.people[["age", "debt", "income"]].assign(note="hello").to_csv(tmp_path / "other.csv", index_label="who")
    assert_same(as_json(run, files, people="other.csv"), as_json(run, files))


def test_training_ids_are_no_feature(run: Any, files: Files) -> None:
    found = as_json(run, files, "--training-rows")
    assert found.columns == tuple(COLUMNS)
    assert found.worst_ids is not None
    named = {row_id for ids in found.worst_ids if ids is not None for row_id in ids.tolist()}
    assert named
    assert named <= set(files.rows.index)


def test_explain_respects_immutable_columns(run: Any, files: Files) -> None:
    found = as_json(run, files, "--immutable", "income", "--immutable", "age")
    moved = found.matrix[found.answered] != found.people[found.answered]
    assert moved.any(axis=0).tolist() == [False, True, False]
    free = as_json(run, files)
    assert (free.matrix[free.answered] != free.people[free.answered]).all()


def test_explain_with_a_plain_promise(run: Any, files: Files) -> None:
    found = as_json(run, files, promise="plain")
    model = LogisticModel.fit(files.training_set(), C=1.0)
    assert_same(found, rocerf.baselines.Scfe(model).explain(files.people))
    robust = as_json(run, files)
    assert (found.costs[found.answered] < robust.costs[robust.answered]).all()


def test_explain_with_the_l1_cost(run: Any, files: Files) -> None:
    found = as_json(run, files, cost="l1")
    expected = first_order(LogisticModel.fit(files.training_set()), 3, cost="l1").explain(files.people)
    assert_same(found, expected)
    assert all(len(recourse.changes) < 3 for recourse in found if recourse.answered)


def test_explain_with_a_margin(run: Any, files: Files) -> None:
    found = as_json(run, files, delta=0.5)
    assert found.settings.delta == 0.5
    assert (found.margins[found.answered] >= 0.5).all()
    assert (as_json(run, files).margins[found.answered] < 0.5).all()


def test_explain_with_a_calibrated_margin(run: Any, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(files.training_set())
    expected = first_order(model, "10%", delta="calibrate", seed=7)
    found = as_json(run, files, k="10%", delta="calibrate", seed=7)
    assert_same(found, expected.explain(files.people))
    asked = []

    def calibrate(*_: object, seed: int) -> float:
        asked.append(seed)
        return 0.375

    monkeypatch.setattr("rocerf.explainer.explainer.calibrate_delta", calibrate)
    found = as_json(run, files, delta="calibrate", seed=7)
    assert asked == [7]
    assert found.settings.delta == 0.375
    assert (found.margins[found.answered] >= 0.375).all()


@pytest.mark.slow
def test_explain_with_the_penalty_solver(run: Any, files: Files) -> None:
    found, best = as_json(run, files, solver="penalty"), as_json(run, files, solver="cutting_plane")
    assert (found.settings.solver, best.settings.solver) == ("penalty", "cutting_plane")
    assert found.statuses == best.statuses
    ratio = found.costs[found.answered] / best.costs[best.answered]
    assert (ratio >= 1 - 1e-6).all()
    assert (ratio < 1.1).all()


def test_explain_with_a_stronger_penalty_on_the_model(run: Any, files: Files) -> None:
    expected = first_order(LogisticModel.fit(files.training_set(), C=0.01), 3).explain(files.people)
    assert_same(as_json(run, files, c=0.01), expected)


def test_explain_with_a_model_from_a_file(run: Any, files: Files, tmp_path: Path) -> None:
    fitted = LogisticRegression(C=0.3, tol=1e-8, max_iter=5000).fit(files.rows, files.labels)
    dump(fitted, tmp_path / "model.skops")
    expected = first_order(LogisticModel.from_sklearn(fitted, files.training_set()), 3).explain(files.people)
    assert_same(as_json(run, files, model="model.skops"), expected)
    assert not np.allclose(expected.matrix[:7], as_json(run, files).matrix[:7])


def test_labels_that_are_numbers(run: Any, files: Files, tmp_path: Path) -> None:
    table = pd.read_csv(files.train)
    for values in ((0, 1), (0.0, 1.0)):
        table.assign(granted=np.where(table["granted"] == "yes", values[1], values[0])).to_csv(
            "numbers.csv", index=False
        )
        found = as_json(run, files, train=tmp_path / "numbers.csv", favourable="1")
        np.testing.assert_allclose(found.matrix, as_json(run, files).matrix, rtol=1e-12)


def test_nobody_asking_is_no_mistake(run: Any, files: Files, tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("who,income,debt,age\n")
    code, out, err = run(*explain_arguments(files, people="none.csv", out="answers.csv"))
    assert (code, err) == (0, "")
    assert "0 people" in out
    assert (tmp_path / "answers.csv").read_text() == "person,status,reason,cost,margin,income,debt,age\n"


def test_the_installed_way_in_works(files: Files, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rocerf.cli", *map(str, explain_arguments(files)), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Recourses.from_json(done.stdout)) == 9
    bad = [sys.executable, "-m", "rocerf", "explain", "--train", "nothing.csv"]
    done = subprocess.run(bad, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rocerf: Missing option")


# --- other people's data --------------------------------------------------------------------------


@pytest.mark.parametrize("promise", ["first_order", "plain"])
def test_no_ids_of_training_rows_reach_the_people(run: Any, files: Files, tmp_path: Path, promise: str) -> None:
    for arguments in ((), ("--json",), ("--out", "a.csv"), ("--out", "a.json"), ("--training-rows",)):
        code, out, err = run(*explain_arguments(files, promise=promise), *arguments)
        assert (code, err) == (0, "")
        assert SECRET not in out
    run(*explain_arguments(files, promise=promise, out="b.csv"), "--training-rows")
    for written in ("a.csv", "a.json", "b.csv"):
        text = (tmp_path / written).read_text("utf-8")
        assert "person-0" in text
        assert SECRET not in text


def test_ids_of_training_rows_come_when_asked_for(run: Any, files: Files, tmp_path: Path) -> None:
    code, out, _ = run(*explain_arguments(files, out="a.json"), "--training-rows", "--json")
    assert code == 0
    assert SECRET in out
    assert SECRET in (tmp_path / "a.json").read_text("utf-8")


# --- bad input ------------------------------------------------------------------------------------


def assert_refused(result: Run, *words: str) -> None:
    """Exit code 2, one sentence on standard error, nothing on standard output."""
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("rocerf: ")
    assert result.err.count("\n") == 1
    assert result.err.endswith(".\n")
    assert "Traceback" not in result.err
    assert "internal error" not in result.err
    for word in words:
        assert word in result.err


@pytest.fixture(scope="module")
def bad_files(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    train, people = pd.read_csv(files.train), pd.read_csv(files.asking)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "header.csv").write_text("row_id,income,debt,age,granted\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n1,2,3,4\n")
    (folder / "broken.csv.gz").write_bytes(b"this is not gzip")
    packed = bytearray(gzip.compress(files.train.read_bytes()))
    packed[len(packed) // 2] ^= 0xFF
    (folder / "flipped.csv.gz").write_bytes(bytes(packed))
    (folder / "broken.parquet").write_bytes(b"this is not parquet")
    (folder / "binary.csv").write_bytes(bytes(range(128, 256)))
    (folder / "table.xlsx").write_bytes(b"PK")
    train.assign(debt="high").to_csv(folder / "text.csv", index=False)
    train.assign(row_id="same").to_csv(folder / "same_ids.csv", index=False)
    train.assign(granted="yes").to_csv(folder / "one_label.csv", index=False)
    train.assign(granted=["maybe", *train["granted"][1:]]).to_csv(folder / "three_labels.csv", index=False)
    train.assign(income=[np.nan, *train["income"][1:]]).to_csv(folder / "gap.csv", index=False)
    people.assign(debt="high").to_csv(folder / "people_text.csv", index=False)
    people.drop(columns="debt").to_csv(folder / "people_short.csv", index=False)
    (folder / "broken.skops").write_bytes(b"this is not skops")
    dump(DecisionTreeClassifier().fit(files.rows, files.labels), folder / "tree.skops")
    dump(GaussianNB().fit(files.rows, files.labels), folder / "bayes.skops")
    dump(LogisticRegression(max_iter=5000).fit(files.rows[["debt", "age"]], files.labels), folder / "narrow.skops")
    dump(LogisticRegression(), folder / "unfitted.skops")
    dump({"model": Run}, folder / "strange.skops")
    (folder / "folder.csv").mkdir()
    return folder


BAD = [
    pytest.param({"train": "nothing.csv"}, ["a file at nothing.csv, found none"], id="missing train"),
    pytest.param({"people": "nothing.csv"}, ["a file at nothing.csv, found none"], id="missing people"),
    pytest.param({"train": "{bad}/folder.csv"}, ["folder.csv, found none"], id="folder"),
    pytest.param({"train": "{bad}/table.xlsx"}, [".csv, .csv.gz, .parquet", "got table.xlsx"], id="extension"),
    pytest.param({"train": "{bad}/empty.csv"}, ["readable table", "No columns to parse"], id="empty train"),
    pytest.param({"people": "{bad}/empty.csv"}, ["readable table", "No columns to parse"], id="empty people"),
    pytest.param({"train": "{bad}/header.csv"}, ["training rows in header.csv, got a header only"], id="header only"),
    pytest.param({"train": "{bad}/ragged.csv"}, ["readable table", "saw 4"], id="ragged"),
    pytest.param({"train": "{bad}/broken.csv.gz"}, ["readable table", "gzip"], id="broken gzip"),
    pytest.param({"train": "{bad}/flipped.csv.gz"}, ["readable table"], id="damaged gzip"),
    pytest.param({"train": "{bad}/broken.parquet"}, ["readable table"], id="broken parquet"),
    pytest.param({"train": "{bad}/binary.csv"}, ["readable table", "decode"], id="binary"),
    pytest.param(
        {"train": "{bad}/text.csv"}, ["got texts in 'debt'", "--fit fits a pipeline", "--pipeline"], id="text column"
    ),
    pytest.param(
        {"train": "{bad}/gap.csv"}, ["got missing values in 'income'", "--fit", "--pipeline"], id="missing value"
    ),
    pytest.param({"train": "{bad}/same_ids.csv"}, ["unique id", "'same'"], id="repeated ids"),
    pytest.param({"train": "{bad}/one_label.csv"}, ["two classes", "got 1"], id="one label"),
    pytest.param({"train": "{bad}/three_labels.csv"}, ["two classes", "got 3"], id="three labels"),
    pytest.param({"people": "{bad}/people_text.csv"}, ["numbers", "of the people", "'debt'"], id="people's text"),
    pytest.param({"people": "{bad}/people_short.csv"}, ["got none named 'debt'"], id="people's missing column"),
    pytest.param({"label": "grant"}, ["label column 'grant'", "income, debt, age, granted;"], id="label column"),
    pytest.param({"favourable": "maybe"}, ["one of ", "yes", "no", "got 'maybe'"], id="favourable"),
    pytest.param({"train_id_column": "id"}, ["id column 'id'", "train.csv", "row_id"], id="train id column"),
    pytest.param({"id_column": "name"}, ["id column 'name'", "people.csv", "who"], id="id column"),
    pytest.param({"train_id_column": None}, ["numbers", "'row_id'"], id="ids taken for a feature"),
    pytest.param({"k": 90}, ["smaller than the 90 training rows, got 90"], id="k too large"),
    pytest.param({"k": "100%"}, ["smaller than the 90 training rows"], id="k all"),
    pytest.param({"k": "many"}, ["whole number", "'0.5%'", "got 'many'"], id="k nonsense"),
    pytest.param({"k": "0.5"}, ["whole number", "got '0.5'", "write k='0.5%'"], id="k a fraction"),
    pytest.param({"k": "-1"}, ["whole number", "got '-1'"], id="k negative"),
    pytest.param({"k": "inf%"}, ["whole number", "got 'inf%'"], id="k infinite"),
    pytest.param({"delta": "wide"}, ["--delta", "'calibrate'", "got 'wide'"], id="delta nonsense"),
    pytest.param({"delta": "-1"}, ["delta", ">= 0", "got -1.0"], id="delta negative"),
    pytest.param({"delta": "nan"}, ["delta", "got nan"], id="delta nan"),
    pytest.param({"c": 0}, ["C > 0", "got 0.0"], id="c zero"),
    pytest.param({"c": "strong"}, ["--c"], id="c nonsense"),
    pytest.param({"cost": "l3"}, ["--cost", "l3", "l1"], id="cost"),
    pytest.param({"solver": "guess"}, ["--solver", "guess", "penalty"], id="solver"),
    pytest.param({"promise": "firm"}, ["--promise", "firm", "first_order"], id="promise"),
    pytest.param({"seed": -1}, ["--seed"], id="seed"),
    pytest.param({"immutable": "height"}, ["'height'", "income, debt, age"], id="immutable column"),
    pytest.param({"model": "nothing.skops"}, ["a model file at nothing.skops, found none"], id="missing model"),
    pytest.param({"model": "{bad}/broken.skops"}, ["skops.io.dump", "broken.skops"], id="broken skops"),
    pytest.param({"model": "{bad}/tree.skops"}, ["LogisticRegression only", "sklearn.tree"], id="tree"),
    pytest.param({"model": "{bad}/bayes.skops"}, ["LogisticRegression, got GaussianNB"], id="other model"),
    pytest.param(
        {"model": "{bad}/strange.skops"}, ["LogisticRegression only", "Run", "not trusted"], id="untrusted types"
    ),
    pytest.param({"model": "{bad}/unfitted.skops"}, ["not fitted"], id="unfitted model"),
    pytest.param({"model": "{bad}/narrow.skops"}, ["the classifier's 2 columns, got 3"], id="narrow model"),
    pytest.param({"out": "answers.xlsx"}, [".csv, .json or .parquet, got answers.xlsx"], id="output extension"),
    pytest.param({"out": "{bad}/folder.csv"}, ["a file as --out", "folder.csv"], id="output is a folder"),
    pytest.param({"out": "{bad}/empty.csv/answers.csv"}, ["empty.csv is a file"], id="output under a file"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_bad_input_is_one_sentence(
    run: Any, files: Files, bad_files: Path, changes: dict[str, Any], words: list[str]
) -> None:
    filled = {k: v.format(bad=bad_files) if isinstance(v, str) else v for k, v in changes.items()}
    assert_refused(run(*explain_arguments(files, **filled), "--json"), *words)


def test_a_bad_output_name_is_refused_before_the_work(run: Any, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*_: object) -> None:
        raise AssertionError("already at work")

    monkeypatch.setattr("rocerf.cli.files.read_table", too_late)
    assert_refused(run(*explain_arguments(files, out="answers.txt")), ".csv, .json or .parquet")


@pytest.mark.parametrize("option", ["train", "label", "favourable", "people", "k"])
def test_a_missing_option(run: Any, files: Files, option: str) -> None:
    assert_refused(
        run(*explain_arguments(files, **{option: None})), f"Missing option '--{option}'", "rocerf explain --help"
    )


# --- attack and recheck: what an officer runs ----------------------------------------------------


def officer_arguments(files: Files, command: str, *extra: object) -> list[object]:
    given = ["--train", files.train, "--label", "granted", "--favourable", "yes", "--train-id-column", "row_id"]
    return [command, *given, *extra]


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["first_order", "retrained", "plain"])
def test_attack_tells_what_a_promise_is_worth(run: Any, files: Files, tmp_path: Path, promise: str) -> None:
    assert run(*explain_arguments(files, promise=promise, out="answers.json")).code == 0
    code, out, err = run(*officer_arguments(files, "attack", "--points", "answers.json", "--k", 3, "--json"))
    assert (code, err) == (0, "")
    assert SECRET not in out
    document = json.loads(out)
    answered = Recourses.from_json(tmp_path / "answers.json").answered.sum()
    assert len(document["points"]) == answered == 7
    assert document["survive"] == (7 if promise == "retrained" else 0)
    model = LogisticModel.fit(files.training_set())
    expected = rocerf.Adversary(model, 3, effort="thorough", seed=1).attack(
        Recourses.from_json(tmp_path / "answers.json").matrix[:7]
    )
    np.testing.assert_allclose([p["score_after"] for p in document["points"]], expected.scores, atol=1e-9)


def test_attack_reads_tables_and_writes_records(run: Any, files: Files, tmp_path: Path) -> None:
    arguments = officer_arguments(files, "attack", "--points", files.asking, "--id-column", "who", "--k", "2%")
    code, out, _ = run(*arguments, "--out", "attacks.csv", "--effort", "quick")
    assert code == 0
    assert "survived every deletion of at most 2 rows that was tried" in " ".join(out.split())
    written = (tmp_path / "attacks.csv").read_text("utf-8")
    assert SECRET not in written + out
    assert list(pd.read_csv(tmp_path / "attacks.csv")["person"]) == [f"person-{i}" for i in range(8)]
    code, out, _ = run(*arguments, "--out", "attacks.json", "--training-rows")
    assert SECRET in (tmp_path / "attacks.json").read_text("utf-8")


@pytest.mark.slow
def test_recheck_says_which_letters_hold(run: Any, files: Files, tmp_path: Path) -> None:
    assert run(*explain_arguments(files, promise="plain", out="plain.json"), "--training-rows").code == 0
    assert run(*explain_arguments(files, promise="retrained", out="kept.json"), "--training-rows").code == 0
    kept = Recourses.from_json(tmp_path / "kept.json")
    assert kept.worst_ids is not None
    (tmp_path / "request.txt").write_text("\n".join([*kept.worst_ids[0], ""]), encoding="utf-8")
    answers = {}
    for name in ("plain", "kept"):
        arguments = officer_arguments(files, "recheck", "--recourses", f"{name}.json", "--deleted", "request.txt")
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        assert SECRET not in out
        answers[name] = json.loads(out)
    assert [p["holds"] for p in answers["kept"]["people"]] == [True] * 7 + [None, None]
    assert answers["kept"]["within_promise"] is True
    assert answers["plain"]["people"][0]["holds"] is False
    assert answers["plain"]["people"][0]["person"] == "person-0"
    arguments = officer_arguments(files, "recheck", "--recourses", "plain.json", "--deleted", "request.txt")
    code, out, _ = run(*arguments, "--out", "letters.csv")
    assert "no longer holds: person person-0" in out
    assert list(pd.read_csv(tmp_path / "letters.csv").columns) == ["person", "holds", "score_before", "score_after"]


def test_recheck_and_attack_refuse_what_does_not_fit(run: Any, files: Files, tmp_path: Path) -> None:
    assert run(*explain_arguments(files, out="answers.json")).code == 0
    (tmp_path / "request.txt").write_text("no-such-row\n", encoding="utf-8")
    given = ["--recourses", "answers.json", "--deleted", "request.txt"]
    assert_refused(run(*officer_arguments(files, "recheck", *given)), "no-such-row")
    (tmp_path / "request.txt").write_text(f"{SECRET}-0001\n", encoding="utf-8")
    assert_refused(run(*officer_arguments(files, "recheck", *given, "--c", 0.01)), "same model, penalty and threshold")
    assert_refused(run(*officer_arguments(files, "recheck", *given, "--refit", "own")), "refit='own'")
    assert run(*officer_arguments(files, "recheck", *given, "--refit", "exact")).code == 0
    missing = ["--recourses", "answers.json", "--deleted", "nothing.txt"]
    assert_refused(run(*officer_arguments(files, "recheck", *missing)), "one row id a line")
    points = ["--points", "answers.json", "--k", 90]
    assert_refused(run(*officer_arguments(files, "attack", *points)), "smaller than the 90 training rows")
    assert_refused(run(*officer_arguments(files, "attack", "--points", "x.csv", "--k", 1)), "found none")
    attack = run(*officer_arguments(files, "attack", *points[:2], "--k", 1, "--out", "a.txt"))
    assert_refused(attack, ".csv, .json or .parquet")


def test_attack_refuses_answers_made_with_other_columns(run: Any, files: Files, tmp_path: Path) -> None:
    assert run(*explain_arguments(files, out="answers.json")).code == 0
    shuffled = pd.read_csv(files.train)[["row_id", "age", "income", "debt", "granted"]]
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    arguments = officer_arguments(files, "attack", "--points", "answers.json", "--k", 1)
    arguments[2] = tmp_path / "shuffled.csv"
    assert_refused(run(*arguments), "made with other rows")


def test_a_missing_id_and_features_with_our_names(run: Any, files: Files, tmp_path: Path) -> None:
    people = pd.read_csv(files.asking)
    people.loc[2, "who"] = None
    people.to_csv(tmp_path / "people.csv", index=False)
    assert_refused(run(*explain_arguments(files, people=tmp_path / "people.csv")), "an id in every row")
    for source, name in ((files.train, "t.csv"), (files.asking, "p.csv")):
        pd.read_csv(source).rename(columns={"debt": "cost", "age": "status"}).to_csv(tmp_path / name, index=False)
    done = run(*explain_arguments(files, train=tmp_path / "t.csv", people=tmp_path / "p.csv", out="answers.csv"))
    assert done.code == 0
    columns = list(pd.read_csv(tmp_path / "answers.csv").columns)
    assert columns == ["person", "recourse_status", "reason", "recourse_cost", "margin", "income", "cost", "status"]


def test_certified_from_the_command_line(run: Any, files: Files) -> None:
    found = as_json(run, files, promise="certified", k=1)
    assert found.certified[:7].all()
    assert "proven to stay accepted" in found.settings.sentence
    assert any("double precision" in sentence for sentence in found.settings.assumptions)


@pytest.mark.parametrize(
    ("arguments", "word", "shown_by"),
    [
        (["explian"], "No such command 'explian'. Did you mean 'explain'? See", "rocerf --help"),
        (["datasets", "--yaml"], "No such option: --yaml", "rocerf datasets --help"),
        (["--verbose"], "No such option: --verbose", "rocerf --help"),
        (["datasets", "german"], "unexpected extra argument", "rocerf datasets --help"),
        (["demo", "--trials", "0"], "--trials", "rocerf demo --help"),
        (["demo", "--trials", "some"], "--trials", "rocerf demo --help"),
        (["demo", "--seed", "-1"], "--seed", "rocerf demo --help"),
        (["explain", "--promise", "strong"], "'--promise': 'strong' is not one of", "rocerf explain --help"),
        (["explain", "--k"], "--k", "rocerf --help"),
    ],
)
def test_a_mistyped_command_line(run: Any, arguments: list[str], word: str, shown_by: str) -> None:
    assert_refused(run(*arguments), word, f"'{shown_by}'")


def test_the_package_is_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "rocerf", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("rocerf ")


def test_without_a_command_the_help_is_shown(run: Any) -> None:
    code, out, err = run()
    assert (code, err) == (2, "")
    for name in ("demo", "datasets", "explain", "attack", "recheck"):
        assert name in out


def test_a_mistake_of_ours_is_one_sentence_and_exit_code_1(
    run: Any, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the cat\nsat on it")

    monkeypatch.setattr("rocerf.cli.files.read_table", broken)
    monkeypatch.delenv("ROCERF_DEBUG", raising=False)
    code, out, err = run(*explain_arguments(files))
    assert (code, out) == (1, "")
    expected = (
        "rocerf: internal error (RuntimeError: the cat sat on it); "
        "please run it again with ROCERF_DEBUG=1 and report what it prints.\n"
    )
    assert err == expected


def test_a_mistake_of_ours_is_raised_when_debugging(
    run: Any, files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the cat sat on it")

    monkeypatch.setattr("rocerf.cli.files.read_table", broken)
    monkeypatch.setenv("ROCERF_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["rocerf", *map(str, explain_arguments(files))])
    with pytest.raises(RuntimeError, match="the cat sat on it"):
        main()
    assert capsys.readouterr().out == ""
    assert_refused(run("explian"), "No such command")  # the user's mistakes stay one sentence


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, typer.Abort])
def test_interrupting_exits_with_130(
    run: Any, files: Files, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise interruption

    monkeypatch.setattr("rocerf.cli.files.read_table", interrupted)
    assert run(*explain_arguments(files)) == (130, "", "rocerf: interrupted.\n")


# --- the documentation ----------------------------------------------------------------------------


def documented() -> dict[str, str]:
    """Command -> its section of docs/cli.md."""
    parts = re.split(r"^## rocerf (\S+)$", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def real_options() -> dict[str, set[str]]:
    """Command -> its options, as the command line knows them."""
    command: Any = typer.main.get_command(app)
    return {
        name: {option for parameter in sub.params for option in parameter.opts if option.startswith("--")} - {"--help"}
        for name, sub in command.commands.items()
    }


def test_every_command_is_documented_with_an_example() -> None:
    sections = documented()
    assert list(sections) == list(real_options())
    for name, text in sections.items():
        assert f"$ {EXAMPLES[name]}\n" in text


def test_every_help_ends_in_an_example_that_parses(run: Any) -> None:
    """The example is the documented one, and every option in it is one of the command's."""
    command: Any = typer.main.get_command(app)
    for name, sub in command.commands.items():
        program, called, *arguments = shlex.split(EXAMPLES[name])
        assert (program, called) == ("rocerf", name)
        context = sub.make_context(name, arguments)
        assert context.params
        shown = run(name, "--help").out
        assert "".join(EXAMPLES[name].split()) in re.sub(r"[\s\\]", "", shown)


@pytest.mark.parametrize("name", sorted(real_options()))
def test_every_option_is_documented_and_no_other(name: str) -> None:
    rows = set(re.findall(r"^\| `(--[a-z-]+)` \|", documented()[name], flags=re.MULTILINE))
    assert rows == real_options()[name]


@pytest.mark.parametrize("choices", ["CostName", "PromiseName", "SolverName", "PreprocessingName", "LetterFormat"])
def test_every_choice_of_an_option_is_documented(choices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rocerf", "explain"])
    for choice in getattr(options, choices):
        assert f"`{choice}`" in documented()["letter" if choices == "LetterFormat" else "explain"]


def test_choices_follow_the_registries(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered from outside can be asked for by name, and no list here knows of it."""
    from rocerf.recourse.costs.registry import COSTS

    monkeypatch.setitem(COSTS, "of_my_own", COSTS["l1"])
    assert "of_my_own" in run("explain", "--help").out


def test_every_language_of_letters_is_documented() -> None:
    assert all(f"`{code}`" in documented()["letter"] for code in known_languages())


def test_the_documented_example_runs(run: Any, files: Files, tmp_path: Path) -> None:
    pd.read_csv(files.train).drop(columns="row_id").to_csv(tmp_path / "train.csv", index=False)
    files.people.to_csv(tmp_path / "refused.csv", index=False)
    example = re.search(r"^\$ rocerf (explain .*)$", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    assert example is not None
    code, _, err = run(*example[1].split())
    assert (code, err) == (0, "")
    assert (tmp_path / "answers.csv").is_file()


def test_every_exit_code_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    for code in (0, 1, 2, 130):
        assert re.search(rf"^\| {code} \|", text, flags=re.MULTILINE)
    assert "ROCERF_DEBUG=1" in text
