"""Fitted estimators as bytes that cannot run code when read: skops, and the own formats of other libraries.

A booster of XGBoost, LightGBM or CatBoost inside the estimator (itself, the last step of a pipeline, under a threshold
of its own, or the pipeline of a model over schema space) is taken out, written as its library writes it, and put back
when read.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import UnsupportedModelError
from rocerf.models.sklearn.own_threshold import deciding
from rocerf.storage.scratch import bytes_written_by, read_from_file

#: Parts of fitted estimators that skops does not trust by itself and that we do, by name. Not everything of
#: scikit-learn: its modules also hold functions that reach files and the network, which a file must not call.
TRUSTED = frozenset(
    {
        "numpy.dtype",
        "rocerf.models.pipeline_estimator.SchemaSpaceClassifier",  # where files written before rooms have it
        "rocerf.models.sklearn.pipeline_estimator.SchemaSpaceClassifier",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)

#: Classifiers of other libraries: package and class, nothing else of which is made when a file is read.
BOOSTERS = {
    "xgboost": ("XGBClassifier", "XGBRFClassifier"),
    "lightgbm": ("LGBMClassifier",),
    "catboost": ("CatBoostClassifier",),
}


def estimator_written(estimator: Any) -> dict[str, NDArray[Any]]:
    """Arrays of bytes out of which :func:`estimator_read` makes the estimator again."""
    from skops.io import dumps

    booster = _booster_in(estimator)
    parts: dict[str, NDArray[Any]] = {}
    if booster is not None:
        estimator = _exchanged(estimator, _stand_in(booster))
        about, own = _written(booster)
        parts = {"booster_about": np.frombuffer(about.encode(), np.uint8), "booster": np.frombuffer(own, np.uint8)}
    data = dumps(estimator)
    strange = _untrusted(data)
    if strange:
        raise UnsupportedModelError(
            f"Expected an estimator made of parts we can read back without running code, got one with "
            f"{', '.join(strange[:3])}; keep the code that fits it instead, and fit it again."
        )
    return {"estimator": np.frombuffer(data, dtype=np.uint8), **parts}


def estimator_read(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The estimator out of what :func:`estimator_written` gave."""
    found = _read_estimator(arrays["estimator"].tobytes())
    if "booster" not in arrays:
        return found
    return _exchanged(found, _read(json.loads(arrays["booster_about"].tobytes()), arrays["booster"].tobytes()))


# --- boosters -----------------------------------------------------------------------------------------


def _package(estimator: Any) -> str:
    return type(estimator).__module__.partition(".")[0]


def _booster_in(estimator: Any) -> Any | None:
    """The classifier of another library that an estimator ends in, if it is one that we write."""
    if hasattr(estimator, "pipeline_"):
        return _booster_in(estimator.pipeline_)
    if hasattr(estimator, "steps"):
        return _booster_in(estimator.steps[-1][1])
    if deciding(estimator) is estimator:
        return _booster_in(estimator.estimator_)
    known = BOOSTERS.get(_package(estimator), ())
    return estimator if type(estimator).__name__ in known else None


def _exchanged(estimator: Any, last: Any) -> Any:
    """The same with another last step; the given one is left alone."""
    if hasattr(estimator, "pipeline_"):
        other = copy.copy(estimator)
        other.pipeline_ = _exchanged(estimator.pipeline_, last)
        other.pipeline = other.pipeline_
        return other
    if hasattr(estimator, "steps"):
        other = copy.copy(estimator)
        other.steps = [*estimator.steps[:-1], (estimator.steps[-1][0], _exchanged(estimator.steps[-1][1], last))]
        return other
    if deciding(estimator) is estimator:
        other = copy.copy(estimator)
        other.estimator = other.estimator_ = _exchanged(estimator.estimator_, last)
        return other
    return last


def _stand_in(booster: Any) -> Any:
    from sklearn.dummy import DummyClassifier

    classes = np.asarray(booster.classes_)
    return DummyClassifier(strategy="prior").fit(np.zeros((len(classes), 1)), classes)


def _written(booster: Any) -> tuple[str, bytes]:
    """Options, labels and names as JSON text, and the booster in the format of its library."""
    options = {name: value for name, value in booster.get_params().items() if value is not None}
    options = {name: value for name, value in options.items() if not (isinstance(value, float) and np.isnan(value))}
    names = getattr(booster, "feature_names_in_", None)
    about = {
        "package": _package(booster),
        "kind": type(booster).__name__,
        "options": options,
        "classes": np.asarray(booster.classes_).tolist(),
        "columns": int(booster.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "best_iteration": getattr(booster, "best_iteration_", None),  # LightGBM's own text does not say it
    }
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise UnsupportedModelError(
            f"Expected a {about['kind']} whose options are numbers and texts, got others ({error}); keep the code that "
            "fits it instead, and fit it again."
        ) from error
    if about["package"] == "xgboost":
        return text, bytes(booster.get_booster().save_raw("ubj"))
    if about["package"] == "lightgbm":
        return text, booster.booster_.model_to_string().encode()
    return text, bytes_written_by(lambda path: booster.save_model(path, format="cbm"))


def _read(about: dict[str, Any], data: bytes) -> Any:
    if about["kind"] not in BOOSTERS.get(about["package"], ()):
        raise ValueError(f"it holds {about['package']}.{about['kind']}, which is not trusted")
    kind = getattr(import_module(about["package"]), about["kind"])
    options = dict(about["options"])
    if about["package"] == "catboost":  # it copies lists, and then cannot be cloned: they were tuples when written
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    made = kind(**options)
    if about["package"] == "xgboost":
        made.load_model(bytearray(data))
        made.n_classes_ = len(about["classes"])
        # Reading a model sets options that the user left open, and fits would start from these.
        for name, value in kind(**options).get_params().items():
            setattr(made, name, value)
    elif about["package"] == "lightgbm":
        _restore_lightgbm(made, about, data.decode())
    else:
        read_from_file(data, lambda path: made.load_model(path, format="cbm"))
        made._init_params = options
    return made


def _restore_lightgbm(made: Any, about: dict[str, Any], text: str) -> None:
    """What ``fit`` leaves behind in LightGBM's classifier, around its own booster."""
    from lightgbm import Booster
    from lightgbm.sklearn import _LGBMLabelEncoder

    classes = np.asarray(about["classes"])
    made._Booster = Booster(model_str=text)
    made._le = _LGBMLabelEncoder().fit(classes)
    made._classes, made._n_classes = made._le.classes_, len(classes)
    made._class_map = {label: place for place, label in enumerate(classes)}
    made._n_features = made._n_features_in = about["columns"]
    made._best_iteration = about.get("best_iteration") or made._Booster.best_iteration
    made._objective, made.fitted_ = "binary", True


# --- skops --------------------------------------------------------------------------------------------


def _read_estimator(data: bytes) -> Any:
    from skops.io import get_untrusted_types, loads

    from rocerf.models.sklearn import pipeline_estimator

    strange = _untrusted(data)
    if strange:
        raise ValueError(f"it holds {', '.join(strange[:3])}, which is not trusted")
    sys.modules.setdefault("rocerf.models.pipeline_estimator", pipeline_estimator)  # files name the class by its home
    return loads(data, trusted=get_untrusted_types(data=data))


def _untrusted(data: bytes) -> list[str]:
    """Parts of an estimator written by skops that could run code when read, for all we know."""
    from skops.io import get_untrusted_types

    return [name for name in get_untrusted_types(data=data) if name not in TRUSTED]
