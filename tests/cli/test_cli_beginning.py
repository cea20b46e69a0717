"""From a table nobody has prepared to letters: init, fit, guessed rules, forms of tables, settings of a project."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rocerf import FeatureSchema, LogisticModel, Recourses, Rocerf
from rocerf.cli.fitting import TOLERANCE, fitted_here, looks_like_ids, unusable
from rocerf.models.sklearn.skops_file import load_skops_pipeline


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Loans with texts, gaps, ids, an amount in hundreds, and a name that nobody can learn from."""
    rng = np.random.default_rng(3)
    n = 150
    rows = pd.DataFrame(
        {
            "loan": [f"L{i:04d}" for i in range(n)],
            "amount": rng.integers(5, 90, n) * 100,
            "rate": rng.normal(4.0, 1.0, n).round(2),
            "home": rng.choice(["own", "rent", "free"], n),
            "age": rng.integers(19, 70, n),
            "clerk": [f"clerk {i % 120}" for i in range(n)],
            "guarantor": rng.choice([0.0, 1.0, np.nan], n, p=[0.5, 0.4, 0.1]),
        }
    )
    score = (rows["home"] == "own") * 1.5 - rows["rate"] + 3 + rows["guarantor"].fillna(0) + rng.logistic(size=n)
    rows["verdict"] = np.where(score > 0, "good", "bad")
    rows.loc[rng.choice(n, 8, replace=False), "home"] = None
    return rows


@pytest.fixture
def begun(run: Any, table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "loans.csv", index=False)
    code, out, err = run("init", "loans.csv", "--label", "verdict", "--out", "project", "--private", "age")
    assert (code, err) == (0, ""), err
    assert "Taken for the label that people hope for: 'good'" in out
    assert "Taken for the ids of the rows: 'loan'" in out
    assert "Left out: 'clerk', since it has 120 different texts" in out
    return tmp_path / "project"


def options_of(text: str) -> list[str]:
    return shlex.split(text)


def test_people_are_accepted_from_the_threshold_said(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    rows = table.drop(columns=["loan", "clerk"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.drop(columns="verdict").to_csv(tmp_path / "people.csv", index=False)
    base = ["--train", "rows.csv", "--label", "verdict", "--favourable", "good"]
    asked = ["explain", *base, "--people", "people.csv", "--k", "1", "--promise", "plain", "--out", "answers.json"]
    for threshold in ("0.5", "0.8"):
        code, _, err = run(*asked, "--fit", "--threshold", threshold)
        assert code == 0, err
        answers = Recourses.from_json(tmp_path / "answers.json")
        pipeline = load_skops_pipeline(tmp_path / "answers-pipeline.skops")
        given = answers.points.loc[answers.answered]
        assert len(given) > 5
        chances = pipeline.predict_proba(given)[:, list(pipeline.classes_).index("good")]
        assert (chances >= float(threshold)).all()
        assert chances.min() < float(threshold) + 0.02
    kept = ["--pipeline", "answers-pipeline.skops", "--threshold", "0.8"]
    assert run("attack", *base, "--points", "answers.json", "--k", "1", *kept).code == 0
    refused = run(*asked, "--model", "model.npz", "--threshold", "0.8")
    assert (refused.code, "drop it" in refused.err) == (2, True)


def test_a_threshold_that_the_classifier_does_not_have_is_refused(
    run: Any, table: pd.DataFrame, tmp_path: Path
) -> None:
    """0.5 too, which the library takes for nothing said: people would be told they are accepted already."""
    rows = table.drop(columns=["loan", "clerk"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.drop(columns="verdict").head(5).to_csv(tmp_path / "people.csv", index=False)
    inner = FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="good")
    numbers = rows.drop(columns="verdict").select_dtypes("number").columns
    steps = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(), StandardScaler()), list(numbers))])
    fitted = make_pipeline(steps, inner).fit(rows[numbers], rows["verdict"])
    skops.io.dump(fitted, tmp_path / "own.skops")
    base = ["--train", "rows.csv", "--label", "verdict", "--favourable", "good", "--pipeline", "own.skops"]
    asked = ["explain", *base, "--people", "people.csv", "--k", "1", "--promise", "plain"]
    for threshold in ("0.5", "0.4"):
        code, _, err = run(*asked, "--threshold", threshold)
        assert (code, "has itself, 0.3" in err) == (2, True), err
    assert run(*asked).code == 0


# --- init and projects ----------------------------------------------------------------------------


@pytest.mark.slow
def test_every_call_of_a_project_runs_as_written(begun: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(begun)
    calls = [line for line in (begun / "calls.sh").read_text("utf-8").splitlines() if line.startswith("rocerf ")]
    assert len(calls) == 8
    for call in calls:
        code, _, err = run(*options_of(call)[1:])
        assert code == 0, f"{call}: {err}"
    answers = Recourses.from_json(begun / "answers.json")
    assert answers.answered.any()
    assert (answers.settings.cost, answers.settings.max_changes) == ("l2", 3)  # few changes, none of them huge
    letters = [path.read_text("utf-8") for path in (begun / "letters").iterdir()]
    assert len(letters) == len(answers) == 20
    assert not any("age:" in letter for letter in letters)
    assert any("not listed here" in letter for letter in letters)
    assert not any("is not at hand" in letter for letter in letters)  # they are written with the pipeline that was kept
    assert (begun / "answers-pipeline.skops").is_file()


def test_the_schema_of_a_project_is_guessed_and_says_what_to_decide(begun: Path, table: pd.DataFrame) -> None:
    text = (begun / "schema.yaml").read_text("utf-8")
    schema = FeatureSchema.from_yaml(begun / "schema.yaml")
    assert schema.names == ("amount", "rate", "home", "age", "guarantor")
    assert (schema["amount"].step, schema["rate"].step) == (100.0, None)
    assert schema["home"].categories == ("free", "own", "rent", None)
    assert (schema["age"].direction, schema["age"].private) == ("fixed", True)
    assert schema.guessed is not None
    for said in ("Left out: clerk", "All values are multiples of 100", "as --private says", "no value"):
        assert said in text
    assert not schema.validate(table[list(schema.names)].dropna())


def test_the_past_and_the_family_are_held_fixed_and_times_are_asked_about() -> None:
    from rocerf.cli.schema_comments import commented_schema

    rows = pd.DataFrame(
        {
            "delinquencies_2y": [0, 2, 1],
            "MaritalStatus": ["single", "married", "married"],
            "years_in_job": [1.5, 3.0, 9.2],
            "loan_amount": [1500.0, 70_000.0, 3000.0],  # so a CSV has amounts without gaps: floats
            "utilisation": [0.25, 0.5, 1.0],
        }
    )
    text = commented_schema(rows, {}, [], [])
    schema = FeatureSchema.from_yaml(text)
    assert [feature.direction for feature in schema] == ["fixed", "fixed", "any", "any", "any"]
    assert [feature.step for feature in schema] == [None, None, None, 500.0, None]
    lines = text.splitlines()
    asked = [place for place, line in enumerate(lines) if "only passes by waiting?" in line]
    assert len(asked) == 1
    assert "years_in_job" in lines[asked[0] + 1]


def test_a_number_that_may_be_a_code_for_no_value_is_asked_about() -> None:
    from rocerf.cli.schema_comments import commented_schema

    rng = np.random.default_rng(0)
    months = np.r_[rng.integers(12, 480, 398), 999_999, 999_999].astype(float)
    debt = np.r_[rng.lognormal(8, 1.5, 399), -99_999_999.0]
    text = commented_schema(
        pd.DataFrame({"months": months, "debt": debt, "income": rng.lognormal(8, 1.5, 400)}), {}, [], []
    )
    asked = [line for line in text.splitlines() if "a code for no value?" in line]
    assert [line.partition(", far")[0] for line in asked] == [
        "# 2 of 400 rows have 999999",
        "# 1 of 400 rows have -99999999",
    ]


@pytest.mark.parametrize(
    ("name", "fixed", "private"),
    [
        ("MALE", True, True),
        ("applicant_race", True, True),
        ("Geschlecht", True, True),
        ("Staatsangehörigkeit", True, True),
        ("MARRIED", True, False),
        ("juv_fel_count", True, False),
        ("Alter", True, False),
        ("age", True, False),
        ("Wohnung", False, False),
        ("wage", False, False),
        ("marketing", False, False),
    ],
)
def test_what_nobody_can_change_is_fixed_and_what_hurts_is_not_printed(name: str, fixed: bool, private: bool) -> None:
    from rocerf.cli.schema_comments import commented_schema

    text = commented_schema(pd.DataFrame({name: ["a", "b", "a"], "x": [1, 2, 3]}), {}, [], [])
    feature = FeatureSchema.from_yaml(text)[name]
    assert (feature.direction == "fixed", feature.private) == (fixed, private)
    assert ("private: false prints it" in text, "private: true keeps it" in text) == (private, fixed and not private)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["0", "1", "2"], "got 3: 0, 1, 2"),
        (["good", "good", "good"], "got 1: good"),
        (["good", "bad", ""], "got 1 row without one"),
    ],
)
def test_labels_that_no_command_could_use_are_refused_before_anything_is_written(
    run: Any, tmp_path: Path, labels: list[str], said: str
) -> None:
    pd.DataFrame({"x": [1, 2, 3], "y": labels}).to_csv(tmp_path / "rows.csv", index=False)
    code, out, err = run("init", "rows.csv", "--label", "y", "--favourable", labels[0])
    assert (code, out) == (2, "")
    assert said in err
    assert not Path("project").exists()


def test_people_to_try_are_the_rows_own_and_private(begun: Path, table: pd.DataFrame) -> None:
    people = pd.read_csv(begun / "people.csv")
    refused = table[table["verdict"] == "bad"].head(20).drop(columns="verdict").reset_index(drop=True)
    pd.testing.assert_frame_equal(people, refused, check_dtype=False)
    assert stat.S_IMODE((begun / "people.csv").stat().st_mode) == 0o600


def test_typed_options_come_before_those_of_a_project(begun: Path, run: Any) -> None:
    code, out, err = run("--project", begun, "explain", "--promise", "plain", "--max-changes", 1, "--json")
    assert code == 0, err
    found = Recourses.from_json(out)
    assert (found.settings.promise, found.settings.max_changes) == ("plain", 1)
    assert max(len(answer.changes) for answer in found) == 1
    assert (begun / "answers.json").is_file()  # a path of the folder, whatever folder we are in


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("colour: red", ["got 'colour'", "without the dashes"]),
        ("explain: {colour: red}", ["options of rocerf explain", "got 'colour'"]),
        ("explain: 3", ["under 'explain'", "got 3"]),
    ],
)
def test_settings_that_mean_nothing_are_refused(begun: Path, run: Any, line: str, words: list[str]) -> None:
    (begun / "settings.yaml").write_text(f"{line}\n", "utf-8")
    code, out, err = run("--project", begun, "explain")
    assert (code, out) == (2, "")
    assert all(word in err for word in words), err


def test_no_project_and_no_clear_label_are_said(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    table.assign(verdict=(table["verdict"] == "good").astype(int)).to_csv(tmp_path / "loans.csv", index=False)
    assert "found none; rocerf init writes one" in run("--project", "nothing", "explain").err
    assert "Expected --favourable" in run("init", "loans.csv", "--label", "verdict").err
    asked = run("init", "loans.csv", "--label", "verdict", "--favourable", 1, "--people", "nobody.csv")
    assert "Expected a file at nobody.csv, found none" in asked.err
    assert run("init", "loans.csv", "--label", "verdict", "--favourable", 1).code == 0
    assert "a new folder" in run("init", "loans.csv", "--label", "verdict", "--favourable", 1).err


def test_incomes_that_all_differ_are_no_ids_and_a_schema_leaves_out_what_fit_does(run: Any) -> None:
    n = 150
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(
        {
            "row": np.arange(1000, 1000 + n),
            "income": rng.permutation(np.arange(n) * 311 + 9_000),
            "customer_no": rng.permutation(np.arange(n) * 997 + 5),
            "day": [f"2026-01-{i:03d}" for i in range(n)],
            "home": rng.choice(["own", "rent"], n),
            "ok": rng.choice([0, 1], n),
        }
    )
    assert looks_like_ids(rows) == ["row", "customer_no", "day"]
    assert list(unusable(rows)) == ["row", "customer_no", "day"]
    assert list(unusable(rows, chosen=True)) == ["day"]
    rows.to_csv("rows.csv", index=False)
    code, _, err = run("schema", "--train", "rows.csv", "--label", "ok", "--out", "s.yaml")
    assert code == 0, err
    assert "Left out: 'day'" in err
    assert "Held fixed: 'customer_no'" in err
    schema = FeatureSchema.from_yaml(Path("s.yaml"))
    assert [(f.name, str(f.direction)) for f in schema if f.name != "home"] == [
        ("row", "fixed"),
        ("income", "any"),
        ("customer_no", "fixed"),
    ]
    base = options_of(
        "explain --train rows.csv --label ok --favourable 1 --people rows.csv --k 1 --promise plain --fit"
    )
    done = run(*base, "--schema", "s.yaml", "--json")  # what was written can be used
    assert done.code == 0, done.err
    pd.DataFrame({"other": [1, 2], "home": ["own", "rent"], "ok": [0, 1]}).to_csv("other.csv", index=False)
    refused = run(*base[:2], "other.csv", *base[3:], "--schema", "s.yaml").err
    assert "the columns of the schema among the training rows, got none named 'row', 'income'" in refused


# --- fit --------------------------------------------------------------------------------------------


def test_a_pipeline_fitted_here_is_the_optimum_and_the_same_again(table: pd.DataFrame) -> None:
    frame, labels = table.drop(columns=["loan", "verdict"]), table["verdict"].to_numpy()
    one, two = fitted_here(frame, labels), fitted_here(frame, labels)
    assert isinstance(one.pipeline, Pipeline)
    assert one.columns == ("amount", "rate", "home", "age", "guarantor")
    X = one.pipeline[:-1].transform(frame[list(one.columns)])
    model = one.pipeline[-1]
    chance = 1 / (1 + np.exp(-(X @ model.coef_[0] + model.intercept_[0])))
    gradient = X.T @ (chance - (labels == model.classes_[1])) + model.coef_[0]
    assert np.abs(gradient).max() < 1e4 * TOLERANCE
    np.testing.assert_array_equal(model.coef_, two.pipeline[-1].coef_)
    said = " ".join(one.sentences)
    assert "3 columns of numbers" in said or "4 columns of numbers" in said
    accuracy = float(re.search(r"cross-validation: ([0-9.]+)%", said)[1])  # type: ignore[index]
    assert 55 < accuracy < 95
    assert "Left out of the model: 'clerk'" in said


def test_a_column_that_tells_the_label_is_asked_about(table: pd.DataFrame) -> None:
    frame, labels = table.drop(columns=["loan", "verdict", "clerk"]), table["verdict"].to_numpy()
    assert not any("in other words" in sentence for sentence in fitted_here(frame, labels).sentences)
    paid = np.where(labels == "good", "in full", "not at all")
    said = fitted_here(frame.assign(paid_back=paid), labels).sentences[-1]
    assert "does a column say the label in other words" in said
    assert "'paid_back' decides most here" in said


def test_explain_fits_says_so_and_keeps_the_pipeline(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    table.drop(columns="clerk").to_csv(tmp_path / "loans.csv", index=False)
    table[table["verdict"] == "bad"].head(6).to_csv(tmp_path / "people.csv", index=False)
    base = options_of("--train loans.csv --label verdict --favourable good --train-id-column loan")
    asked = ["explain", *base, *options_of("--people people.csv --id-column loan --k 2 --promise first_order")]
    refused = run(*asked)
    assert refused.code == 2
    assert "got texts in 'home'" in refused.err
    assert "--fit" in refused.err
    assert "--pipeline" in refused.err
    code, out, err = run(*asked, "--fit", "--out", "answers.json")
    assert code == 0, err
    assert "Accuracy on rows it was not fitted on" in err
    assert "Nothing, age and the like included, was held fixed" in out
    given = Recourses.from_json("answers.json")
    load_skops_pipeline(Path("answers-pipeline.skops"))
    by_file = run(*asked, "--pipeline", "answers-pipeline.skops", "--json")
    assert by_file.code == 0, by_file.err
    np.testing.assert_array_equal(Recourses.from_json(by_file.out).matrix, given.matrix)
    for call in (["attack", *base, "--points", "answers.json", "--k", 2, "--effort", "quick"],):
        done = run(*call, "--fit", "--json")
        assert done.code == 0, done.err
        assert len(json.loads(done.out)["points"]) == int(given.answered.sum())
    Path("gone.txt").write_text("L0003\n", "utf-8")
    assert run("recheck", *base, "--recourses", "answers.json", "--deleted", "gone.txt", "--fit").code == 0
    both = run(*asked, "--fit", "--pipeline", "answers-pipeline.skops")
    assert "got --pipeline and --fit" in both.err


# --- guessed rules ----------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Whole numbers, a decimal one, and a category as get_dummies writes it."""
    rng = np.random.default_rng(8)
    n = 160
    rows = pd.DataFrame({"months": rng.integers(1, 60, n), "debt": rng.normal(size=n).round(3)})
    rows = rows.join(pd.get_dummies(pd.Series(rng.choice(["own", "rent", "free"], n)), prefix="home", dtype=int))
    score = rows["home_own"] + 0.05 * rows["months"] - rows["debt"] - 2
    rows["ok"] = (score + rng.logistic(size=n) > 0).astype(int)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows[rows["ok"] == 0].head(12).drop(columns="ok").to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


ASKED = "explain --train rows.csv --label ok --favourable 1 --people people.csv --k 2 --promise first_order"


def test_without_a_schema_rules_are_guessed_and_told(run: Any, numbers: Path) -> None:
    code, out, err = run(*options_of(ASKED), "--out", "answers.json")
    assert (code, err) == (0, "")
    assert "guessed from the training rows: 1 whole number, 1 other number" in out
    assert "the 0/1 columns of 'home' as one choice each" in out
    assert "Nothing, age and the like included, was held fixed" in out
    given = Recourses.from_json("answers.json")
    rows = pd.read_csv("rows.csv")
    months, debt, home = given.matrix[:, 0], given.matrix[:, 1], given.matrix[:, 2:]
    done = given.answered
    assert done.any()
    assert (months[done] % 1 == 0).all()
    assert months[done].max() <= rows["months"].max() + 1
    assert debt[done].min() >= rows["debt"].min() - 0.1
    np.testing.assert_array_equal(home[done].sum(axis=1), 1.0)
    free = run(*options_of(ASKED), "--free", "--json")
    assert free.code == 0
    model = LogisticModel.fit(rows_of(rows))
    people = pd.read_csv("people.csv")
    plain = FeatureSchema.free(people.columns)
    for name in ("home_free", "home_own", "home_rent"):
        plain = plain.edit(name, kind="binary")
    expected = Rocerf(model, 2, promise="first_order", schema=plain).explain(people)
    np.testing.assert_allclose(Recourses.from_json(free.out).matrix, expected.matrix, rtol=1e-9)
    held = run(*options_of(ASKED), "--immutable", "months").out
    assert "Nothing but 'months' was held fixed" in held
    FeatureSchema.from_frame(people).to_yaml("s.yaml")
    assert "got both" in run(*options_of(ASKED), "--free", "--schema", "s.yaml").err


def rows_of(rows: pd.DataFrame) -> Any:
    from rocerf import TrainingSet

    return TrainingSet(rows.drop(columns="ok"), rows["ok"].to_numpy(), favourable=1)


def test_more_than_five_changes_are_remarked(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 9))
    rows = pd.DataFrame(X, columns=[f"x{i}" for i in range(9)]).round(4)
    rows["ok"] = (X.sum(axis=1) + rng.logistic(size=120) > 0).astype(int)
    rows.to_csv("rows.csv", index=False)
    rows[rows["ok"] == 0].head(5).to_csv("people.csv", index=False)
    out = run(*options_of(ASKED)).out
    assert re.search(r"answers ask for more than 5 changes at once, up to 9: --max-changes 5", " ".join(out.split()))
    assert "changes at once" not in run(*options_of(ASKED), "--max-changes", 5).out


# --- tables in every form -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet", "json", "jsonl"])
def test_every_form_of_a_table_gives_the_same_answers(run: Any, numbers: Path, form: str) -> None:
    expected = Recourses.from_json(run(*options_of(ASKED), "--json").out)
    for name in ("rows", "people"):
        frame = pd.read_csv(f"{name}.csv")
        if form == "parquet":
            frame.to_parquet(f"{name}.parquet")
        elif form != "csv":
            frame.to_json(f"{name}.{form}", orient="records", lines=form == "jsonl")
    done = run(*options_of(ASKED.replace(".csv", f".{form}")), "--json")
    assert done.code == 0, done.err
    np.testing.assert_allclose(Recourses.from_json(done.out).matrix, expected.matrix, rtol=1e-9)
    if form == "jsonl":
        return
    done = run(*options_of(ASKED), "--out", f"answers.{form}")
    assert done.code == 0, done.err
    if form == "json":
        document = json.loads(Path("answers.json").read_text("utf-8"))
        for person, answer in zip(document["people"], expected, strict=True):
            told = [(c["feature"], c["from"], c["to"]) for c in person["changes"]]
            assert told == [(c.feature, c.before, c.after) for c in answer.changes]
    else:
        reader = pd.read_parquet if form == "parquet" else pd.read_csv
        found: Any = reader(f"answers.{form}")
        np.testing.assert_allclose(found[list(expected.columns)].to_numpy(float), expected.matrix, rtol=1e-9)
        assert list(found.columns[:5]) == ["person", "status", "reason", "cost", "margin"]
        if expected.answered.all():
            assert found["months"].dtype.kind == "i"


def test_texts_in_json_stay_texts_and_nested_cells_are_refused(run: Any, numbers: Path) -> None:
    people = pd.read_csv("people.csv").assign(who=[f"{i:03d}" for i in range(12)])
    people.to_json("people.json", orient="records")
    named = run(*options_of(ASKED.replace("people.csv", "people.json")), "--id-column", "who", "--json")
    assert Recourses.from_json(named.out).names[:2] == ("000", "001")
    Path("people.json").write_text('[{"months": [1, 2]}]', "utf-8")
    assert "got a list or an object in 'months'" in run(*options_of(ASKED.replace("people.csv", "people.json"))).err
    Path("people.json").write_text('{"months": 1}', "utf-8")
    assert "Expected a list of rows" in run(*options_of(ASKED.replace("people.csv", "people.json"))).err


@pytest.mark.parametrize("name", ["gone.txt", "gone.json", "gone.parquet"])
def test_ids_to_delete_in_every_form(run: Any, numbers: Path, name: str) -> None:
    assert run(*options_of(ASKED), "--out", "answers.json").code == 0
    if name.endswith("txt"):
        Path(name).write_text("3\n5\n", "utf-8")
    elif name.endswith("json"):
        Path(name).write_text("[3, 5]", "utf-8")
    else:
        pd.DataFrame({"row": [3, 5]}).to_parquet(name)
    asked = options_of("recheck --train rows.csv --label ok --favourable 1 --recourses answers.json --deleted")
    done = run(*asked, name, "--out", "found.parquet")
    assert done.code == 0, done.err
    assert "after deleting 2 rows" in done.out
    assert len(pd.read_parquet("found.parquet")) == 12


def test_compare_takes_a_schema_and_a_pipeline(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    rows = table.drop(columns=["clerk", "loan"])
    rows.to_csv("rows.csv", index=False)
    rows[rows["verdict"] == "bad"].head(5).drop(columns="verdict").to_csv("people.csv", index=False)
    FeatureSchema.from_frame(rows.drop(columns="verdict"), immutable=["age", "home"]).to_yaml("schema.yaml")
    asked = options_of("compare --train rows.csv --label verdict --favourable good --people people.csv --k 2")
    asked += options_of("--methods scfe,retrained --trials 2 --effort quick --fit --schema schema.yaml --out found")
    code, out, err = run(*asked, "--format", "parquet")
    assert code == 0, err
    assert all(len(line) <= 80 for line in out.split("\n") if "│" in line)
    found = pd.read_parquet("found/compare.parquet").set_index("method")
    assert found.loc["retrained", "answered"] >= 1
    assert len(pd.read_parquet("found/trials.parquet")) == 4
    # Nobody moves in what is held fixed: two of five attributes, and five columns of schema space.
    assert found["changed"].max() <= 3


# --- around the commands --------------------------------------------------------------------------------


def test_version_and_help(run: Any) -> None:
    from rocerf.version import __version__

    assert run("--version") == (0, f"rocerf {__version__}\n", "")
    shown = run("--help").out
    assert "--install-completion" in shown
    assert "--project" in shown


@pytest.mark.parametrize(("words", "offered"), [("ex", ["explain"]), ("explain --promise fi", ["first_order"])])
def test_completion_offers_commands_and_choices(words: str, offered: list[str]) -> None:
    """In a process of its own, since the program's name is part of what a shell asks by."""
    code = "import sys; sys.argv = ['rocerf']; from rocerf.cli import main; main()"
    asked = {
        "_ROCERF_COMPLETE": "complete_bash",
        "COMP_WORDS": f"rocerf {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == offered
