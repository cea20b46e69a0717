"""Neural networks with one logit, and what deleting rows does to them.

The objective, once for all: ``F(theta) = sum_i omega_i loss_i(theta) + n weight_decay/2 |theta|^2``, a total over
the n training rows with cross entropy ``loss_i``. Then, with logits ``z_i``, ``p_i = sigma(z_i)`` and Jacobians
``J_i = dz_i/dtheta``,

    g_i = omega_i (p_i - y_i) J_i + weight_decay theta,        (a row's share: the penalty is on the mean loss)
    H   = sum_i omega_i p_i (1 - p_i) J_i J_i' + n (weight_decay + damping) I,

the generalised Gauss-Newton matrix with a damping. Deleting row i moves theta by ``+ H^-1 g_i`` to first order. A
network stops before its optimum, so this describes retraining *on from the present parameters*; a fresh
initialisation moves the score more than a few deleted rows do, which is what the promise ``simulated`` is for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from rocerf.data.columns import people_matrix
from rocerf.data.training_set import TrainingSet
from rocerf.errors import DidNotTrainError, FileFormatError, OptionError, UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.loss import LOGISTIC
from rocerf.models.model import RETRAININGS, Retraining, ValueAndSlope
from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.network import (
    Architecture,
    Tensor,
    array,
    checked_device,
    is_module,
    precision_of,
    state_arrays,
    tensor,
    with_state,
)
from rocerf.models.network.retraining import OwnTraining, Refit, Retrainer, UsersTraining
from rocerf.models.network.slopes import NetworkSlopes, refuse_strange_module
from rocerf.models.network.training import Training
from rocerf.models.options import checked_seed, checked_threshold, one_of, positive, positive_whole, refuse_bare_rows
from rocerf.types import Array, Progress

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.models.network.gauss_newton import GaussNewton


#: Bytes of the Jacobians held at a time while people are asked for theirs.
JACOBIAN_BYTES = 128 * 2**20


class NeuralModel:
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
        self,
        train: TrainingSet,
        module: Any,
        design: Design,
        retrainer: Retrainer,
        *,
        seed: int,
        threshold: float,
        damping: float | Literal["auto"],
        device: str,
    ) -> None:
        self._train, self._design, self._retrainer = train, design, retrainer
        self._module = module.to(device).eval()
        for parameter in self._module.parameters():
            parameter.requires_grad_(False)
        self.seed, self.threshold, self.device = seed, threshold, device
        self._damping = damping

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
        train : TrainingSet
            n rows, d columns.
        seed : int
            For initialisation and the order of rows.
        hidden_layers, width : int
            Layers and units in each; by default 2 of twice the number of columns, as in the paper's code.
        learning_rate, batch_size, epochs, weight_decay : numbers
            Of stochastic gradient descent on the cross entropy.
        shuffle : bool
            A new order of the rows in each epoch; the paper's code keeps the given one.
        scale : bool
            Standardise columns inside the model. The scaling is kept when rows are deleted.
        threshold : float in (0, 1)
            Probability of the favourable label from which a person is accepted.
        damping : float or "auto"
            Added to the mean curvature's diagonal; "auto" is ``1 / (learning_rate x steps)``.
        device : str
            Where networks live: "cpu", "cuda", ...
        progress : callable, optional
            Called with (epochs done, in all); may raise to interrupt.
        """
        refuse_bare_rows(train)
        training = Training(
            learning_rate=positive(learning_rate, "learning_rate"),
            batch_size=positive_whole(batch_size, "batch_size"),
            epochs=positive_whole(epochs, "epochs"),
            shuffle=bool(shuffle),
            weight_decay=positive(weight_decay, "weight_decay", zero=True),
        )
        d = train.X.shape[1]
        units = None if width is None else positive_whole(width, "width")
        layers = positive_whole(hidden_layers, "hidden_layers")
        design = Design.standardising(train, intercept=False) if scale else _unscaled(d)
        retrainer = OwnTraining(Architecture.of(d, width=units, hidden_layers=layers), training)
        model = cls._trained(
            train,
            design,
            retrainer,
            seed=checked_seed(seed),
            threshold=checked_threshold(threshold),
            damping=_checked_damping(damping),
            device=checked_device(device),
            progress=progress,
        )
        model._refuse_constant()
        return model

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
        model = cls(
            train,
            own,
            _unscaled(train.X.shape[1]),
            UsersTraining(refit, own, precision_of(module)),
            seed=checked_seed(seed),
            threshold=checked_threshold(threshold),
            damping=_checked_damping(damping),
            device=device,
        )
        model._refuse_constant()
        return model

    @classmethod
    def _trained(
        cls,
        train: TrainingSet,
        design: Design,
        retrainer: OwnTraining,
        *,
        seed: int,
        threshold: float,
        damping: float | Literal["auto"],
        device: str,
        progress: Progress | None,
    ) -> NeuralModel:
        stack = retrainer.stack(train, design, [np.arange(len(train))], [seed], None, device, progress)
        module = with_state(retrainer.architecture.module(), [values[0] for values in stack])
        return cls(train, module, design, retrainer, seed=seed, threshold=threshold, damping=damping, device=device)

    @property
    def train(self) -> TrainingSet:
        """The rows it was trained on."""
        return self._train

    @property
    def module(self) -> Any:
        """The torch module behind the scaling, in float64."""
        return self._module

    @property
    def design(self) -> Design:
        """The scaling before the module."""
        return self._design

    @property
    def architecture(self) -> Architecture:
        """Sizes of a network made by :meth:`fit`."""
        if not isinstance(self._retrainer, OwnTraining):
            raise OptionError("Expected a network made by NeuralModel.fit, got one taken over from torch: see .module.")
        return self._retrainer.architecture

    @cached_property
    def theta(self) -> Array:
        """Parameters of shape (p,), in the module's order."""
        return np.concatenate([array(parameter).ravel() for parameter in self._module.parameters()])

    @property
    def offset(self) -> float:
        """``score = logit - offset``."""
        return float(logit(self.threshold))

    @property
    def damping(self) -> float:
        """Added to the diagonal of the mean curvature."""
        return self._retrainer.default_damping(len(self.train)) if self._damping == "auto" else self._damping

    @property
    def weight_decay(self) -> float:
        """Of the objective; 0 for modules from elsewhere, whose objective we do not know."""
        return self._retrainer.training.weight_decay if isinstance(self._retrainer, OwnTraining) else 0.0

    def __repr__(self) -> str:
        shape = "x".join(str(outputs) for _, outputs in self.architecture.layers) if self._own else "module"
        return f"NeuralModel({shape}, {len(self.theta)} parameters, threshold={self.threshold}, train={self.train!r})"

    @property
    def _own(self) -> bool:
        return isinstance(self._retrainer, OwnTraining)

    @cached_property
    def _alone(self) -> NetworkEnsemble:
        return self._ensemble([values[None] for values in state_arrays(self._module)])

    def _ensemble(self, stack: Sequence[Array]) -> NetworkEnsemble:
        return NetworkEnsemble.of(self._module, stack, self._design, self.offset)

    def matrix(self, X: ArrayLike | pd.DataFrame) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name."""
        matrix, _ = people_matrix(X, self.train.columns, named=self.train.from_frame)
        return matrix

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Logit of the favourable label minus that of the threshold; shape (P,)."""
        scores: Array = self._alone.scores(self.matrix(X))[0]
        return scores

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """The same: this is the network in force."""
        return self.score(X)

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """1 where accepted, else 0; shape (P,)."""
        return (self.score(X) >= 0).astype(np.int64)

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x (P, d)."""
        scores, pullback = self._alone.scores_and_pullback(X)
        return scores[0], pullback(np.ones_like(scores))

    def score_gradient(self, X: Array) -> Array:
        """``d score / d theta`` at each person, shape (P, p)."""
        size = max(1, JACOBIAN_BYTES // (8 * len(self.theta)))
        parts = [
            array(self._slopes.jacobian(self._tensor(X[first : first + size]))) for first in range(0, len(X), size)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.theta)))

    def row_gradients(self, rows: slice | NDArray[np.intp] = slice(None)) -> Array:
        """``g_i`` of the objective for these training rows, shape (m, p)."""
        residuals = self._row_weights[rows] * LOGISTIC.residual(self._logits[rows], 1.0 - 2.0 * self.train.y[rows])
        gradients = residuals[:, None] * self.score_gradient(self.train.X[rows])
        return np.asarray(gradients + self.weight_decay * self.theta if self.weight_decay else gradients)

    def curvature(self) -> GaussNewton:
        """The damped Gauss-Newton matrix at the present parameters, a total over rows."""
        return self._curvature

    @cached_property
    def _curvature(self) -> GaussNewton:
        from rocerf.models.network.gauss_newton import gauss_newton

        n = len(self.train)
        weights = tensor(self._row_weights * LOGISTIC.curvature(self._logits), self.device)
        rows = self._tensor(self.train.X)
        ridge = n * (self.weight_decay + self.damping)
        return gauss_newton(lambda part: self._slopes.jacobian(rows[part]), weights, ridge, width=len(self.theta))

    @cached_property
    def _logits(self) -> Array:
        return np.asarray(self._alone.scores(self.train.X)[0] + self.offset)

    @cached_property
    def _row_weights(self) -> Array:
        return np.ones(len(self.train)) if self.train.weights is None else self.train.weights

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts (P, p): the map from points (P, d) to ``score + score_gradient'shift`` and its slopes in x.

        One Jacobian-vector product in the direction of the shift, and its gradient in x.
        """
        along = self._slopes.along(tensor(shifts, self.device))

        def read(X: Array) -> tuple[Array, Array]:
            values, slopes = along(self._tensor(X))
            return array(values) - self.offset, array(slopes) / self._design.scale

        return read

    def _tensor(self, X: Array) -> Tensor:
        return tensor(self._design(X), self.device)

    @cached_property
    def _slopes(self) -> NetworkSlopes:
        return NetworkSlopes(self._module)

    def without(self, ids: Iterable[Any], *, retraining: Retraining = "fresh", seed: int | None = None) -> NeuralModel:
        """The network trained again after deleting these rows; scaling, threshold and settings stay.

        "fresh" starts from a new initialisation, by default one that depends on this model's seed and on the rows;
        "warm" goes on from the present parameters. This answers "what if": the scaling that stays gives a deleted row
        away (``centre * (n + 1) - X.sum(0)``). To be rid of rows: :meth:`forget`.
        """
        gone = self.train.positions(ids)
        chosen = _derived_seed(self.seed, len(gone), *gone.tolist()) if seed is None else checked_seed(seed)
        stack = self._retrain([gone], [chosen], retraining, None)
        module = with_state(copy.deepcopy(self._module), [values[0] for values in stack])
        return NeuralModel(
            self.train.without(self.train.ids[gone]) if len(gone) else self.train,
            module,
            self._design,
            self._retrainer,
            seed=chosen,
            threshold=self.threshold,
            damping=self._damping,
            device=self.device,
        )

    def forget(self, ids: Iterable[Any]) -> NeuralModel:
        """A new network in which nothing of these rows is left, as if they had never been there.

        It is trained afresh with the same settings and seed, behind a scaling made anew from the rows left. A module
        from torch is trained by its ``refit`` function, from a fresh start, and taken over again; without one that
        cannot be done here. This object and what was saved of it keep the rows: drop them.
        """
        from rocerf.models.forgetting import forgotten

        return forgotten(self, ids)

    def trained_anew(self, train: TrainingSet) -> NeuralModel:
        """The same kind of network trained afresh on these rows; nothing of the present one goes into it."""
        same: dict[str, Any] = {"seed": self.seed, "threshold": self.threshold, "damping": self._damping}
        if isinstance(self._retrainer, OwnTraining):
            design = self._design.made_anew(train)
            model = NeuralModel._trained(train, design, self._retrainer, device=self.device, progress=None, **same)
            model._refuse_constant()
            return model
        assert isinstance(self._retrainer, UsersTraining)
        module = self._retrainer.trained_anew(train, self.seed)
        return NeuralModel.from_torch(module, train, refit=self._retrainer.refit, device=self.device, **same)

    @property
    def retrainer(self) -> Retrainer:
        """How this model is trained again."""
        return self._retrainer

    def with_retrainer(self, retrainer: Retrainer) -> NeuralModel:
        """The same network, trained again in another way from now on (other settings, say)."""
        return NeuralModel(
            self.train,
            copy.deepcopy(self._module),
            self._design,
            retrainer,
            seed=self.seed,
            threshold=self.threshold,
            damping=self._damping,
            device=self.device,
        )

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> NetworkEnsemble:
        """The network trained again after each of M deletions, all together; network m depends on (seed, m) alone.

        >>> import rocerf
        >>> data = rocerf.load_dataset("german")
        >>> model = NeuralModel.fit(data.train, epochs=5, learning_rate=0.2)
        >>> later = model.refitted([data.train.ids[:4], data.train.ids[:8]], seed=1)
        >>> later.scores(data.test.X).shape
        (2, 200)
        """
        gone = [self.train.positions(ids) for ids in deletions]
        seeds = [_derived_seed(checked_seed(seed), trial) for trial in range(len(gone))]
        return self._ensemble(self._retrain(gone, seeds, retraining, progress))

    def _retrain(
        self,
        gone: Sequence[NDArray[np.intp]],
        seeds: Sequence[int],
        retraining: Retraining,
        progress: Progress | None,
    ) -> list[Array]:
        one_of(retraining, "retraining", RETRAININGS)
        rows = np.arange(len(self.train))
        kept = [np.delete(rows, out) for out in gone]
        start = self._module if retraining == "warm" else None
        return self._retrainer.stack(self.train, self._design, kept, seeds, start, self.device, progress)

    def restored(self, stack: Sequence[Array]) -> NetworkEnsemble:
        """Networks of this shape from saved states (see :meth:`NetworkEnsemble.arrays`)."""
        return self._ensemble(stack)

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label that carry weight."""
        counted = self.train.y[self._row_weights > 0]
        good = int(counted.sum())
        return {self.train.favourable: good, self.train.unfavourable: len(counted) - good}

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove: then there is nothing left to learn."""
        label, count = min(self.class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    @cached_property
    def accuracy(self) -> float:
        """Share of training rows decided as labelled."""
        return float((self.predict(self.train.X) == self.train.y).mean())

    @property
    def majority_rate(self) -> float:
        """Accuracy of deciding the same for everybody."""
        good = float(self.train.y.mean())
        return max(good, 1.0 - good)

    def _refuse_constant(self) -> None:
        decisions = self._alone.scores(self.train.X)[0]
        if not np.isfinite(decisions).all():
            raise DidNotTrainError(
                "Expected finite scores on the training rows, got infinite ones or NaN; check the network's parameters."
            )
        accepted = float((decisions >= 0).mean())
        if accepted in (0.0, 1.0):
            raise DidNotTrainError(
                f"Expected a network that tells people apart, got one that {'accepts' if accepted else 'refuses'} "
                "every "
                f"training row (accuracy {self.accuracy:.1%}, majority rate {self.majority_rate:.1%}); train "
                "longer, raise the learning "
                "rate, or check that the labels belong to the rows."
            )

    def assumptions(self) -> tuple[str, ...]:
        """What "retrained" means for this model, in sentences."""
        said = (self._retrainer.sentence(), "scaling and the decision threshold stay as they are when rows are deleted")
        if self.accuracy <= self.majority_rate:
            weak = f"the network's accuracy on its training rows, {self.accuracy:.1%}, is not above the majority rate"
            return (*said, weak)
        return said

    def save(self, path: str | PathLike[str]) -> None:
        """Write network and training rows to one ``.npz`` file (plain arrays and JSON, no pickle).

        It holds all training rows with their ids and labels, so only its owner can read it.
        """
        from rocerf.models.network.file import write

        own = self._retrainer if isinstance(self._retrainer, OwnTraining) else None
        write(path, self, own, self._damping)

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
        from rocerf.models.network.file import read

        saved = read(path)
        retrainer: Retrainer
        if saved.own is not None:
            retrainer, skeleton = saved.own, saved.own.architecture.module()
        elif module is None:
            raise FileFormatError(
                "Expected the module too, since this network came from torch and a file without pickle holds only its "
                "numbers; pass NeuralModel.load(path, module=..., refit=...)."
            )
        else:
            skeleton = copy.deepcopy(module).double().eval()
            retrainer = UsersTraining(refit, skeleton, precision_of(module))
        return cls(
            saved.train,
            with_state(skeleton, saved.state),
            saved.design,
            retrainer,
            seed=saved.seed,
            threshold=saved.threshold,
            damping=saved.damping,
            device=_device_here(saved.device) if device is None else checked_device(device),
        )


def _unscaled(d: int) -> Design:
    return Design.identity(d, intercept=False)


def _device_here(saved: str) -> str:
    """The device a model was saved on, or the CPU where this machine has none such."""
    try:
        return checked_device(saved)
    except OptionError:
        return "cpu"


def _derived_seed(*entropy: int) -> int:
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _checked_damping(damping: Any) -> float | Literal["auto"]:
    return "auto" if isinstance(damping, str) and damping == "auto" else positive(damping, "damping", zero=True)
