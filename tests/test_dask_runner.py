"""A local cluster of real worker processes: the same results, and lost workers and schedulers that cost no truth."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import numpy as np
import pytest

from parquet_tables import table_of, written
from problems import random_training_set
from rocerf import LogisticModel, Rocerf, TrainingSet, dask_runner, load_dataset, running
from rocerf.dask_runner import DaskRunner, packed
from rocerf.deletion import batched_newton, row_effects, streamed_rows
from rocerf.errors import FileFormatError, OptionError, RunnerError
from rocerf.models.logistic import objective
from rocerf.passes import chunks, watching
from shared_data import SHARED, needs_shared

distributed = pytest.importorskip("distributed", reason="needs the extra scale")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster() as made, distributed.Client(made) as known:
        yield known


def cluster() -> Any:
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True)


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TrainingSet, TrainingSet]:
    """The rows on the disk in 7 partitions, and in memory; passes are of many chunks."""
    monkeypatch.setattr(objective, "CHUNK", 60)
    memory = load_dataset("german").train
    folder = written(table_of(memory), tmp_path / "rows", 7)
    return TrainingSet.from_parquet(folder, label="good", id="who"), memory


def test_the_same_model_and_recourses(client: Any, german: tuple[TrainingSet, TrainingSet]) -> None:
    disk, memory = german
    people = load_dataset("german").test.frame().iloc[:30]
    expected = Rocerf(LogisticModel.fit(memory), 4, promise="first_order").explain(people)
    seen = client.run(lambda dask_worker: dask_worker.state.executed_count)
    with running(client):
        model = LogisticModel.fit(disk)
        found = Rocerf(model, 4, promise="first_order").explain(people)
        left = model.without(disk.ids[:5])
    after = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert all(after[worker] > seen[worker] + 5 for worker in seen)
    assert expected.answered.any()
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-9)
    truth = LogisticModel.fit(memory).without(memory.ids[:5])
    np.testing.assert_allclose(left.theta, truth.theta, atol=1e-9)


@pytest.mark.parametrize("promise", ["first_order", "retrained"])
def test_large_tables_are_walked_over_by_the_workers(
    client: Any, promise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adversary and all: the passes run there, parameters scattered, and the recourses are those of one process."""
    data = load_dataset("adult")
    memory = data.train.without(data.train.ids[4300:])
    denied = data.test.frame().iloc[:40]
    denied = denied[LogisticModel.fit(memory).predict(denied) == 0].iloc[:4]
    expected = Rocerf(LogisticModel.fit(memory), 6, promise=promise, effort="quick").explain(denied)
    for name, value in (("HELD", 0), ("SCATTERED", 0)):
        monkeypatch.setattr(batched_newton if name == "HELD" else dask_runner, name, value)
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 1000)
    monkeypatch.setattr(row_effects, "DISK_CHUNK_BYTES", 2**18)
    folder = written(table_of(memory), tmp_path / "rows", 7)
    disk = TrainingSet.from_parquet(folder, label="good", id="who")
    model = LogisticModel.fit(disk)
    seen = client.run(lambda dask_worker: dask_worker.state.executed_count)
    told: list[tuple[int, int]] = []
    with running(client), watching(lambda done, total: told.append((done, total))):
        found = Rocerf(model, 6, promise=promise, effort="quick").explain(denied)
    after = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert all(after[worker] > seen[worker] for worker in seen)
    assert expected.answered.any()
    assert any(done == total for done, total in told)
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-9)


@needs_shared
@pytest.mark.parametrize(
    ("promise", "held"), [("first_order", 0), ("retrained", 0), ("retrained", batched_newton.HELD)]
)
def test_compas_on_workers(
    client: Any, promise: str, held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamed over, and held, where the table is of several chunks and small enough to be sent."""
    data = load_dataset("compas", path=SHARED / "openxai")
    memory = LogisticModel.fit(data.train)
    denied = data.test.frame().iloc[:40]
    denied = denied[memory.predict(denied) == 0].iloc[:3]
    expected = Rocerf(memory, 4, promise=promise, effort="quick").explain(denied)
    monkeypatch.setattr(batched_newton, "HELD", held)
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 1000)
    folder = written(table_of(data.train), tmp_path / "rows", 7)
    model = LogisticModel.fit(TrainingSet.from_parquet(folder, label="good", id="who"))
    with running(client):
        found = Rocerf(model, 4, promise=promise, effort="quick").explain(denied)
    assert expected.answered.any()
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-9)


def test_the_same_rows_go_to_the_same_worker(client: Any) -> None:
    """In every pass, however it is cut: a worker has decoded them already."""

    def where(rows: slice) -> dict[int, int]:
        time.sleep(0.02)
        return {row: os.getpid() for row in range(rows.start, rows.stop)}

    def of_pass(chunk: int) -> dict[int, int]:
        return DaskRunner(client).run(where, lambda one, two: one | two, chunks(240, chunk))

    first = of_pass(3)
    assert len(set(first.values())) == 2
    for chunk in (3, 10):
        again = of_pass(chunk)
        assert sum(again[row] == first[row] for row in first) >= 180  # a worker that is behind may be helped


def test_an_address_is_taken_as_it_is(client: Any, german: tuple[TrainingSet, TrainingSet]) -> None:
    disk, memory = german
    with running("dask", scheduler=client.scheduler.address):
        found = LogisticModel.fit(disk)
    np.testing.assert_allclose(found.theta, LogisticModel.fit(memory).theta, atol=1e-9)
    with pytest.raises(OptionError, match="address of a scheduler"), running("dask"):
        pass


def test_clients_that_cannot_be_used(client: Any) -> None:
    async def given() -> None:
        async with distributed.Client(client.scheduler.address, asynchronous=True) as other:
            with running(other):
                pass

    with pytest.raises(OptionError, match="got an asynchronous one"):
        asyncio.run(given())
    with pytest.raises(OptionError, match="or a Dask client, got LocalCluster"), running(client.cluster):
        pass


def test_rows_in_memory_are_not_sent() -> None:
    small, large = random_training_set(0, n=50), np.zeros((1000, 200))
    assert packed(lambda rows: small.X[rows]) is not None
    assert packed(lambda rows: large[rows]) is None


def test_a_worker_killed_in_the_middle_of_a_pass(tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def partial(rows: slice) -> int:
        time.sleep(0.05)
        if rows.start == 20 and not marker.exists():
            marker.write_text("once")
            os.kill(os.getpid(), signal.SIGKILL)
        return sum(range(40)[rows])

    with cluster() as made, distributed.Client(made) as known:
        found = DaskRunner(known).run(partial, lambda one, two: one + two, chunks(40, 2))
    assert marker.exists()
    assert found == sum(range(40))


def test_all_workers_killed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others come in their place, at other addresses: tasks that were meant for the dead must not wait for them."""
    monkeypatch.setattr(dask_runner, "LOOK", 0.5)
    monkeypatch.setattr(dask_runner, "STRANDED", 1.0)

    def partial(rows: slice) -> int:
        (tmp_path / f"{os.getpid()}").write_text("begun")
        time.sleep(0.2)
        return sum(range(40)[rows])

    def kill(pids: list[int]) -> None:
        while len(list(tmp_path.iterdir())) < len(pids):
            time.sleep(0.01)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    with cluster() as made, distributed.Client(made) as known:
        pids = list(known.run(os.getpid).values())
        killer = Thread(target=kill, args=(pids,))
        killer.start()
        found = DaskRunner(known).run(partial, lambda one, two: one + two, chunks(40, 2))
        killer.join()
        assert not set(pids) & set(known.run(os.getpid).values())
    assert found == sum(range(40))


def test_no_worker_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_runner, "LOOK", 0.2)
    monkeypatch.setattr(dask_runner, "PATIENCE", 1.0)

    def partial(rows: slice) -> int:
        time.sleep(5.0)
        return 1

    with cluster() as made, distributed.Client(made) as known:
        Timer(0.5, made.scale, (0,)).start()
        with pytest.raises(RunnerError, match="nothing was computed"):
            DaskRunner(known).run(partial, lambda one, two: one + two, chunks(40, 2))


def test_an_error_of_the_pass_itself_comes_out(client: Any) -> None:
    def own(rows: slice) -> int:
        raise FileFormatError("Expected a partition, found none.")

    with pytest.raises(FileFormatError, match="Expected a partition"):
        DaskRunner(client).run(own, lambda one, two: one + two, chunks(40, 2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("other numbers", "changed meanwhile"),
        ("other row groups", "a readable table at .*part-006.*row group"),
        ("gone", "Expected the partition .*part-006.*, found no such file"),
        ("cut off", "a readable table at .*part-006"),
    ],
)
def test_a_partition_that_changes_is_refused(
    client: Any, german: tuple[TrainingSet, TrainingSet], change: str, said: str
) -> None:
    import pandas as pd

    disk, _ = german
    path = Path(disk.X.table.pieces[-1].name)
    table = pd.read_parquet(path)
    if change == "other numbers":
        table[disk.columns[0]] += 1.0
        table.to_parquet(path, index=False, row_group_size=100)
    elif change == "other row groups":
        table.to_parquet(path, index=False)
    elif change == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100])
    with running(client), pytest.raises(FileFormatError, match=said):
        LogisticModel.fit(disk, scale=False)


def test_a_scheduler_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_runner, "PATIENCE", 1.0)
    made = cluster()
    known = distributed.Client(made)
    made.close()
    with pytest.raises(RunnerError, match="nothing was computed"):
        DaskRunner(known).run(lambda rows: 1, lambda one, two: one + two, chunks(40, 2))
    known.close()
    with pytest.raises(OptionError, match="Expected a Dask scheduler at"):
        DaskRunner.at("tcp://127.0.0.1:9")
