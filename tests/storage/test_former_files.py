"""Files of today's formats that an earlier version wrote (``former/``) are read, and answer as they did then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn

from rocerf import EstimatorModel, FeatureSchema, LogisticModel, NeuralModel, Rocerf
from rocerf.storage.state import State

FORMER = Path(__file__).parent / "former"


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return {name: np.array(value) for name, value in json.loads((FORMER / "answers.json").read_text()).items()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LogisticModel, "logistic"),
        (NeuralModel, "network"),
        (EstimatorModel, "estimator"),
        (EstimatorModel, "pipeline"),
    ],
)
def test_a_model_scores_as_it_did(kind: Any, name: str, answers: dict[str, Any]) -> None:
    path = FORMER / f"{name}.npz"
    fitted_by = State.from_bytes(path.read_bytes()).values.get("sklearn", sklearn.__version__)
    if fitted_by != sklearn.__version__:
        pytest.skip(f"the estimator was written by scikit-learn {fitted_by}")
    model = kind.load(path)
    assert model.train.ids[0] == "p0"
    people = answers["pipeline_people" if name == "pipeline" else "people"]
    np.testing.assert_allclose(model.score(people), answers[name], rtol=0, atol=1e-9)


def test_an_explainer_answers_as_it_did(answers: dict[str, Any]) -> None:
    explainer = Rocerf.load(FORMER / "explainer")
    found = explainer.explain(answers["people"])
    np.testing.assert_allclose(found.points, answers["points"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.margins, answers["margins"], rtol=0, atol=1e-9)


def test_a_schema_is_read() -> None:
    schema = FeatureSchema.from_yaml(FORMER / "schema.yaml")
    assert str(schema["a"].direction) == "increase"
    assert schema.relations[0].words == "a <= b + 9"
