"""MLflow (extra ``mlflow``): explainers in its registry, and models out of it, without pickle.

:func:`log_model` keeps what :meth:`rocerf.Rocerf.save` writes, as the flavour ``rocerf`` with a pyfunc beside it, whose
``predict`` takes a frame of people and gives one row of recourse for each. Tags say which rows (by checksum), how many
deletions and which promise it is about. :func:`from_mlflow` takes over a scikit-learn model that is in a registry.

**What is logged holds all training rows.** It lies wherever the tracking server keeps artefacts, where
:meth:`rocerf.Rocerf.forget` does not reach: a deletion is complete once the versions made before it are deleted there.

Which types a file may hold is said here and by the caller, never by the artefact: a list of trusted types in its
``MLmodel`` is not read, and neither is a pickle.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.errors import FileFormatError, MissingExtraError, OptionError, UnsupportedModelError
from rocerf.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from rocerf.data.training_set import TrainingSet
    from rocerf.explainer.explainer import Rocerf
    from rocerf.models.model import Refittable

FLAVOUR = "rocerf"
#: The folder of the explainer within the artefact.
FOLDER = "explainer"
#: Older ones read a list of trusted types from what they load.
OLDEST = 3


def log_model(
    explainer: Rocerf,
    name: str,
    *,
    registered_model_name: str | None = None,
    tags: Mapping[str, str] | None = None,
    **options: Any,
) -> Any:
    """Log an explainer with the active run, as ``mlflow.<flavour>.log_model`` does; what that returns.

    Everything is proven and calibrated first. ``tags`` come beside ours (:func:`tags_of`), which cannot be replaced; a
    version that is registered carries them too. **All training rows are in the artefact.**
    """
    mlflow = _mlflow()
    ours = tags_of(explainer)
    with _quietly():
        logged = mlflow.models.Model.log(
            artifact_path=None,
            name=name,
            flavor=sys.modules[__name__],
            explainer=explainer,
            registered_model_name=registered_model_name,
            tags={**(tags or {}), **ours},
            metadata=dict(ours),
            **options,
        )
        if registered_model_name is not None:
            client = mlflow.MlflowClient()
            for key, value in ours.items():
                client.set_model_version_tag(registered_model_name, logged.registered_model_version, key, value)
    return logged


def save_model(explainer: Rocerf, path: str | PathLike[str], *, mlflow_model: Any = None) -> None:
    """Write the artefact into a folder that is not there yet; :func:`log_model` calls it by MLflow."""
    mlflow = _mlflow()
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise OptionError(f"Expected a folder that is not there yet, got {folder}; choose another.")
    folder.mkdir(parents=True, exist_ok=True)
    explainer.save(folder / FOLDER)
    model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    with _quietly():
        mlflow.pyfunc.add_to_model(model, loader_module="rocerf.mlflow", data=FOLDER, env=None)
        model.add_flavor(FLAVOUR, data=FOLDER, version=__version__, **tags_of(explainer))
        model.save(str(folder / "MLmodel"))


def load_model(model_uri: str, *, model: Refittable | None = None) -> Rocerf:
    """The explainer that was logged; ``model`` as :meth:`rocerf.Rocerf.load` takes it."""
    from rocerf.explainer.explainer import Rocerf

    folder, flavours = _downloaded(model_uri)
    if FLAVOUR not in flavours:
        found = ", ".join(sorted(flavours)) or "none"
        raise FileFormatError(
            f"Expected an explainer that rocerf.mlflow.log_model logged, got the flavours {found}; for a model of "
            "scikit-learn call from_mlflow."
        )
    return Rocerf.load(folder / FOLDER, model=model)


def from_mlflow(
    model_uri: str, train: TrainingSet | pd.DataFrame, y: ArrayLike | None = None, **options: Any
) -> Refittable:
    """A model of ours over a scikit-learn model in MLflow, such as ``models:/credit@champion``.

    The model must be kept in the format skops. Types beyond scikit-learn's own are refused, whatever the artefact says
    about them; a pickle is never opened: load it yourself where you trust it, and call :func:`rocerf.from_pipeline`.

    Parameters
    ----------
    model_uri : str
        Where it is.
    train : TrainingSet, or for pipelines the DataFrame that they take
        The rows that it was fitted on.
    y : n labels
        With a DataFrame.
    **options
        As :func:`rocerf.from_pipeline` takes them for a DataFrame, else as :meth:`rocerf.LogisticModel.from_sklearn`
        does.
    """
    import pandas as pd

    from rocerf.models.logistic.model import LogisticModel
    from rocerf.models.sklearn.pipeline import from_pipeline
    from rocerf.models.sklearn.skops_file import load_skops_model, load_skops_pipeline

    path = _skops_file(model_uri)
    if isinstance(train, pd.DataFrame):
        if y is None:
            raise OptionError("Expected the labels as y with a DataFrame of training rows, got none; give them.")
        model: Refittable = from_pipeline(load_skops_pipeline(path), train, y, **options)
        return model
    if y is not None:
        raise OptionError(
            "Expected y only with a DataFrame, got it with a TrainingSet, which has its own; leave it out."
        )
    return LogisticModel.from_sklearn(load_skops_model(path), train, **options)


def tags_of(explainer: Rocerf) -> dict[str, str]:
    """What the registry shows of an explainer: of which rows, how many deletions, which promise; no person's data."""
    return {
        "rocerf.row_checksum": explainer.model.train.checksum,
        "rocerf.k": str(explainer.k),
        "rocerf.promise": explainer.promise.name,
        "rocerf.version": __version__,
    }


class Recourser:
    """What ``mlflow.pyfunc.load_model`` gives: people in, recourse out."""

    def __init__(self, explainer: Rocerf) -> None:
        self.explainer = explainer

    def predict(self, model_input: pd.DataFrame, params: Mapping[str, Any] | None = None) -> pd.DataFrame:
        """One row for each person of a frame, as :meth:`rocerf.Recourses.to_frame` has them."""
        if params:
            raise OptionError(f"Expected no parameters, got {sorted(params)}; the explainer was logged with its own.")
        return self.explainer.explain(model_input).to_frame()


def _load_pyfunc(path: str) -> Recourser:
    """Called by MLflow with the folder of the explainer."""
    from rocerf.explainer.explainer import Rocerf

    return Recourser(Rocerf.load(path))


def _skops_file(model_uri: str) -> Path:
    """The file of a scikit-learn model, which must be in the format skops and lie within the artefact."""
    folder, flavours = _downloaded(model_uri)
    about = flavours.get("sklearn")
    if about is None:
        found = ", ".join(sorted(flavours)) or "none"
        raise UnsupportedModelError(f"Expected a model of scikit-learn, got the flavours {found}; log it as one.")
    kept_as = about.get("serialization_format")
    if kept_as != "skops":
        raise UnsupportedModelError(
            f"Expected a model logged with serialization_format='skops', got {kept_as!r}, which would run its author's "
            "code when it is opened; log it again as skops, or load it yourself and call rocerf.from_pipeline."
        )
    path = (folder / str(about.get("pickled_model", "model.skops"))).resolve()
    if folder.resolve() not in path.parents:
        raise FileFormatError("Expected the model's file within its artefact, got a path that leaves it; log it again.")
    return path


def _downloaded(model_uri: str) -> tuple[Path, dict[str, Any]]:
    """The folder of an artefact, and its flavours."""
    mlflow = _mlflow()
    with _quietly():
        try:
            folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
            flavours: dict[str, Any] = mlflow.models.Model.load(str(folder)).flavors
        except (mlflow.exceptions.MlflowException, OSError) as error:
            raise FileFormatError(
                f"Expected a model in MLflow at {model_uri!r}, got {error}; check the address and MLFLOW_TRACKING_URI."
            ) from error
    return folder, flavours


def _mlflow() -> Any:
    """The library, if it is there and new enough; what it warns about while it loads is not the user's business."""
    try:
        with _quietly():
            import mlflow
            import mlflow.artifacts
            import mlflow.models
            import mlflow.pyfunc
    except ImportError as error:
        raise MissingExtraError("mlflow-skinny", "mlflow", "keeping explainers in MLflow") from error
    if int(mlflow.__version__.partition(".")[0]) < OLDEST:
        raise OptionError(
            f"Expected MLflow {OLDEST} or newer, got {mlflow.__version__}; pip install 'rocerf[mlflow]' has one."
        )
    return mlflow


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings, which MLflow gives freely about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
