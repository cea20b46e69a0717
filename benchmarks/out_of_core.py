"""Rows on the disk: how time and memory grow from 10^5 to 10^7 rows, and what threads and a Dask cluster cost.

Tables of 20 columns made from Adult's distribution: its rows drawn again, measured columns with noise, those that lack
as noisy copies. Processor seconds of all processes, as multiples of the *floor* of the same run: reading the columns
once and one product in blocks for the people asked. Memory is the largest anonymous part beyond ``import rocerf``,
sampled while a step runs.

Run ``python -m benchmarks.out_of_core``, or pieces of it, with sizes and what to measure there: ``... 1e5 1e6 steps``,
``... 1e6 retrained overhead``, ``... 1e7 steps dask``. ``equal`` holds German, COMPAS and Adult in 1, 7 and 40 files,
in series, threads and on two Dask workers, against the same rows in memory. Pieces are put beside what
out/out_of_core.json has already.
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
from benchmarks.record import add_to_record
from benchmarks.same_on_disk import measure_equality
from rocerf.deletion import streamed_newton, threshold_pass
from rocerf.passes import one_blas_thread, over_rows, using

Array = NDArray[np.float64]

COLUMNS, GROUP, K = 20, 50_000, "0.5%"
PEOPLE, DELETED = 100, 7


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


def steps(path: Path, rows: int) -> tuple[dict[str, Any], rocerf.LogisticModel, Array]:
    """Everything but ``retrained`` at one number of rows."""
    base = anonymous()
    row: dict[str, Any] = {"rows": rows}
    row["from_parquet"], train = measured(lambda: rocerf.TrainingSet.from_parquet(path, label="good"), base)
    row["fit"], model = measured(lambda: rocerf.LogisticModel.fit(train), base)
    people = denied_people(model)
    first = rocerf.Rocerf(model, K, promise="first_order")
    row["first_order"], answers = measured(lambda: first.explain(people), base)
    row["first_order"] |= {"answered": int(answers.answered.sum()), "k": first.k}
    row["without"], _ = measured(lambda: model.without(train.ids[:DELETED]), base)
    row["recheck"], _ = measured(lambda: first.recheck(answers, train.ids[:DELETED]), base)
    row["floor_seconds"] = least = floor(path, PEOPLE)
    for step in row.values():
        if isinstance(step, dict):
            step["floors"] = step["seconds"] / least
    return row, model, people


def fitted(path: Path) -> tuple[rocerf.LogisticModel, Array]:
    """A model of these rows and the people it denies."""
    model = rocerf.LogisticModel.fit(rocerf.TrainingSet.from_parquet(path, label="good"))
    return model, denied_people(model)


def denied_people(model: rocerf.LogisticModel) -> Array:
    """People (100, 20) whom the model denies."""
    people, _ = drawn(6 * PEOPLE, np.random.default_rng(1))
    return np.asarray(people[model.predict(people) == 0][:PEOPLE])


def retrained(model: rocerf.LogisticModel, people: Array, base: float) -> dict[str, Any]:
    """``retrained`` for all people: time, memory and passes over the rows."""
    counter, explainer = PassCounter(), rocerf.Rocerf(model, K, promise="retrained")
    with counter.counting():
        row, found = measured(lambda: explainer.explain(people), base)
    return row | {
        "rows": len(model.train),
        "people": len(people),
        "k": explainer.k,
        "answered": int(found.answered.sum()),
        "passes": counter.passes or None,  # none are counted where rows are held
        "passes_a_person": counter.models / len(people) or None,
    }


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


def idle_share(spent: Callable[[], float], wall: float = 5.0) -> float:
    """Processor seconds a second that a cluster takes while nobody asks it for anything.

    A pass that waits for a busy machine is charged with them; they say nothing about the pass.
    """
    before, clock = spent(), time.perf_counter()
    time.sleep(wall)
    return (spent() - before) / (time.perf_counter() - clock)


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

        began = {"start_seconds": spent() - start, "idle_share": idle_share(spent)}
        effects, directions = StreamedRowEffects(model), model.score_gradient(people)
        k = max(1, len(model.train) // 200)
        passes, waits = [], []
        for _ in range(2):
            before, clock = spent(), time.perf_counter()
            with rocerf.running(client):
                effects.worst(directions, k)
            waits.append(time.perf_counter() - clock)
            passes.append(spent() - before)
        before = time.process_time()
        with using("threads"):
            effects.worst(directions, k)
        here = time.process_time() - before
    return {
        **began,
        "first_pass_seconds": passes[0],
        "pass_seconds": passes[1],
        "pass_wall_seconds": waits[1],
        "first_pass_floors": passes[0] / least,
        "pass_floors": passes[1] / least,
        "pass_floors_less_idle": (passes[1] - began["idle_share"] * waits[1]) / least,
        "same_pass_in_threads_seconds": here,
    }


WHAT = ("steps", "retrained", "overhead", "dask")

#: What is measured at which size where nothing is said.
ALL = {10**5: ("steps",), 10**6: ("steps", "overhead", "retrained"), 10**7: ("steps", "dask")}


def at_size(path: Path, rows: int, what: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pieces of one size, each as it is done."""
    base, least, model = anonymous(), 0.0, None
    if "steps" in what:
        row, model, people = steps(path, rows)
        least = row["floor_seconds"]
        yield f"steps {rows}", row
    if model is None:
        model, people = fitted(path)
        least = floor(path, PEOPLE)
    if "overhead" in what:
        yield f"overhead {rows}", {"rows": rows, **overhead(model)}
    if "dask" in what:
        yield f"dask {rows}", {"rows": rows, "floor_seconds": least, **on_dask(model, people, least)}
    if "retrained" in what:
        row = retrained(model, people, base)
        yield f"retrained {rows}", row | {"floor_seconds": least, "floors": row["seconds"] / least}


def main() -> int:
    """Print and record, piece by piece."""
    named = [text for text in sys.argv[1:] if text[0].isalpha()]
    if wrong := set(named) - {*WHAT, "equal"}:
        raise SystemExit(f"expected sizes and some of {', '.join((*WHAT, 'equal'))}, got {', '.join(wrong)}")
    what = tuple(name for name in named if name != "equal")
    sizes = [int(float(text)) for text in sys.argv[1:] if not text[0].isalpha()]
    tasks = {rows: what or ALL.get(rows, ("steps",)) for rows in sizes} or ({} if named else ALL)
    with tempfile.TemporaryDirectory() as folder:
        for rows, wanted in tasks.items():
            path = Path(folder) / "rows.parquet"
            write_table(path, rows)
            for name, piece in at_size(path, rows, wanted):
                print(name, piece, flush=True)
                print("written:", add_to_record("out_of_core", {name: piece}, seed=0, checksums={}), flush=True)
        if "equal" in named or not sys.argv[1:]:
            found, checksums = measure_equality(Path(folder))
            print("written:", add_to_record("out_of_core", {"equal": found}, seed=0, checksums=checksums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
