"""A run that was interrupted goes on where it was, to the same answers; another run's folder is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Rocerf
from rocerf.errors import OptionError
from rocerf.explainer.checkpoints import resumable
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.retrained import Retrained


class WentDownError(Exception):
    """The machine went down."""


def explainer(promise: str) -> Rocerf:
    model = LogisticModel.fit(random_training_set(3, n=300, d=4))
    return Rocerf(model, 6, promise=promise, effort="quick")


def people() -> np.ndarray:
    return refused_people(explainer("first_order").model, 1, 12)


def counted(monkeypatch: pytest.MonkeyPatch, kind: type, most: int = 10**9) -> list[int]:
    """How often the promise was truly read; from ``most`` on it goes down."""
    name = "read_near" if kind is FirstOrder else "read_exactly"
    reads, own = [0], getattr(kind, name)

    def read(self: Any, *given: Any, **named: Any) -> Any:
        reads[0] += 1
        if reads[0] > most:
            raise WentDownError
        return own(self, *given, **named)

    monkeypatch.setattr(kind, name, read)
    return reads


@pytest.mark.parametrize(("promise", "kind"), [("first_order", FirstOrder), ("retrained", Retrained)])
def test_an_interrupted_run_goes_on(promise: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "rounds"
    with monkeypatch.context() as patched:
        whole = counted(patched, kind)
        expected = explainer(promise).explain(people())
    assert expected.answered.any()
    assert whole[0] > 2
    with monkeypatch.context() as patched:
        counted(patched, kind, most=2)
        with pytest.raises(WentDownError):
            explainer(promise).explain(people(), checkpoint=folder)
    assert list(folder.glob("round-*.npz"))
    with monkeypatch.context() as patched:
        rest = counted(patched, kind)
        found = explainer(promise).explain(people(), checkpoint=folder)
    assert rest[0] < whole[0]
    assert found.statuses == expected.statuses
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    np.testing.assert_allclose(found.margins, expected.margins, rtol=0, atol=1e-12)
    again = explainer(promise).explain(people(), checkpoint=folder)  # all of it is told
    np.testing.assert_array_equal(again.matrix, expected.matrix)


def test_folders_of_other_runs_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    explainer("first_order").explain(people(), checkpoint=folder)
    with pytest.raises(OptionError, match="of another run"):
        explainer("first_order").explain(people()[:5], checkpoint=folder)
    with pytest.raises(OptionError, match="of another run"):
        explainer("retrained").explain(people(), checkpoint=folder)
    with pytest.raises(OptionError, match="promise with cuts"):
        resumable(SimpleNamespace(promise=SimpleNamespace(concave=False, name="bent")), folder)


def test_folders_of_models_that_only_look_alike_are_refused(tmp_path: Path) -> None:
    """Equal rows and parameters today, another model once rows go: what one was told says nothing about the other."""
    train, C, n = random_training_set(3, n=256, d=4), 0.125, 256
    total, mean = LogisticModel.fit(train, C=C), LogisticModel.fit(train, gamma=1 / (2 * C * n))
    assert np.array_equal(total.theta, mean.theta)
    X = refused_people(total, 1, 5)
    Rocerf(mean, 16, effort="quick").explain(X, checkpoint=tmp_path / "rounds")
    for other in (total, LogisticModel.fit(train, gamma=1 / (2 * C * n), threshold=0.4)):
        with pytest.raises(OptionError, match="of another run"):
            Rocerf(other, 16, effort="quick").explain(X, checkpoint=tmp_path / "rounds")
    fitted = LogisticRegression(tol=1e-10, max_iter=1000).fit(train.X, train.y)
    own, exact = (LogisticModel.from_sklearn(fitted, train, retraining=rule) for rule in ("own", "exact"))
    Rocerf(exact, 6, effort="quick").explain(X, checkpoint=tmp_path / "exact")
    with pytest.raises(OptionError, match="of another run"):
        Rocerf(own, 6, effort="quick").explain(X, checkpoint=tmp_path / "exact")


def test_only_the_owner_can_read_the_rounds(tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    explainer("retrained").explain(people(), checkpoint=folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
