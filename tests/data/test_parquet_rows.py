"""Rows on the disk are the rows in memory: the same table, model, deletions; and errors that say what is wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from parquet_tables import table_of, written
from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.data import parquet_rows
from rocerf.errors import ColumnError, DataError, FileFormatError, IdError, LabelError, RocerfError

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture
def table() -> pd.DataFrame:
    return table_of(random_training_set(5, n=230))


def on_disk(folder: object, **options: object) -> TrainingSet:
    return TrainingSet.from_parquet(folder, **{"label": "good", "id": "who", **options})


def in_memory(table: pd.DataFrame) -> TrainingSet:
    return TrainingSet(table.drop(columns=["good", "who"]), table["good"], table["who"])


@pytest.mark.parametrize("parts", [1, 7, 40])
def test_the_same_rows_however_they_are_cut(table: pd.DataFrame, parts: int, tmp_path: Path) -> None:
    disk, memory = on_disk(written(table, tmp_path / "rows", parts)), in_memory(table)
    assert disk.checksum == memory.checksum
    assert disk.on_disk
    assert disk.columns == memory.columns
    for name in ("spread", "centre", "ids", "y"):
        np.testing.assert_array_equal(getattr(disk, name), getattr(memory, name))
    for part in (slice(0, 3), slice(90, 200), slice(5, 5), slice(-7, None), slice(0, 200, 13), [4, -1, 4], 17):
        np.testing.assert_array_equal(disk.X[part], memory.X[part])
    np.testing.assert_array_equal(disk.X[memory.y == 1], memory.X[memory.y == 1])
    np.testing.assert_array_equal(np.asarray(disk.X), memory.X)


def test_deletions_are_masks_over_the_same_table(table: pd.DataFrame, tmp_path: Path) -> None:
    disk, memory = on_disk(written(table, tmp_path / "rows", 7)), in_memory(table)
    rng, whole = np.random.default_rng(0), disk.X.table
    for _ in range(6):
        gone = rng.choice(memory.ids, size=int(rng.integers(1, 30)), replace=False)
        disk, memory = disk.without(gone), memory.without(gone)
        assert disk.checksum == memory.checksum
        assert disk.X.table is whole
        np.testing.assert_array_equal(disk.ids, memory.ids)
        start, stop = np.sort(rng.integers(0, len(memory), size=2))
        np.testing.assert_array_equal(disk.X[start:stop], memory.X[start:stop])
        places = rng.integers(0, len(memory), size=9)
        np.testing.assert_array_equal(disk.X[places], memory.X[places])
        np.testing.assert_array_equal(disk.positions(memory.ids[places]), memory.positions(memory.ids[places]))
    with pytest.raises(IdError, match="got 1 unknown"):
        disk.positions([gone[0]])
    one, other = LogisticModel.fit(disk), LogisticModel.fit(memory)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-12)
    later, truly = one.without(disk.ids[:5]), other.without(disk.ids[:5])
    np.testing.assert_allclose(later.theta, truly.theta, atol=1e-12)


@pytest.mark.parametrize(
    "ids",
    [
        [f"person {row}" for row in range(230)],
        [2**62 + row for row in range(230)],
        [-row for row in range(230)],
        [date.fromordinal(700_000 + row) for row in range(230)],
        [row / 7 for row in range(230)],
    ],
    ids=["texts", "large", "negative", "dates", "fractions"],
)
def test_ids_of_any_type(table: pd.DataFrame, ids: list, tmp_path: Path) -> None:
    disk = on_disk(written(table.assign(who=ids), tmp_path / "rows", 3))
    assert disk.ids.tolist() == ids
    assert disk.positions([ids[200], ids[3], ids[3]]).tolist() == [3, 200]
    with pytest.raises(IdError):
        disk.positions(["nobody"])
    repeated = written(table.assign(who=[*ids[:-1], ids[4]]), tmp_path / "again", 3)
    with pytest.raises(IdError, match="more than once"):
        on_disk(repeated)


@pytest.mark.parametrize("kind", ["dictionary", "string_view", "large_string"])
def test_texts_are_no_objects_however_they_are_written(table: pd.DataFrame, kind: str, tmp_path: Path) -> None:
    """Which would be 60 bytes a row in memory."""
    ids = pa.array([f"person {row}" for row in range(230)])
    ids = ids.dictionary_encode() if kind == "dictionary" else ids.cast(getattr(pa, kind)())
    columns = {name: table[name] for name in table.columns} | {"who": ids}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    disk = on_disk(tmp_path / "rows.parquet")
    assert disk.ids.dtype.kind == "U"
    assert disk.positions(["person 200"]).tolist() == [200]


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_neighbours_beyond_53_bits_are_different_rows(table: pd.DataFrame, kind: str, tmp_path: Path) -> None:
    """Whole numbers of two types meet as fractions, in which these would be the same row."""
    ids = np.arange(230, dtype=kind) + np.array(2**62, dtype=kind)
    ids[0] = 5  # so wide a range, and so many, that they are sorted rather than looked up or compared one by one
    disk = on_disk(written(table.assign(who=ids), tmp_path / "rows", 3))
    many = [int(one) for one in ids[::2]]
    assert disk.positions(many).tolist() == list(range(0, 230, 2))
    with pytest.raises(IdError, match="got 2 unknown"):
        disk.positions([*many, -1, 2**64 - 1])


def test_other_texts_of_the_same_key_are_no_repetition(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "_keys", lambda ids: np.zeros(len(ids), np.uint64))
    monkeypatch.setattr(parquet_rows, "CHUNK", 50)
    folder = written(table, tmp_path / "rows", 2)
    assert len(on_disk(folder)) == 230


def test_a_dataset_a_file_a_list_and_partitions(table: pd.DataFrame, tmp_path: Path) -> None:
    expected = in_memory(table).checksum
    folder = written(table, tmp_path / "rows", 4)
    assert on_disk(ds.dataset(folder)).checksum == expected
    assert on_disk(sorted(folder.iterdir())).checksum == expected
    assert on_disk(ds.dataset(pa.Table.from_pandas(table))).checksum == expected
    table.to_parquet(tmp_path / "one.parquet", index=False)
    assert on_disk(str(tmp_path / "one.parquet")).checksum == expected
    assert TrainingSet.from_parquet(tmp_path / "one.parquet", label="good", columns=table.columns[:2]).ids[9] == 9
    indexed = table.set_index("who")
    indexed.to_parquet(tmp_path / "indexed.parquet")
    kept = TrainingSet.from_parquet(tmp_path / "indexed.parquet", label="good")
    assert kept.checksum == expected
    assert kept.ids.tolist() == table["who"].tolist()
    parted = table.assign(year=np.arange(len(table)) % 3 + 2020)
    parted.to_parquet(tmp_path / "years", partition_cols=["year"], index=False)
    years = on_disk(tmp_path / "years")
    assert years.X[:, years.columns.index("year")].tolist() == sorted(parted["year"])
    with pytest.raises(DataError, match="whole files"):
        on_disk(ds.dataset(folder).filter(ds.field("who") > 5))


@pytest.mark.parametrize(
    ("change", "options", "error", "said"),
    [
        ({"who": [[row] for row in range(230)]}, {}, IdError, "a single value as the id of a row, got list"),
        ({"who": [{"a": row} for row in range(230)]}, {}, IdError, "a single value as the id of a row, got struct"),
        ({"who": [np.nan, *range(1, 230)]}, {}, DataError, "Expected an id in every row of"),
        ({"who": ["a", "a\0", *map(str, range(2, 230))]}, {}, IdError, "an empty letter at their end"),
        ({"w": ["heavy"] * 230}, {"sample_weight": "w"}, ColumnError, "numbers as sample weights, got .*string"),
        ({"w": [None, *[1.0] * 229]}, {"sample_weight": "w"}, DataError, "missing or infinite ones in column 'w'"),
        ({}, {"columns": ["x0", "good"]}, ColumnError, "features without the label, got 'good'"),
        ({}, {"columns": "x0"}, ColumnError, "a list of feature columns, got 'x0' alone"),
        ({"good": [[row % 2] for row in range(230)]}, {}, LabelError, "a single value as the label of a row, got list"),
    ],
    ids=[
        *("list ids", "compound ids", "ids that are no number", "empty letters", "weights", "no weight", "label"),
        *("one column as a text", "list labels"),
    ],
)
def test_ids_weights_and_features_that_cannot_be(
    table: pd.DataFrame, change: dict, options: dict, error: type, said: str, tmp_path: Path
) -> None:
    changed = pa.table({**{name: table[name] for name in table.columns}, **change})
    pq.write_table(changed, tmp_path / "rows.parquet", row_group_size=100)
    with pytest.raises(error, match=said):
        on_disk(tmp_path / "rows.parquet", **options)


def test_odd_ways_of_writing_the_same_rows(table: pd.DataFrame, tmp_path: Path) -> None:
    """Row groups of one row, empty partitions, labels apart, other types of numbers, labels and texts."""
    plain, expected = pa.table({name: table[name] for name in table.columns}), in_memory(table)
    good = table["good"].to_numpy()
    texts = pa.array(np.where(good == 1, "yes", "no")).dictionary_encode()
    ways = {
        "one row each": (plain, {"row_group_size": 1}, {}),
        "labels of a dictionary": (plain.set_column(plain.column_names.index("good"), "good", texts), {}, "yes"),
        "labels of true and false": (plain.set_column(plain.column_names.index("good"), "good", [good == 1]), {}, 1),
    }
    for name, (written_as, options, favourable) in ways.items():
        pq.write_table(written_as, tmp_path / f"{name}.parquet", **options)
        read = on_disk(tmp_path / f"{name}.parquet", **({"favourable": favourable} if favourable else {}))
        np.testing.assert_array_equal(np.asarray(read.X), expected.X)
        np.testing.assert_array_equal(np.asarray(read.y), expected.y)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, (start, stop) in enumerate([(0, 0), (0, 10), (10, 10), (10, 230), (230, 230)]):
        pq.write_table(plain.slice(start, stop - start), folder / f"{number}.parquet")
    assert on_disk(folder).checksum == expected.checksum
    narrow = plain.set_column(0, plain.column_names[0], [plain.column(0).cast("float32")])
    pq.write_table(narrow, tmp_path / "narrow.parquet")
    np.testing.assert_array_equal(
        on_disk(tmp_path / "narrow.parquet").X[:, 0], expected.X[:, 0].astype(np.float32).astype(np.float64)
    )


def _spoiled(table: pd.DataFrame, folder: Path, change: str) -> Path:
    path = written(table, folder, 5) / "part-002.parquet"
    part = pd.read_parquet(path)
    name = table.columns[0]
    if change == "column gone":
        part = part.drop(columns=name)
    elif change == "other type":
        part[name] = part[name].astype(str)
    elif change == "missing number":
        part.loc[part.index[3], name] = np.nan
    elif change == "column more":
        part["income"] = 1.0
    elif change == "third label":
        part.loc[part.index[3], "good"] = 7
    part.to_parquet(path, index=False)
    if change == "no parquet":
        path.write_bytes(b"rows")
    return folder


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("column gone", ColumnError, "none named 'x0' in .*part-002"),
        ("column more", ColumnError, "of the first file in every partition, got 'income' besides in .*part-002"),
        ("other type", ColumnError, "'x0' to be double in every partition.*part-002"),
        ("missing number", DataError, "missing or infinite ones in column 'x0' of .*part-002"),
        ("third label", LabelError, "exactly two classes in the labels, got at least 3"),
        ("no parquet", FileFormatError, "part-002"),
    ],
)
def test_a_spoiled_partition(table: pd.DataFrame, change: str, error: type, said: str, tmp_path: Path) -> None:
    folder = _spoiled(table, tmp_path / "rows", change)
    with pytest.raises(error, match=said):
        on_disk(folder)


def test_a_damaged_page_of_a_file_with_checksums(table: pd.DataFrame, tmp_path: Path) -> None:
    """Whose numbers would be other ones, in silence."""
    path = tmp_path / "rows.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({name: table[name] for name in table.columns}), path, **plain)
    assert on_disk(path).checksum == in_memory(table).checksum
    data = bytearray(path.read_bytes())
    data[400] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"rows\.parquet.*CRC"):
        on_disk(path)


def test_a_first_partition_without_a_column(table: pd.DataFrame, tmp_path: Path) -> None:
    """Which says what the columns are: the others must not lose theirs in silence."""
    folder = written(table, tmp_path / "rows", 5)
    table.iloc[:46].drop(columns="x1").to_parquet(folder / "part-000.parquet", index=False)
    with pytest.raises(ColumnError, match=r"got 'x1' besides in .*part-001"):
        on_disk(folder)
    assert on_disk(folder, columns=["x0", "x2"]).columns == ("x0", "x2")


def test_a_list_of_paths_and_something_else(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="a list of paths or a PyArrow dataset, got int"):
        on_disk([tmp_path / "rows.parquet", 5])


def test_a_deletion_copies_no_column_into_memory(tmp_path: Path) -> None:
    """Labels, ids and weights of the rows left are on the disk as the rows are."""
    rows = 500_000
    X = np.random.default_rng(0).normal(size=rows)
    pq.write_table(pa.table({"x": X, "good": (X > 0).astype(int), "w": np.abs(X)}), tmp_path / "rows.parquet")
    disk = on_disk(tmp_path / "rows.parquet", id=None, columns=["x"], sample_weight="w")
    tracemalloc.start()
    try:
        left = disk.without([7, 499_999]).without([3])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * rows / 2
    assert left.ids[[0, 3, 6, -1]].tolist() == [0, 4, 8, 499_998]
    kept = np.delete(np.arange(rows), [3, 7, rows - 1])
    np.testing.assert_array_equal(left.y, (X > 0)[kept])
    np.testing.assert_array_equal(left.weights, np.abs(X)[kept])
    assert not left.ids.flags.writeable


def test_what_is_not_there(table: pd.DataFrame, tmp_path: Path) -> None:
    folder = written(table.assign(job="clerk"), tmp_path / "rows", 5)
    described = ds.dataset(folder)
    for options, error, said in (
        ({"label": "bad"}, ColumnError, "a column 'bad'"),
        ({"id": "name"}, ColumnError, "a column 'name'"),
        ({"columns": ["x0", "x77"]}, ColumnError, "a column 'x77'"),
        ({}, ColumnError, "got .*string in column 'job'"),
        ({"columns": ["x0"], "favourable": "yes"}, LabelError, "Expected the favourable label to be one of"),
        ({"columns": ["x0"], "label": "x1"}, LabelError, "two classes"),
    ):
        with pytest.raises(error, match=said):
            on_disk(folder, **options)
    with pytest.raises(FileFormatError, match="found no such file"):
        on_disk(tmp_path / "nowhere")
    (folder / "part-003.parquet").unlink()
    with pytest.raises(FileFormatError, match=r"partition .*part-003.parquet, found no such file"):
        on_disk(described, columns=["x0"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(RocerfError, match="found none"):
        on_disk(tmp_path / "empty")


def test_elsewhere_pieces_are_read_when_asked_for_and_must_be_the_same(table: pd.DataFrame, tmp_path: Path) -> None:
    folder = written(table, tmp_path / "rows", 5)
    train = on_disk(folder).without([table["who"][3], table["who"][60]])
    rows, labels = pickle.dumps(train.X), pickle.dumps(train.y)
    parquet_rows._OWN.pop(train.X.table.token)  # as in a process that did not read them
    elsewhere, there = pickle.loads(rows), pickle.loads(labels)
    assert not elsewhere.table._decoded.any()
    np.testing.assert_array_equal(elsewhere[1:9], train.X[1:9])
    np.testing.assert_array_equal(there[1:70], train.y[1:70])
    assert not elsewhere.table._decoded.all()
    path = folder / "part-004.parquet"
    changed = pd.read_parquet(path)
    changed["x0"] += 1.0
    changed.to_parquet(path, index=False)
    with pytest.raises(FileFormatError, match="changed meanwhile"):
        elsewhere[200:228]
    parquet_rows._RECEIVED.clear()


PEAK = """
import re, sys, threading, time
import numpy as np, rocerf

def anonymous():
    return int(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read()).group(1)) / 1024

peak, done = 0.0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous()); time.sleep(0.002)

rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0]], [0, 1, 0]))
import pyarrow.dataset
before = anonymous()
watcher = threading.Thread(target=watch); watcher.start()
train = rocerf.TrainingSet.from_parquet(sys.argv[1], label="good", id="who")
model = rocerf.LogisticModel.fit(train)
people = train.X[:6]
answers = rocerf.Rocerf(model, 20, promise="first_order").explain(people)
model.without(train.ids[:7])
done = True; watcher.join()
print(peak - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is asked of Linux")
def test_memory_stays_flat_from_a_hundred_thousand_rows_to_a_million(tmp_path: Path) -> None:
    peaks = []
    for parts in (1, 10):
        folder = tmp_path / str(parts)
        folder.mkdir()
        for number in range(parts):
            rng = np.random.default_rng(number)
            X = rng.normal(size=(100_000, 20))
            table = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
            table["good"] = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
            table["who"] = np.arange(len(X)) + number * len(X)
            table.to_parquet(folder / f"part-{number}.parquet", index=False, row_group_size=50_000)
        ran = subprocess.run(
            [sys.executable, "-c", PEAK, str(folder)], capture_output=True, text=True, check=True, timeout=300
        )
        peaks.append(float(ran.stdout))
    assert peaks[1] < peaks[0] + 100, peaks  # MiB; the rows themselves grow by 137
