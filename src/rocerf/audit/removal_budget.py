"""How many deletions a given recourse survives: proven from below, found from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.budget import largest_survived
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models.model import ExactModel
from rocerf.promises.certified import Certified
from rocerf.types import Array, Progress

#: Rows up to which a proof for one deletion is quick enough to be made unasked.
QUICK_PROOF_ROWS = 6000


@dataclass(frozen=True, eq=False)
class RemovalBudget:
    """For P points the number of deletions they survive lies in ``certified <= number <= found``, each of shape (P,).

    ``certified`` is proven (0 where nothing was proven, -1 where there is no accepted point). ``found`` is
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
        rest = f"; {int((~accepted).sum())} without an accepted point" if not accepted.all() else ""
        if not accepted.any():
            return f"no accepted points{rest}"
        proven, found = self.certified[accepted], self.found[accepted]
        return (
            f"{len(found)} points: {int((proven >= 1).sum())} survive at least one deletion, proven (at most "
            f"{int(proven.max())}); none was broken by fewer than {int(found.min()) + 1} deletions, half only by "
            f"more than {np.median(found):g} (up to {self.tried} were tried){rest}"
        )


def _quick_proofs(model: ExactModel) -> list[Certified]:
    """The proof for one deletion, where it is quick to make and the model is one that proofs can be about."""
    if len(model.train) > QUICK_PROOF_ROWS:
        return []
    try:
        return [Certified(model, 1)]
    except (OptionError, UnsupportedModelError):  # preprocessing fitted again, less than double precision
        return []


def removal_budget(
    model: ExactModel,
    X: Array,
    most: int,
    *,
    proofs: Sequence[Certified] | None = None,
    effort: str = "normal",
    seed: int = 0,
    progress: Progress | None = None,
) -> RemovalBudget:
    """Bounds on the number of deletions each point (P, d) survives, looked for up to ``most``.

    ``proofs`` are certificates to ask; by default one for a single deletion, where the table is small, the
    preprocessing of a pipeline stays as it is and the model computes in double precision.
    """
    if proofs is None:
        proofs = _quick_proofs(model)
    certified = np.where(model.score(X) >= 0, 0, -1).astype(np.intp)
    closed = [proof for proof in proofs if proof.impossible() is None]
    for proof in closed:
        if len(X):
            holds = proof.proven(X) >= 0
            certified[holds] = np.maximum(certified[holds], proof.k)
    certified = np.minimum(certified, most)  # what is asked for: more is not looked at
    found = largest_survived(model, X, most, effort=effort, seed=seed, progress=progress)
    return RemovalBudget(certified, found, most, tuple(sorted(proof.k for proof in closed)))
