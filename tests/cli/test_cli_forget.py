"""``rocerf forget``: a deletion request carried out on a saved explainer, and what is said about it."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skops.io import dump, get_untrusted_types, load

from residue import Planted, unpacked
from rocerf import LogisticModel, Rocerf

ROW = {"income": 98765.4321, "debt": 4444.25, "member": 2, "home": "zeppelin"}
PLANTED = "planted-row"
LOOKED_FOR = Planted([PLANTED, "zeppelin"], [98765.4321, 4444.25])


def table(*, planted: bool, texts: bool = False) -> pd.DataFrame:
    """60 rows with labels, and one more that is alone in every column."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "income": rng.normal(3000.0, 800.0, 60).round(2),
            "debt": rng.normal(100.0, 30.0, 60).round(2),
            "member": rng.integers(0, 2, 60),
            "home": rng.choice(["own", "rent"], 60),
        },
        index=[f"row-{i}" for i in range(60)],
    )
    good = (rows["income"] - 3000.0) / 800.0 - (rows["debt"] - 100.0) / 30.0 + rng.logistic(size=60) > 0
    rows["granted"] = np.where(good, "yes", "no")
    if planted:
        rows = pd.concat([rows[:20], pd.DataFrame({**ROW, "granted": "no"}, index=[PLANTED]), rows[20:]])
    return rows if texts else rows.drop(columns="home")


def pipeline(rows: pd.DataFrame) -> Any:
    encoder = make_column_transformer(
        (StandardScaler(), ["income", "debt", "member"]), (OneHotEncoder(handle_unknown="ignore"), ["home"])
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=1000)).fit(rows.drop(columns="granted"), rows["granted"])


@pytest.fixture
def run(run: Any, tmp_path: Path) -> Any:
    """Run the command line here, in a folder with the request, as the installed script does."""
    Path("request.txt").write_text(f"{PLANTED}\n", "utf-8")
    return run


def explained(run: Any, rows: pd.DataFrame, folder: str, *extra: object) -> None:
    """An explainer of these rows in the folder, made by ``rocerf explain``."""
    rows.to_csv("train.csv", index_label="row_id")
    rows.drop(columns="granted").iloc[::6].drop(index=PLANTED, errors="ignore").to_csv("people.csv", index=False)
    given = ["--train", "train.csv", "--label", "granted", "--favourable", "yes", "--train-id-column", "row_id"]
    asked = ["--people", "people.csv", "--k", 1, "--save-explainer", folder, "--effort", "quick"]
    code, _, err = run("explain", *given, *asked, *extra)
    assert (code, err) == (0, "")


def files_of(folder: str) -> dict[str, bytes]:
    return dict(unpacked(Path(folder)))


def test_forget_replaces_the_folder_by_one_that_never_had_the_row(run: Any) -> None:
    explained(run, table(planted=True), "explainer")
    assert LOOKED_FOR.in_files(Path("explainer"))
    code, out, err = run("forget", "--explainer", "explainer", "--deleted", "request.txt")
    assert (code, err) == (0, "")
    for words in ("Forgotten: 1 row; 60 are left", "letters already sent", "backups", "Written: explainer"):
        assert words in out, words
    assert LOOKED_FOR.in_files(Path("explainer")) == []
    model = LogisticModel.load("explainer/model.npz")
    never = Rocerf(LogisticModel.fit(model.train), 1, effort="quick", schema=Rocerf.load("explainer").schema)
    never.save("never")
    assert files_of("explainer") == files_of("never")
    assert str(Rocerf.load("explainer").schema["member"].kind) == "binary"  # it was none with the row


@pytest.mark.slow
def test_a_pipeline_is_fitted_again_and_written(run: Any) -> None:
    rows = table(planted=True, texts=True)
    dump(pipeline(rows), "pipeline.skops")
    explained(run, rows, "explainer", "--pipeline", "pipeline.skops")
    forget = ("forget", "--explainer", "explainer", "--deleted", "request.txt")
    before = files_of("explainer")
    for missing, words in (
        (forget, "--pipeline"),
        ((*forget, "--pipeline", "pipeline.skops"), "--save-pipeline"),
        ((*forget, "--save-pipeline", "new.skops"), "--pipeline"),
    ):
        code, out, err = run(*missing)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err
    assert files_of("explainer") == before
    code, _, err = run(*forget, "--pipeline", "pipeline.skops", "--save-pipeline", "pipeline.skops")
    assert (code, err) == (0, "")
    assert LOOKED_FOR.in_files(Path("explainer")) == []
    fitted = load("pipeline.skops", trusted=get_untrusted_types(file="pipeline.skops"))
    assert LOOKED_FOR.within(fitted) == []
    left = table(planted=False, texts=True)
    asked = left.drop(columns="granted")
    np.testing.assert_array_equal(fitted.decision_function(asked), pipeline(left).decision_function(asked))
    assert sorted(path.name for path in Path().iterdir() if "pipeline" in path.name) == ["pipeline.skops"]
    again = Rocerf.load("explainer", model=LogisticModel.load("explainer/model.npz", pipeline=fitted))
    assert again.schema["home"].categories == ("own", "rent")


def test_another_folder_leaves_the_old_one_and_says_so(run: Any) -> None:
    rows = table(planted=True)
    fitted = LogisticRegression(max_iter=5000).fit(rows.drop(columns="granted"), rows["granted"])
    dump(fitted, "model.skops")
    explained(run, rows, "explainer", "--model", "model.skops")
    before = files_of("explainer")
    code, out, err = run("forget", "--explainer", "explainer", "--deleted", "request.txt", "--out", "later", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["forgotten"], told["training_rows"]) == (1, 60)
    assert any("the old explainer in explainer: delete it" in said for said in told["not_reached"])
    assert any("judges people today" in said for said in told["not_reached"])
    assert files_of("explainer") == before
    assert LOOKED_FOR.in_files(Path("later")) == []
    assert Rocerf.load("later").model.deployed_theta is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_file", "folder", "words"),
    [
        ("nobody\n", "explainer", "one id of a training row a line"),
        (None, "explainer", "one row id a line"),
        (f"{PLANTED}\n", "nowhere", "written by Rocerf.save"),
    ],
)
def test_what_cannot_be_forgotten_is_one_sentence_and_changes_nothing(
    run: Any, request_file: str | None, folder: str, words: str
) -> None:
    explained(run, table(planted=True), "explainer")
    before = files_of("explainer")
    if request_file is not None:
        Path("ids.txt").write_text(request_file, "utf-8")
    code, out, err = run("forget", "--explainer", folder, "--deleted", "ids.txt")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert files_of("explainer") == before


@pytest.mark.slow
def test_what_stays_of_the_old_folder_is_told_and_all_else_is_done(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(planted=True, texts=True)
    dump(pipeline(rows), "pipeline.skops")
    explained(run, rows, "explainer", "--pipeline", "pipeline.skops")

    def refused(path: Path, **_: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    given = ("--explainer", "explainer", "--deleted", "request.txt", "--pipeline", "pipeline.skops")
    with monkeypatch.context() as protected:
        protected.setattr("rocerf.storage.disk.remove", refused, raising=False)
        protected.setattr(Path, "unlink", refused)
        code, out, err = run("forget", *given, "--save-pipeline", "new.skops")
    assert (code, err.count("\n")) == (2, 1)
    assert "Written: explainer" in out
    assert "Written: new.skops" in out
    (left,) = [path for path in Path().iterdir() if path.name.endswith(".rocerf-part")]
    assert "the new one is in place" in err
    assert str(left) in err
    assert LOOKED_FOR.in_files(left)
    assert LOOKED_FOR.in_files(Path("explainer")) == []


def test_the_user_s_own_fit_that_is_not_in_the_folder_is_told(run: Any) -> None:
    rows = table(planted=True)
    numbers = rows.drop(columns="granted").to_numpy()
    dump(LogisticRegression(tol=1e-6, max_iter=9000).fit(numbers, rows["granted"]), "model.skops")
    explained(run, rows, "explainer", "--model", "model.skops")
    code, out, err = run("forget", "--explainer", "explainer", "--deleted", "request.txt")
    assert (code, err) == (0, "")
    assert "from now on retraining means rocerf's exact retraining" in out
    assert "other answers written before as JSON, which hold traces of the rows" in out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["answers.json", "attacks.json", "attacks.csv"])
def test_files_with_training_rows_are_their_owners_only(name: str, run: Any) -> None:
    table(planted=False).to_csv("train.csv", index_label="row_id")
    table(planted=False).drop(columns="granted").iloc[::6].to_csv("people.csv", index=False)
    given = ["--train", "train.csv", "--label", "granted", "--favourable", "yes", "--train-id-column", "row_id"]
    asked = ["explain", "--people"] if name.startswith("answers") else ["attack", "--points"]
    before = os.umask(0o022)
    try:
        for extra, mode in (((), 0o644), (("--training-rows",), 0o600)):
            code, _, err = run(*asked, "people.csv", *given, "--k", 1, "--effort", "quick", "--out", name, *extra)
            assert (code, err) == (0, "")
            assert stat.S_IMODE(Path(name).stat().st_mode) == mode
    finally:
        os.umask(before)
