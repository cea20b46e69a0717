"""How time grows with the table, in memory: fit, ``first_order``, the adversary and ``retrained``, tall and wide.

Processor seconds, so that other work on the machine does not count. Beside them, in the same run, what retraining one
model at a time takes: a batch must never be slower. Run: ``python -m benchmarks.growth`` (everything), or with the
shapes to measure, ``python -m benchmarks.growth 10000x20 5000x500``, which are put beside what out/growth.json has.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rocerf
from benchmarks.record import add_to_record
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.passes import one_blas_thread

Array = NDArray[np.float64]

SHAPES = ((10_000, 20), (100_000, 20), (1_000_000, 20), (5_000, 500), (3_000, 2_000))
K = "0.5%"
PEOPLE_READ, PEOPLE, ATTACKED, ALONE = 1000, 20, 5, 3

#: Processor seconds that ``retrained`` may take for 20 people.
LIMITS = {(1_000_000, 20): 60.0, (5_000, 500): 60.0, (3_000, 2_000): 300.0}


def made(rows: int, columns: int, seed: int = 0) -> tuple[rocerf.LogisticModel, Array]:
    """A model of rows whose second half of columns is 0 or 1, and people it denies."""
    rng = np.random.default_rng(seed)

    def drawn(count: int) -> Array:
        X = rng.normal(size=(count, columns))
        X[:, columns // 2 :] = X[:, columns // 2 :] > 0.8
        return X

    X, slopes = drawn(rows), 1.5 * rng.normal(size=columns) / np.sqrt(columns)
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(1.0 - X @ slopes))).astype(int)
    model = rocerf.LogisticModel.fit(rocerf.TrainingSet(X, y), C=1.0)
    people = drawn(3 * PEOPLE_READ)
    return model, people[model.predict(people) == 0][:PEOPLE_READ]


def processor_seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """What the action took of all cores, and what it returned."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def measure_batch(model: rocerf.LogisticModel, sets: list[NDArray[np.intp]]) -> dict[str, float]:
    """One retraining in a batch, in a batch of one, and by ``without``; and how far the parameters differ."""
    models, deletions = BatchedNewton.of(model), Deletions.of(sets, max(map(len, sets)))
    with one_blas_thread():
        models.prepare()
        _ = models.first_guess(deletions[:1])
        together, found = processor_seconds(lambda: models.converge(models.first_guess(deletions), deletions))
        single, _ = processor_seconds(lambda: models.converge(models.first_guess(deletions[:1]), deletions[:1]))
        ids = [model.train.ids[chosen] for chosen in sets[:ALONE]]
        alone, thetas = processor_seconds(lambda: [model.without(gone).theta for gone in ids])
    return {
        "batched_seconds": together / len(sets),
        "batch_of_one_seconds": single,
        "alone_seconds": alone / len(ids),
        "batch_over_alone": together / len(sets) / (alone / len(ids)),
        "one_over_alone": single / (alone / len(ids)),
        "largest_difference": float(np.abs(found[: len(ids)] - np.array(thetas)).max()),
    }


def measure(rows: int, columns: int) -> tuple[dict[str, Any], str]:
    """Everything at one shape."""
    fit, (model, people) = processor_seconds(lambda: made(rows, columns))
    read, _ = processor_seconds(lambda: rocerf.Rocerf(model, K, promise="first_order").explain(people))
    explainer = rocerf.Rocerf(model, K, promise="retrained")
    answering, recourses = processor_seconds(lambda: explainer.explain(people[:PEOPLE]))
    points = recourses.matrix[recourses.answered][:ATTACKED]
    attacking, attacks = processor_seconds(lambda: Adversary(model, K, seed=1).attack_all(points))
    row = {
        "rows": rows,
        "columns": columns,
        "k": explainer.k,
        "made_and_fitted_seconds": fit,
        "first_order_people": len(people),
        "first_order_seconds": read,
        "retrained_people": int(recourses.answered.sum()),
        "retrained_seconds": answering,
        "attacked": len(points),
        "adversary_seconds": attacking,
        "survive": int((attacks.scores >= 0).sum()),
        "limit_seconds": LIMITS.get((rows, columns)),
        **measure_batch(model, list(attacks.deleted_rows)),
    }
    return row, model.train.checksum


def exponents(table: list[dict[str, Any]]) -> dict[str, float]:
    """By which power of the rows each time grew between the two tallest tables of 20 columns."""
    tall = sorted((row for row in table if row["columns"] == 20), key=lambda row: row["rows"])[-2:]
    if len(tall) < 2:
        return {}
    ratio = np.log(tall[1]["rows"] / tall[0]["rows"])
    names = ("first_order_seconds", "retrained_seconds", "adversary_seconds", "batched_seconds")
    return {name: float(np.log(tall[1][name] / tall[0][name]) / ratio) for name in names}


def main() -> int:
    """Print the table, write out/growth.json; 1 if a stated limit is missed or a batch is slower than one by one."""
    asked = [tuple(int(part) for part in text.split("x")) for text in sys.argv[1:]]
    table, checksums = [], {}
    for rows, columns in asked or SHAPES:
        row, checksums[f"{rows}x{columns}"] = measure(rows, columns)
        table.append(row)
        print(
            f"{rows:>9,} x {columns:<5,} k = {row['k']:<5} first_order {row['first_order_seconds']:.1f} s, retrained "
            f"{row['retrained_seconds']:.1f} s, adversary {row['adversary_seconds']:.1f} s; one model "
            f"{row['batch_over_alone']:.2f} in a batch and {row['one_over_alone']:.2f} by itself of "
            f"{row['alone_seconds']:.2f} s alone",
            flush=True,
        )
        pieces = {f"{rows}x{columns}": row}
        print("written:", add_to_record("growth", pieces, seed=0, checksums=checksums), flush=True)
    print("exponents in rows:", {name: round(value, 2) for name, value in exponents(table).items()})
    late = [row for row in table if row["limit_seconds"] and row["retrained_seconds"] > row["limit_seconds"]]
    return int(bool(late) or any(row["batch_over_alone"] > 1.0 for row in table))


if __name__ == "__main__":
    sys.exit(main())
