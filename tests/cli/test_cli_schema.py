"""From a raw table to a letter on the command line: schema, pipelines, prices, alternatives, letters."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import yaml
from jsonschema import Draft202012Validator
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from skops.io import dump

import rocerf
from command_line import Run
from letter_writing import NO, SECRET, YES, as_read_by_programs, raw_pipeline, raw_schema, raw_table
from rocerf import CostTable, FeatureSchema, Letter, Recourses, Rocerf
from rocerf.audit.recheck import recheck
from rocerf.deletion.adversary import Adversary
from rocerf.letters.files import letter_file_names
from rocerf.letters.letter import letter_schema

pytestmark = pytest.mark.slow  # minutes of retraining and of commands


class Files(NamedTuple):
    folder: Path
    train: pd.DataFrame
    labels: Any
    people: pd.DataFrame

    def __getitem__(self, name: Any) -> Any:
        return self.folder / name


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """200 raw training rows with telltale ids, 12 applicants, a fitted pipeline and a schema with words."""
    folder = tmp_path_factory.mktemp("raw")
    table, labels = raw_table(212)
    train, people = table[:200], table[200:].set_axis([f"person-{i}" for i in range(12)])
    people.iloc[3, people.columns.get_loc("home")] = "castle"
    train.assign(granted=labels[:200]).to_csv(folder / "train.csv", index_label="row_id")
    people.to_csv(folder / "people.csv", index_label="who")
    dump(raw_pipeline(train, labels[:200]), folder / "pipeline.skops")
    raw_schema(train).to_yaml(folder / "schema.yaml")
    numeric = train[["income", "debt", "kids", "phone"]].fillna(4000.0)
    numeric.assign(granted=labels[:200]).to_csv(folder / "numbers.csv", index_label="row_id")
    people[["income", "debt", "kids", "phone"]].to_csv(folder / "numeric_people.csv", index_label="who")
    return Files(folder, train, labels[:200], people)


def explain(files: Files, **changes: object) -> list[object]:
    """A good ``rocerf explain`` with a pipeline, some options replaced; None drops one."""
    options: dict[str, object] = {
        "train": files["train.csv"],
        "label": "granted",
        "favourable": YES,
        "people": files["people.csv"],
        "k": 2,
        "id-column": "who",
        "train-id-column": "row_id",
        "pipeline": files["pipeline.skops"],
        "schema": files["schema.yaml"],
    }
    options.update({name.replace("_", "-"): value for name, value in changes.items()})
    return ["explain", *(part for name, v in options.items() if v is not None for part in (f"--{name}", v))]


def numeric(files: Files, **changes: object) -> list[object]:
    plain = {"train": files["numbers.csv"], "people": files["numeric_people.csv"], "pipeline": None, "schema": None}
    return explain(files, **{**plain, "promise": "first_order", **changes})


def answers(run: Any, arguments: list[object]) -> Recourses:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return Recourses.from_json(out)


def assert_refused(result: Run, *words: str) -> None:
    """Exit code 2, one sentence on standard error, nothing on standard output."""
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("rocerf: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def model_of(files: Files, schema: FeatureSchema | None = None, **options: Any) -> Any:
    fitted = raw_pipeline(files.train, files.labels)
    read = pd.read_csv(files["train.csv"], index_col="row_id").drop(columns="granted")
    return rocerf.from_pipeline(fitted, read, files.labels, schema=schema, favourable=YES, **options)


def assert_same(found: Recourses, expected: Recourses) -> None:
    assert found.statuses == expected.statuses
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=1e-6, atol=1e-6)
    assert found.settings == expected.settings


# --- schema ---------------------------------------------------------------------------------------


def schema_arguments(files: Files, *extra: object) -> list[object]:
    return ["schema", "--train", files["train.csv"], "--label", "granted", "--train-id-column", "row_id", *extra]


def test_schema_guesses_prints_and_writes(run: Any, files: Files, tmp_path: Path) -> None:
    rules = ["--immutable", "age", "--immutable", "home", "--increase-only", "income", "--decrease-only", "debt"]
    code, out, err = run(*schema_arguments(files, *rules, "--quantiles", "0.1", "0.9", "--out", "new/schema.yaml"))
    assert (code, err) == (0, "")
    written = FeatureSchema.from_yaml(tmp_path / "new" / "schema.yaml")
    read = pd.read_csv(files["train.csv"], index_col="row_id").drop(columns="granted")
    expected = FeatureSchema.from_frame(
        read, immutable=["age", "home"], increase_only=["income"], decrease_only=["debt"], quantiles=(0.1, 0.9)
    )
    assert written == expected
    assert str(expected) in out
    assert "Written: new/schema.yaml" in out
    assert written["kids"].kind == "integer"
    assert SECRET not in out


def test_schema_takes_whole_numbers_at_one_s_word(run: Any, files: Files) -> None:
    code, out, _ = run(*schema_arguments(files, "--integer", "debt", "--json"))
    assert code == 0
    kinds = {feature["name"]: feature["kind"] for feature in json.loads(out)["features"]}
    assert kinds == {
        "income": "continuous",
        "debt": "integer",
        "kids": "integer",
        "home": "categorical",
        "phone": "binary",
        "age": "integer",
    }


def test_an_edited_schema_is_held_against_the_rows(run: Any, files: Files, tmp_path: Path) -> None:
    code, out, err = run(*schema_arguments(files, "--check", files["schema.yaml"]))
    assert (code, err) == (0, "")
    missing = int(files.train["debt"].isna().sum())
    assert missing > 0
    assert f"{missing} of 200 rows have no value of 'debt'" in out
    edited = raw_schema(files.train).edit("income", upper=30_000).relate("debt <= income")
    edited.to_yaml(tmp_path / "edited.yaml")
    code, out, _ = run(*schema_arguments(files, "--check", "edited.yaml", "--json"))
    assert code == 0
    document = json.loads(out)
    known = files.train.dropna()
    above = int((known["income"] > 30_000).sum())
    assert above > 0
    assert any(
        f"{above} of {len(known)} rows are outside the bounds of 'income'" in said for said in document["findings"]
    )
    assert document["rows"] == 200
    document = yaml.safe_load((tmp_path / "edited.yaml").read_text("utf-8"))
    document["features"] = [feature for feature in document["features"] if feature["name"] != "kids"]
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(document), "utf-8")
    code, out, _ = run(*schema_arguments(files, "--check", "short.yaml"))
    assert code == 0
    assert "columns that the schema does not know: kids" in out


def test_a_schema_that_cannot_be_is_refused(run: Any, files: Files, tmp_path: Path) -> None:
    wrong = raw_schema(files.train).edit("home", categories=("rent", "own"))
    wrong.to_yaml(tmp_path / "wrong.yaml")
    assert_refused(
        run(*schema_arguments(files, "--check", "wrong.yaml")), "rows that are values of the schema", "'housing'"
    )
    (tmp_path / "none.yaml").write_text("income: 3\n", "utf-8")
    assert_refused(run(*schema_arguments(files, "--check", "none.yaml")), "rocerf-schema/1")
    assert_refused(run(*schema_arguments(files, "--check", "missing.yaml")), "schema", "No such file")
    assert_refused(run(*schema_arguments(files, "--check", "none.yaml", "--immutable", "age")), "--check alone")
    assert_refused(run(*schema_arguments(files, "--check", "none.yaml", "--quantiles", "0", "0.9")), "--check alone")
    assert_refused(run(*schema_arguments(files, "--out", "schema.txt")), ".yaml, got schema.txt")
    assert_refused(run(*schema_arguments(files, "--immutable", "height")), "'height'")
    assert_refused(run(*schema_arguments(files, "--immutable", "age", "--increase-only", "age")), "'age' listed twice")
    assert_refused(run(*schema_arguments(files, "--quantiles", "0.9", "0.1")), "quantiles")
    assert_refused(run("schema", "--train", files["train.csv"], "--label", "grant"), "label column 'grant'")


# --- explain: pipelines ---------------------------------------------------------------------------


def test_explain_with_a_pipeline_gives_the_library_s_answers(run: Any, files: Files) -> None:
    found = answers(run, explain(files))
    model = model_of(files, FeatureSchema.from_yaml(files["schema.yaml"]))
    expected = Rocerf(model, 2).explain(files.people)
    assert_same(found, expected)
    assert found.answered.sum() >= 3
    assert found.names == tuple(files.people.index)
    assert found.statuses[3].code == "invalid_input"
    assert "castle" in found.reasons[3]
    frame = found.to_frame()
    assert set(frame["home"].dropna()) <= set(files.train["home"])


def about_deletions(files: Files, verb: str, *options: object) -> list[object]:
    """A command about the same pipeline and rows as :func:`explain`."""
    rows = ["--train", files["train.csv"], "--label", "granted", "--favourable", YES, "--train-id-column", "row_id"]
    return [verb, *rows, "--pipeline", files["pipeline.skops"], *options, "--json"]


@pytest.mark.slow
@pytest.mark.parametrize("preprocessing", ["frozen", "refitted"])
def test_letters_about_a_pipeline_are_rechecked(run: Any, files: Files, preprocessing: str) -> None:
    given = answers(run, explain(files, preprocessing=preprocessing, out="answers.json"))
    model = model_of(files, FeatureSchema.from_yaml(files["schema.yaml"]), preprocessing=preprocessing)
    gone = files.train.index[:5].tolist()
    Path("gone.txt").write_text("\n".join(map(str, gone)), "utf-8")
    options = ["--recourses", "answers.json", "--deleted", "gone.txt", "--preprocessing", preprocessing]
    code, out, err = run(*about_deletions(files, "recheck", *options))
    assert (code, err) == (0, "")
    expected = recheck(model, given, gone)
    found = [record["score_after"] for record in json.loads(out)["people"]]
    wanted = [record["score_after"] for record in expected.records()]
    np.testing.assert_allclose(np.array(found, float), np.array(wanted, float), rtol=1e-9)
    assert SECRET not in out


def test_alternatives_are_rechecked_option_by_option(run: Any, files: Files) -> None:
    code, _, err = run(*explain(files, promise="first_order", alternatives=2, out="answers.json"))
    assert (code, err) == (0, "")
    Path("gone.txt").write_text(f"{files.train.index[0]}\n", "utf-8")
    both = ["--recourses", "answers.json", "--recourses", "answers-2.json", "--deleted", "gone.txt"]
    code, out, err = run(*about_deletions(files, "recheck", *both))
    assert (code, err) == (0, "")
    assert [record["option"] for record in json.loads(out)["people"]] == [1] * 12 + [2] * 12
    assert "options in answers" in json.loads(out)["summary"]
    Path("gone.txt").write_text(f"row_id\n{files.train.index[0]}\n", "utf-8")
    assert_refused(run(*about_deletions(files, "recheck", *both)), "without a header", "'row_id'")


def test_what_ended_without_an_answer_is_said_and_that_nothing_was_held(run: Any, files: Files) -> None:
    code, out, _ = run(*explain(files, promise="first_order", schema=None))
    assert code == 0
    assert "invalid_input: the person's values cannot be used: 'home' is 'castle'" in out
    assert "already_accepted: " in out
    assert "included, was held fixed" in " ".join(out.split())
    assert "was held fixed" not in " ".join(run(*explain(files, promise="first_order"))[1].split())


def test_points_of_a_pipeline_are_attacked(run: Any, files: Files) -> None:
    given = answers(run, explain(files, out="answers.json"))
    model = model_of(files, FeatureSchema.from_yaml(files["schema.yaml"]))
    attacks = Adversary(model, 2, effort="quick", seed=1).attack_all(given.matrix[given.answered])
    from_json = ["--points", "answers.json"]
    given.points[given.answered].to_csv("points.csv", index_label="who")
    from_table = ["--points", "points.csv", "--schema", files["schema.yaml"], "--id-column", "who"]
    for points in (from_json, from_table):
        code, out, err = run(*about_deletions(files, "attack", *points, "--k", 2, "--effort", "quick"))
        assert (code, err) == (0, "")
        told = json.loads(out)["points"]
        assert [record["person"] for record in told] == list(np.array(given.names)[given.answered])
        np.testing.assert_allclose([record["score_after"] for record in told], attacks.scores, atol=1e-9)
    assert_refused(
        run(*about_deletions(files, "attack", *from_json, "--k", 2, "--model", "m.skops")), "got --model and --pipeline"
    )


def test_explain_writes_raw_columns_as_csv(run: Any, files: Files, tmp_path: Path) -> None:
    code, out, err = run(*explain(files, out="answers.csv"))
    assert (code, err) == (0, "")
    assert SECRET not in out
    table = pd.read_csv(tmp_path / "answers.csv", index_col="person")
    assert list(table.columns) == ["status", "reason", "cost", "margin", *files.people.columns]
    accepted = table[table["status"] == "answered"]
    fitted = raw_pipeline(files.train, files.labels)
    assert (fitted.predict(accepted[files.people.columns]) == YES).all()
    assert (fitted.predict(files.people.loc[accepted.index]) == NO).all()


def test_columns_called_like_ours_are_written_as_csv(run: Any, files: Files, tmp_path: Path) -> None:
    data = rocerf.load_raw("german")
    data.train.assign(granted=data.y_train).to_csv("train.csv", index=False)
    data.test.head(12).to_csv("people.csv", index=False)
    texts = data.train.select_dtypes(exclude="number").columns.tolist()
    encoded = make_column_transformer((OneHotEncoder(), texts), remainder=StandardScaler())
    fitted = make_pipeline(encoded, LogisticRegression(tol=1e-8, max_iter=5000)).fit(data.train, data.y_train)
    dump(fitted, "pipeline.skops")
    options = {"train": "train.csv", "favourable": 1, "people": "people.csv", "pipeline": "pipeline.skops"}
    plain = {"schema": None, "id_column": None, "train_id_column": None, "promise": "first_order", "cost": "l1"}
    code, _, err = run(*explain(files, **options, **plain, out="answers.csv"))
    assert (code, err) == (0, "")
    table = pd.read_csv(tmp_path / "answers.csv")
    assert list(table.columns[:5]) == ["person", "recourse_status", "reason", "cost", "margin"]
    assert set(table.loc[table["recourse_status"] == "answered", "status"]) <= set(data.train["status"])


def test_without_a_schema_a_pipeline_s_columns_are_guessed(run: Any, files: Files) -> None:
    found = answers(run, explain(files, schema=None, promise="first_order"))
    assert found.schema == model_of(files).schema
    fixed = answers(run, [*explain(files, schema=None, promise="first_order"), "--immutable", "income"])
    moved = {change.feature for recourse in fixed for change in recourse.changes}
    assert "income" not in moved
    assert "income" in {change.feature for recourse in found for change in recourse.changes}


def test_columns_that_the_pipeline_does_not_take_are_left_aside(run: Any, files: Files, tmp_path: Path) -> None:
    table = pd.read_csv(files["train.csv"])
    table.assign(note=[f"note {i}" for i in range(200)]).to_csv(tmp_path / "noted.csv", index=False)
    assert_same(answers(run, explain(files, train="noted.csv")), answers(run, explain(files)))
    assert_same(
        answers(run, explain(files, train="noted.csv", schema=None, promise="first_order")),
        answers(run, explain(files, schema=None, promise="first_order")),
    )


@pytest.mark.slow
def test_preprocessing_can_be_fitted_again(run: Any, files: Files) -> None:
    frozen = answers(run, explain(files, preprocessing="frozen", effort="quick"))
    refitted = answers(run, explain(files, preprocessing="refitted", effort="quick"))
    assert any("stay as they are" in said for said in frozen.settings.assumptions)
    assert any("is fitted again on the rows left" in said for said in refitted.settings.assumptions)
    assert (frozen.costs[frozen.answered] != refitted.costs[frozen.answered]).any()


def test_pipelines_that_cannot_be_are_refused(run: Any, files: Files, tmp_path: Path) -> None:
    numbers = files.train[["income", "debt"]].fillna(0.0)
    doubled = make_pipeline(FunctionTransformer(_doubled), LogisticRegression()).fit(numbers, files.labels)
    dump(doubled, tmp_path / "own.skops")
    bent = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression())
    dump(bent.fit(numbers, files.labels), tmp_path / "bent.skops")
    assert_refused(run(*explain(files, pipeline="own.skops")), "_doubled", "not trusted", "Pipeline")
    bent_table = explain(files, pipeline="bent.skops", schema=None, train=files["numbers.csv"])
    assert_refused(run(*bent_table), "counts each column", "by itself", "income")
    assert_refused(run(*explain(files, pipeline="nothing.skops")), "found none")
    assert_refused(run(*explain(files, model=files["pipeline.skops"])), "got --model and --pipeline")
    assert_refused(run(*explain(files, preprocessing="refitted", pipeline=None)), "--preprocessing only with")
    assert_refused(run(*explain(files, pipeline=None)), "--pipeline or --fit for a schema with categories", "'home'")
    assert_refused(run(*explain(files, pipeline=None, schema=None)), "numbers in every cell", "'home'")
    assert_refused(run(*explain(files, schema="nothing.yaml")), "schema file at nothing.yaml, found none")
    assert_refused(run(*numeric(files, model=files["pipeline.skops"])), "LogisticRegression only")
    (tmp_path / "broken.skops").write_bytes(b"this is not skops")
    assert_refused(run(*explain(files, pipeline="broken.skops")), "skops.io.dump", "broken.skops")


def _doubled(X: Any) -> Any:
    return 2 * X


# --- explain: rules, costs and options ------------------------------------------------------------


def test_columns_of_zeros_and_ones_stay_so(run: Any, files: Files) -> None:
    found = answers(run, numeric(files, cost="l2"))
    assert found.answered.sum() > 3
    assert set(found.matrix[found.answered][:, 3]) <= {0.0, 1.0}
    assert found.schema["phone"].kind == "binary"
    assert found.schema["income"].kind == "continuous"


def test_a_schema_binds_a_table_of_numbers(run: Any, files: Files, tmp_path: Path) -> None:
    free = answers(run, numeric(files))
    schema = FeatureSchema.from_frame(pd.read_csv(files["numbers.csv"])[["income", "debt", "kids", "phone"]])
    schema.edit("debt", direction="fixed").edit("income", step=500.0).to_yaml(tmp_path / "numbers.yaml")
    found = answers(run, numeric(files, schema="numbers.yaml"))
    moved = found.matrix[found.answered] - found.people[found.answered]
    assert len(moved) > 0
    np.testing.assert_allclose(moved[:, 0] / 500.0, np.rint(moved[:, 0] / 500.0), atol=1e-9)
    assert (moved[:, 1] == 0).all()
    assert (free.matrix[free.answered][:, 1] != free.people[free.answered][:, 1]).any()


@pytest.mark.parametrize("cost", ["l1", "l2", "mad"])
def test_every_cost_is_the_library_s(run: Any, files: Files, cost: str) -> None:
    found = answers(run, explain(files, cost=cost, promise="first_order"))
    model = model_of(files, FeatureSchema.from_yaml(files["schema.yaml"]))
    assert_same(found, Rocerf(model, 2, promise="first_order", cost=cost).explain(files.people))
    assert found.settings.cost == cost


@pytest.mark.slow
def test_the_percentile_cost(run: Any, files: Files, tmp_path: Path) -> None:
    files.people[:2].to_csv(tmp_path / "two.csv", index_label="who")
    found = answers(run, explain(files, cost="percentile", promise="first_order", people="two.csv"))
    assert found.settings.cost == "percentile"
    assert (found.costs[found.answered] < 5).all()


def test_prices_of_one_s_own(run: Any, files: Files, tmp_path: Path) -> None:
    prices: dict[str, Any] = {"income": [0.01, 1000.0], "debt": 0.05, "kids": 1e6, "phone": 1e6}
    prices["home"] = {"rent": {"own": 1.0}, "with <parents>": {"own": 1.0}}
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump(prices), "utf-8")
    found = answers(run, explain(files, prices="prices.yaml", promise="first_order"))
    model = model_of(files, FeatureSchema.from_yaml(files["schema.yaml"]))
    expected = Rocerf(model, 2, promise="first_order", cost=CostTable(prices)).explain(files.people)
    assert_same(found, expected)
    assert found.settings.cost == "table"
    changes = [change for recourse in found for change in recourse.changes]
    assert {change.after for change in changes if change.feature == "home"} == {"own"}
    assert_refused(run(*explain(files, prices="prices.yaml", cost="l1")), "--cost or --prices, got both")
    (tmp_path / "prices.yaml").write_text("income: -1\n", "utf-8")
    assert_refused(run(*explain(files, prices="prices.yaml")), "a price above 0", "'income'")
    (tmp_path / "prices.yaml").write_text("- 3\n", "utf-8")
    assert_refused(run(*explain(files, prices="prices.yaml")), "prices of changes", "got list")
    (tmp_path / "prices.yaml").write_text("a: [\n", "utf-8")
    assert_refused(run(*explain(files, prices="prices.yaml")), "prices of changes in YAML")
    assert_refused(run(*explain(files, prices="nothing.yaml")), "prices of changes at nothing.yaml, found none")


def test_at_most_so_many_changes(run: Any, files: Files) -> None:
    free = answers(run, explain(files, promise="first_order"))
    found = answers(run, explain(files, promise="first_order", max_changes=1))
    assert max(len(recourse.changes) for recourse in free) > 1
    assert {len(recourse.changes) for recourse in found if recourse.answered} == {1}
    assert found.settings.max_changes == 1
    assert_refused(run(*explain(files, max_changes=0)), "--max-changes")


def test_alternatives_differ_and_are_written_beside_each_other(run: Any, files: Files, tmp_path: Path) -> None:
    arguments = explain(files, promise="first_order", cost="l1", alternatives=2, out="deep/answers.json")
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "Written: deep/answers.json" in out
    assert "Written: deep/answers-2.json" in out
    first, second = (Recourses.from_json(tmp_path / "deep" / name) for name in ("answers.json", "answers-2.json"))
    both = first.answered & second.answered
    assert both.sum() > 2
    assert f"{second.answered.sum()} of them have 2 options or more." in out
    assert (first.costs[both] <= second.costs[both] + 1e-9).all()
    for place in np.flatnonzero(both):
        one, two = ({change.feature for change in batch[int(place)].changes} for batch in (first, second))
        assert not one <= two
    code, out, _ = run(*explain(files, promise="first_order", cost="l1", alternatives=2), "--json")
    assert code == 0
    documents = json.loads(out)["alternatives"]
    assert_same(Recourses.from_json(json.dumps(documents[1])), second)


def test_a_plain_promise_with_rules(run: Any, files: Files) -> None:
    found = answers(run, explain(files, promise="plain", max_changes=1))
    assert (found.settings.method, found.settings.promise, found.settings.k) == ("scfe", "plain", 0)
    assert {len(recourse.changes) for recourse in found if recourse.answered} == {1}


# --- letters --------------------------------------------------------------------------------------


@pytest.fixture
def answered(run: Any, files: Files, tmp_path: Path) -> Path:
    """answers.json, answers-2.json and the explainer's folder, in the working folder."""
    code, out, err = run(*explain(files, alternatives=2, out="answers.json", save_explainer="explainer"))
    assert (code, err) == (0, "")
    assert "Written: explainer" in out
    return tmp_path


BOTH = ["--answers", "answers.json", "--answers", "answers-2.json", "--explainer", "explainer"]


def test_people_of_one_name_are_refused(run: Any, files: Files) -> None:
    pd.read_csv(files["people.csv"]).assign(who="A").to_csv("same.csv", index=False)
    assert_refused(run(*explain(files, people="same.csv")), "each person of same.csv once", "'A'")


@pytest.mark.slow
def test_letters_for_everybody(run: Any, files: Files, answered: Path) -> None:
    dated = ["--valid-until", "2027-06-30", "--issued", "2026-11-15", "--model-version", "v7"]
    validator = Draft202012Validator(letter_schema())
    batches = [Recourses.from_json(answered / name) for name in ("answers.json", "answers-2.json")]
    expected = Rocerf.load(answered / "explainer").letters(
        batches, valid_until=date(2027, 6, 30), issued=date(2026, 11, 15), model_version="v7"
    )
    for form, end in (("text", "txt"), ("html", "html"), ("json", "json")):
        code, out, err = run("letter", *BOTH, *dated, "--format", form, "--out", f"letters/{form}")
        assert (code, err) == (0, "")
        assert out == f"Written: 12 letters in letters/{form}\n"
        written = sorted((answered / "letters" / form).iterdir())
        assert [path.name for path in written] == sorted(f"letter-person-{i}.{end}" for i in range(12))
        for path in written:
            assert SECRET not in path.read_text("utf-8")
    for letter in expected:
        path = answered / "letters" / "json" / f"letter-{letter.person}.json"
        validator.validate(json.loads(path.read_text("utf-8")))
        assert Letter.from_json(path) == letter
        assert (answered / "letters" / "text" / f"letter-{letter.person}.txt").read_text("utf-8") == letter.to_text()
        assert (answered / "letters" / "html" / f"letter-{letter.person}.html").read_text("utf-8") == letter.to_html()
    options = [option for letter in expected for option in as_read_by_programs(letter)]
    assert len(options) == sum(batch.answered.sum() for batch in batches)
    fitted = raw_pipeline(files.train, files.labels)
    for letter in expected:
        for option in as_read_by_programs(letter):
            row = files.people.loc[[letter.person]].assign(**option)
            assert fitted.predict(row)[0] == YES


@pytest.mark.slow
def test_the_letter_of_one_person_is_printed(run: Any, files: Files, answered: Path) -> None:
    recourses = Recourses.from_json(answered / "answers.json")
    place = int(np.flatnonzero(recourses.answered)[0])
    name = recourses.names[place]
    (answered / "reasons.yaml").write_text(yaml.safe_dump({name: ["too much debt"], "person-11": ["x"]}), "utf-8")
    arguments = ["letter", *BOTH[:2], *BOTH[4:], "--person", name, "--issued", "2026-11-15"]
    code, out, err = run(*arguments, "--reasons", "reasons.yaml")
    assert (code, err) == (0, "")
    assert f"Reference: {name}" in out
    assert "  - too much debt" in out
    assert "names no date" in " ".join(out.split())
    code, out, _ = run(*arguments, "--format", "json", "--digits", 8)
    letter = Letter.from_json(out)
    assert letter.person == name
    assert letter.refusal_reasons is None
    short = Letter.from_json(run(*arguments, "--format", "json", "--digits", 2).out)
    lengths = [sum(len(c.after_text) for o in given.options for c in o.changes) for given in (short, letter)]
    assert lengths[0] < lengths[1]
    again = run(*arguments, "--format", "json", "--digits", 8, "--pipeline", files["pipeline.skops"])
    # Only who retrains is known better with the pipeline at hand.
    assert [o.changes for o in Letter.from_json(again.out).options] == [o.changes for o in letter.options]
    assert "retrained from scratch by its user" in again.out
    assert "the estimator that really retrains the model is not at hand" in out
    german = run(*arguments, "--language", "de")
    assert f"Referenz: {name}" in german.out
    assert_refused(run(*arguments, "--language", "xx"), "a language of letters (en, de)")
    code, out, _ = run(*arguments, "--person", "person-3", "--out", "two")
    assert code == 0
    assert {path.name for path in (answered / "two").iterdir()} == {f"letter-{name}.txt", "letter-person-3.txt"}


def test_refitted_preprocessing_needs_its_pipeline_to_be_checked_again(run: Any, files: Files, tmp_path: Path) -> None:
    given = explain(files, preprocessing="refitted", effort="quick", out="answers.json", save_explainer="explainer")
    assert run(*given).code == 0
    name = Recourses.from_json(tmp_path / "answers.json")
    who = name.names[int(np.flatnonzero(name.answered)[0])]
    arguments = ["letter", *BOTH[:2], *BOTH[4:], "--person", who]
    code, out, err = run(*arguments, "--pipeline", files["pipeline.skops"])
    assert (code, err) == (0, "")
    assert "is fitted again on the rows left" in " ".join(out.split())
    assert_refused(run(*arguments), "pipeline")


@pytest.mark.slow
def test_no_letter_without_the_explainer(run: Any, files: Files, answered: Path) -> None:
    assert_refused(run("letter", "--answers", "answers.json"), "--explainer", "must be checked again")
    nowhere = ["--explainer", "nowhere", "--out", "x"]
    assert_refused(run("letter", "--answers", "answers.json", *nowhere), "Rocerf.save", "nowhere")
    assert_refused(run("letter", *BOTH), "--out with a folder for 12 letters, or one --person")
    assert_refused(run("letter", *BOTH, "--person", "person-99"), "people of the answers, got 'person-99'")
    assert_refused(run("letter", "--answers", "none.json", *BOTH[4:]), "rocerf-recourses")
    assert_refused(run("letter", *BOTH, "--out", "x", "--valid-until", "soon"), "--valid-until", "%Y-%m-%d")
    late = ["--issued", "2027-01-02", "--valid-until", "2027-01-01"]
    assert_refused(run("letter", *BOTH, "--out", "x", *late), "valid on the day they are issued")
    (answered / "reasons.yaml").write_text("someone: [x]\n", "utf-8")
    assert_refused(run("letter", *BOTH, "--out", "x", "--reasons", "reasons.yaml"), "got 'someone'")
    assert run(*explain(files, k=1, out="other.json")).code == 0
    assert_refused(run("letter", "--answers", "other.json", *BOTH[4:], "--out", "x"), "this explainer's k, 2, got 1")
    assert run(*explain(files, promise="plain", save_explainer="plain")).code == 0
    # A folder with other things in it is refused before the work, and left as it is.
    (answered / "mine").mkdir()
    (answered / "mine" / "notes.txt").write_text("mine", "utf-8")
    refused = run(*explain(files, train="none.csv", save_explainer="mine"))
    assert_refused(refused, "a folder that is new, empty", "name a")
    assert (answered / "mine" / "notes.txt").read_text("utf-8") == "mine"
    assert not (answered / "x").exists()
    assert (answered / "plain").exists()


def test_letters_about_numbered_people_and_odd_names(run: Any, files: Files, tmp_path: Path) -> None:
    people = pd.read_csv(files["numeric_people.csv"]).assign(who=["a/b", "a b", "..", *range(9)])
    people.to_csv(tmp_path / "odd.csv", index=False)
    assert run(*numeric(files, people="odd.csv", out="answers.json", save_explainer="explainer")).code == 0
    assert run("letter", *BOTH[:2], *BOTH[4:], "--out", "letters").code == 0
    names = sorted(path.name for path in (tmp_path / "letters").iterdir())
    assert names == sorted([*letter_file_names(["a/b", "a b", ".."], "txt"), *(f"letter-{i}.txt" for i in range(9))])
    people.drop(columns="who").to_csv(tmp_path / "numbered.csv", index=False)
    plain = numeric(files, people="numbered.csv", id_column=None, out="answers.json", save_explainer="explainer")
    assert run(*plain).code == 0
    (tmp_path / "reasons.yaml").write_text("4: [four is unlucky]\n", "utf-8")
    code, out, _ = run("letter", *BOTH[:2], *BOTH[4:], "--person", 4, "--reasons", "reasons.yaml")
    assert code == 0
    assert "Reference: 4\n" in out
    assert "four is unlucky" in out
