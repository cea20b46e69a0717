"""Answers with ``retrained`` attacked by a search of other code (``python -m benchmarks.own_beam``).

Small tables whose classes are nearly separable, or whose columns are nearly collinear: there few rows hold a model up,
what one deletion does depends on the others, and searches that follow one path miss the worst sets.

Sets grow side by side; each is extended by the rows that a Newton step from the model retrained without it rates worst,
with leverage. The best of them are then improved by single exchanges, rated without the row that goes. Every model is
retrained here, by Newton steps of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import rocerf
from benchmarks.record import write_record

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: People of each table, deletions, and penalties.
PEOPLE = 8
DELETIONS = (2, 3, 5, 10, 20)
PENALTIES = (1.0, 100.0)

#: Sets side by side, and the share of answers that may fall: a search can miss.
WIDTH, MAY_FALL = 24, 0.02


def tables() -> Iterator[tuple[str, Array, Labels]]:
    """Standardised rows and labels 0 and 1."""
    cancer, wine, digits = load_breast_cancer(), load_wine(), load_digits()
    yield "breast cancer", _standard(cancer.data), cancer.target
    yield "wine, the second of three", _standard(wine.data), (wine.target == 1).astype(np.int64)
    chosen = np.isin(digits.target, (3, 8))
    yield "digits, 3 or 8", _standard(digits.data[chosen]), (digits.target[chosen] == 8).astype(np.int64)
    yield "made, columns nearly collinear", *nearly_collinear()
    german = rocerf.load_dataset("german").train
    yield "German", _standard(german.X), np.asarray(german.y, np.int64)


def nearly_collinear(rows: int = 300, seed: int = 0) -> tuple[Array, Labels]:
    """Sixteen columns, four of them other ones with noise, and six rows far out."""
    rng = np.random.default_rng(seed)
    free = rng.normal(size=(rows, 12))
    columns = np.column_stack([free, free[:, :4] + 0.05 * rng.normal(size=(rows, 4))])
    columns[:6] *= 6
    labels = (columns @ rng.normal(size=16) + rng.logistic(size=rows) > 0).astype(np.int64)
    return _standard(columns), labels


def _standard(rows: Array) -> Array:
    return np.asarray(StandardScaler().fit_transform(rows[:, rows.std(axis=0) > 0]))


class OwnBeam:
    """Rows (n, d) and labels (n,) of a logistic model with a free intercept, retrained and attacked."""

    def __init__(self, rows: Array, labels: NDArray[Any], C: float = 1.0) -> None:
        self.rows = np.column_stack([rows, np.ones(len(rows))])
        self.labels = np.asarray(labels, np.float64)
        self.ridge = np.diag([1.0 / C] * rows.shape[1] + [0.0])
        self.full = self.fitted((), np.zeros(self.rows.shape[1]))

    def fitted(self, gone: tuple[int, ...], start: Array) -> Array:
        """The parameters without these rows."""
        rows, labels = np.delete(self.rows, gone, axis=0), np.delete(self.labels, gone)

        def loss(theta: Array) -> float:
            scores = rows @ theta
            return float(np.logaddexp(0.0, scores).sum() - labels @ scores + 0.5 * theta @ self.ridge @ theta)

        theta = start
        for _ in range(100):
            chances = expit(rows @ theta)
            gradient = rows.T @ (chances - labels) + self.ridge @ theta
            hessian = (rows * (chances * (1.0 - chances))[:, None]).T @ rows + self.ridge
            step, length, before = np.linalg.solve(hessian, gradient), 1.0, loss(theta)
            while loss(theta - length * step) > before + 1e-12 and length > 1e-6:
                length /= 2
            theta = theta - length * step
            if np.abs(step).max() < 1e-10:
                break
        return theta

    def harms(self, gone: tuple[int, ...], point: Array, theta: Array) -> Array:
        """By how much each further row that leaves lowers the score, by a Newton step; inf for rows gone (n,)."""
        chances = expit(self.rows @ theta)
        weights = chances * (1.0 - chances)
        kept = np.delete(np.arange(len(self.rows)), gone)
        hessian = (self.rows[kept] * weights[kept, None]).T @ self.rows[kept] + self.ridge
        inverse = np.linalg.inv(hessian)
        leverage = weights * np.einsum("ij,jk,ik->i", self.rows, inverse, self.rows)
        harms = (self.rows @ (inverse @ point)) * (chances - self.labels) / np.maximum(1.0 - leverage, 1e-9)
        harms[list(gone)] = np.inf
        return np.asarray(harms)

    def worst(self, point: Array, k: int, width: int = WIDTH) -> tuple[float, list[int]]:
        """The lowest score found at a point (d,) without k rows, and these rows."""
        toward = np.append(point, 1.0)
        now: list[tuple[tuple[int, ...], Array]] = [((), self.full)]
        for _ in range(k):
            rated: dict[tuple[int, ...], tuple[float, Array]] = {}
            for gone, theta in now:
                scores = theta @ toward + self.harms(gone, toward, theta)
                for row in np.argsort(scores)[:width]:
                    wider = tuple(sorted((*gone, int(row))))
                    rated[wider] = min(rated.get(wider, (np.inf, theta)), (scores[row], theta), key=lambda one: one[0])
            best = sorted(rated, key=lambda gone: rated[gone][0])[:width]
            now = [(gone, self.fitted(gone, rated[gone][1])) for gone in best]
        now.sort(key=lambda one: float(one[1] @ toward))
        return min(self._exchanged(gone, theta, toward) for gone, theta in now[:3])

    def _exchanged(self, gone: tuple[int, ...], theta: Array, toward: Array) -> tuple[float, list[int]]:
        score = float(theta @ toward)
        while True:
            rated = []
            for row in gone:
                rest = tuple(other for other in gone if other != row)
                without = self.fitted(rest, theta)
                harms = self.harms(rest, toward, without)
                harms[row] = np.inf
                comes = int(np.argmin(harms))
                rated.append((float(without @ toward + harms[comes]), (*rest, comes), without))
            for _, wished, start in sorted(rated, key=lambda one: one[0])[:4]:
                found = self.fitted(wished, start)
                if found @ toward < score - 1e-9:
                    score, gone, theta = float(found @ toward), wished, found
                    break
            else:
                return score, sorted(gone)


def measured(name: str, rows: Array, labels: Labels) -> Iterator[dict[str, Any]]:
    """For each penalty and k: how many answers fell, and how much less than the beam the adversary found."""
    for C in PENALTIES:
        model, own = rocerf.LogisticModel.fit(rocerf.TrainingSet(rows, labels), C=C), OwnBeam(rows, labels, C)
        people = rows[model.predict(rows) == 0][:PEOPLE]
        for k in DELETIONS:
            began = time.process_time()
            answers = rocerf.Rocerf(model, k=k).explain(people)
            points, taken = answers.matrix[answers.answered], time.process_time() - began
            theirs = np.array([own.worst(point, k)[0] for point in points])
            ours = rocerf.Adversary(model, k, seed=1).attack_all(points).scores
            today = model.score(points)
            yield {
                "table": name,
                "rows": len(rows),
                "columns": rows.shape[1],
                "C": C,
                "k": k,
                "people": len(people),
                "answered": len(points),
                "fell": int((theirs < -1e-9).sum()),
                "adversary_found_less": int((today - ours < (1.0 - 1e-6) * (today - theirs)).sum()),
                "beam_found_less": int((today - theirs < (1.0 - 1e-6) * (today - ours)).sum()),
                "least_share_of_drop": float(np.min((today - ours) / (today - np.minimum(ours, theirs)), initial=1.0)),
                "processor_seconds_a_person": taken / len(people),
            }


def main() -> int:
    """Print the table, write out/own_beam.json; 1 if more answers fell than may."""
    found = []
    for name, rows, labels in tables():
        for row in measured(name, rows, labels):
            found.append(row)
            print(
                f"{name:32} C = {row['C']:<4g} k = {row['k']:>2}: {row['answered']} of {row['people']} answered, "
                f"{row['fell']} fell; the adversary found less for {row['adversary_found_less']}, the beam for "
                f"{row['beam_found_less']}; {row['processor_seconds_a_person']:.2f} s a person",
                flush=True,
            )
    checksums = {name: rocerf.TrainingSet(rows, labels).checksum for name, rows, labels in tables()}
    print("written:", write_record("own_beam", {"rows": found, "width": WIDTH}, seed=1, checksums=checksums))
    return int(sum(row["fell"] for row in found) > MAY_FALL * sum(row["answered"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
