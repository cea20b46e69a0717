"""How networks are trained again: our own trainer, many at once, or the user's function, one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import DidNotTrainError, NoOptimumError, UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.expected_time import seconds_of
from rocerf.models.network.network import Architecture, Tensor, is_module, state_arrays
from rocerf.models.network.training import STACK_ON_CPU, Task, Training, train_stack
from rocerf.types import Array, Progress
from rocerf.words import Said

Rows = NDArray[np.intp]

#: Share of the steps, at most, that are taken to see how long all of them would take.
TRIED = 0.02

#: The user's training: rows, a seed, and the module to go on from (None: start afresh); returns a trained module.
Refit = Callable[[TrainingSet, int, Any], Any]


@dataclass(frozen=True, eq=False)
class Retrainings:
    """M networks to be trained: network m on rows ``kept[m]``, afresh by ``seeds[m]``, or on from ``start``."""

    train: TrainingSet
    design: Design
    kept: Sequence[Rows]
    seeds: Sequence[int]
    device: str
    start: Tensor | None = None
    progress: Progress | None = None


class Retrainer(Protocol):
    """Trains networks of one shape on parts of one training set."""

    def stack(self, work: Retrainings) -> list[Array]:
        """A stack of M states, one for each retraining."""
        ...

    def seconds(self, work: Retrainings) -> float | None:
        """About how long :meth:`stack` takes, by trying a small part of it; None if that cannot be known."""
        ...

    @property
    def weight_decay(self) -> float:
        """Of the objective; 0 where it is not known."""
        ...

    def sentence(self) -> Said:
        """What training means here."""
        ...

    def default_damping(self, rows: int) -> float:
        """Damping of the mean curvature that goes with this training over so many rows."""
        ...


@dataclass(frozen=True)
class OwnTraining:
    """The seeded trainer of this package: stochastic gradient descent, all networks at once."""

    architecture: Architecture
    training: Training

    def stack(self, work: Retrainings) -> list[Array]:
        """All networks together (:func:`rocerf.models.network.training.train_stack`)."""
        refuse_one_class(work.train, work.kept)
        stack = self._trained(work, self.training)
        refuse_diverged(stack, f"learning_rate={self.training.learning_rate:g}")
        return stack

    def _trained(self, work: Retrainings, training: Training) -> list[Array]:
        train, seeds = work.train, work.seeds
        weights = np.ones(len(train)) if train.weights is None else train.weights
        if work.start is None:
            first = self.architecture.initial(seeds)
        else:
            first = [np.repeat(values[None], len(seeds), axis=0) for values in state_arrays(work.start)]
        task = Task(work.design(train.X), train.y, weights)
        return train_stack(task, first, work.kept, seeds, training, device=work.device, progress=work.progress)

    def seconds(self, work: Retrainings) -> float:
        """From one epoch, or less of few epochs, of as many networks as are trained side by side.

        What is needed once, whatever the number of steps, is told apart by a second try with one step only.
        """
        batch, together = self.training.batch_size, min(len(work.seeds), STACK_ON_CPU)
        steps = self.training.steps(max(map(len, work.kept), default=0))
        tried = max(2, min(round(TRIED * steps), steps // self.training.epochs))

        def take(count: int) -> float:
            kept = [rows[: count * batch] for rows in work.kept[:together]]
            small = replace(work, kept=kept, seeds=work.seeds[:together], progress=None)
            return seconds_of(lambda: self._trained(small, replace(self.training, epochs=1)))

        take(1)  # libraries set themselves up
        once, more = take(1), take(tried)
        step = max(more - once, 0.0) / (tried - 1)
        return len(work.seeds) / together * (once + step * (steps - 1))

    @property
    def weight_decay(self) -> float:
        """Of the objective."""
        return self.training.weight_decay

    def sentence(self) -> Said:
        """The hyper-parameters."""
        t = self.training
        return Said.of(
            "models.network.trained",
            rate=t.learning_rate,
            batch=t.batch_size,
            epochs=t.epochs,
            decay=t.weight_decay,
            order=Said.of("models.network.shuffled" if t.shuffle else "models.network.in_order"),
        )

    def default_damping(self, rows: int) -> float:
        """``1 / (rate x steps)``: stopping gradient descent after so many steps amounts to a ridge of that size.

        A direction of curvature c has come ``1 - exp(-c rate steps)`` of its way to the optimum, a ridge lets it come
        ``c / (c + ridge)``; both turn at ``c = 1 / (rate x steps)``.
        """
        return 1.0 / (self.training.learning_rate * self.training.steps(rows))


@dataclass(frozen=True)
class UsersTraining:
    """The user's own training function, called for one network after another."""

    refit: Refit | None
    module: Tensor
    precision: Any

    def stack(self, work: Retrainings) -> list[Array]:
        """One call of the function for each network, with the rows that are left."""
        if self.refit is None:
            raise UnsupportedModelError(
                "Expected a way to train this network again, got none; pass "
                "NeuralModel.from_torch(module, train, refit=function), where function(train, seed, start) returns a "
                "trained module (start is None for a fresh one, else the module to go on from)."
            )
        train = work.train
        refuse_one_class(train, work.kept)
        everything = np.arange(len(train))
        states: list[list[Array]] = []
        for rows, seed in zip(work.kept, work.seeds, strict=True):
            left = train.without(train.ids[np.setdiff1d(everything, rows)]) if len(rows) < len(train) else train
            trained = self.refit(left, seed % 2**32, None if work.start is None else self._to_go_on_from(work.start))
            states.append(self._same_shape(trained))
            if work.progress is not None:
                work.progress(len(states), len(work.seeds))
        stack = [np.stack(values) for values in zip(*states, strict=True)]
        refuse_diverged(stack, "the refit function given")
        return stack

    def seconds(self, work: Retrainings) -> float | None:
        """So many times what one call of the function takes, with all rows and from a fresh start."""
        refit = self.refit
        return None if refit is None else len(work.seeds) * seconds_of(lambda: refit(work.train, 0, None))

    def trained_anew(self, train: TrainingSet, seed: int) -> Tensor:
        """The module that the function returns for these rows, from a fresh start; nothing of the present one."""
        if self.refit is None:
            raise UnsupportedModelError(
                "Expected a way to train this network again on the rows left, got none; train it there yourself and "
                "take it over with NeuralModel.from_torch(module, train), or pass refit=function (to "
                "NeuralModel.from_torch or NeuralModel.load), which does it."
            )
        refuse_one_class(train, [np.arange(len(train))])
        trained = self.refit(train, seed % 2**32, None)
        state = self._same_shape(trained)
        refuse_diverged([values[None] for values in state], "the refit function given")
        return trained

    def _to_go_on_from(self, start: Tensor) -> Tensor:
        """A copy as the user's own code knows the module: in its precision, ready to be trained."""
        again = copy.deepcopy(start).to(dtype=self.precision).train()
        return again.requires_grad_(True)

    def _same_shape(self, trained: Any) -> list[Array]:
        if not is_module(trained):
            raise UnsupportedModelError(
                f"Expected refit(train, seed, start) to return a torch module, got {type(trained).__name__}; "
                "return the trained module."
            )
        state, wanted = state_arrays(trained), state_arrays(self.module)
        if [values.shape for values in state] != [values.shape for values in wanted]:
            raise UnsupportedModelError(
                "Expected refit to return a network of the same shape as the one given, got another; "
                "build it the same way every time."
            )
        return state

    @property
    def weight_decay(self) -> float:
        """0: the objective is the user's."""
        return 0.0

    def sentence(self) -> Said:
        """It is the user's."""
        return Said.of("models.network.users_training")

    def default_damping(self, rows: int) -> float:
        """0.01, as in the code of the paper's authors: nothing is known about the training."""
        return 0.01


def refuse_one_class(train: TrainingSet, kept: Sequence[Rows]) -> None:
    """A network that sees one class only learns nothing but that class."""
    for rows in kept:
        labels = train.y[rows]
        if len(rows) == 0 or labels.min() == labels.max():
            raise NoOptimumError(
                f"Expected rows of both classes to train on, got {len(rows)} rows of one class; delete fewer rows."
            )


def refuse_diverged(stack: Sequence[Array], setting: str) -> None:
    """Training that ended in infinities or NaN is an error, not a model."""
    finite = np.all([np.isfinite(values.reshape(len(values), -1)).all(axis=1) for values in stack], axis=0)
    if not finite.all():
        raise DidNotTrainError(
            f"Expected training to end with finite parameters, got {int((~finite).sum())} of {len(finite)} networks "
            f"with infinite ones or NaN ({setting}); lower the learning rate, or check the data for huge values."
        )


def refuse_constant(scores: Array, labels: Array) -> None:
    """A network whose scores of its training rows (n,) are all of one sign, or no numbers, decides nothing."""
    if not np.isfinite(scores).all():
        raise DidNotTrainError(
            "Expected finite scores on the training rows, got infinite ones or NaN; check the network's parameters."
        )
    accepted = scores >= 0
    if accepted.all() or not accepted.any():
        good = float(labels.mean())
        advice = "train longer, raise the learning rate, or check that the labels belong to the rows"
        if 0 <= scores.min() < scores.max() <= 1:
            advice = (
                "its scores lie between 0 and 1, as probabilities do, where a logit is expected, accepted from 0 on: "
                "leave out the sigmoid at the end of the module, if there is one; else " + advice
            )
        raise DidNotTrainError(
            f"Expected a network that tells people apart, got one that {'accepts' if accepted.all() else 'refuses'} "
            f"every training row (accuracy {(accepted == labels).mean():.1%}, majority rate {max(good, 1.0 - good):.1%}"
            f"); {advice}."
        )
