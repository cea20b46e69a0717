"""ROAR (Upadhyay et al. 2021): recourse for a model whose parameters may move within a box.

    min_x  max_{|d_i| <= delta_max}  BCE(f_{theta + d}(x), 1) + lambda cost(x - x0)

The inner maximum is in closed form. With ``beta(x) = df/dtheta`` the worst shift is ``d = -delta_max sign(beta(x))``
and the worst score

    f_box(x) = f(x) - delta_max ||beta(x)||_1,

exactly for a linear model (``beta = [z, 1]``, intercept included; the linear program of the original code finds the
same), to first order for a network. For a linear model ``f_box`` is concave.

*Corrected*: the cheapest x with ``f_box(x) >= 0``. That is what ROAR is after: of all ``lambda`` the one that just
keeps the worst score up, for each person; no weight to tune, and the solvers of every other promise find it (for
linear models the global optimum). *Authors*: see :mod:`rocerf.baselines.roar_descent`.

ROAR's paper treats networks through a linear stand-in fitted around each person (LIME) and moves the stand-in's
coefficients; so does this by default. ``parameters="all"`` moves the network's own parameters instead, to first order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from rocerf.baselines.answers import Explained, Preset, answered, checked_preset
from rocerf.baselines.roar_descent import Descent, Parts, find_by_descent
from rocerf.baselines.standard import Standard, refuse_pieces
from rocerf.data.schema import FeatureSchema
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.design import Design
from rocerf.models.local_linear import StandIns
from rocerf.models.model import FirstOrderModel, LinearModel, Refittable
from rocerf.models.options import checked_seed, one_of, positive
from rocerf.promises.plain import Plain
from rocerf.promises.promise import PerPerson, Promise, Reading
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array, Places, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


#: Numbers of the slopes in all parameters that are held at a time (people times parameters).
BLOCK = 2**24

#: Whose parameters move: the model's own, or those of a linear stand-in around each person.
Parameters = Literal["all", "local"]
PARAMETERS: tuple[Parameters, ...] = ("local", "all")


class ParameterBox(Promise):
    """``f_box(x) >= 0``: accepted by every model whose parameters differ by at most ``delta_max`` each.

    Parameters of a linear model are those over standardised columns, whatever scaling it was fitted with (for
    ``LogisticModel.fit`` these are its ``theta``): in raw units one width for all of them would mean nothing.
    Parameters of a network are its module's, all of them.

    Examples
    --------
    >>> import rocerf
    >>> model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    >>> X = np.array([[5.0]])
    >>> worst = model.score(X) - 0.1 * np.abs(model.score_gradient(X)).sum(axis=1)
    >>> bool(np.allclose(ParameterBox(model, 0.1).read(X).values, worst))
    True
    """

    name = "parameter_box"
    model: FirstOrderModel

    def __init__(self, model: FirstOrderModel, delta_max: float = 0.1) -> None:
        super().__init__(model, 0)
        refuse_pieces(model)
        self.delta_max = positive(delta_max, "delta_max", zero=True)

    @cached_property
    def concave(self) -> bool:
        """Whether slopes are cuts: for linear models."""
        return isinstance(self.model, LinearModel)

    def sentence(self, delta: float) -> Said:
        """What is kept, exactly for linear models and to first order for networks."""
        return Said.of("baselines.linear_box" if self.concave else "baselines.network_box", width=self.delta_max)

    @cached_property
    def _space(self) -> tuple[Standard, bool]:
        """The standardised columns of a linear model, and whether its intercept is a parameter."""
        space, intercept = Standard.of(self.model.train), True
        design = self.model.design if isinstance(self.model, LinearModel) else None
        if isinstance(design, Design) and not design.intercept:  # a shift of the mean would need an intercept
            space, intercept = Standard(design.centre, space.spread), False
        return space, intercept

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """``f_box`` and its slope at points (P, d)."""
        if self.concave:
            space, intercept = self._space
            z, plain = space.inwards(X), self.today(X)
            length = np.abs(z).sum(axis=1) + intercept
            slopes = plain.slopes - self.delta_max * np.sign(z) / space.spread
            return Reading(plain.values - self.delta_max * length, slopes)
        if not len(X):
            return Reading(np.empty(0), np.empty(X.shape))
        size = max(1, BLOCK // self.model.score_gradient(X[:1]).shape[1])
        parts = [self._first_order(X[first : first + size]) for first in range(0, len(X), size)]
        return Reading(np.concatenate([v for v, _ in parts]), np.concatenate([s for _, s in parts]))

    def _first_order(self, X: Array) -> tuple[Array, Array]:
        # The slope of ||beta(x)||_1 is that of beta(x)'sign held fixed, wherever no entry of beta is 0.
        shifts = -self.delta_max * np.sign(self.model.score_gradient(X))
        return self.model.shifted_score(shifts)(X)


class LocalBox(PerPerson):
    """:class:`ParameterBox` of a linear stand-in for the model, another one for each person.

    The point is accepted by every stand-in in the box and by the model itself, but says nothing about the model's own
    parameters.
    """

    name = "local_box"

    def __init__(self, model: Refittable, delta_max: float = 0.1, *, seed: int = 0) -> None:
        super().__init__(model, 0)
        self.delta_max, self._stand_ins = delta_max, StandIns(model, seed=seed)

    def sentence(self, delta: float) -> Said:
        """What is kept, and that it is about a stand-in."""
        return Said.of("baselines.local_box", width=self.delta_max)

    @property
    def assumptions(self) -> tuple[Said, ...]:
        """What is done where stand-in and model differ."""
        return (Said.of("baselines.moved_on"),)

    def for_person(self, x0: Array) -> ParameterBox | None:
        """The promise for one person (d,); None where no stand-in could be fitted."""
        local = self._stand_ins.around(x0)
        return None if local is None else ParameterBox(local, self.delta_max)


class Roar:
    """Recourse that withstands small moves of the model's parameters; same ``explain`` as :class:`rocerf.Rocerf`.

    Parameters
    ----------
    model : LogisticModel or NeuralModel
        With the preset "authors" also any other that is not linear: they replace it by a linear stand-in.
    delta_max : float
        How far each parameter may move; 0.1 is the paper's and ROAR's own. The worst score falls by 0.1 times the
        *sum* of the slopes in all parameters, so what it asks for grows with their number: on COMPAS (7 columns) 1.7
        times the plain cost, on German (60 columns) 6 to 8 times, and with all parameters of a network it is often out
        of reach (German: for everybody; 0.003 is a width that can be kept there).
    preset : "corrected" or "authors"
        By default the cheapest point whose worst score over the box is at least 0. "authors" descends on ROAR's
        objective with the choices of the paper's code: Adam with steps of 1e-3 until the loss changes by less than
        1e-4, one lambda for everybody (or for each part of the people) chosen on the first of them, networks through a
        linear stand-in fitted around each person to points drawn as the authors do
        (:mod:`rocerf.baselines.roar_descent`). Nothing then keeps the worst score above 0, and on networks their code
        never asks the network about a point. Points that the model refuses are no recourses here (status gave_up);
        the authors count them all, and :meth:`explained` has them as ``ends``. They measure the published method and
        are nothing to give to a person.
    parameters : "local" or "all"
        Which parameters move if the model is not linear: the coefficients of a linear stand-in around each person
        (ROAR's own way with networks, and always that of "authors"), or all of its own, to first order.
    lam : float, optional
        Only for "authors": lambda, instead of choosing it.
    cost, schema, solver, seed
        As for :class:`rocerf.Rocerf`; the solver only with the preset "corrected".

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> recourses = Roar(model, delta_max=0.02).explain(data.test.X[:20])
    >>> bool((recourses.margins[recourses.answered] >= 0).all()), recourses.settings.method
    (True, 'roar')
    >>> print(recourses.settings.sentence)
    accepted by every linear model whose parameters differ from today's by at most 0.02 each (over standardised \
columns); nothing is promised about deletions
    """

    def __init__(
        self,
        model: Refittable,
        *,
        delta_max: float = 0.1,
        preset: Preset = "corrected",
        parameters: Parameters = "local",
        lam: float | None = None,
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        solver: str = "auto",
        seed: int = 0,
    ) -> None:
        self.preset = checked_preset(preset, solver, "descent")
        self.delta_max = positive(delta_max, "delta_max", zero=True)
        self.lam = None if lam is None else positive(lam, "lam", zero=True)
        if self.preset == "corrected" and lam is not None:
            raise OptionError(f"Expected lam only with preset='authors', got {lam!r}; the corrected one has no weight.")
        one_of(parameters, "parameters", PARAMETERS)
        promise: Promise = _Authors(model, self.delta_max)
        if self.preset == "corrected":
            local = parameters == "local" and not isinstance(model, LinearModel)
            promise = LocalBox(model, self.delta_max, seed=checked_seed(seed)) if local else self._box(model)
        self._explainer = Rocerf(model, 0, promise=promise, cost=cost, schema=schema, solver=solver, seed=seed)

    def _box(self, model: Refittable) -> ParameterBox:
        if isinstance(model, Refittable) and not isinstance(model, FirstOrderModel):
            raise UnsupportedModelError(
                f"Expected a model with parameters that can be moved, got {type(model).__name__}; use a LogisticModel "
                "or a NeuralModel, or leave parameters='local', which fits a linear stand-in."
            )
        return ParameterBox(model, self.delta_max)

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """ROAR's recourse for each person of X, shape (P, d), in their order."""
        return self.explained(X, progress=progress).recourses

    def explained(
        self, X: ArrayLike | pd.DataFrame, *, parts: Parts | None = None, progress: Progress | None = None
    ) -> Explained:
        """The same with the ends of everybody; the authors' lambda is chosen for each of the ``parts`` of people."""
        if self.preset == "authors":
            descent = Descent(self._explainer.model, self.delta_max, self._explainer.seed)

            def find(master: Master, places: Places, tell: Progress | None) -> Array:
                return find_by_descent(descent, master, self.lam, tell, None if parts is None else parts.of(places))

            return answered("roar", self._explainer, X, progress, find)
        found = answered("roar", self._explainer, X, progress)
        recourses = found.recourses
        reasons = tuple(map(self._reason, recourses.statuses, recourses.reasons))
        return replace(found, recourses=replace(recourses, reasons=reasons))

    def _reason(self, status: Status, reason: str) -> str:
        """Rocerf's own words speak of deletions."""
        key = {Status.NOT_ROBUST: "baselines.not_robust", Status.GAVE_UP: "baselines.gave_up"}.get(status)
        return reason if key is None else Said.of(key, width=self.delta_max)


class _Authors(Plain):
    """No promise, in words that say what the authors' descent did."""

    def __init__(self, model: Refittable, delta_max: float) -> None:
        super().__init__(model)
        self.delta_max = delta_max

    def sentence(self, delta: float) -> Said:
        """What the descent weighed."""
        return Said.of("baselines.authors", accepted=Said.of("baselines.accepted_today"), width=self.delta_max)
