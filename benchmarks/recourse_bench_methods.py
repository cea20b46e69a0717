"""Our methods under the interface of recourse_bench (charmlab/recourse_bench, 0.2): `register` makes them known there.

Nothing of that package is copied and nothing of it is needed to import this file: :func:`register` imports it when it
is called. A method there is a class made with a target model, fitted on a data set and asked for counterfactuals of a
table; a row of NaN says that there is none. A model is taken over as it is (its torch module) and is trained again by
its own ``fit`` on the rows that are left, from a seed of ours. Only `retrained` of their linear model differs: it is a
logistic regression without a penalty, some epochs short of its optimum, too far for us to take it over as one
(:class:`rocerf.errors.NotAtOptimumError`). There the promise is about the optimum on the same rows, and a point that
their own model refuses is not returned.

After ``register()`` the methods are called ``rocerf_plain``, ``rocerf_first_order``, ``rocerf_retrained``,
``rocerf_simulated`` and ``rocerf_margin``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

import rocerf
from rocerf.baselines import Margin
from rocerf.data.feature import Direction, Feature
from rocerf.errors import OptionError

#: C for a linear model that is trained without a penalty: next to none, so that the optimum is unique.
PENALTY = 100.0
#: What may change: everything; numbers within their training range and whole categories; also by declared directions.
RULES = ("free", "categories", "declared")
DIRECTIONS = {
    "any": Direction.ANY,
    "same-or-increase": Direction.INCREASE,
    "same-or-decrease": Direction.DECREASE,
    "none": Direction.FIXED,
}


class FavourableScore(torch.nn.Module):  # type: ignore[misc]
    """One logit a row, as our models have it: the favourable class's output less the other's."""

    def __init__(self, module: Any, favourable: int) -> None:
        super().__init__()
        self.module, self.favourable = module, favourable

    def forward(self, rows: Any) -> Any:
        """Log-odds of the favourable class, shape (m,)."""
        outputs = self.module(rows)
        if outputs.shape[1] == 1:  # one output is the log-odds of the second class
            return outputs[:, 0] if self.favourable == 1 else -outputs[:, 0]
        return outputs[:, self.favourable] - outputs[:, 1 - self.favourable]


def taken_over(target_model: Any, train_set: Any, desired_class: Any, *, seed: int = 0, exact: bool = False) -> Any:
    """Their trained model as a :class:`rocerf.NeuralModel`; with ``exact`` the optimum of a linear one, instead."""
    classes = target_model.get_class_to_index()
    if len(classes) != 2:
        raise OptionError(f"Expected a model of two classes, got {len(classes)}; recourse here is about yes or no.")
    module = getattr(target_model, "_model", None)
    if not isinstance(module, torch.nn.Module):
        raise OptionError(f"Expected a model over torch (linear, mlp), got {type(target_model).__name__}.")
    favourable = classes[desired_class]
    table, labels = train_set.get(target=False), train_set.get(target=True).iloc[:, 0]
    names = table.index.map(str).to_numpy()
    rows = rocerf.TrainingSet(table, labels.to_numpy() == desired_class, ids=names)
    if exact and isinstance(module, torch.nn.Linear):
        return rocerf.LogisticModel.fit(rows, C=PENALTY)

    def refit(train: rocerf.TrainingSet, again_seed: int, start: Any) -> Any:
        if start is not None:
            raise OptionError("Expected a fresh training, got one to go on from, which their fit does not know.")
        again = copy.deepcopy(target_model)
        again._seed, again._pretrained_path, again._save_name = again_seed, None, None
        again.fit(_subset(train_set, np.isin(names, train.ids)))
        return FavourableScore(again._model, favourable)

    return rocerf.NeuralModel.from_torch(FavourableScore(module, favourable), rows, refit=refit, seed=seed)


def _subset(train_set: Any, kept: Any) -> Any:
    """Their data set with fewer rows, frozen as its readers want it."""
    whole = pd.concat([train_set.get(target=False), train_set.get(target=True)], axis=1)
    fewer = train_set.clone()
    fewer.update("rocerf_subset", True, df=whole.loc[kept, train_set.ordered_features()])
    fewer.freeze()
    return fewer


def schema_of(train_set: Any, rules: str) -> rocerf.FeatureSchema:
    """What may change, as their data set declares it: one-hot columns are one category."""
    table = train_set.get(target=False)
    if rules not in RULES:
        raise OptionError(f"Expected rules to be one of {', '.join(RULES)}, got {rules!r}.")
    if rules == "free":
        return rocerf.FeatureSchema.free(table.columns)
    groups = {c: name for name, columns in train_set.attr("encoding").items() for c in columns if len(columns) > 1}
    declared = train_set.attr("encoded_feature_actionability") if rules == "declared" else {}
    features = []
    for column in table.columns:
        direction = DIRECTIONS[declared.get(column, "any")]
        if column in groups:
            features.append(Feature(column, kind="binary", group=groups[column], direction=direction))
        else:
            lowest, highest = float(table[column].min()), float(table[column].max())
            features.append(Feature(column, lower=lowest, upper=highest, direction=direction))
    return rocerf.FeatureSchema(features)


class RocerfMethod:
    """One promise as a method of theirs; subclasses say which.

    Parameters
    ----------
    target_model : their model; linear and mlp are known.
    k : int or str
        Deletions to withstand, as for :class:`rocerf.Rocerf`.
    cost : "l1" or "l2"
        What is minimised; their distance on this task is L1.
    rules : "free", "categories" or "declared"
        What may change; see :func:`schema_of`.
    margin : float
        Of ``rocerf_margin`` only.
    """

    promise = "plain"

    def __init__(
        self,
        target_model: Any,
        seed: int | None = None,
        device: str = "cpu",
        desired_class: Any = None,
        *,
        k: int | str = "5%",
        cost: str = "l1",
        rules: str = "categories",
        margin: float = 0.0,
        **_: Any,
    ) -> None:
        self._target_model, self._seed, self._device = target_model, seed, device
        self._desired_class = 1 if desired_class is None else desired_class
        self._need_grad, self._is_trained = True, False
        self.answers: Any = None
        self.k, self.cost, self.rules, self.margin = k, cost, rules, margin

    def fit(self, train_set: Any) -> None:
        """Take over the model and what may change; the promise prepares itself at the first question."""
        seed = self._seed or 0
        exact = self.promise == "retrained"
        model = taken_over(self._target_model, train_set, self._desired_class, seed=seed, exact=exact)
        options: dict[str, Any] = {"cost": self.cost, "schema": schema_of(train_set, self.rules), "seed": seed}
        explainer: Any
        if self.promise == "margin":
            explainer = Margin(model, margin=self.margin, **options)
        elif self.promise == "plain":
            explainer = rocerf.Rocerf(model, promise="plain", **options)
        else:
            explainer = rocerf.Rocerf(model, self.k, promise=self.promise, **options)
        favourable = self._target_model.get_class_to_index()[self._desired_class]
        self._score = FavourableScore(self._target_model._model, favourable)
        self.explainer, self._is_trained = explainer, True

    def get_counterfactuals(self, factuals: pd.DataFrame) -> pd.DataFrame:
        """A point for each row; NaN where there is none, of which ``answers`` says why."""
        found = self.answers = self.explainer.explain(factuals.to_numpy(np.float64))
        with torch.no_grad():
            accepted = self._score(torch.tensor(found.matrix.astype("float32"))).numpy() >= 0
        points = np.where((np.asarray(found.answered) & accepted)[:, None], found.matrix, np.nan)
        return pd.DataFrame(points, index=factuals.index, columns=factuals.columns)


METHODS = ("plain", "first_order", "retrained", "simulated", "margin")


def method_of(promise: str, base: type = object) -> type[RocerfMethod]:
    """The class for one promise, under a base class of theirs."""
    bases = (RocerfMethod,) if base is object else (RocerfMethod, base)
    return type(
        f"Rocerf{promise.title().replace('_', '')}", bases, {"promise": promise, "__doc__": RocerfMethod.__doc__}
    )


def register() -> list[str]:
    """Make the methods known to an installed recourse_bench, under ``rocerf_<promise>``; returns the names."""
    from importlib import import_module

    base = import_module("recourse_bench.method.method_object").MethodObject
    enter: Callable[[str], Callable[[type], type]] = import_module("recourse_bench.utils.registry").register
    return [_entered(enter, f"rocerf_{promise}", method_of(promise, base)) for promise in METHODS]


def _entered(enter: Callable[[str], Callable[[type], type]], name: str, method: type) -> str:
    enter(name)(method)
    return name
