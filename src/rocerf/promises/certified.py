"""The proven promise: the point stays accepted after *every* deletion of at most k rows.

The certificate (:mod:`rocerf.deletion.certificate`, proof in docs/certificate.md) gives for any point a lower bound of
its score over all those deletions, each followed by exact retraining. It is made once for each (model, k); asking it
for a person is cheap. The bound is a concave function of x, so it is a promise like any other: value and cut. Where the
proof does not close it abstains, with the reason.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.deletion.certificate import Certificate, Options, certify_model, largest_k_that_closes
from rocerf.models.logistic import LogisticModel
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Reading, Wording, refuse_refitted_preprocessing, vanishing_class

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: Rows up to which an abstention also looks for a smaller k that closes; beyond, ask :meth:`Certified.largest_k`.
SMALL = 3000


class Certified:
    """Proven for all deletions of at most k rows, or an abstention.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> promise = Certified(model, k=1)
    >>> promise.certificate.closed
    True
    >>> point = data.test.X[:1]
    >>> bound = promise.bound(point)[0]
    >>> attack = rocerf.Adversary(model, k=1, effort="thorough").attack(point[0])
    >>> bool(bound <= attack.score)
    True
    """

    wording = Wording(
        "certified",
        "is proven to stay accepted, with a score of at least {delta:g}, after every deletion of at most {k} training "
        "{rows} followed by exact retraining, under the stated assumptions",
        proven=True,
    )
    concave = True
    smooth = True
    searches: tuple[str, ...] = ()

    def __init__(self, model: LogisticModel, k: int, *, options: Options | None = None) -> None:
        refuse_refitted_preprocessing(model, self.wording.name)
        self.model = model
        self.k = k
        self.options = options

    @cached_property
    def certificate(self) -> Certificate:
        """The proof for this model and k, made at first use; ``closed`` is false where it abstains."""
        return certify_model(self.model, self.k, self.options)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted beyond the model's own assumptions."""
        return (
            "bounds are computed in double precision with explicit tolerances, not in interval arithmetic",
            "the proof speaks of the rows handed over, retrained to the exact optimum",
        )

    def largest_k(self, most: int | None = None) -> int:
        """The largest number of deletions for which the proof closes, at most ``most`` (default: k); may take long."""
        found, _ = largest_k_that_closes(
            lambda k: certify_model(self.model, k, self.options), self.k if most is None else most
        )
        return found

    def bound(self, points: ArrayLike | pd.DataFrame) -> Array:
        """Proven lower bounds of the scores of any points (P, d) after every covered deletion; -inf on abstention."""
        matrix = self.model.matrix(points)
        if self.impossible() is not None:
            return np.full(len(matrix), -np.inf)
        return np.asarray(self.certificate.lower(self.model.score_gradient(matrix)) - self.model.offset)

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force: deleting nothing is one of the deletions."""
        return Plain(self.model).known_cuts()

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """The proven lower bound and its cut at each point."""
        values, slopes = self.certificate.value_and_cut(self.model.score_gradient(X))
        values = values - self.model.offset
        in_schema, _ = self.model.design.in_schema_space(slopes)
        return Reading(values, in_schema).floored_by(Plain(self.model).read(X))

    def margins_at(self, X: Array, delta: float = -np.inf) -> Array:
        """The proven lower bound at points (P, d) that leave, none above the score of the models in force; (P,)."""
        return np.minimum(self.bound(X), Plain(self.model).read(X).values)

    def impossible(self) -> str | None:
        """Why the certificate abstains, if it does."""
        return self._abstention

    @cached_property
    def _abstention(self) -> str | None:
        reason = vanishing_class(self.model, self.k)
        if reason is not None or self.certificate.closed:
            return reason
        return f"the proof for {self.k} deletions does not close ({self.certificate.reason}){self._what_closes()}"

    def _what_closes(self) -> str:
        if len(self.model.train) > SMALL:
            return "; Certified.largest_k() finds the largest number for which it does"
        quick = Options(branch_nodes=0)
        found, _ = largest_k_that_closes(lambda k: certify_model(self.model, k, quick), self.k - 1)
        return f"; it closes for up to {found} at least" if found else ""
