"""How many deletions a given recourse survives: proven from below, found from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.budget import largest_accepted, largest_survived
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models.model import ExactModel, Proposing, Refittable
from rocerf.models.options import proper_share
from rocerf.promises.certified import Certified
from rocerf.promises.promise import Promise
from rocerf.types import Array, Mask, Progress
from rocerf.words import Said

#: Share of retrained models that should accept a point, where no promise says.
SHARE = 0.95

#: Rows up to which a proof for one deletion is quick enough to be made unasked.
QUICK_PROOF_ROWS = 6000


@dataclass(frozen=True, eq=False)
class RemovalBudget:
    """For P points the number of deletions they survive lies in ``certified <= number <= found``, each of shape (P,).

    ``certified`` is proven (0 where nothing was proven, -1 where there is no accepted point). ``found`` is
    one less than the smallest deletion that was found to break the point; where it equals ``tried``, none was found up
    to that many. ``proofs`` are the numbers of deletions for which a proof was made and closed.

    ``own`` marks a model that its user's own estimator retrains, which stops short of the optimum: deletions are looked
    for with exact retraining, and what counts as proven leaves room for what that estimator was measured to be off.

    Of a network or another estimator nothing is proven, and a deletion breaks a point where less than a ``share`` of
    ``models`` retrained without it accept the point; -1 also where less do that are retrained on all rows.
    """

    certified: NDArray[np.intp]
    found: NDArray[np.intp]
    tried: int
    proofs: tuple[int, ...]
    share: float | None = None
    models: int = 1
    own: bool = False

    def __len__(self) -> int:
        return len(self.found)

    def among(self, there: Mask) -> RemovalBudget:
        """The same for people (P,) of whom only those ``there`` have a point; the others have -1."""
        certified, found = (np.full(len(there), -1, dtype=np.intp) for _ in range(2))
        certified[there], found[there] = self.certified, self.found
        return replace(self, certified=certified, found=found)

    @property
    def sentence(self) -> Said:
        """The figures in a sentence."""
        accepted, shared = self.found >= 0, self.share is not None
        without = "audit.without_shared_point" if shared else "audit.without_point"
        rest: Any = "" if accepted.all() else Said.of(without, count=int((~accepted).sum()))
        if self.own and accepted.any():
            rest = Said.of("audit.budget_own", rest=rest)
        if not accepted.any():
            return Said.of("audit.no_points", rest=rest)
        proven, found = self.certified[accepted], self.found[accepted]
        figures: dict[str, Any] = {
            "points": len(found),
            "fewest": int(found.min()) + 1,
            "median": float(np.median(found)),
            "tried": self.tried,
            "rest": rest,
        }
        if shared:
            return Said.of("audit.budget_share", **figures, share=self.share, models=self.models)
        return Said.of("audit.budget", **figures, proven=int((proven >= 1).sum()), most=int(proven.max()))

    def __str__(self) -> str:
        return self.sentence


def _quick_proofs(model: ExactModel, seed: int) -> list[Promise]:
    """The proof for one deletion, where it is quick to make and the model is one that proofs can be about."""
    unmeasured = model.retraining == "own" and model.own_refit is None  # how far its user's own fits are off
    if len(model.train) > QUICK_PROOF_ROWS or unmeasured:
        return []
    try:
        proof = Certified(model, 1)
    except (OptionError, UnsupportedModelError):  # preprocessing fitted again, less than double precision
        return []
    proof.allow_for_own_fits(seed)
    return [proof]


def removal_budget(
    model: Refittable,
    X: Array,
    most: int,
    *,
    given: Promise | None = None,
    proofs: Sequence[Promise] | None = None,
    share: float | None = None,
    effort: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RemovalBudget:
    """Bounds on the number of deletions each point (P, d) survives, looked for up to ``most``.

    ``proofs`` are certificates to ask; by default one for a single deletion, where the table is small, the
    preprocessing of a pipeline stays as it is and the model computes in double precision. The promise that was
    ``given`` is the proof where it is one, and has the ``share`` of retrained models that should accept, for models
    whose retraining has no single outcome; 0.95 by default.
    """
    if not isinstance(model, ExactModel):
        return _counted(model, X, most, _share_of(given) if share is None else share, effort or "quick", seed, progress)
    if share is not None:
        raise OptionError(
            f"Expected no share for a {type(model).__name__}, whose retraining has a single outcome, got {share!r}; "
            "leave it out."
        )
    if proofs is None:
        proofs = [given] if given is not None and given.proven else _quick_proofs(model, seed)
    certified = np.where(model.score(X) >= 0, 0, -1).astype(np.intp)
    closed = [proof for proof in proofs if proof.impossible() is None]
    for proof in closed:
        if len(X):
            holds = (proof.bound(X) >= 0) & (proof.check(X, X) >= 0)  # the second leaves room for the user's own fits
            certified[holds] = np.maximum(certified[holds], proof.k)
    certified = np.minimum(certified, most)  # what is asked for: more is not looked at
    found = largest_survived(model, X, most, effort=effort or "normal", seed=seed, progress=progress)
    own = model.retraining == "own"
    return RemovalBudget(certified, found, most, tuple(sorted(proof.k for proof in closed)), own=own)


def _share_of(given: Promise | None) -> float:
    """What a promise about picked deletions aims at; a promise about random ones says nothing of these."""
    share = None if given is None else given.share
    return SHARE if share is None else share


def _counted(
    model: Refittable, X: Array, most: int, share: float, effort: str, seed: int, progress: Progress | None
) -> RemovalBudget:
    """The budget where retraining has no single outcome: a share of retrained models must accept."""
    if not isinstance(model, Proposing):
        raise UnsupportedModelError(
            "Expected a model that can say which rows hold a point up, a LogisticModel, NeuralModel or EstimatorModel, "
            f"got {type(model).__name__}; use the promise 'simulated' and its held_out validity."
        )
    wanted = proper_share(share, "share", SHARE)
    found, models = largest_accepted(model, X, most, share=wanted, effort=effort, seed=seed, progress=progress)
    return RemovalBudget(np.minimum(found, 0), found, most, (), wanted, models)
