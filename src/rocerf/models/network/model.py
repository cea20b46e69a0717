"""Neural networks with one logit, and the rows they were trained on."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.model import RETRAININGS, FirstOrderModel, Proposing, Retraining, ValueAndSlope
from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.network import (
    Architecture,
    checked_device,
    is_module,
    precision_of,
    state_arrays,
    with_state,
)
from rocerf.models.network.objective import NetworkObjective
from rocerf.models.network.options import NetworkOptions, derived_seed
from rocerf.models.network.proposals import NetworkProposals
from rocerf.models.network.retraining import OwnTraining, Refit, Retrainer, Retrainings, UsersTraining, refuse_constant
from rocerf.models.network.slopes import refuse_strange_module
from rocerf.models.network.training import Training
from rocerf.models.options import checked_seed, one_of, positive_whole, refuse_bare_rows
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.models.network.gauss_newton import GaussNewton


class NeuralModel(NetworkProposals, FirstOrderModel, Proposing):
    """A network with one logit, the rows it was trained on, and the way it is trained again.

    Make one with :meth:`fit` (the paper's network) or :meth:`from_torch` (any module). It accepts a person when
    ``score >= 0``, that is when the probability of the favourable label reaches ``threshold``.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = NeuralModel.fit(data.train, seed=0, epochs=10, learning_rate=0.1)
    >>> model.architecture.layers, model.score(data.test.X).shape
    (((60, 120), (120, 120), (120, 1)), (200,))
    >>> later = model.without(data.train.ids[:3])  # trained afresh without these rows
    >>> bool(np.allclose(later.score(data.test.X), model.score(data.test.X)))
    False
    """

    def __init__(
        self, train: TrainingSet, module: Any, design: Design, retrainer: Retrainer, options: NetworkOptions
    ) -> None:
        self._train, self._options = train, options
        #: The scaling before the module, and how the network is trained again.
        self.design, self.retrainer = design, retrainer
        #: The torch module behind the scaling, in float64.
        self.module = module.to(options.device).eval().requires_grad_(False)

    @classmethod
    def fit(
        cls,
        train: TrainingSet,
        *,
        seed: int = 0,
        hidden_layers: int = 2,
        width: int | None = None,
        learning_rate: float = 0.01,
        batch_size: int = 32,
        epochs: int = 100,
        shuffle: bool = True,
        weight_decay: float = 0.0,
        scale: bool = True,
        threshold: float = 0.5,
        damping: float | Literal["auto"] = "auto",
        device: str = "cpu",
        progress: Progress | None = None,
    ) -> NeuralModel:
        """Train the paper's network; the same seed gives the same network.

        Parameters
        ----------
        seed : int
            For initialisation and the order of rows.
        hidden_layers, width : int
            Layers, and units in each; by default 2 of twice the number of columns, as in the paper's code.
        learning_rate, batch_size, epochs, weight_decay : float or int
            Of stochastic gradient descent on the cross entropy.
        shuffle : bool
            A new order of the rows in each epoch; the paper's code keeps the given one.
        scale : bool
            Standardise columns inside the model. The scaling is kept when rows are deleted.
        threshold : float
            Probability of the favourable label from which a person is accepted.
        damping : float or "auto"
            Added to the mean curvature's diagonal; "auto" is ``1 / (learning_rate x steps)``.
        device : str
            Where networks live: "cpu", "cuda", ...
        progress : callable, optional
            Called with (epochs done, in all); may raise to interrupt.
        """
        refuse_bare_rows(train)
        training = Training(learning_rate, batch_size, epochs, bool(shuffle), weight_decay).checked()
        d = train.X.shape[1]
        units = None if width is None else positive_whole(width, "width")
        shape = Architecture.of(d, width=units, hidden_layers=positive_whole(hidden_layers, "hidden_layers"))
        design = Design.for_rows(train, scale=scale, intercept=False)
        options = NetworkOptions(seed, threshold, damping, device).checked()
        return cls._trained(train, design, OwnTraining(shape, training), options, progress)._telling_apart()

    @classmethod
    def from_torch(
        cls,
        module: Any,
        train: TrainingSet,
        *,
        refit: Refit | None = None,
        seed: int = 0,
        threshold: float = 0.5,
        damping: float | Literal["auto"] = "auto",
        device: str = "cpu",
    ) -> NeuralModel:
        """Take over a trained torch module that maps rows (m, d) to one logit each, (m,) or (m, 1).

        Parameters
        ----------
        module : torch.nn.Module
            A copy is taken, in evaluation mode and float64. Scaling is the module's own business.
        train : TrainingSet
            The rows it was trained on, in the columns it takes.
        refit : function (train, seed, start) -> module, optional
            Your training: fresh if ``start`` is None, else on from the module ``start``. Without it nothing that
            retrains can be asked of this model.
        damping : float or "auto"
            Added to the mean curvature's diagonal; "auto" is 0.01.

        Examples
        --------
        >>> import rocerf, torch
        >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
        >>> module = torch.nn.Linear(1, 1)
        >>> _ = module.weight.data.fill_(1.0), module.bias.data.fill_(-2.5)
        >>> NeuralModel.from_torch(module, train).predict([[1.0], [4.0]]).tolist()
        [0, 1]
        """
        refuse_bare_rows(train)
        if not is_module(module):
            raise UnsupportedModelError(
                f"Expected a torch.nn.Module, got {type(module).__name__}; pass the trained module itself."
            )
        own = copy.deepcopy(module).double().eval().to(checked_device(device))
        refuse_strange_module(own, train, device)
        retrainer = UsersTraining(refit, own, precision_of(module))
        options = NetworkOptions(seed, threshold, damping, device).checked()
        return cls(train, own, Design.identity(train.X.shape[1], intercept=False), retrainer, options)._telling_apart()

    @classmethod
    def _trained(
        cls,
        train: TrainingSet,
        design: Design,
        retrainer: OwnTraining,
        options: NetworkOptions,
        progress: Progress | None = None,
    ) -> NeuralModel:
        everything = [np.arange(len(train))]
        stack = retrainer.stack(
            Retrainings(train, design, everything, [options.seed], options.device, progress=progress)
        )
        module = with_state(retrainer.architecture.module(), [values[0] for values in stack])
        return cls(train, module, design, retrainer, options)

    @property
    def train(self) -> TrainingSet:
        """The rows it was trained on."""
        return self._train

    @property
    def seed(self) -> int:
        """From which its initialisation and the order of rows were drawn."""
        return self._options.seed

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return self._options.threshold

    @property
    def device(self) -> str:
        """Where the network lives."""
        return self._options.device

    @property
    def architecture(self) -> Architecture:
        """Sizes of a network made by :meth:`fit`."""
        if not isinstance(self.retrainer, OwnTraining):
            raise OptionError("Expected a network made by NeuralModel.fit, got one taken over from torch: see .module.")
        return self.retrainer.architecture

    @property
    def theta(self) -> Array:
        """Parameters of shape (p,), in the module's order."""
        return self._objective.theta

    @property
    def damping(self) -> float:
        """Added to the diagonal of the mean curvature."""
        chosen = self._options.damping
        return self.retrainer.default_damping(len(self.train)) if chosen == "auto" else chosen

    @property
    def weight_decay(self) -> float:
        """Of the objective; 0 for modules from elsewhere, whose objective we do not know."""
        return self.retrainer.weight_decay

    def __repr__(self) -> str:
        own = isinstance(self.retrainer, OwnTraining)
        shape = "x".join(str(outputs) for _, outputs in self.architecture.layers) if own else "module"
        return f"NeuralModel({shape}, {len(self.theta)} parameters, threshold={self.threshold}, train={self.train!r})"

    @cached_property
    def _objective(self) -> NetworkObjective:
        return NetworkObjective(self.module, self.train, self.design, self.weight_decay, self.damping, self.device)

    @cached_property
    def _alone(self) -> NetworkEnsemble:
        return self.restored([values[None] for values in state_arrays(self.module)])

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Logit of the favourable label minus that of the threshold; shape (P,)."""
        scores: Array = self._alone.scores(self.matrix(X))[0]
        return scores

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x (P, d)."""
        scores, pullback = self._alone.scores_and_pullback(X)
        return scores[0], pullback(np.ones_like(scores))

    def score_gradient(self, X: Array) -> Array:
        """``d score / d theta`` at each person, shape (P, p)."""
        return self._objective.logit_gradients(X)

    def row_gradients(self, rows: slice | NDArray[np.intp] = slice(None)) -> Array:
        """Gradient of these training rows' shares of the objective, shape (m, p)."""
        return self._objective.row_gradients(rows)

    def curvature(self) -> GaussNewton:
        """The damped Gauss-Newton matrix at the present parameters, a total over rows."""
        return self._objective.curvature

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts (P, p): the map from points (P, d) to ``score + score_gradient'shift`` and its slopes in x."""
        shifted_logit = self._objective.shifted_logit(shifts)

        def read(X: Array) -> tuple[Array, Array]:
            values, slopes = shifted_logit(X)
            return values - self.offset, slopes

        return read

    def without(self, ids: Iterable[Any], *, retraining: Retraining = "fresh", seed: int | None = None) -> NeuralModel:
        """The network trained again after deleting these rows; scaling, threshold and settings stay.

        "fresh" starts from a new initialisation, by default one that depends on this model's seed and on the rows;
        "warm" goes on from the present parameters. This answers "what if": the scaling that stays gives a deleted row
        away (``centre * (n + 1) - X.sum(0)``). To be rid of rows: :meth:`forget`.
        """
        gone = self.train.positions(ids)
        chosen = derived_seed(self.seed, len(gone), *gone.tolist()) if seed is None else checked_seed(seed)
        stack = self.retrainer.stack(self._work([gone], [chosen], retraining, None))
        module = with_state(copy.deepcopy(self.module), [values[0] for values in stack])
        left = self.train.without(self.train.ids[gone]) if len(gone) else self.train
        return NeuralModel(left, module, self.design, self.retrainer, replace(self._options, seed=chosen))

    def forget(self, ids: Iterable[Any], *, declared: Collection[str] = ()) -> NeuralModel:
        """A new network in which nothing of these rows is left, as if they had never been there.

        It is trained afresh with the same settings and seed, behind a scaling made anew from the rows left. A module
        from torch is trained by its ``refit`` function, from a fresh start, and taken over again; without one that
        cannot be done here. A network has no categories, so ``declared`` says nothing to it. This object and what was
        saved of it keep the rows: drop them.
        """
        train = self.train.forget(ids)
        if isinstance(self.retrainer, OwnTraining):
            design = self.design.made_anew(train)
            return NeuralModel._trained(train, design, self.retrainer, self._options)._telling_apart()
        assert isinstance(self.retrainer, UsersTraining)
        module = self.retrainer.trained_anew(train, self.seed)
        return NeuralModel.from_torch(module, train, refit=self.retrainer.refit, **vars(self._options))

    def with_retrainer(self, retrainer: Retrainer) -> NeuralModel:
        """The same network, trained again in another way from now on (other settings, say)."""
        return NeuralModel(self.train, copy.deepcopy(self.module), self.design, retrainer, self._options)

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        trials: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> NetworkEnsemble:
        """The network trained again after each of M deletions, all together; m depends on (seed, trials[m]) alone.

        >>> import rocerf
        >>> data = rocerf.load_dataset("german")
        >>> model = NeuralModel.fit(data.train, epochs=5, learning_rate=0.2)
        >>> later = model.refitted([data.train.ids[:4], data.train.ids[:8]], seed=1)
        >>> later.scores(data.test.X).shape
        (2, 200)
        """
        gone = [self.train.positions(ids) for ids in deletions]
        checked_seed(seed)
        seeds = [derived_seed(seed, trial) for trial in (range(len(gone)) if trials is None else trials)]
        return self.restored(self.retrainer.stack(self._work(gone, seeds, retraining, progress)))

    def _work(
        self, gone: Sequence[NDArray[np.intp]], seeds: Sequence[int], retraining: Retraining, progress: Progress | None
    ) -> Retrainings:
        one_of(retraining, "retraining", RETRAININGS)
        rows = np.arange(len(self.train))
        kept = [np.delete(rows, out) for out in gone]
        start = self.module if retraining == "warm" else None
        return Retrainings(self.train, self.design, kept, seeds, self.device, start, progress)

    def seconds_to_retrain(self, count: int, *, retraining: Retraining = "fresh") -> float | None:
        """What the retrainer expects, from a small part of the training."""
        return self.retrainer.seconds(self._work([np.empty(0, np.intp)] * count, range(count), retraining, None))

    def copies(self, count: int) -> NetworkEnsemble:
        """This network so many times, to be asked as retrained ones are."""
        return self.restored([np.repeat(values[None], count, axis=0) for values in state_arrays(self.module)])

    def restored(self, arrays: Sequence[Array]) -> NetworkEnsemble:
        """Networks of this shape from their states (see :meth:`NetworkEnsemble.arrays`)."""
        return NetworkEnsemble.of(self.module, arrays, self.design, self.offset)

    @cached_property
    def accuracy(self) -> float:
        """Share of training rows decided as labelled."""
        return float((self.predict(self.train.X) == self.train.y).mean())

    @property
    def majority_rate(self) -> float:
        """Accuracy of deciding the same for everybody."""
        good = float(self.train.y.mean())
        return max(good, 1.0 - good)

    def _telling_apart(self) -> NeuralModel:
        """This network, if it accepts some of its training rows and refuses others."""
        refuse_constant(self._alone.scores(self.train.X)[0], self.train.y)
        return self

    def assumptions(self) -> tuple[Said, ...]:
        """What "retrained" means for this model, in sentences."""
        said = (self.retrainer.sentence(), Said.of("models.network.stays"))
        if self.accuracy > self.majority_rate:
            return said
        return (*said, Said.of("models.network.weak", accuracy=self.accuracy))

    def known_by(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What tells this model from others: scores and parameters."""
        values, scores = super().known_by()
        return values, scores | {f"parameters {place}": array for place, array in enumerate(state_arrays(self.module))}

    def state(self) -> State:
        """Network and training rows as plain values and arrays, to be kept anywhere."""
        from rocerf.models.network.state import state_of

        return state_of(self, self.retrainer, self._options.damping)

    @classmethod
    def from_state(
        cls, state: State, *, module: Any | None = None, refit: Refit | None = None, device: str | None = None
    ) -> NeuralModel:
        """What :meth:`state` gave; as :meth:`load`."""
        from rocerf.models.network.state import model_from

        return model_from(state, module, refit, device)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        module: Any | None = None,
        refit: Refit | None = None,
        device: str | None = None,
    ) -> NeuralModel:
        """Read what :meth:`save` wrote; for a network from torch, a module of its shape (and refit) must be given."""
        from rocerf.models.network.state import FORMAT

        state = State.read(path, FORMAT, "NeuralModel.save")
        return cls.from_state(state, module=module, refit=refit, device=device)
