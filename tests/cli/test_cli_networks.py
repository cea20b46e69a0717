"""Saved networks and estimators on the command line: attacks that count models, and answers with an audit."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from networks import moons
from rocerf import Adversary, EstimatorModel, LogisticModel, NeuralModel, Recourses, TrainingSet
from rocerf.cli.explain import _print_checks
from rocerf.promises import margin_choice, simulated
from rocerf.recourse.solvers import sequential

ABOUT = ["--train", "train.csv", "--label", "label", "--favourable", "yes", "--train-id-column", "row"]
ATTACK = ["attack", *ABOUT, "--points", "points.csv", "--id-column", "who", "--k", 3, "--effort", "normal"]


def rows() -> TrainingSet:
    plain = moons(80)
    frame = pd.DataFrame(plain.X, columns=["income", "debt"], index=[f"row-{place}" for place in range(80)])
    return TrainingSet(frame, np.where(plain.y == 1, "yes", "no"), favourable="yes")


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    train = rows()
    return {
        "net.npz": NeuralModel.fit(train, epochs=15, learning_rate=0.5, width=5),
        "trees.npz": EstimatorModel.fit(RandomForestClassifier(5, max_depth=3, random_state=0), train),
        "logistic.npz": LogisticModel.fit(train),
    }


@pytest.fixture
def here(models: dict[str, Any], tmp_path: Path, run: Any) -> Path:
    """The folder that commands run in, with the table, points on both sides of the boundary, and the models."""
    train = models["net.npz"].train
    table = train.frame()
    table["label"], table["row"] = np.where(train.y == 1, "yes", "no"), train.ids
    table.to_csv(tmp_path / "train.csv", index=False)
    order = np.argsort(models["net.npz"].score(train.X))
    points = train.frame().iloc[order[[0, 45, 79]]]
    points.insert(0, "who", ["low", "middle", "high"])
    points.to_csv(tmp_path / "points.csv", index=False)
    for name, model in models.items():
        model.save(tmp_path / name)
    return tmp_path


def refused(result: Any, words: str) -> None:
    code, out, err = result
    assert code == 2, (out, err)
    assert words in " ".join(err.split())


@pytest.mark.parametrize("name", ["net.npz", "trees.npz"])
def test_attacks_on_saved_models_count_those_that_accept(
    name: str, here: Path, run: Any, models: dict[str, Any]
) -> None:
    code, out, err = run(*ATTACK, "--model", name, "--json", "--out", "attacks.csv")
    assert code == 0, err
    told = json.loads(out)
    points = pd.read_csv(here / "points.csv", index_col="who")
    attacks = Adversary(models[name], 3, effort="normal", seed=1).attack_all(points.to_numpy())
    assert (told["share"], told["models"], told["k"]) == (0.95, 8, 3)
    assert told["survive"] == int((attacks.shares >= 0.95).sum())
    table = pd.read_csv(here / "attacks.csv")
    for place, record in enumerate(told["points"]):
        assert record["person"] == points.index[place]
        assert record["score_after"] == pytest.approx(attacks.scores[place])
        assert record["spread_after"] == pytest.approx(attacks.spreads[place])
        assert record["accepting"] == round(8 * attacks.shares[place])
        assert record["models"] == 8
        assert record["survives"] == (record["accepting"] == 8)  # seven of eight are less than 95 %
        assert table["accepting"][place] == record["accepting"]
        assert "deleted_ids" not in record
    assert told["points"][0]["survives"] is False
    assert "row-" not in out


def test_the_worst_point_is_told_in_words(here: Path, run: Any, models: dict[str, Any]) -> None:
    code, out, err = run(*ATTACK, "--model", "net.npz")
    assert code == 0, err
    points = pd.read_csv(here / "points.csv", index_col="who").to_numpy()
    attacks = Adversary(models["net.npz"], 3, effort="normal", seed=1).attack_all(points)
    worst = attacks[int(attacks.scores.argmin())]
    assert f"Lowest mean score found: {worst.score:.6f}, with a spread of {worst.spread:.6f}" in out
    assert f"of 8 models retrained without them, {round(8 * worst.share)} accept." in out
    assert "A point survives where at least 95% of the models accept it" in out


def test_a_saved_logistic_model_is_attacked_as_before(here: Path, run: Any) -> None:
    code, out, err = run(*ATTACK, "--model", "logistic.npz", "--json")
    assert code == 0, err
    fitted_here = run(*ATTACK, "--json")
    assert json.loads(out) == json.loads(fitted_here.out)
    assert "accepting" not in out
    assert "share" not in json.loads(out)
    assert "Lowest score found" in run(*ATTACK, "--model", "logistic.npz").out


def test_files_and_rows_that_do_not_fit_are_refused(here: Path, run: Any, models: dict[str, Any]) -> None:
    refused(run(*ATTACK, "--model", "nothing.npz"), "found none")
    (here / "broken.npz").write_bytes(b"no model")
    refused(run(*ATTACK, "--model", "broken.npz"), "save the model again")
    models["net.npz"].train.state().write(here / "rows.npz")
    refused(run(*ATTACK, "--model", "rows.npz"), "written by its save method in rows.npz")
    pd.read_csv(here / "train.csv").iloc[1:].to_csv(here / "train.csv", index=False)
    refused(run(*ATTACK, "--model", "net.npz"), "training rows that the model in net.npz was saved with")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few models, few people decide the margin, and points are not polished."""
    monkeypatch.setattr(simulated, "PEOPLE", 2)
    monkeypatch.setattr(margin_choice, "HALVINGS", 0)
    monkeypatch.setattr(sequential, "FULL_STEPS", 3)
    monkeypatch.setattr(sequential, "ROUNDS", 1)
    defaults = (0.6, "fresh", "auto", 4, 5, 6, 0.95, False)  # of the options, in their order
    monkeypatch.setattr(simulated.Simulated.__init__, "__defaults__", defaults)


@pytest.mark.usefixtures("few")
def test_answers_of_a_saved_network_with_an_audit(here: Path, run: Any) -> None:
    asked = ["explain", *ABOUT, "--people", "points.csv", "--id-column", "who", "--model", "net.npz", "--k", 3]
    code, out, err = run(*asked, "--promise", "simulated", "--audit", "--out", "answers.json")
    assert code == 0, err
    recourses = Recourses.from_json(here / "answers.json")
    assert recourses.answered.any()
    assert recourses.picked is not None
    said = " ".join(out.split())
    assert f"Not promised, with up to 3 rows picked to do harm: {recourses.picked}." in said
    assert said.index("Checked: ") < said.index("Not promised, ")
    refused(run(*asked, "--audit"), "Expected --audit with --promise simulated, got it with 'retrained'")
    logistic = [*asked[:-4], "--k", 3, "--promise", "simulated", "--audit"]
    refused(run(*logistic), "rocerf attack on the command line")


def test_an_audit_without_trials_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Trees without a random state come out the same each time."""
    nothing = SimpleNamespace(settings=SimpleNamespace(k=3), held_out=None, picked=None)
    _print_checks(nothing, audit=True)  # type: ignore[arg-type]
    assert "its copies would be no trials" in " ".join(capsys.readouterr().out.split())
    _print_checks(nothing, audit=False)  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""
