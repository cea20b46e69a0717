"""All denied people of Adult in one call, as a multiple of the floor of the arithmetic.

The floor is one float64 product people x rows in blocks plus one selection of the k smallest by
the threshold method: the least any exact method must do once. Both are taken in processor seconds.
Run: ``python -m benchmarks.first_order``.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rocerf
from benchmarks.record import processor_seconds, seconds, write_record
from rocerf.deletion.row_effects import RowEffects
from rocerf.deletion.worst_rows import find_worst_rows
from rocerf.promises import FirstOrder
from rocerf.recourse.master.projection import least_distance
from rocerf.recourse.solvers.solution import GUARD

Array = NDArray[np.float64]

K = 181
LIMIT_FLOORS = 4.0
LIMIT_PEAK_GIB = 1.5
GROWTH = (1, 4, 16)
GROWTH_PEOPLE = 256


def adult() -> tuple[rocerf.LogisticModel, Array]:
    """The model of the paper's Adult table (C = 1, train scaler) and the people it denies."""
    data = rocerf.load_dataset("adult")
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    return model, data.test.X[model.predict(data.test.X) == 0]


def measure_call(model: rocerf.LogisticModel, denied: Array) -> dict[str, Any]:
    """One call of explain for everybody against the floor."""
    effects = RowEffects.of(model).vectors
    directions = model.score_gradient(denied)
    floor, _ = processor_seconds(lambda: find_worst_rows(directions, effects, K), repeats=5)
    start = time.perf_counter()
    call, recourses = processor_seconds(lambda: rocerf.Rocerf(model, K, promise="first_order").explain(denied))
    wall = (time.perf_counter() - start) / 3  # of three calls
    return {
        "people": len(denied),
        "rows": len(model.train),
        "k": K,
        "floor_seconds": floor,
        "call_seconds": call,
        "wall_seconds": wall,
        "floors": call / floor,
        "milliseconds_a_person": 1000 * call / len(denied),
        "mean_cost": float(recourses.costs.mean()),
        "answered": int(recourses.answered.sum()),
    }


def measure_plain_loop(
    model: rocerf.LogisticModel, denied: Array, call_seconds: float, sample: int = 25
) -> dict[str, Any]:
    """The same optimum by the obvious program: one person at a time, a full sort, a general projection."""
    effects = RowEffects.of(model).in_training_order()
    scale = np.asarray(model.train.spread)
    chosen = denied[:: max(1, len(denied) // sample)][:sample]

    def one_by_one() -> list[float]:
        return [_plain_recourse(model, effects, scale, person) for person in chosen]

    plain, costs = processor_seconds(one_by_one, repeats=1)
    ours = rocerf.Rocerf(model, K, promise="first_order").explain(chosen).costs
    return {
        "people_timed": len(chosen),
        "largest_cost_difference": float(np.abs(ours - np.array(costs)).max()),
        "milliseconds_a_person": 1000 * plain / len(chosen),
        "speed_up": (plain / len(chosen)) / (call_seconds / len(denied)),
    }


def _plain_recourse(model: rocerf.LogisticModel, effects: Array, scale: Array, person: Array) -> float:
    thetas = [model.theta]
    wide = np.full(len(person), 1e3)
    while True:
        slopes, constants = model.halfspaces(np.array(thetas))
        step = least_distance(slopes * scale, GUARD - constants - slopes @ person, -wide, wide)
        assert step is not None
        x = person + scale * step
        beta = model.score_gradient(x[None])[0]
        change = effects @ beta
        worst = np.argsort(change)[:K]
        worst = worst[change[worst] < 0]
        if model.score(x[None])[0] + change[worst].sum() >= GUARD / 2:
            return float(np.linalg.norm(step))
        thetas.append(model.theta + effects[worst].sum(axis=0))


def measure_growth(model: rocerf.LogisticModel, denied: Array) -> list[dict[str, Any]]:
    """Time and working memory of reading the promise when the table grows, k and people held."""
    rng = np.random.default_rng(0)
    points = denied[:GROWTH_PEOPLE] + model.train.spread * 0.5
    rows = []
    for factor in GROWTH:
        X = (
            np.tile(model.train.X, (factor, 1))
            + 1e-3 * rng.normal(size=(factor * len(model.train), 1)) * model.train.spread
        )
        big = rocerf.LogisticModel.fit(rocerf.TrainingSet(X, np.tile(model.train.y, factor)), C=1.0 / factor)
        promise = FirstOrder(big, K)
        effects = RowEffects.of(big)
        held = effects.vectors.nbytes + effects.rows.nbytes
        taken, _ = seconds(lambda promise=promise: promise.read(points))  # type: ignore[misc]
        tracemalloc.start()
        promise.read(points)
        working = tracemalloc.get_traced_memory()[1]
        RowEffects.of(big)
        effects_working = tracemalloc.get_traced_memory()[1] - held
        tracemalloc.stop()
        rows.append(
            {
                "rows": len(X),
                "read_seconds": taken,
                "microseconds_a_row": 1e6 * taken / len(X),
                "read_working_mib": working / 2**20,
                "effects_working_mib": effects_working / 2**20,
                "rows_and_effects_mib": (X.nbytes + held) / 2**20,
            }
        )
    return rows


def peak_memory_gib() -> float:
    """Peak resident memory of a fresh process that only loads Adult and explains everybody."""
    program = (
        "from benchmarks.first_order import adult, K; import rocerf, resource; m, d = adult(); "
        "rocerf.Rocerf(m, K, promise='first_order').explain(d); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    unit = 1 if sys.platform == "darwin" else 1024
    return int(done.stdout.strip()) * unit / 2**30


def main() -> int:
    """Measure, print, write out/first_order.json; 1 if a stated limit is missed."""
    model, denied = adult()
    call = measure_call(model, denied)
    plain = measure_plain_loop(model, denied, call["call_seconds"])
    growth = measure_growth(model, denied)
    peak = peak_memory_gib()
    print(
        f"Adult, {call['people']} denied people, n = {call['rows']}, k = {K}: {call['floors']:.1f} floors (limit "
        f"{LIMIT_FLOORS:g}), {call['milliseconds_a_person']:.2f} ms a person, mean cost {call['mean_cost']:.4f}"
    )
    print(f"peak memory of the whole process {peak:.2f} GiB (limit {LIMIT_PEAK_GIB})")
    print(
        f"plain loop, one person at a time: {plain['milliseconds_a_person']:.1f} ms a person, so "
        f"{plain['speed_up']:.0f} times faster; largest difference in cost {plain['largest_cost_difference']:.1e}"
    )
    print(f"growth, {GROWTH_PEOPLE} people:    rows    us a row   working MiB   (rows and effects MiB)")
    for row in growth:
        working = max(row["read_working_mib"], row["effects_working_mib"])
        held = row["rows_and_effects_mib"]
        print(f"{row['rows']:>28,} {row['microseconds_a_row']:>11.2f} {working:>13.1f} {held:>16.0f}")
    measured = {"call": call, "plain_loop": plain, "growth": growth, "peak_gib": peak}
    print("written:", write_record("first_order", measured, seed=0, checksums={"adult": model.train.checksum}))
    return int(call["floors"] > LIMIT_FLOORS or peak > LIMIT_PEAK_GIB)


if __name__ == "__main__":
    sys.exit(main())
