"""Pipelines over rows in Parquet, texts and gaps included: the model and the recourses that rows in memory give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rocerf
from rocerf.errors import DataError, FileFormatError, OptionError, UnsupportedModelError

pytest.importorskip("pyarrow")
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")


def table(rows: int = 600) -> pd.DataFrame:
    """Numbers, whole numbers with gaps only late in the table, texts of which one is rare, and a label."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.normal(30.0, 9.0, rows),
            "children": rng.integers(0, 5, rows).astype(float),
            "home": rng.choice(["own", "rent", "other"], rows, p=[0.4, 0.55, 0.05]),
            "job": pd.Categorical(rng.choice(["none", "part", "full"], rows)),
        }
    )
    score = (frame["income"] - 30.0) / 9.0 + (frame["home"] == "own") - 0.4 * frame["children"]
    good = np.where(score + rng.logistic(size=rows) > 0, "yes", "no")
    frame.loc[rows - 40 :: 7, "children"] = np.nan
    return frame.assign(good=good, who=[f"p{i}" for i in range(rows)])


def fitted(frame: pd.DataFrame) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_column_transformer((numbers, ["income", "children"]), (OneHotEncoder(), ["home", "job"]))
    pipeline = make_pipeline(encode, LogisticRegression(tol=1e-10, max_iter=1000))
    return pipeline.fit(frame.drop(columns=["good", "who"]), frame["good"])


def written(frame: pd.DataFrame, folder: Path, parts: int) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"{number:03d}.parquet", index=False)
    return folder


OPTIONS: dict[str, Any] = {"favourable": "yes", "ids": "who", "retraining": "exact"}


@pytest.mark.parametrize("parts", [1, 7])
@pytest.mark.parametrize("promise", ["first_order", "retrained"])
def test_the_same_model_and_recourses(parts: int, promise: str, tmp_path: Path) -> None:
    frame = table()
    pipeline = fitted(frame)
    used = frame.drop(columns=["good"])
    memory = rocerf.from_pipeline(pipeline, used, frame["good"], **OPTIONS)
    disk = rocerf.from_pipeline(pipeline, written(frame, tmp_path / "rows", parts), "good", **OPTIONS)
    assert disk.train.on_disk
    assert disk.train.columns == memory.train.columns
    assert disk.schema == memory.schema
    assert disk.train.ids.tolist() == memory.train.ids.tolist()
    np.testing.assert_array_equal(np.asarray(disk.train.X), memory.train.X)
    np.testing.assert_allclose(disk.theta, memory.theta, atol=1e-9)
    people = used.drop(columns="who").iloc[:60]
    denied = people[memory.predict(people) == 0].iloc[:3]
    one, two = (rocerf.Rocerf(model, 3, promise=promise, effort="quick").explain(denied) for model in (memory, disk))
    assert one.answered.any()
    np.testing.assert_allclose(two.matrix, one.matrix, rtol=0, atol=1e-9)
    later = disk.without(disk.train.ids[:4])
    np.testing.assert_allclose(later.theta, memory.without(memory.train.ids[:4]).theta, atol=1e-9)


def answers(kind: str, rows: int = 600) -> Any:
    """Answers with gaps only late in the table, as this type of pandas: texts, yes and no, or 0.5 and 1.5."""
    yes = np.random.default_rng(1).random(rows) < 0.4
    gaps = (np.arange(rows) >= rows - 200) & (np.arange(rows) % 3 == 0)
    texts = np.where(gaps, None, np.where(yes, "yes", "no").astype(object))
    flags = pd.Series(np.where(gaps, None, yes.astype(object)))
    if kind in ("object", "category"):
        return flags if kind == "object" else pd.Categorical(texts, categories=["unheard", "yes", "no"])
    nullable = flags.astype("boolean")
    return nullable.astype(kind) if "bool" in kind else (nullable.astype("Float64") + 0.5).astype(kind)


GAPS_FILLED = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())


@pytest.mark.parametrize(
    ("kind", "encoder"),
    [
        *(
            (kind, OneHotEncoder(handle_unknown="ignore"))
            for kind in ("boolean", "bool[pyarrow]", "object", "category")
        ),
        *((kind, GAPS_FILLED) for kind in ("boolean", "object", "category")),
        *((kind, make_pipeline(SimpleImputer(), StandardScaler())) for kind in ("Float64", "double[pyarrow]")),
    ],
)
def test_gaps_of_every_type_are_what_they_are_in_memory(kind: str, encoder: Any, tmp_path: Path) -> None:
    frame = table().drop(columns=["children", "home", "job"]).assign(answer=answers(kind))
    folder = written(frame, tmp_path / "rows", 1)
    used = pd.read_parquet(folder).drop(columns="good")
    assert used["answer"].dtype == frame["answer"].dtype
    encode = make_column_transformer((StandardScaler(), ["income"]), (encoder, ["answer"]))
    pipeline = make_pipeline(encode, LogisticRegression(tol=1e-10, max_iter=1000))
    pipeline.fit(used.drop(columns="who"), frame["good"])
    memory = rocerf.from_pipeline(pipeline, used, frame["good"], **OPTIONS)
    disk = rocerf.from_pipeline(pipeline, folder, "good", **OPTIONS)
    assert disk.schema == memory.schema
    np.testing.assert_array_equal(np.asarray(disk.train.X), memory.train.X)
    np.testing.assert_allclose(disk.theta, memory.theta, atol=1e-9)
    later = disk.without(disk.train.ids[-50:])
    np.testing.assert_allclose(later.theta, memory.without(memory.train.ids[-50:]).theta, atol=1e-9)


@pytest.mark.parametrize(
    ("said", "fitted_on"),
    [
        *((said, fitted_on) for said in ("object", "boolean") for fitted_on in ("nan", "object", "boolean")),
        *(("texts", fitted_on) for fitted_on in ("texts and None", "texts and NaN")),
    ],
)
@pytest.mark.parametrize("encoder", [OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(), GAPS_FILLED])
def test_a_pipeline_knows_its_own_gap_whatever_the_files_say(
    said: str, fitted_on: str, encoder: Any, tmp_path: Path
) -> None:
    frame = table().drop(columns=["children", "home", "job"])
    flags = pd.Series(answers("object"))
    texts = flags.map({True: "yes", False: "no"}).astype(object)
    shown = {
        "nan": flags.where(flags.notna(), np.nan),
        "object": flags,
        "boolean": flags.astype("boolean"),
        "texts and NaN": texts.where(texts.notna(), np.nan),
        "texts and None": texts.where(texts.notna(), None),
    }
    path = tmp_path / "rows.parquet"
    rows = frame.assign(answer=texts if said == "texts" else answers(said))
    parquet.write_table(pa.Table.from_pandas(rows).replace_schema_metadata(None), path)
    if said == "boolean":
        rows.to_parquet(path)
    used = frame.drop(columns="good").assign(answer=shown[fitted_on])
    encode = make_column_transformer((StandardScaler(), ["income"]), (clone(encoder), ["answer"]))
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=1000))
    try:
        pipeline.fit(used.drop(columns="who"), frame["good"])
    except (TypeError, ValueError):
        pytest.skip("scikit-learn does not take these")
    memory = rocerf.from_pipeline(pipeline, used, frame["good"], **OPTIONS)
    disk = rocerf.from_pipeline(pipeline, path, "good", **OPTIONS)
    np.testing.assert_array_equal(np.asarray(disk.train.X), memory.train.X)
    np.testing.assert_allclose(disk.theta, memory.theta, atol=1e-9)


def test_a_type_that_pandas_cannot_read_back_is_read_without_it(tmp_path: Path) -> None:
    frame = table().drop(columns=["children", "job"])
    coded = frame.assign(home=frame["home"].astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))))
    folder = written(coded, tmp_path / "rows", 2)
    frame["home"] = pd.Categorical(frame["home"], categories=frame["home"].unique())
    encode = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["home"]))
    pipeline = make_pipeline(encode, LogisticRegression(tol=1e-10, max_iter=1000))
    pipeline.fit(frame[["income", "home"]], frame["good"])
    memory = rocerf.from_pipeline(pipeline, frame.drop(columns="good"), frame["good"], **OPTIONS)
    disk = rocerf.from_pipeline(pipeline, folder, "good", **OPTIONS)
    np.testing.assert_array_equal(np.asarray(disk.train.X), memory.train.X)
    np.testing.assert_allclose(disk.theta, memory.theta, atol=1e-9)


def test_what_takes_all_rows_at_once_is_refused(tmp_path: Path) -> None:
    frame = table()
    folder = written(frame, tmp_path / "rows", 2)
    for changed in ({"retraining": "own"}, {"preprocessing": "refitted"}, {"otherwise": "estimator"}):
        with pytest.raises(OptionError, match="stay on the disk"):
            rocerf.from_pipeline(fitted(frame), folder, "good", **OPTIONS | changed)
    with pytest.raises(OptionError, match="names of columns"):
        rocerf.from_pipeline(fitted(frame), folder, frame["good"], **OPTIONS)


def test_a_proof_about_rows_on_the_disk_is_refused_for_the_true_reason(tmp_path: Path) -> None:
    """It was put down to a file of an earlier version, with a remedy that does not help."""
    frame = table(200)
    folder = written(frame, tmp_path / "rows", 2)
    model = rocerf.from_pipeline(fitted(frame), folder, "good", **OPTIONS)
    with pytest.raises(UnsupportedModelError, match=r"rows in memory for the promise 'certified'.*read_parquet"):
        rocerf.Rocerf(model, 1, promise="certified")


def test_rows_and_pipelines_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    frame = table()
    bent = make_pipeline(SimpleImputer(), PolynomialFeatures(), StandardScaler(), LogisticRegression())
    bent.fit(frame[["income", "children"]], frame["good"])
    with pytest.raises(UnsupportedModelError, match="not"):
        rocerf.from_pipeline(bent, written(frame, tmp_path / "one", 2), "good", **OPTIONS)
    strange = frame.copy()
    strange.loc[500, "home"] = "castle"
    schema = rocerf.FeatureSchema.from_frame(frame.drop(columns=["good", "who"]))
    with pytest.raises(DataError, match="castle"):
        rocerf.from_pipeline(fitted(frame), written(strange, tmp_path / "two", 3), "good", schema=schema, **OPTIONS)
    with pytest.raises(FileFormatError):
        rocerf.from_pipeline(fitted(frame), tmp_path / "nowhere", "good", **OPTIONS)


def test_a_bare_scikit_learn_model_takes_rows_on_the_disk(tmp_path: Path) -> None:
    frame = table()[["income", "good", "who"]]
    folder = written(frame, tmp_path / "rows", 3)
    train = rocerf.TrainingSet.from_parquet(folder, label="good", id="who", favourable="yes")
    model = LogisticRegression(tol=1e-10).fit(frame[["income"]], frame["good"])
    taken = rocerf.LogisticModel.from_sklearn(model, train, retraining="exact")
    memory = rocerf.TrainingSet(frame[["income"]], frame["good"], favourable="yes")
    expected = rocerf.LogisticModel.from_sklearn(model, memory, retraining="exact")
    np.testing.assert_allclose(taken.theta, expected.theta, atol=1e-9)
    with pytest.raises(OptionError, match="stay on the disk"):
        rocerf.LogisticModel.from_sklearn(model, train)
