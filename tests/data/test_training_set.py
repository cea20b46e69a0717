"""Rows, labels and ids of a training set: what is kept, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from rocerf.data.training_set import TrainingSet
from rocerf.errors import ColumnError, DataError, IdError, LabelError, RocerfError

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
Y = ["no", "yes", "yes", "no"]


def rows(**options: Any) -> TrainingSet:
    """Four rows, with any argument replaced."""
    given: dict[str, Any] = {"X": X, "y": Y, "ids": ["a", "b", "c", "d"], "favourable": "yes"} | options
    return TrainingSet(given.pop("X"), given.pop("y"), **given)


def test_what_a_training_set_knows() -> None:
    train = rows(sample_weight=[1, 2, 0, 1])
    assert len(train) == 4
    np.testing.assert_array_equal(train.X, X)
    assert train.y.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert train.ids.tolist() == ["a", "b", "c", "d"]
    assert train.weights is not None
    assert train.weights.tolist() == [1.0, 2.0, 0.0, 1.0]
    assert (train.favourable, train.unfavourable) == ("yes", "no")
    assert (train.columns, train.from_frame) == (("x0", "x1"), False)
    assert repr(train) == "TrainingSet(4 rows x 2 columns, 2 'yes', 2 'no')"
    answers = TrainingSet(X, [label == "yes" for label in Y])
    assert repr(answers) == "TrainingSet(4 rows x 2 columns, 2 True, 2 False)"


def test_a_frame_brings_names_and_ids() -> None:
    frame = pd.DataFrame(X, columns=["age", "income"], index=[5, 7, 9, 11])
    train = TrainingSet(frame, pd.Series(Y, index=[5, 7, 9, 11]), favourable="yes")
    assert (train.columns, train.from_frame) == (("age", "income"), True)
    assert train.ids.tolist() == [5, 7, 9, 11]
    pd.testing.assert_frame_equal(train.frame(), frame)
    assert train.without([7]).from_frame


@pytest.mark.parametrize(
    ("labels", "favourable"),
    [
        ([0, 1, 1, 0], 1),
        ([False, True, True, False], True),
        ([0.0, 1.0, 1.0, 0.0], 1),
        ([1, -1, -1, 1], -1),
        (np.array([[0], [1], [1], [0]]), 1),
        (pd.Series([0, 1, 1, 0], dtype="Int64"), 1),
        (pd.Categorical(["n", "y", "y", "n"]), "y"),
        (["1", 1, 1, "1"], 1),
    ],
)
def test_any_two_labels(labels: Any, favourable: Any) -> None:
    assert rows(y=labels, favourable=favourable).y.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_nothing_can_be_written() -> None:
    given_x, given_y = X.copy(), np.array([0, 1, 1, 0])
    train = TrainingSet(given_x, given_y, sample_weight=np.ones(4))
    given_x[0, 0], given_y[0] = 99.0, 1
    assert (train.X[0, 0], train.y[0]) == (1.0, 0.0)
    for made in (train, train.without([1])):
        for array in (made.X, made.y, made.ids, made.weights, made.spread):
            assert array is not None
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_without_keeps_the_ids_of_the_others() -> None:
    train = rows(sample_weight=[1, 2, 3, 4])
    left = train.without(["d", "b", "b"])
    assert left.ids.tolist() == ["a", "c"]
    assert left.X.tolist() == [[1.0, 10.0], [3.0, 30.0]]
    assert left.y.tolist() == [0.0, 1.0]
    assert left.weights is not None
    assert left.weights.tolist() == [1.0, 3.0]
    assert left.without(["a"]).ids.tolist() == ["c"]
    assert len(train) == 4
    assert left.favourable == "yes"
    assert left.unfavourable == "no"


def test_without_takes_any_sequence_of_ids() -> None:
    train = TrainingSet(X, [0, 1, 1, 0], ids=[10, 20, 30, 40])
    for gone in ([20, 30], (20, 30), {20, 30}, np.array([20, 30]), pd.Series([20, 30]), (i for i in (20, 30))):
        assert train.without(gone).ids.tolist() == [10, 40]
    assert train.without([]).ids.tolist() == [10, 20, 30, 40]
    assert train.positions([40, 10, 40]).tolist() == [0, 3]


def test_ids_of_mixed_types_stay_what_they_are() -> None:
    assert rows(ids=[1, "a", "1", 4.5]).without([1, "1"]).ids.tolist() == ["a", 4.5]


def test_ids_may_be_dates_or_tuples_of_an_index() -> None:
    dates = pd.date_range("2020-01-01", periods=4)
    train = TrainingSet(pd.DataFrame(X, index=dates), [0, 1, 1, 0])
    assert len(train.without([dates[0]])) == 3
    pairs = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1), ("y", 2)])
    assert len(TrainingSet(pd.DataFrame(X, index=pairs), [0, 1, 1, 0]).without([("x", 2)])) == 3


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("make", [pd.date_range, pd.timedelta_range], ids=["dates", "spans"])
def test_times_as_ids_are_found_however_they_are_given(make: Any, unit: str) -> None:
    """NumPy gives bare numbers for nanoseconds, which pandas 2 always has."""
    start = "2020-01-01" if make is pd.date_range else "1 day"
    times = make(start, periods=4).as_unit(unit)
    train = TrainingSet(pd.DataFrame(X, index=times), [0, 1, 1, 0])
    for wanted in (
        times[:1],
        [times[0]],
        times.to_numpy()[:1],
        times.to_numpy().astype(f"{times.dtype.kind}8[ns]")[:1],
    ):
        assert train.positions(wanted).tolist() == [0]
    assert train.positions([times.to_numpy()[2]]).tolist() == [2]
    assert train.positions(train.ids[1:3]).tolist() == [1, 2]
    assert train.without(times[:2]).ids.tolist() == list(times[2:])
    with pytest.raises(IdError):
        train.positions([times[0].value])
    finer = make(start, periods=4, freq="ns")
    exact = TrainingSet(pd.DataFrame(X, index=finer), [0, 1, 1, 0])
    assert exact.without([finer[1]]).ids.tolist() == [finer[0], finer[2], finer[3]]


def test_spread_is_one_where_a_column_is_constant() -> None:
    train = TrainingSet([[1.0, 0.1], [3.0, 0.1], [1.0, 0.1], [3.0, 0.1]], [0, 1, 0, 1])
    assert train.spread.tolist() == [1.0, 1.0]
    assert rows().spread == pytest.approx(X.std(axis=0))


def test_with_weights() -> None:
    train = rows()
    assert train.weights is None
    weighted = train.with_weights([1, 0, 2, 3])
    assert weighted.weights is not None
    assert weighted.weights.tolist() == [1.0, 0.0, 2.0, 3.0]
    assert weighted.ids.tolist() == train.ids.tolist()
    with pytest.raises(DataError, match="Expected 4 sample weights"):
        train.with_weights([1.0])


def test_checksum_tells_rows_apart() -> None:
    base = rows().checksum
    assert rows().checksum == base
    others = [
        rows(X=X + 1e-9),
        rows(y=["yes", "no", "yes", "no"]),
        rows(sample_weight=np.ones(4)),
        rows(X=pd.DataFrame(X, columns=["a", "b"])),
        rows().without(["a"]),
    ]
    assert len({base, *(other.checksum for other in others)}) == 6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": [[1.0, np.nan]] * 4}, DataError, "finite numbers in the training rows, got nan in row 0"),
        ({"X": [[1.0, np.inf]] * 4}, DataError, "finite numbers in the training rows, got inf in row 0"),
        ({"X": [["a", "b"]] * 4}, ColumnError, "table of numbers for the training rows"),
        ({"X": [1.0, 2.0, 3.0, 4.0]}, ColumnError, "2-D table"),
        ({"X": np.empty((4, 0))}, ColumnError, "at least one column"),
        ({"X": np.empty((0, 2)), "y": [], "ids": []}, DataError, "at least one training row"),
        ({"X": pd.DataFrame(X, columns=["a", "a"])}, ColumnError, "got 'a' twice"),
        ({"X": pd.DataFrame({"a": list("wxyz")})}, ColumnError, "in column 'a'"),
        ({"y": ["no", "yes"]}, DataError, r"Expected 4 labels \(y\), one for each row, got shape \(2,\)"),
        ({"y": np.ones((4, 2))}, DataError, r"got shape \(4, 2\)"),
        ({"y": [["no"], ["yes", "no"], ["yes"], ["no"]]}, DataError, "ragged"),
        ({"y": None}, DataError, "Expected 4 labels"),
        ({"y": ["yes"] * 4}, LabelError, "exactly two classes in the labels, got 1: 'yes'"),
        ({"y": ["yes", "no", "maybe", "no"]}, LabelError, "got 3: 'yes', 'no', 'maybe'"),
        ({"y": ["yes", "no", None, "no"]}, LabelError, "got 1 missing"),
        ({"y": ["yes", np.nan, np.nan, "yes"]}, LabelError, "got 2 missing"),
        ({"y": [1.0, 0.0, np.nan, 1.0], "favourable": 1}, LabelError, "got 1 missing"),
        ({"y": pd.Series(["yes", "no", None, "no"])}, LabelError, "got 1 missing"),
        ({"favourable": "good"}, LabelError, "one of 'no' and 'yes', got 'good'; name it with favourable"),
        ({"favourable": 1}, LabelError, "got 1"),
        ({"favourable": None}, LabelError, "got None"),
        ({"favourable": ["yes"]}, LabelError, "got \\['yes'\\]"),
        ({"ids": ["a", "b", "a", "c"]}, IdError, "unique id for each of 4 rows, got 1 repeated .*'a'"),
        ({"ids": [1, 2, 1.0, 3]}, IdError, "repeated"),
        ({"ids": ["a", "b"]}, DataError, r"Expected 4 ids, one for each row, got shape \(2,\)"),
        ({"ids": ["a", "b", None, "c"]}, IdError, "missing or compound"),
        ({"ids": [1.0, 2.0, np.nan, 3.0]}, IdError, "missing or compound"),
        ({"ids": [{}, {}, {}, {}]}, IdError, "missing or compound"),
        ({"X": pd.DataFrame(X, index=[1, 1, 2, 3]), "ids": None}, IdError, "reset the DataFrame's index"),
        ({"sample_weight": [1, 1, -1, 1]}, DataError, "not negative .* got values from -1.0 to 1.0"),
        ({"sample_weight": [1, 1, np.nan, 1]}, DataError, "finite"),
        ({"sample_weight": [1, 1, np.inf, 1]}, DataError, "finite"),
        ({"sample_weight": [0, 0, 0, 0]}, DataError, "not all zero"),
        ({"sample_weight": [1, 1]}, DataError, "Expected 4 sample weights"),
        ({"sample_weight": ["a", "b", "c", "d"]}, DataError, "numbers as sample weights"),
    ],
)
def test_bad_input_ends_in_an_error_of_ours(options: dict[str, Any], error: type[RocerfError], message: str) -> None:
    with pytest.raises(error, match=message):
        rows(**options)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a", "z"], IdError, "got 1 unknown: 'z'; known ids look like"),
        (list("stuvwxyz"), IdError, r"got 8 unknown: 's', 't', 'u', 'v', 'w', \.\.\."),
        ([0], IdError, "got 1 unknown: 0"),
        (["a", "b", "c", "d"], DataError, "fewer than all 4 rows, got 4 ids"),
        ("ab", IdError, r"Expected a sequence of ids, got 'ab' alone; put it in a list: \['ab'\]"),
        (3, IdError, "Expected a sequence of ids, got 3 alone"),
        (None, IdError, "Expected a sequence of ids"),
        ([["a"]], IdError, r"got 1 unknown: \['a'\]"),
        (np.array([["a", "b"]]), IdError, "got 1 unknown"),
    ],
)
def test_deleting_what_cannot_be_deleted(ids: Any, error: type[RocerfError], message: str) -> None:
    with pytest.raises(error, match=message):
        rows().without(ids)


def test_a_positive_weight_must_remain() -> None:
    with pytest.raises(DataError, match="row of positive weight to remain, got 3 rows of weight 0"):
        rows(sample_weight=[0, 1, 0, 0]).without(["b"])
