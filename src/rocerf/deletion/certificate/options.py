"""How much work to spend on a proof."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from rocerf.types import Progress


@dataclass(frozen=True)
class BoxEffort:
    """How a box is searched. None of it can make the result wrong, only absent or looser."""

    growth: float = 1.02
    passes: int = 80
    proof_passes: int = 50
    shrink_passes: int = 6
    keep: float = 1.0  # share of columns kept in tables of products
    sample: int | None = None  # rows of the search sample
    patience: int = 1000  # give up after so many passes running in which the images drift apart ever faster
    spread_limit: float = np.inf  # give up as soon as the interval of matrices is wider


@dataclass(frozen=True)
class Options:
    """How much work to spend. None of it can make a certificate wrong, only absent or looser."""

    effort: BoxEffort | None = None  # None: chosen from the size of the table
    exact_work: float = 4e9  # all single deletions by retraining when n^2 p is below
    branch_nodes: int = 4000  # nodes of the branching tree; 0 never branches, nor cuts into cells
    branch_rows: int = 6000  # tables with more rows do not branch,
    branch_k: int = 5  # nor do larger k: the tree grows like (branched rows)^(k - 1)
    spread_goal: float = 0.5  # a branch is accepted once lmax(A^-1/2 D A^-1/2) is below,
    looser_goals: tuple[float, ...] = (1.0, 2.0)  # or below one of these where that is out of reach
    cells: int = 5  # slices of the box on tables too large for branching; 0 for none
    seconds: float = np.inf  # wall time after which branching, or cells, give up
    checkpoint: str | os.PathLike[str] | None = None  # folder where finished branches are kept, to go on from there
    progress: Progress | None = None  # called with (done, of how many) as branches, or passes, are finished


def default_effort(n: int) -> BoxEffort:
    """Plain passes on small tables; a search sample and pruned columns on large ones."""
    if n <= 3000:
        return BoxEffort()
    return BoxEffort(keep=0.3 if n <= 10000 else 0.2, sample=max(1500, n // 8), passes=120, patience=3)
