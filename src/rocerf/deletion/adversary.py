"""The adversary: the worst deletion of at most k rows it can find, every claim truly retrained.

It tells the truth about any recourse, ours or another method's: it looks for the set of rows whose deletion
lowers the score at a point most, retrains to convergence, and reports only what that retrained model really says.
What it looks with depends on the kind of model (:mod:`rocerf.deletion.attackers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np

from rocerf.data.columns import complete, some
from rocerf.data.schema import FeatureSchema
from rocerf.deletion.attackers import attacker_for
from rocerf.deletion.attacks import Attack, Attacks, Search
from rocerf.deletion.efforts import EFFORTS, Effort, checked_effort
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import ColumnError, DataError
from rocerf.models.model import Classifier
from rocerf.models.options import checked_seed
from rocerf.progress import Telling, shown
from rocerf.types import Array, Places

if TYPE_CHECKING:
    import pandas as pd

    #: One point (d,), and points (P, d). Arrays that do not say their number of dimensions count as points.
    Point: TypeAlias = Sequence[float] | np.ndarray[tuple[int], np.dtype[Any]]
    Points: TypeAlias = Sequence[Sequence[float]] | np.ndarray[tuple[int, int], np.dtype[Any]] | pd.DataFrame


class Answers(Protocol):
    """Points of schema space with what their columns mean, as a batch of recourses is."""

    @property
    def schema(self) -> Any:
        """What the columns mean."""
        ...

    @property
    def matrix(self) -> Array:
        """The points (P, d)."""
        ...


class Answer(Protocol):
    """One point of schema space with what its columns mean, as one person's recourse is."""

    @property
    def schema(self) -> Any:
        """What the columns mean."""
        ...

    @property
    def point(self) -> Array:
        """The point (d,)."""
        ...


class Adversary:
    """Searches for the worst deletion of at most k rows at any point.

    Parameters
    ----------
    model : LogisticModel, or any model of the protocol :class:`rocerf.models.model.Model`
        Logistic models are retrained many at a time; others one at a time, by their own ``without``.
    k : int or str
        A number of rows, or a share such as "0.5%".
    effort : "quick", "normal" or "thorough"
        How many ways of searching are tried, and from how many starts.
    seed : int
        For random starts.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> attack = Adversary(model, k=4).attack(data.test.X[0])
    >>> bool(np.isclose(attack.score, model.without(attack.deleted_ids).score(data.test.X[:1])[0]))
    True
    """

    def __init__(self, model: Classifier, k: int | str, *, effort: str | Effort = "normal", seed: int = 0) -> None:
        attacker = attacker_for(model)
        self.model = model
        self.k = number_of_deletions(k, len(model.train))
        self.seed = checked_seed(seed)
        chosen = EFFORTS[checked_effort(effort)] if isinstance(effort, str) else effort
        self.effort = chosen.on(*model.train.X.shape)
        self._attacker = attacker(model, self.k)

    def reseeded(self, number: int) -> Adversary:
        """The same adversary with other random starts, others for each number."""
        same = copy(self)
        same.seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        return same

    @overload
    def attack(self, points: Points | Answers, *, progress: Telling = None) -> Attacks: ...

    @overload
    def attack(self, points: Point | Answer, *, progress: Telling = None) -> Attack: ...

    def attack(self, points: Point | Points | Answer | Answers, *, progress: Telling = None) -> Attack | Attacks:
        """The worst deletion for one point (d,) -> :class:`Attack`, or for P points (P, d) -> :class:`Attacks`.

        Recourses stand for the points of those who have one (``recourses.answered``), in their order, one
        :class:`~rocerf.Recourse` for its own. ``progress=True`` shows how far it is; a function is called with (done,
        total).
        """
        points = self._of_answers(points)
        if np.ndim(points) == 1:
            return self.attack_all(self._matrix(np.asanyarray(points)[None, :]))[0]
        return self.attack_all(self._matrix(points), progress=progress)

    def _of_answers(self, points: Any) -> Any:
        """The points of answers, in the model's columns; anything else as it is."""
        schema = getattr(points, "schema", None)
        if not isinstance(schema, FeatureSchema):
            return points
        if schema.columns != tuple(self.model.train.columns):
            raise ColumnError(
                f"Expected answers over the model's columns {some(self.model.train.columns)}, got answers over "
                f"{some(schema.columns)}; use the model that they were made for."
            )
        if hasattr(points, "matrix"):
            return points.matrix[~np.isnan(points.matrix).all(axis=1)]
        if np.isnan(points.point).all():
            raise DataError(f"Expected a recourse with a point to attack, got {points!r}; leave it out.")
        return points.point

    def _matrix(self, points: Any) -> Array:
        """Points (P, d) of finite numbers."""
        matrix = self.model.matrix(points)
        blank = int(np.isnan(matrix).all(axis=1).sum())
        if blank:
            raise DataError(
                f"Expected complete points to attack, got {blank} that are missing altogether; leave unanswered people "
                "out: recourses.points[recourses.answered]."
            )
        return complete(matrix, self.model.train.columns, what="points to attack")

    def attack_all(
        self,
        X: Array,
        *,
        stop_below: Array | None = None,
        known: list[Places] | None = None,
        progress: Telling = None,
    ) -> Attacks:
        """The worst deletions for P points (P, d).

        ``known`` is a set of rows for each point, found elsewhere, from which the search starts too.
        A point whose score was brought below its ``stop_below`` (P,) is not attacked further: what is
        reported for it is a true retraining, but perhaps not the worst.
        """
        with shown((progress, "points")) as (tell,):
            return self._attacker.attack(X, Search(self.effort, self.seed, stop_below, known, tell))
