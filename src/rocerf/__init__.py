"""Recourse that survives the right to be forgotten.

A person refused by a model is shown what to change to be accepted; rocerf computes changes meant to
stay good when other people's rows are deleted from the training data and the model is retrained,
and says exactly how far that was tested or proven.

>>> import rocerf
>>> data = rocerf.load_dataset("german")
>>> model = rocerf.LogisticModel.fit(data.train, C=1.0)
>>> denied = data.test.X[model.predict(data.test.X) == 0]
>>> recourses = rocerf.Rocerf(model, k=4).explain(denied[:5])
>>> bool((model.score(recourses.points) >= 0).all())
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rocerf.version import __version__

if TYPE_CHECKING:
    from rocerf import baselines as baselines
    from rocerf import evaluation as evaluation
    from rocerf import promises as promises
    from rocerf import reproduction as reproduction
    from rocerf.data.datasets import Dataset as Dataset
    from rocerf.data.datasets import list_datasets as list_datasets
    from rocerf.data.datasets import load_dataset as load_dataset
    from rocerf.data.feature import Feature as Feature
    from rocerf.data.raw_tables import load_raw as load_raw
    from rocerf.data.schema import FeatureSchema as FeatureSchema
    from rocerf.data.training_set import TrainingSet as TrainingSet
    from rocerf.deletion.adversary import Adversary as Adversary
    from rocerf.errors import RocerfError as RocerfError
    from rocerf.evaluation.portfolio import portfolio as portfolio
    from rocerf.explainer.explainer import Rocerf as Rocerf
    from rocerf.letters.letter import Letter as Letter
    from rocerf.models.logistic.model import LogisticModel as LogisticModel
    from rocerf.models.network.model import NeuralModel as NeuralModel
    from rocerf.models.sklearn.estimator import EstimatorModel as EstimatorModel
    from rocerf.models.sklearn.pipeline import from_pipeline as from_pipeline
    from rocerf.recourse.costs.prices import CostTable as CostTable
    from rocerf.recourse.result import Recourse as Recourse
    from rocerf.recourse.result import Recourses as Recourses
    from rocerf.recourse.result import Status as Status
    from rocerf.runners import running as running
    from rocerf.storage.state import State as State

#: Public name -> module that defines it, imported on first use so that ``import rocerf`` is cheap.
_HOMES = {
    "Adversary": "rocerf.deletion.adversary",
    "CostTable": "rocerf.recourse.costs.prices",
    "Dataset": "rocerf.data.datasets",
    "EstimatorModel": "rocerf.models.sklearn.estimator",
    "Feature": "rocerf.data.feature",
    "FeatureSchema": "rocerf.data.schema",
    "Letter": "rocerf.letters.letter",
    "LogisticModel": "rocerf.models.logistic.model",
    "NeuralModel": "rocerf.models.network.model",
    "Recourse": "rocerf.recourse.result",
    "Recourses": "rocerf.recourse.result",
    "Rocerf": "rocerf.explainer.explainer",
    "RocerfError": "rocerf.errors",
    "State": "rocerf.storage.state",
    "Status": "rocerf.recourse.result",
    "TrainingSet": "rocerf.data.training_set",
    "from_pipeline": "rocerf.models.sklearn.pipeline",
    "list_datasets": "rocerf.data.datasets",
    "load_dataset": "rocerf.data.datasets",
    "load_raw": "rocerf.data.raw_tables",
    "portfolio": "rocerf.evaluation.portfolio",
    "running": "rocerf.runners",
}
_ROOMS = ("baselines", "evaluation", "promises", "reproduction")

__all__ = ["__version__", *sorted((*_HOMES, *_ROOMS))]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"rocerf.{name}")
    raise AttributeError(f"module 'rocerf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
