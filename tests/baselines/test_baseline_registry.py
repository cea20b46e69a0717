"""A baseline from outside the package is found by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Recourses, Rocerf
from rocerf.baselines import Scfe, register_baseline
from rocerf.baselines.registry import BASELINES
from rocerf.errors import OptionError
from rocerf.evaluation import compare
from rocerf.promises import Plain


class Farther:
    """The nearest point with a margin, by somebody else."""

    def __init__(self, model: Any, *, preset: str, seed: int) -> None:
        self.preset = preset
        self._explainer = Rocerf(model, 0, promise=Plain(model), delta=0.5, seed=seed)

    def explain(self, X: Any, *, progress: Any = None) -> Recourses:
        return self._explainer.explain(X, progress=progress)


def test_a_baseline_from_outside_is_compared_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BASELINES, "farther", None)  # whatever happens, it is taken back
    monkeypatch.delitem(BASELINES, "farther")
    register_baseline("farther", Farther)
    model = LogisticModel.fit(random_training_set(0, n=60), C=1.0)
    people = refused_people(model, 0, 5)
    found = compare(model, people, 2, methods=["scfe", "farther"], trials=3)
    del BASELINES["farther"]
    rows = {row["method"]: row for row in found.rows}
    assert list(rows) == ["scfe", "farther"]
    assert rows["farther"]["answered"] == 5
    assert rows["farther"]["l2"] > rows["scfe"]["l2"]
    assert "preset=corrected" in rows["farther"]["parameters"]
    np.testing.assert_array_equal(found.recourses["scfe"].matrix, Scfe(model).explain(people).matrix)
    with pytest.raises(OptionError, match="among"):
        compare(model, people, 2, methods=["farther"])


def test_a_name_is_given_once() -> None:
    with pytest.raises(OptionError, match="a new name for a baseline, got 'roar', which is taken"):
        register_baseline("roar", Farther)
