"""Which rows many models go without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.worst_rows import WorstRows, k_smallest_columns
from rocerf.types import Array, Places


@dataclass(frozen=True, eq=False)
class Deletions:
    """Which rows M models go without: row numbers (M, w) and the share of each that is deleted (M, w).

    A row number with amount 0 is padding.
    """

    rows: Places
    amounts: Array

    @classmethod
    def of(cls, sets: list[Places], width: int) -> Deletions:
        """Whole deletions of these sets of rows."""
        rows, amounts = np.zeros((len(sets), width), np.intp), np.zeros((len(sets), width))
        for place, chosen in enumerate(sets):
            rows[place, : len(chosen)], amounts[place, : len(chosen)] = np.sort(chosen), 1.0
        return cls(rows, amounts)

    @classmethod
    def worst(cls, worst: WorstRows, width: int) -> Deletions:
        """Whole deletions of the worst rows found for each model."""
        rows, amounts = np.zeros((len(worst), width), np.intp), np.zeros((len(worst), width))
        place = np.arange(len(worst.positions)) - worst.starts[worst.owners]
        rows[worst.owners, place], amounts[worst.owners, place] = worst.positions, 1.0
        return cls(rows, amounts)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, models: Places | NDArray[np.bool_] | slice) -> Deletions:
        return Deletions(self.rows[models], self.amounts[models])

    def set_of(self, model: int) -> Places:
        """Row numbers wholly or partly deleted for one model, ascending."""
        return np.unique(self.rows[model][self.amounts[model] > 0])

    def members(self, model: int) -> Places:
        """The same of whole deletions, which name no row twice."""
        return np.sort(self.rows[model][self.amounts[model] > 0])

    def keys(self) -> list[bytes]:
        """One key for each model; equal sets have equal keys."""
        marked = np.where(self.amounts > 0, self.rows, -1)
        return [row.tobytes() for row in np.sort(marked, axis=1)]


def worst_of(harms: Array, k: int, width: int) -> Deletions:
    """The at most k most harmful rows of each model, by harms (M, n)."""
    return Deletions.worst(k_smallest_columns(harms, k), width)
