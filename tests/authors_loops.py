"""The authors' search for one person, written out: slow and obvious."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class Loop:
    """The authors' search for one person, written out with torch: slow and obvious.

    ``others`` are further linear models (w, b) that must accept a point.
    """

    def __init__(self, theta: np.ndarray, z0: np.ndarray, budget: int, others: Any = ()) -> None:
        self.w, self.b = torch.tensor(theta[:-1]), float(theta[-1])
        self.z0 = torch.tensor(z0)
        self.z = self.z0.clone().requires_grad_()
        self.budget, self.taken = budget, 0
        self.others = [(torch.tensor(other[:-1]), float(other[-1])) for other in others]

    def accepted(self, z: torch.Tensor) -> bool:
        return all(float(z @ w + b) >= 5e-7 for w, b in [(self.w, self.b), *self.others])

    def descend(self, lam: float) -> list[tuple[float, np.ndarray]]:
        """Distances and points accepted on the way."""
        adam, found = torch.optim.Adam([self.z], lr=0.5), []
        for _ in range(self.budget // 10):
            before = self.z.detach().clone()
            adam.zero_grad()
            (torch.relu(-(self.z @ self.w + self.b)) ** 2 + lam * torch.dist(self.z, self.z0)).backward()
            adam.step()
            self.taken += 1
            now = self.z.detach().clone()
            if self.accepted(now):
                found.append((float(torch.dist(now, self.z0)), now.numpy()))
            if float(torch.dist(now, before) / torch.linalg.vector_norm(now)) < 1e-5:
                break
        return found

    def run(self, slip: bool = True) -> float:
        """The nearest of all; the bisection's are thrown away if its last weight had none, unless without the slip."""
        lam, last, kept = 2.5, False, []
        while self.taken < self.budget:
            found = self.descend(lam)
            kept += found
            if last and not found:
                bisected, ended_well = self.bisect(lam / 2, lam)
                kept += bisected if ended_well or not slip else []
                break
            last, lam = bool(found), lam * 2 if found else lam / 2
        return min((distance for distance, _ in kept), default=np.inf)

    def bisect(self, low: float, high: float) -> tuple[list[tuple[float, np.ndarray]], bool]:
        kept: list[tuple[float, np.ndarray]] = []
        found: list[tuple[float, np.ndarray]] = []
        while self.taken <= self.budget:
            middle = (low + high) / 2
            found = self.descend(middle)
            kept += found
            low, high = (middle, high) if found else (low, middle)
        return kept, bool(found)
