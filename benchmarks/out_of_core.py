"""Rows on the disk: how time and memory grow from 10^5 to 10^7 rows, and what threads and a Dask cluster cost.

Tables of 20 columns made from Adult's distribution: its rows drawn again, measured columns with noise, those that lack
as noisy copies. Processor seconds of all processes, as multiples of the *floor* of the same run: reading the columns
once and one product in blocks for the people asked. Memory is the largest anonymous part beyond ``import rocerf``,
sampled while a step runs. Run: ``python -m benchmarks.out_of_core`` or with the numbers of rows, ``... 1e5 1e6``;
``retrained=1e6`` says up to which size ``retrained`` is measured, ``dask=1e7`` at which the cluster is.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import rocerf
from benchmarks.record import write_record
from rocerf.deletion import streamed_newton, threshold_pass
from rocerf.passes import one_blas_thread, over_rows, using

Array = NDArray[np.float64]

COLUMNS, GROUP, K = 20, 50_000, "0.5%"
PEOPLE, RETRAINED, DELETED = 100, (100,), 7


def drawn(rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows (m, 20) like Adult's, and their labels (m,)."""
    train = rocerf.load_dataset("adult").train
    chosen = rng.integers(len(train), size=rows)
    X = train.X[chosen][:, :COLUMNS].copy()
    answers = ((train.X == 0) | (train.X == 1)).all(axis=0)[:COLUMNS]
    X[:, ~answers] += rng.normal(size=(rows, int((~answers).sum()))) * train.spread[:COLUMNS][~answers] * 0.3
    more = [X[:, place % X.shape[1]] + rng.normal(size=rows) for place in range(COLUMNS - X.shape[1])]
    return np.column_stack([X, *more]), train.y[chosen]


def write_table(path: Path, rows: int) -> None:
    """So many rows as Parquet, in row groups of 50,000."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, GROUP):
        X, y = drawn(min(GROUP, rows - start), rng)
        table = pa.table({**{f"x{place}": X[:, place] for place in range(COLUMNS)}, "good": y.astype(np.int64)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def anonymous() -> float:
    """MiB of this process that are in no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """The largest anonymous memory while this context is open, MiB."""
    found, ended = [anonymous()], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            found[0] = max(found[0], anonymous())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def measured(action: Callable[[], Any], base: float) -> tuple[dict[str, float], Any]:
    """Processor seconds and memory beyond ``base`` MiB of an action, and what it returned."""
    gc.collect()
    with peak_memory() as peak:
        start = time.process_time()
        result = action()
        spent = time.process_time() - start
    return {"seconds": spent, "mib": peak[0] - base}, result


def floor(path: Path, people: int) -> float:
    """Reading the columns once and one product in blocks."""
    directions = np.ones((people, COLUMNS))
    total = 0.0
    start = time.process_time()
    with one_blas_thread():
        for batch in pq.ParquetFile(path).iter_batches(65_536, columns=[f"x{place}" for place in range(COLUMNS)]):
            X = np.column_stack([column.to_numpy() for column in batch.columns])
            for at in range(0, len(X), 1024):
                total += float((directions @ X[at : at + 1024].T)[0, 0])
    return time.process_time() - start


class PassCounter:
    """Counts passes over the rows, and of how many models they were."""

    def __init__(self) -> None:
        self.passes, self.models = 0, 0

    def __call__(self, partial: Any, merge: Any, rows: int, chunk: int, runner: Any) -> Any:
        """One pass, as :func:`rocerf.passes.over_rows`."""
        of = getattr(partial, "thetas", getattr(partial, "values", ()))
        self.passes, self.models = self.passes + 1, self.models + len(of)
        return over_rows(partial, merge, rows, chunk, runner)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Within this context."""
        for module in (streamed_newton, threshold_pass):
            setattr(module, "over_rows", self)  # noqa: B010
        try:
            yield
        finally:
            for module in (streamed_newton, threshold_pass):
                setattr(module, "over_rows", over_rows)  # noqa: B010


def at_size(path: Path, rows: int, retrained_up_to: float) -> tuple[dict[str, Any], rocerf.LogisticModel, Array]:
    """All steps at one number of rows."""
    base, least = anonymous(), floor(path, PEOPLE)
    row: dict[str, Any] = {"rows": rows, "floor_seconds": least}
    row["from_parquet"], train = measured(lambda: rocerf.TrainingSet.from_parquet(path, label="good"), base)
    row["fit"], model = measured(lambda: rocerf.LogisticModel.fit(train), base)
    people, _ = drawn(6 * PEOPLE, np.random.default_rng(1))
    people = people[model.predict(people) == 0][:PEOPLE]
    first = rocerf.Rocerf(model, K, promise="first_order")
    row["first_order"], answers = measured(lambda: first.explain(people), base)
    row["without"], _ = measured(lambda: model.without(train.ids[:DELETED]), base)
    row["recheck"], _ = measured(lambda: first.recheck(answers, train.ids[:DELETED]), base)
    for count in RETRAINED if rows <= retrained_up_to else ():
        counter = PassCounter()
        explainer = rocerf.Rocerf(model, K, promise="retrained")
        with counter.counting():
            row[f"retrained_{count}"], found = measured(lambda: explainer.explain(people[:count]), base)  # noqa: B023
        row[f"retrained_{count}"] |= {
            "answered": int(found.answered.sum()),
            "passes": counter.passes or None,  # none are counted where rows are held
            "passes_a_person": counter.models / count or None,
        }
        print(f"  retrained {count}: {row[f'retrained_{count}']}", flush=True)
    for step in row.values():
        if isinstance(step, dict):
            step["floors"] = step["seconds"] / least
    return row, model, people


def overhead(model: rocerf.LogisticModel) -> dict[str, float]:
    """A gradient and Hessian by threads, one after another, and by plain NumPy over the same rows in memory."""
    objective, theta = model.objective, model.theta
    X, sign = np.asarray(model.train.X), 1.0 - 2.0 * np.asarray(model.train.y)

    def plain() -> Array:
        hessian = np.zeros((len(theta), len(theta)))
        gradient = np.zeros(len(theta))
        for at in range(0, len(X), 8192):
            x = objective.design(X[at : at + 8192])
            z, e = x @ theta, sign[at : at + 8192]
            gradient += objective.loss.residual(z, e) @ x
            hessian += (x * objective.loss.curvature(z)[:, None]).T @ x
        return gradient

    times: dict[str, float] = {"numpy": np.inf, "serial": np.inf, "threads": np.inf}
    with one_blas_thread():
        for _ in range(3):
            for name in tuple(times):
                start = time.process_time()
                if name == "numpy":
                    plain()
                else:
                    with using(name):
                        objective.gradient_and_hessian(theta)
                times[name] = min(times[name], time.process_time() - start)
    return {**times, "threads_over_numpy": times["threads"] / times["numpy"]}


def on_dask(model: rocerf.LogisticModel, people: Array, least: float) -> dict[str, float]:
    """Two worker processes: their start, the first pass (row groups are decoded), further passes; processor seconds."""
    import distributed

    from rocerf.deletion.row_effects import StreamedRowEffects

    start = time.process_time()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster,
        distributed.Client(cluster) as client,
    ):

        def spent() -> float:
            workers = client.run(time.process_time)
            return time.process_time() + float(sum(workers.values()))

        began = {"start_seconds": spent() - start}
        effects, directions = StreamedRowEffects(model), model.score_gradient(people)
        k = max(1, len(model.train) // 200)
        passes = []
        for _ in range(2):
            before = spent()
            with rocerf.running(client):
                effects.worst(directions, k)
            passes.append(spent() - before)
        before = time.process_time()
        with using("threads"):
            effects.worst(directions, k)
        here = time.process_time() - before
    return {
        **began,
        "first_pass_seconds": passes[0],
        "pass_seconds": passes[1],
        "first_pass_floors": passes[0] / least,
        "pass_floors": passes[1] / least,
        "same_pass_in_threads_seconds": here,
    }


def main() -> int:
    """Print and record."""
    named = dict(text.split("=") for text in sys.argv[1:] if "=" in text)
    sizes = [int(float(text)) for text in sys.argv[1:] if "=" not in text] or [10**5, 10**6, 10**7]
    retrained, dask = float(named.get("retrained", 1e6)), int(float(named.get("dask", max(sizes))))
    found: dict[str, Any] = {"sizes": []}
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            path = Path(folder) / "rows.parquet"
            write_table(path, rows)
            row, model, people = at_size(path, rows, retrained)
            found["sizes"].append(row)
            print({key: value for key, value in row.items() if "retrained" not in key}, flush=True)
            if rows == 10**6:
                found["overhead"] = overhead(model)
                print(found["overhead"], flush=True)
            if rows == dask:
                found["dask"] = {"rows": rows, **on_dask(model, people, row["floor_seconds"])}
                print(found["dask"], flush=True)
            write_record("out_of_core", found, seed=0, checksums={})
    found["sizes"].sort(key=lambda row: row["rows"])
    print("written:", write_record("out_of_core", found, seed=0, checksums={}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
