"""A search for bad deletions that shares no code with the package: what the adversary finds is held against it.

Sets grow side by side; each is extended by the rows that a Newton step from the model retrained without it rates worst,
with leverage. The best of them are then improved by single exchanges, rated without the row that goes. Every model is
retrained here, by Newton steps of its own.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from rocerf.types import Array


class OwnBeam:
    """Rows (n, d) and labels (n,) of a logistic model with a free intercept, retrained and attacked."""

    def __init__(self, rows: Array, labels: Array, C: float = 1.0) -> None:
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

    def worst(self, point: Array, k: int, width: int = 12) -> tuple[float, list[int]]:
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
