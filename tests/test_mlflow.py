"""Explainers in MLflow's registry and back, and scikit-learn models out of it: no pickle, no trust in the artefact."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import rocerf
import rocerf.mlflow as flavour
from rocerf.errors import FileFormatError, MissingExtraError, OptionError, UnsupportedModelError

TOO_OLD = "MLflow 3 (extra mlflow) is not installed"

# What MLflow and SQLAlchemy warn about in MLflow's own code is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def version() -> int:
    try:
        return int(importlib.metadata.version("mlflow-skinny").partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return 0


needs_mlflow = pytest.mark.skipif(version() < 3, reason=TOO_OLD)


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow with a registry in a folder of this test's own."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.chdir(tmp_path)
    found = flavour._mlflow()
    before = found.get_tracking_uri()
    found.set_tracking_uri(f"file://{tmp_path}/runs")
    found.set_registry_uri(f"file://{tmp_path}/runs")
    yield found
    found.set_tracking_uri(before)
    found.set_registry_uri(None)


@pytest.fixture(scope="module")
def explainer() -> rocerf.Rocerf:
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    return rocerf.Rocerf(model, k=4, promise="first_order", schema=data.schema)


@pytest.fixture(scope="module")
def refused(explainer: rocerf.Rocerf) -> pd.DataFrame:
    people = rocerf.load_dataset("german").test.frame()
    return people[explainer.model.predict(people) == 0].head(3)


@needs_mlflow
@pytest.mark.slow
def test_an_explainer_goes_in_and_comes_out(mlflow: Any, explainer: rocerf.Rocerf, refused: pd.DataFrame) -> None:
    with mlflow.start_run():
        logged = flavour.log_model(explainer, "credit", registered_model_name="credit", tags={"desk": "Ulm"})
    client = mlflow.MlflowClient()
    client.set_registered_model_alias("credit", "champion", logged.registered_model_version)
    expected = explainer.explain(refused)

    back = flavour.load_model("models:/credit@champion")
    assert back.settings() == explainer.settings()
    np.testing.assert_array_equal(back.explain(refused).points, expected.points)

    said = mlflow.pyfunc.load_model("models:/credit@champion").predict(refused)
    pd.testing.assert_frame_equal(said, expected.to_frame())

    tags = client.get_model_version_by_alias("credit", "champion").tags
    assert tags["rocerf.row_checksum"] == explainer.model.train.checksum
    assert (tags["rocerf.k"], tags["rocerf.promise"]) == ("4", "first_order")
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri="models:/credit@champion"))
    kept = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert not kept & {".pkl", ".pickle", ".joblib"}
    with pytest.raises(UnsupportedModelError, match="Expected a model of scikit-learn"):
        flavour.from_mlflow("models:/credit@champion", explainer.model.train)


@needs_mlflow
@pytest.mark.slow
def test_a_registered_model_is_taken_over_and_its_list_of_trusted_types_is_not(
    mlflow: Any, explainer: rocerf.Rocerf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow.sklearn
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train = explainer.model.train
    labels = (train.y == 1).astype(int)
    fitted = LogisticRegression(max_iter=2000, tol=1e-8).fit(train.frame(), labels)
    with mlflow.start_run():
        logged = mlflow.sklearn.log_model(
            fitted, name="m", registered_model_name="lr", serialization_format="skops", pip_requirements=[]
        )
    mlflow.MlflowClient().set_registered_model_alias("lr", "champion", logged.registered_model_version)
    model = flavour.from_mlflow("models:/lr@champion", train)
    people = train.frame().head(20)
    np.testing.assert_allclose(model.deployed_score(people), fitted.decision_function(people), atol=1e-9)

    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, tol=1e-8)).fit(train.frame(), labels)
    mlflow.sklearn.save_model(pipeline, tmp_path / "p", serialization_format="skops", pip_requirements=[])
    taken = flavour.from_mlflow(str(tmp_path / "p"), train.frame(), labels)
    np.testing.assert_allclose(taken.deployed_score(people), pipeline.decision_function(people), atol=1e-6)
    with pytest.raises(OptionError, match="labels as y"):
        flavour.from_mlflow(str(tmp_path / "p"), train.frame())
    with pytest.raises(OptionError, match="leave it out"):
        flavour.from_mlflow("models:/lr@champion", train, labels)

    # An artefact that declares its own dangerous type as trusted: MLflow would open it, we do not.
    import skops.io

    evil = make_pipeline(Shouting(), LogisticRegression()).fit(train.frame(), labels)
    skops.io.dump(evil, tmp_path / "p" / "model.skops")
    about = yaml.safe_load((tmp_path / "p" / "MLmodel").read_text())
    about["flavors"]["sklearn"]["pickled_model"] = "model.skops"
    about["flavors"]["sklearn"]["skops_trusted_types"] = skops.io.get_untrusted_types(
        file=tmp_path / "p" / "model.skops"
    )
    (tmp_path / "p" / "MLmodel").write_text(yaml.safe_dump(about))
    monkeypatch.setattr(Shouting, "loaded", 0)
    with pytest.raises(UnsupportedModelError, match="not trusted"):
        flavour.from_mlflow(str(tmp_path / "p"), train.frame(), labels)
    assert Shouting.loaded == 0

    for change, match in (
        ({"serialization_format": "cloudpickle"}, "run its author's code"),
        ({"pickled_model": "../../elsewhere"}, "leaves it"),
    ):
        about["flavors"]["sklearn"].update({"serialization_format": "skops", **change})
        (tmp_path / "p" / "MLmodel").write_text(yaml.safe_dump(about))
        with pytest.raises((UnsupportedModelError, FileFormatError), match=match):
            flavour.from_mlflow(str(tmp_path / "p"), train.frame(), labels)


class Shouting:
    """A step of somebody's own, which counts how often it was brought back."""

    loaded = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).loaded += 1

    def fit(self, X: Any, y: Any = None) -> Shouting:
        return self

    def transform(self, X: Any) -> Any:
        return X


@needs_mlflow
def test_what_is_no_model_is_refused(mlflow: Any, tmp_path: Path, explainer: rocerf.Rocerf) -> None:
    with pytest.raises(FileFormatError, match="Expected a model in MLflow"):
        flavour.load_model("models:/nobody@champion")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(OptionError, match="not there yet"):
        flavour.save_model(explainer, tmp_path / "full")


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"rocerf\[mlflow\]"):
        flavour.load_model("models:/x/1")
