"""How many deletions a given recourse survives: proven from below, found from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.budget import largest_survived
from rocerf.models.logistic import LogisticModel
from rocerf.promises.certified import Certified
from rocerf.recourse.solution import Progress

Array = NDArray[np.float64]

#: Rows up to which a proof for one deletion is quick enough to be made unasked.
QUICK_PROOF_ROWS = 6000


@dataclass(frozen=True, eq=False)
class RemovalBudget:
    """For P points the number of deletions they survive lies in ``certified <= number <= found``, each of shape (P,).

    ``certified`` is proven (0 where nothing was proven, -1 where the model refuses the point as it is). ``found`` is
    one less than the smallest deletion that was found to break the point; where it equals ``tried``, none was found up
    to that many. ``proofs`` are the numbers of deletions for which a proof was made and closed.
    """

    certified: NDArray[np.intp]
    found: NDArray[np.intp]
    tried: int
    proofs: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        accepted = self.found >= 0
        refused = f"; {int((~accepted).sum())} points are refused as they are" if not accepted.all() else ""
        if not accepted.any():
            return f"no accepted points{refused}"
        low, high = int(self.certified[accepted].min()), int(self.found[accepted].min())
        proven = f"survive {low} deletions, proven" if low else "carry no proof"
        tested = (
            "no deletion that was tried broke one" if high == self.tried else f"no deletion of {high} rows broke one"
        )
        return f"{int(accepted.sum())} points {proven}; {tested}{refused}"


def removal_budget(
    model: LogisticModel,
    X: Array,
    most: int,
    *,
    proofs: Sequence[Certified] | None = None,
    effort: str = "normal",
    seed: int = 0,
    progress: Progress | None = None,
) -> RemovalBudget:
    """Bounds on the number of deletions each point (P, d) survives, looked for up to ``most``.

    ``proofs`` are certificates to ask; by default one for a single deletion, where the table is small.
    """
    if proofs is None:
        proofs = [Certified(model, 1)] if len(model.train) <= QUICK_PROOF_ROWS else []
    certified = np.where(model.score(X) >= 0, 0, -1).astype(np.intp)
    closed = [proof for proof in proofs if proof.impossible() is None]
    for proof in closed:
        if len(X):
            holds = proof.read(X).values >= 0
            certified[holds] = np.maximum(certified[holds], proof.k)
    found = largest_survived(model, X, most, effort=effort, seed=seed, progress=progress)
    return RemovalBudget(certified, found, most, tuple(sorted(proof.k for proof in closed)))
