"""Tables of other makers: the same answers as for pandas, in the type that came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocerf
from rocerf.data.foreign import as_pandas, with_origin
from rocerf.errors import ColumnError, IdError

COLUMNS = {
    pl.Int8: st.integers(-128, 127),
    pl.UInt16: st.integers(0, 65535),
    pl.Int64: st.integers(-(2**63), 2**63 - 1),
    pl.Float32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    pl.Float64: st.floats(allow_nan=False, allow_infinity=False),
    pl.Boolean: st.booleans(),
    pl.String: st.text(max_size=3),
    pl.Categorical: st.sampled_from(["a", "b"]),
}


@st.composite
def tables(draw: Any) -> pl.DataFrame:
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4))
    rows = draw(st.integers(1, 4))
    return pl.DataFrame(
        [
            pl.Series(f"c{place}", draw(st.lists(st.none() | COLUMNS[kind], min_size=rows, max_size=rows)), dtype=kind)
            for place, kind in enumerate(kinds)
        ]
    )


@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(tables())
def test_what_came_in_goes_out_in_its_types(table: pl.DataFrame) -> None:
    frame, origin = with_origin(table)
    assert origin is not None
    back = origin.give_back(frame)
    assert back.schema == table.schema
    assert back.equals(table)


@settings(derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(tables())
def test_the_same_for_pyarrow(table: pl.DataFrame) -> None:
    plain = table.with_columns(pl.col(pl.Categorical).cast(pl.String))
    arrow = pa.Table.from_pylist(plain.to_dicts(), pa.schema([(n, _arrow(t)) for n, t in plain.schema.items()]))
    frame, origin = with_origin(arrow)
    assert origin is not None
    assert origin.give_back(frame).equals(arrow)


def _arrow(kind: Any) -> Any:
    names = {"Int8": "int8", "UInt16": "uint16", "Int64": "int64", "Float32": "float32", "Float64": "float64"}
    return pa.type_for_alias(names.get(str(kind), {"Boolean": "bool", "String": "string"}.get(str(kind), "string")))


def test_a_type_that_would_round_the_answer_is_not_kept() -> None:
    _, origin = with_origin(
        pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int8), "b": pl.Series([0.5, 1.5], dtype=pl.Float32)})
    )
    assert origin is not None
    back = origin.give_back(pd.DataFrame({"a": [1.25, 300.0], "b": [0.1, np.nan]}))
    assert back["a"].to_list() == [1.25, 300.0]
    assert back["b"].to_list() == [0.1, None]


@pytest.fixture(scope="module")
def german() -> Any:
    data = rocerf.load_raw("german")
    people = data.test.head(30).reset_index(drop=True).rename_axis("person").reset_index()
    people["person"] = [f"A{place:04d}" for place in people["person"]]
    rows = data.train.rename_axis("row").reset_index()
    return data, rows, people


def explained(german: Any, made: Any) -> Any:
    """Answers where rows and people came in tables of this kind."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data, rows, people = german
    numbers, texts = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    prepare = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), texts))
    pipeline = make_pipeline(prepare, LogisticRegression(max_iter=2000)).fit(data.train, data.y_train)
    model = rocerf.from_pipeline(pipeline, made(rows), data.y_train, ids="row", schema=data.schema)
    assert model.train.ids.tolist() == rows["row"].tolist()
    return rocerf.Rocerf(model, 4, promise="first_order").explain(made(people), id="person")


def test_pandas_polars_and_pyarrow_get_the_same_answers(german: Any) -> None:
    by_pandas = explained(german, lambda frame: frame)
    assert by_pandas.answered.any()
    for made, kind in ((pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)):
        answers = explained(german, made)
        np.testing.assert_allclose(answers.matrix, by_pandas.matrix, rtol=0, atol=1e-9)
        assert answers.names == by_pandas.names
        assert isinstance(answers.points, kind)
        assert isinstance(answers.to_frame(), kind)
        back = as_pandas(answers.points).set_index("person")
        expected = by_pandas.points
        assert list(back.columns) == list(expected.columns)
        for name in back.columns:
            assert back[name].dropna().tolist() == expected[name].dropna().tolist(), name


def test_numbers_alone() -> None:
    data = rocerf.load_dataset("german")
    frame = data.train.frame().rename_axis("row").reset_index()
    train = rocerf.TrainingSet(pl.from_pandas(frame), data.train.y, "row")
    assert train.columns == data.train.columns
    np.testing.assert_array_equal(train.X, data.train.X)
    model = rocerf.LogisticModel.fit(train)
    people = pl.from_pandas(data.test.frame().head(20))
    np.testing.assert_allclose(model.score(people), model.score(data.test.X[:20]))
    answers = rocerf.Rocerf(model, 4, promise="first_order").explain(people)
    assert isinstance(answers.points, pl.DataFrame)
    assert answers.points.columns == people.columns
    assert rocerf.FeatureSchema.from_frame(people).names == tuple(people.columns)


def test_people_by_name(german: Any) -> None:
    answers = explained(german, lambda frame: frame)
    assert answers["A0004"].name == "A0004"
    np.testing.assert_array_equal(answers["A0004"].person, answers[4].person)
    with pytest.raises(IdError, match="called 'nobody', got nobody"):
        answers["nobody"]


def test_what_cannot_be_taken_says_so() -> None:
    with pytest.raises(ColumnError, match="LazyFrame"):
        as_pandas(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ColumnError, match="column 'person' with the ids"):
        with_origin(pl.DataFrame({"a": [1]}), "person")
    with pytest.raises(ColumnError, match="table with column names"):
        with_origin([[1]], "person")
