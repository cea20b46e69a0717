"""The adversary against published yardsticks (``python -m benchmarks.yardsticks``).

1. *Most influential sets.* Breiman's Waveform (21 columns, two of its three classes, 3,254 rows), logistic regression
   without penalty. The yardstick is adaptive greedy (Hu and others, NeurIPS 2024): refit exactly, delete the one row
   whose deletion lowers the score most by the influence function (``first order``) or by the one-row formula with
   leverage (``one row``), k times. For each point the better of the two counts.
2. *Masking.* Logistic versions of the ways in which approximations to the worst deletion are known to fail (Huang and
   others, 2024): a row at high leverage, a cluster of wrong labels far out whose members hide each other, a small group
   that turns the slope around, two columns that few rows tell apart. Small ones are held against all subsets.

Everything that is compared with the adversary is written here, apart from the package: Newton's method on the rows as
they are, one model at a time.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rocerf
from benchmarks.record import write_record
from rocerf.deletion.adversary import Adversary

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

ROWS = 3254
POINTS = 36
DELETIONS = (1, 5, 20, 60, 100)

#: Scores closer than this are equal.
EQUAL = 1e-9

#: The share of points on which the normal effort must do at least as well as adaptive greedy.
NORMAL_SHARE = 0.99


def waveform(rows: int, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Breiman's waves 1 and 2 of three: (rows, 21) and labels 0 and 1.

    Three triangles of height 6 on the points 1 to 21, with tops at 11, 15 and 7; a wave mixes the first with the second
    (label 0) or with the third (label 1) in a random proportion, plus a standard normal at every point.
    """
    rng = np.random.default_rng(seed)
    places = np.arange(1, 22)
    first, second, third = (np.maximum(6.0 - np.abs(places - top), 0.0) for top in (11, 15, 7))
    y = rng.integers(0, 2, size=rows)
    mix = rng.random(rows)[:, None]
    other = np.where(y[:, None] == 0, second, third)
    return mix * first + (1.0 - mix) * other + rng.normal(size=(rows, 21)), y


def points_to_attack(theta: Array, count: int, seed: int) -> Array:
    """Fresh waves (count, 21): a third as drawn, a third moved close to the boundary, a third to a score of one."""
    X, _ = waveform(count, seed)
    slope, constant = theta[:-1], theta[-1]
    scores = X @ slope + constant
    wanted = np.choose(np.arange(count) % 3, [scores, np.full(count, 0.05), np.full(count, 1.0)])
    return np.asarray(X + np.outer(wanted - scores, slope) / (slope @ slope))


@dataclass(eq=False)
class PlainLogistic:
    """Logistic regression without penalty on rows (n, d) and labels 0 and 1, refitted without some of its rows."""

    X: Array
    y: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.rows = np.column_stack([self.X, np.ones(len(self.X))])
        # Columns in comparable units: the optimum is the same, and Newton's systems are well-conditioned.
        centre, spread = self.X.mean(axis=0), self.X.std(axis=0)
        self.to_rows = np.diag(np.append(1.0 / spread, 1.0))
        self.to_rows[:-1, -1] = 0.0
        self.to_rows[-1, :-1] = -centre / spread
        self.scaled = self.rows @ self.to_rows

    def fit(self, kept: NDArray[np.bool_], start: Array | None = None) -> Array | None:
        """Parameters of the scaled rows (p,); None if Newton's method does not arrive (no optimum)."""
        Z, y = self.scaled[kept], self.y[kept]
        theta = np.zeros(Z.shape[1]) if start is None else start.copy()
        for _ in range(60):
            chance = _chance(Z @ theta)
            gradient = Z.T @ (chance - y)
            curvature = (Z * (chance * (1.0 - chance))[:, None]).T @ Z
            try:
                move = np.linalg.solve(curvature, gradient)
            except np.linalg.LinAlgError:
                return None
            decrement = max(float(gradient @ move), 0.0) ** 0.5
            if not np.isfinite(decrement):
                return None
            theta = theta - move / max(1.0, decrement / 2.0)
            if decrement < 1e-11 * np.sqrt(len(Z)) or np.abs(theta).max() > 1e3:
                break
        separated = bool((((2 * y - 1) * (Z @ theta)) > 0).all())  # then larger parameters are always better
        return theta if decrement < 1e-7 and not separated else None

    def score_without(self, deleted: Rows, x: Array) -> float:
        """The score at x of the model refitted without these rows from nothing; -inf if there is none."""
        kept = np.ones(len(self.X), dtype=bool)
        kept[deleted] = False
        theta = self.fit(kept)
        return -np.inf if theta is None else float(np.append(x, 1.0) @ self.to_rows @ theta)

    def adaptive_greedy(self, x: Array, k: int, *, leverage: bool) -> Rows:
        """The rows in the order in which adaptive greedy deletes them, at most k."""
        toward = np.append(x, 1.0) @ self.to_rows
        kept = np.ones(len(self.X), dtype=bool)
        order: list[int] = []
        theta = self.fit(kept)
        while theta is not None and len(order) < k:
            effects = self._effects(theta, kept, toward, leverage)
            row = int(effects.argmin())
            if not effects[row] < 0:
                break
            kept[row] = False
            order.append(row)
            theta = self.fit(kept, theta)
        return np.array(order, np.intp)

    def one_shot(self, x: Array, k: int) -> Rows:
        """The k rows whose first-order effects at the full model, added up, lower the score most."""
        kept = np.ones(len(self.X), dtype=bool)
        theta = self.fit(kept)
        assert theta is not None
        effects = self._effects(theta, kept, np.append(x, 1.0) @ self.to_rows, leverage=False)
        chosen = np.argsort(effects)[:k]
        return np.asarray(chosen[effects[chosen] < 0])

    def _effects(self, theta: Array, kept: NDArray[np.bool_], toward: Array, leverage: bool) -> Array:
        """What deleting each row does to the score at the present model; +inf for rows that are gone."""
        Z = self.scaled
        chance = _chance(Z @ theta)
        weight = chance * (1.0 - chance)
        inverse = np.linalg.inv((Z * (weight * kept)[:, None]).T @ Z)
        effects = (chance - self.y) * (Z @ (inverse @ toward))
        if leverage:
            effects = effects / np.maximum(1.0 - weight * np.einsum("ij,jl,il->i", Z, inverse, Z), 1e-9)
        return np.where(kept, effects, np.inf)

    def truth(self, x: Array, k: int) -> float:
        """The lowest score at x after any deletion of at most k rows, every one refitted."""
        sets = itertools.chain.from_iterable(itertools.combinations(range(len(self.X)), size) for size in range(k + 1))
        return min(self.score_without(np.array(chosen, np.intp), x) for chosen in sets)


def _chance(scores: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0))))


@dataclass(frozen=True, eq=False)
class Example:
    """A masking example: what is planted, and a point whose acceptance rests on it."""

    name: str
    X: Array
    y: NDArray[np.int64]
    x: Array
    k: int
    planted: Rows

    @property
    def small(self) -> bool:
        """Whether all subsets can be tried."""
        return len(self.X) <= 24


def masking_examples(seed: int = 0) -> Iterator[Example]:
    """Each in a large form and in a small one whose truth is known by all subsets."""
    for number, (n, m) in enumerate(((1000, 1), (20, 1))):
        yield _planted(_draws(seed, 0, number), "one row at high leverage", n, m, far=60.0 if n > 100 else 15.0)
    for number, (n, m) in enumerate(((1000, 10), (1000, 5), (19, 3), (20, 2))):
        yield _planted(_draws(seed, 1, number), f"cluster of {m} wrong labels", n, m, far=12.0)
    for number, (n, m) in enumerate(((990, 10), (18, 3))):
        yield _simpson(_draws(seed, 2, number), n, m)
    for number, (n, m) in enumerate(((990, 10), (18, 3))):
        yield _ill_conditioned(_draws(seed, 3, number), n, m)


def _draws(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _labels(rng: np.random.Generator, scores: Array) -> NDArray[np.int64]:
    """Half of each label, the higher scores more often favourable."""
    noisy = scores + rng.logistic(size=len(scores))
    return (noisy > np.median(noisy)).astype(np.int64)


def _planted(rng: np.random.Generator, name: str, n: int, m: int, far: float) -> Example:
    """The label falls with the first column; m favourable rows far out turn the slope around."""
    X = rng.normal(size=(n, 2))
    y = _labels(rng, -min(0.6, 1.2 * m * far / n) * X[:, 0])
    outliers = np.column_stack([far + 0.05 * rng.normal(size=m), 0.1 * rng.normal(size=m)])
    X, y = np.vstack([X, outliers]), np.append(y, np.ones(m, np.int64))
    return Example(name, X, y, np.array([4.0, 0.0]), max(m, 2), n + np.arange(m))


def _simpson(rng: np.random.Generator, n: int, m: int) -> Example:
    """Inside the large group the label falls with the column; a small group far off, all favourable, hides it."""
    X = np.concatenate([rng.normal(size=n), 8.0 + 0.8 * rng.normal(size=m)])[:, None]
    y = np.append(_labels(rng, -min(0.6, 9.0 * m / n) * X[:n, 0]), np.ones(m, np.int64))
    return Example(f"a small group of {m} (Simpson)", X, y, np.array([3.0]), m, n + np.arange(m))


def _ill_conditioned(rng: np.random.Generator, n: int, m: int) -> Example:
    """Two columns that only m rows tell apart: those rows alone decide the slope along the difference."""
    first = rng.normal(size=n)
    X = np.column_stack([first, first + (0.02 if n > 100 else 0.3) * rng.normal(size=n)])
    y = _labels(rng, 0.5 * X.sum(axis=1))
    apart = 0.3 * rng.normal(size=(m, 1)) + np.array([[1.5, -1.5]])
    X, y = np.vstack([X, apart]), np.append(y, np.ones(m, np.int64))
    return Example(f"two columns that {m} rows tell apart", X, y, np.array([1.0, -1.0]), m, n + np.arange(m))


def measure_waveform(points: int = POINTS, seed: int = 0) -> dict[str, Any]:
    """For each k: on how many points each effort does at least as well as adaptive greedy, and the mean drops."""
    X, y = waveform(ROWS, seed)
    plain = PlainLogistic(X, y)
    model = rocerf.LogisticModel.fit(rocerf.TrainingSet(X, y), C=float("inf"))
    today = plain.fit(np.ones(len(X), dtype=bool))
    assert today is not None
    people = points_to_attack(plain.to_rows @ today, points, seed + 1)
    start = time.process_time()
    paths = [[plain.adaptive_greedy(x, max(DELETIONS), leverage=lever) for lever in (False, True)] for x in people]
    print(f"adaptive greedy: {(time.process_time() - start) / points:.2f} processor seconds a point", flush=True)
    rows = []
    for k in DELETIONS:
        greedy = np.array(
            [[plain.score_without(path[:k], x) for path in pair] for pair, x in zip(paths, people, strict=True)]
        )
        row: dict[str, Any] = {"k": k, "points": points}
        row["greedy_mean_drop"] = float((model.score(people) - greedy.min(axis=1)).mean())
        for effort in ("quick", "normal", "thorough"):
            row[effort] = _against(plain, model, people, k, effort, greedy.min(axis=1))
        rows.append(row)
        told = "; ".join(
            f"{effort} {row[effort]['at_least_greedy']}/{points}, drop {row[effort]['mean_drop']:.6f}, "
            f"{row[effort]['processor_seconds_a_point']:.3f} s"
            for effort in ("quick", "normal", "thorough")
        )
        print(f"k = {k:>3}: greedy drop {row['greedy_mean_drop']:.6f}; {told}", flush=True)
    return {"rows": ROWS, "points": points, "by_k": rows}


def _against(
    plain: PlainLogistic, model: rocerf.LogisticModel, people: Array, k: int, effort: str, greedy: Array
) -> dict[str, Any]:
    start = time.process_time()
    attacks = Adversary(model, k, effort=effort).attack(people)
    taken = time.process_time() - start
    # Our sets, judged by the same refits as greedy's.
    ours = np.array([plain.score_without(rows, x) for rows, x in zip(attacks.deleted_rows, people, strict=True)])
    return {
        "at_least_greedy": int((ours <= greedy + EQUAL).sum()),
        "worse_by_share": float(((ours - greedy) / (model.score(people) - greedy)).max()),
        "better": int((ours < greedy - 1e-6).sum()),
        "mean_drop": float((model.score(people) - ours).mean()),
        "processor_seconds_a_point": taken / len(people),
    }


def measure_masking(seeds: int = 3) -> list[dict[str, Any]]:
    """Score at the point: as it is, after the sets of one-shot, adaptive greedy and ours, and the truth if known."""
    rows = []
    for example in itertools.chain.from_iterable(masking_examples(seed) for seed in range(seeds)):
        rows.append(judged(example))
        print(_line(rows[-1]), flush=True)
    return rows


def judged(example: Example) -> dict[str, Any]:
    """One example's scores."""
    plain = PlainLogistic(example.X, example.y)
    x, k = example.x, example.k
    row: dict[str, Any] = {"name": example.name, "rows": len(example.X), "k": k}
    row["today"] = plain.score_without(np.empty(0, np.intp), x)
    row["one_shot"] = plain.score_without(plain.one_shot(x, k), x)
    row["greedy"] = min(plain.score_without(plain.adaptive_greedy(x, k, leverage=lever), x) for lever in (False, True))
    row["planted"] = plain.score_without(example.planted, x)
    row["truth"] = plain.truth(x, k) if example.small else None
    model = rocerf.LogisticModel.fit(rocerf.TrainingSet(example.X, example.y), C=float("inf"))
    for effort in ("normal", "thorough"):
        attack = Adversary(model, k, effort=effort).attack_all(x[None])
        row[effort] = plain.score_without(attack.deleted_rows[0], x)
    return row


def _line(row: dict[str, Any]) -> str:
    names = ("today", "one_shot", "greedy", "planted", "normal", "thorough", "truth")
    told = "".join(f"{'-':>10}" if row[name] is None else f"{row[name]:>10.4f}" for name in names)
    return f"{row['name']:36}{row['rows']:>6}{row['k']:>4}{told}"


def main() -> int:
    """Print both tables, write out/yardsticks.json; 1 if the adversary falls short of adaptive greedy."""
    waves = measure_waveform()
    print(
        f"{'masking':36}{'rows':>6}{'k':>4}"
        + "".join(f"{n:>10}" for n in ("today", "one shot", "greedy", "planted", "normal", "thorough", "truth"))
    )
    masks = measure_masking()
    print("written:", write_record("yardsticks", {"waveform": waves, "masking": masks}, seed=0, checksums={}))
    total = sum(row["points"] for row in waves["by_k"])
    normal, thorough = (sum(row[e]["at_least_greedy"] for row in waves["by_k"]) for e in ("normal", "thorough"))
    print(f"at least adaptive greedy: thorough {thorough} of {total}, normal {normal} of {total}")
    masked = all(row[e] <= row["greedy"] + EQUAL for row in masks for e in ("normal", "thorough"))
    return int(thorough < total or normal < NORMAL_SHARE * total or not masked)


if __name__ == "__main__":
    sys.exit(main())
