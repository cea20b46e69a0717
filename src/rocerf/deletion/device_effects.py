"""Row effects on a GPU: products and selection stay on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from rocerf.deletion.worst_rows import WorstRows
from rocerf.models.model import Model
from rocerf.passes import SERIAL, chunks, each
from rocerf.types import Array, Places


class DeviceModel(Model, Protocol):
    """A model that lives on a device and solves with its curvature there."""

    device: str

    def curvature(self) -> Any:
        """With ``solve_tensor`` besides ``solve``."""
        ...


#: Rows whose gradients go to the device at a time.
CHUNK = 8192

#: Entries of one (people x rows) block of products.
BLOCK = 2**27


@dataclass(frozen=True, eq=False)
class DeviceRowEffects:
    """``v_i`` of all rows as one tensor (n, p) on the model's device, in float64."""

    vectors: Any
    rows: Places

    @classmethod
    def of(cls, model: DeviceModel) -> DeviceRowEffects:
        """Effects of all training rows; gradients go to the device in chunks, solutions stay there."""
        n, curvature = len(model.train), model.curvature()

        def effects(rows: slice) -> Any:
            return curvature.solve_tensor(torch.as_tensor(model.row_gradients(rows), device=model.device))

        return cls(torch.cat(each(effects, chunks(n, CHUNK), SERIAL)), np.arange(n))

    def worst(self, directions: Array, k: int) -> WorstRows:
        """The at most k most harmful rows for each person."""
        if k == 0 or not len(directions):
            return WorstRows.counted(np.empty(0, np.intp), np.empty(0), np.zeros(len(directions), np.intp))
        size = max(1, BLOCK // len(self.rows))
        values, places = [], []
        for people in chunks(len(directions), size):
            block = torch.as_tensor(directions[people], device=self.vectors.device)
            smallest = torch.topk(block @ self.vectors.T, min(k, len(self.rows)), dim=1, largest=False)
            values.append(smallest.values.cpu().numpy())
            places.append(smallest.indices.cpu().numpy())
        value, place = np.concatenate(values), np.concatenate(places)
        harmful = value < 0  # "at most k": deleting a row that helps is never worst
        return WorstRows.counted(place[harmful].astype(np.intp), value[harmful], harmful.sum(axis=1))

    def shifts(self, worst: WorstRows) -> Array:
        """Sum of the effects of each person's worst rows, shape (P, p)."""
        device = self.vectors.device
        sums = torch.zeros((len(worst), self.vectors.shape[1]), dtype=self.vectors.dtype, device=device)
        owners, positions = (torch.as_tensor(a, device=device) for a in (worst.owners, worst.positions))
        for part in chunks(len(positions), 2**15):
            sums.index_add_(0, owners[part], self.vectors[positions[part]])
        return np.asarray(sums.cpu().numpy())
