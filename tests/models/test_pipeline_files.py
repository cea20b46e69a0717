"""Models of pipelines on disk: what the pipeline does is kept, the pipeline itself is given again."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rocerf
from pipelines import applicants, classifier, columns, fitted, log_odds, refitted_from_scratch, usual
from rocerf import Adversary, LogisticModel, Rocerf
from rocerf.errors import OptionError, UnsupportedModelError


@pytest.fixture
def made() -> tuple[Any, pd.DataFrame, pd.Series]:
    """A pipeline that fills in what is missing, with its rows."""
    frame, y = applicants(120, missing=True)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return fitted(make_pipeline(columns(numbers, texts), classifier(tol=1e-4)), frame, y), frame, y


@pytest.mark.parametrize("rule", ["frozen", "refitted"])
def test_round_trip(made: Any, rule: Any, tmp_path: Path) -> None:
    pipeline, frame, y = made
    model = rocerf.from_pipeline(pipeline, frame, y, preprocessing=rule, threshold=0.6)
    model.save(tmp_path / "model.npz")
    again = LogisticModel.load(tmp_path / "model.npz")
    assert again.preprocessing == rule
    assert again.schema == model.schema
    assert again.frames.to_dict() == model.frames.to_dict()
    assert again.polish == model.polish
    unsure = [said for said in again.assumptions() if "estimator that really retrains the model is not at hand" in said]
    own = [said for said in model.assumptions() if "retrained from scratch by its user" in said]
    assert [said for said in again.assumptions() if said not in unsure] == [
        said for said in model.assumptions() if said not in own
    ]
    assert len(unsure) == 1  # and with its pipeline it is at hand again
    assert LogisticModel.load(tmp_path / "model.npz", pipeline=pipeline).assumptions() == model.assumptions()
    np.testing.assert_allclose(again.score(frame), model.score(frame), atol=1e-9)
    np.testing.assert_allclose(again.deployed_score(frame), model.deployed_score(frame), atol=1e-9)
    np.testing.assert_array_equal(again.predict(frame), (pipeline.predict_proba(frame)[:, 1] >= 0.6).astype(int))
    assert not any(name.endswith(".pkl") for name in zipfile.ZipFile(tmp_path / "model.npz").namelist())


def test_a_frozen_model_retrains_without_its_pipeline(made: Any, tmp_path: Path) -> None:
    pipeline, frame, y = made
    model = rocerf.from_pipeline(pipeline, frame, y)
    model.save(tmp_path / "model.npz")
    gone = frame.index[:5]
    again = LogisticModel.load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.without(gone).score(frame), model.without(gone).score(frame), atol=1e-8)


@pytest.mark.slow
def test_a_refitted_model_needs_its_pipeline_back(made: Any, tmp_path: Path) -> None:
    pipeline, frame, y = made
    model = rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")
    model.save(tmp_path / "model.npz")
    gone = frame["income"].nlargest(4).index
    bare = LogisticModel.load(tmp_path / "model.npz")
    with pytest.raises(UnsupportedModelError, match=r"LogisticModel\.load\(path, pipeline=\.\.\.\)"):
        bare.without(gone)
    with pytest.raises(UnsupportedModelError, match="the pipeline itself"):
        Adversary(bare, 1).attack(frame.iloc[:2])  # not: no deletion leaves a model
    bare.frozen.without(gone)
    whole = LogisticModel.load(tmp_path / "model.npz", pipeline=pipeline)
    np.testing.assert_array_equal(whole.deployed_score(frame), log_odds(pipeline, frame))
    truth = log_odds(refitted_from_scratch(pipeline, frame, y, gone), frame)
    np.testing.assert_allclose(whole.without(gone).score(frame), model.without(gone).score(frame), atol=1e-8)
    np.testing.assert_allclose(whole.without(gone).score(frame), truth, atol=1e-2)  # scikit-learn's loose tolerance


def test_a_retrained_model_is_saved_too(made: Any, tmp_path: Path) -> None:
    pipeline, frame, y = made
    later = rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted").without(frame.index[:5])
    later.save(tmp_path / "later.npz")
    again = LogisticModel.load(tmp_path / "later.npz", pipeline=pipeline)
    np.testing.assert_allclose(again.deployed_score(frame), later.score(frame), atol=1e-8)
    gone = frame.index[5:9]
    np.testing.assert_allclose(again.without(gone).score(frame), later.without(gone).score(frame), atol=1e-8)


def test_another_pipeline_is_refused(made: Any, tmp_path: Path) -> None:
    pipeline, frame, y = made
    model = rocerf.from_pipeline(pipeline, frame, y)
    model.save(tmp_path / "model.npz")
    other = fitted(make_pipeline(pipeline[:-1], classifier(C=0.01)), frame, y)
    with pytest.raises(OptionError, match="fitted pipeline that the model was made from"):
        LogisticModel.load(tmp_path / "model.npz", pipeline=other)
    LogisticModel.fit(model.train).save(tmp_path / "plain.npz")
    with pytest.raises(OptionError, match="only for a model made from one"):
        LogisticModel.load(tmp_path / "plain.npz", pipeline=pipeline)
    with pytest.raises(OptionError, match=r"rocerf\.from_pipeline"):
        LogisticModel.fit(model.train).with_preprocessing("refitted")


@pytest.mark.slow
def test_an_explainer_of_a_pipeline_on_disk(tmp_path: Path) -> None:
    frame, y = applicants(60)
    pipeline = fitted(usual(), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")
    denied = frame[model.predict(frame) == 0].iloc[:4]
    explainer = Rocerf(model, 1, schema=model.schema)
    first = explainer.explain(denied)
    explainer.save(tmp_path / "explainer")
    whole = LogisticModel.load(tmp_path / "explainer" / "model.npz", pipeline=pipeline)
    again = Rocerf.load(tmp_path / "explainer", model=whole)
    np.testing.assert_allclose(again.explain(denied).costs, first.costs, rtol=0.01)
