"""Tables of other makers: the same answers as for pandas, in the type that came in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import narwhals as nw
import narwhals.stable.v2 as nw_stable
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocerf
from rocerf.data.foreign import as_pandas, with_origin
from rocerf.data.frames import Frames
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
    pl.Enum(["b", "a"]): st.sampled_from(["a", "b"]),
    pl.Decimal(10, 2): st.decimals(-9999, 9999, places=2),
}

#: Types of Arrow, several of which are one to narwhals, with the column of COLUMNS whose values they hold.
ARROWS = {
    pa.int8(): pl.Int8,
    pa.uint16(): pl.UInt16,
    pa.int64(): pl.Int64,
    pa.float32(): pl.Float32,
    pa.float64(): pl.Float64,
    pa.bool_(): pl.Boolean,
    pa.string(): pl.String,
    pa.large_string(): pl.String,
    pa.dictionary(pa.int8(), pa.string()): pl.Categorical,
    pa.dictionary(pa.uint32(), pa.large_string()): pl.Categorical,
    pa.decimal128(10, 2): pl.Decimal(10, 2),
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


@st.composite
def arrow_tables(draw: Any) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(ARROWS)), min_size=1, max_size=4))
    rows = draw(st.integers(1, 4))
    return pa.table(
        {
            f"c{place}": pa.array(
                draw(st.lists(st.none() | COLUMNS[ARROWS[kind]], min_size=rows, max_size=rows)), type=kind
            )
            for place, kind in enumerate(kinds)
        }
    )


@settings(derandomize=True, deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(arrow_tables())
def test_the_same_for_pyarrow(arrow: pa.Table) -> None:
    frame, origin = with_origin(arrow)
    assert origin is not None
    back = origin.give_back(frame)
    assert back.schema.types == arrow.schema.types
    assert back.to_pylist() == arrow.to_pylist()


def test_a_type_that_would_round_the_answer_is_not_kept() -> None:
    table = pl.DataFrame(
        {
            "a": pl.Series([1, 2], dtype=pl.Int8),
            "b": pl.Series([0.5, 1.5], dtype=pl.Float32),
            "c": pl.Series(["0.50", "1.25"]).cast(pl.Decimal(10, 2)),
        }
    )
    for made in (table, table.to_arrow()):
        _, origin = with_origin(made)
        assert origin is not None
        back = origin.give_back(pd.DataFrame({"a": [1.25, 300.0], "b": [0.1, np.nan], "c": [0.5, 1.255]}))
        columns = {name: back[name].to_pylist() if made is not table else back[name].to_list() for name in "abc"}
        assert columns == {"a": [1.25, 300.0], "b": [0.1, None], "c": [0.5, 1.255]}


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


@pytest.fixture(scope="module")
def gaps() -> tuple[pd.DataFrame, Any, Any]:
    """Rows with gaps in texts and answers, and a pipeline fitted on them as pandas has them."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.default_rng(3)
    home = rng.choice(["own", "rent", "unknown"], 200)
    frame = pd.DataFrame({"income": rng.normal(30.0, 8.0, 200).round(2), "home": home}, dtype=object)
    frame["income"] = frame["income"].astype(float)
    frame.loc[home == "unknown", "home"] = np.nan
    y = frame["income"] - 4.0 * frame["home"].isna() + rng.normal(0, 4, 200) > 28
    encode = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(handle_unknown="ignore"), ["home"]))
    return frame, y, make_pipeline(encode, LogisticRegression(tol=1e-8)).fit(frame, y)


GAPPED: dict[str, Any] = {
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "nullable": pd.DataFrame.convert_dtypes,
    "arrow in pandas": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "categories of Polars": lambda frame: pl.from_pandas(frame).with_columns(pl.col("home").cast(pl.Categorical)),
    "decimals of Polars": lambda frame: pl.from_pandas(frame).with_columns(pl.col("income").cast(pl.Decimal(9, 2))),
    "decimals": lambda frame: frame.assign(income=[Decimal(repr(value)) for value in frame["income"]]),
    "None": lambda frame: frame.astype({"home": object}).where(frame.notna(), None),
}


@pytest.mark.parametrize("kind", GAPPED)
def test_a_gap_is_the_one_that_the_pipeline_knows_whatever_the_table(gaps: Any, kind: str) -> None:
    """To the encoder NaN is a value of its own, and None or ``pd.NA`` in its place is none that it heard of."""
    frame, y, pipeline = gaps
    refused = np.flatnonzero(~pipeline.predict(frame))[:6]
    assert frame["home"].iloc[refused].isna().any()
    expected = rocerf.Rocerf(rocerf.from_pipeline(pipeline, frame, y), 2, cost="l1").explain(frame.iloc[refused])
    model = rocerf.from_pipeline(pipeline, GAPPED[kind](frame), y)
    answers = rocerf.Rocerf(model, 2, cost="l1").explain(GAPPED[kind](frame.iloc[refused]))
    np.testing.assert_allclose(answers.matrix, expected.matrix, atol=1e-9)


@pytest.mark.parametrize("made", [pl.from_pandas, pa.Table.from_pandas, nw.from_native, nw_stable.from_native])
def test_whoever_holds_the_table_a_model_is_asked_alike(gaps: Any, made: Any) -> None:
    frame, y, pipeline = gaps
    model = rocerf.from_pipeline(pipeline, frame, y)
    np.testing.assert_array_equal(model.predict(made(frame)), pipeline.predict(frame))
    np.testing.assert_allclose(model.deployed_score(made(frame)), model.deployed_score(frame), atol=1e-12)


def test_types_of_arrow_in_pandas_come_back() -> None:
    table = pa.table({"a": [1.5, 2.5, 4.0], "b": pa.array(["x", "y", "x"]), "c": pa.array(["p", "q", "q"])})
    frame = table.cast(pa.schema([("a", pa.float64()), ("b", pa.string()), ("c", pa.large_string())])).to_pandas(
        types_mapper=pd.ArrowDtype
    )
    frames = Frames.of(rocerf.FeatureSchema.from_frame(frame), frame)
    back = frames.decode(frames.encode(frame)[0])
    assert back.dtypes.tolist() == frame.dtypes.tolist()
    assert back.equals(frame)


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
