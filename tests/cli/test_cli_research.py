"""`rocerf reproduce` and `rocerf compare` as a user runs them."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from interrupting import interrupted
from searches import fewer_steps

SETTINGS = """
preset: quick
datasets: [german]
models: [lr]
methods: [scfe, roar, rocerf, retrained]
people: 12
worst_people: 6
sensitivity_k: [0.005, 0.05]
theorem_sizes: [400, 1600]
theorem_k: [1, 2]
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_reproduce_quick_on_a_subset(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables' shapes and the main orderings of the paper, and the corrected setting's.

    The authors' search is given a twentieth of its steps: its figures have tests of their own.
    """
    fewer_steps(monkeypatch)
    Path("settings.yaml").write_text(SETTINGS, "utf-8")
    code, out, err = run("reproduce", "--quick", "--settings", "settings.yaml", "--out", "paper", "--workers", 1)
    assert code == 0
    assert "0 failed" in out
    folder = tmp_path / "paper"
    assert (folder / "report.html").is_file()
    assert "jobs" in err
    validity: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows(folder / "results.csv"):
        if float(row["alpha"]) > 0:
            validity[row["setting"], row["method"]].append(float(row["validity"]))
    assert {key: len(values) for key, values in validity.items()} == {
        # The authors' searches begin at random points: one row for each of the preset's two seeds.
        **{("published", method): 2 * 25 for method in ("scfe", "rocerf")},
        ("published", "roar"): 25,
        **{("corrected", method): 25 for method in ("scfe", "roar", "rocerf", "retrained")},
    }
    means = {key: float(np.mean(values)) for key, values in validity.items()}
    assert means["corrected", "scfe"] == pytest.approx(0.5, abs=0.2)
    for setting in ("published", "corrected"):
        assert means[setting, "scfe"] < means[setting, "rocerf"]
        assert means[setting, "rocerf"] >= 0.97
    assert means["corrected", "retrained"] == 1.0
    methods = {(row["setting"], row["method"]): row for row in rows(folder / "methods.csv")}
    costs = {key: float(row["l2"]) for key, row in methods.items()}
    assert costs["corrected", "scfe"] < costs["corrected", "rocerf"] < costs["corrected", "retrained"]
    assert costs["corrected", "retrained"] < costs["corrected", "roar"]
    worst = {key: float(row["worst_case_validity"]) for key, row in methods.items()}
    assert (worst["corrected", "scfe"], worst["corrected", "rocerf"], worst["corrected", "retrained"]) == (0, 0, 1)
    assert len(rows(folder / "sensitivity.csv")) == 2 * 6
    assert [(row["n"], row["k"]) for row in rows(folder / "theorem.csv")] == [
        *(("400", k) for k in "12"),
        *(("1600", k) for k in "12"),
    ]
    for table in ("accuracy", "cost_l2_lr", "cost_l1_lr", "beaten"):
        assert rows(folder / f"{table}.csv"), table
    again = run("reproduce", "--settings", "settings.yaml", "--out", "paper", "--workers", 1, "--json")
    assert (again.code, again.err) == (0, "")
    document = json.loads(again.out)
    assert (document["jobs_run"], document["failed"], document["missing"]) == (0, {}, {})


SMALL_NETWORKS = """
preset: quick
datasets: [german]
models: [nn]
settings: [corrected]
methods: [scfe, cchvae]
alphas: [0.05]
trials: 2
people: 3
worst_people: 2
sweep_people: 1
sweeps: {}
seeds: 2
seed_people: 2
epochs: 60
theorem_sizes: []
"""


@pytest.mark.slow
def test_reproduce_with_networks_and_the_autoencoder(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of job for networks, few people and deletions; the tables and the report know them."""
    from rocerf.baselines.registry import BASELINES

    monkeypatch.setitem(BASELINES, "cchvae", partial(BASELINES["cchvae"], epochs=3))
    Path("nn.yaml").write_text(SMALL_NETWORKS, "utf-8")
    code, out, _ = run("reproduce", "--settings", "nn.yaml", "--out", "nn", "--workers", 1)
    assert (code, "0 failed" in out) == (0, True)
    methods = {(row["seed"], row["method"]): row for row in rows(tmp_path / "nn" / "methods.csv")}
    assert list(methods) == [(seed, method) for seed in "01" for method in ("scfe", "cchvae")]
    for (seed, _), row in methods.items():
        assert (row["model"], row["people"], row["worst_case_people"]) == ("nn", "3" if seed == "0" else "2", "1")
        assert 0 <= float(row["worst_case_validity"]) <= 1
    assert float(methods["0", "scfe"]["l2"]) <= float(methods["0", "cchvae"]["l2"])
    results = rows(tmp_path / "nn" / "results.csv")
    assert len(results) == 2 * 2 * 2
    assert len(rows(tmp_path / "nn" / "sweeps.csv")) == len(rows(tmp_path / "nn" / "worst.csv")) == 2 * 2
    for row in results:
        share = float(row["validity"] or 0) * int(row["answered"]) / int(row["people"])
        assert float(row["validity_all"]) == pytest.approx(share)
    assert "neural network" in (tmp_path / "nn" / "report.html").read_text("utf-8")


FEW = """
datasets: [german]
models: [lr]
settings: [corrected]
methods: [scfe]
theorem_sizes: []
people: 3
trials: 1
alphas: [0.05]
"""


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["job", "report"])
def test_a_failure_is_an_exit_code(run: Any, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """The others go on, the reason is printed, and a script that called us knows."""
    from rocerf.evaluation import costs
    from rocerf.reproduction import report as paper_report

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    Path("few.yaml").write_text(FEW, "utf-8")
    with monkeypatch.context() as patched:
        if broken == "job":
            patched.setattr(costs, "distance_to_rows", fail)
        else:
            patched.setattr(paper_report, "read_results", fail)
        code, out, _ = run("reproduce", "--settings", "few.yaml", "--out", "few", "--workers", 1)
    assert code == 1
    assert "Failed: " in out
    assert "ZeroDivisionError: on purpose" in out
    assert "tried again by the same command" in out
    assert run("reproduce", "--settings", "few.yaml", "--out", "few", "--workers", 1, "--json").code == 0


@pytest.mark.slow
def test_without_compas_it_ends_well_and_says_so(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCERF_COMPAS", str(tmp_path / "nowhere.csv"))
    text = "datasets: [compas, german]\nmodels: [lr]\nsettings: [corrected]\nmethods: [scfe]\ntheorem_sizes: []\n"
    Path("few.yaml").write_text(text + "people: 3\ntrials: 1\nalphas: [0.05]\n", "utf-8")
    code, out, _ = run("reproduce", "--settings", "few.yaml", "--out", "few", "--workers", 1)
    assert code == 0
    assert "Missing: compas" in out
    assert "compas" in json.loads((tmp_path / "few" / "run.json").read_text("utf-8"))["missing"]
    assert [row["dataset"] for row in rows(tmp_path / "few" / "models.csv")] == ["german"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_finished_jobs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rocerf.cli", "reproduce", "--out", str(tmp_path / "run"), "--workers", "2"]
    (tmp_path / "many.yaml").write_text(f"{FEW}chunk: 1\n".replace("trials: 1\n", "trials: 2000\n"), "utf-8")
    command += ["--settings", str(tmp_path / "many.yaml")]
    jobs = tmp_path / "run" / "jobs"
    code, err = interrupted(command, lambda: len(list(jobs.glob("*.json"))) >= 3)
    assert code == 130
    assert err.splitlines()[-1] == "rocerf: interrupted."
    records = [json.loads(path.read_text("utf-8")) for path in jobs.glob("*.json")]
    assert len(records) >= 3
    assert {record["status"] for record in records} == {"done"}
    (session,) = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["sessions"]
    assert session["jobs_run"] >= 3
    assert session["wall_seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--datasets", "gernam"], "'gernam'"),
        (["--models", "svm"], "'svm'"),
        (["--settings", "missing.yaml"], "missing.yaml"),
        (["--settings", "odd.yaml"], "trails"),
        (["--settings", "listed.yaml"], "['quick']"),
        (["--settings", "full.yaml", "--quick"], "full"),
        (["--settings", "full.yaml", "--preset", "cpu"], "cpu"),
        (["--preset", "cpu", "--quick"], "--quick"),
        (["--preset", "huge"], "'huge'"),
        (["--workers", "0"], "workers"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_reproduce_refuses_in_one_sentence(run: Any, tmp_path: Path, arguments: list[str], word: str) -> None:
    (tmp_path / "odd.yaml").write_text("trails: 3\n", "utf-8")
    (tmp_path / "listed.yaml").write_text("preset: [quick]\n", "utf-8")
    (tmp_path / "full.yaml").write_text("preset: full\n", "utf-8")
    code, out, err = run("reproduce", "--out", "out", *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert word in err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_parts_are_packed_and_joined(run: Any, tmp_path: Path) -> None:
    text = "datasets: [german]\nmodels: [lr]\nsettings: [corrected]\ntheorem_sizes: []\npeople: 3\ntrials: 1\n"
    for method in ("scfe", "rocerf"):
        Path("few.yaml").write_text(f"{text}alphas: [0.05]\nmethods: [{method}]\n", "utf-8")
        made = run("reproduce", "--settings", "few.yaml", "--out", method, "--workers", 1, "--pack", f"{method}.zip")
        assert made.code == 0
    code, out, err = run("reproduce", "--out", "whole", "--join", "scfe", "--join", "rocerf.zip")
    assert (code, err) == (0, "")
    jobs = {path.name for method in ("scfe", "rocerf") for path in (tmp_path / method / "jobs").glob("*.json")}
    assert f"0 jobs run, {len(jobs)} taken over, 0 failed" in out
    assert [row["method"] for row in rows(tmp_path / "whole" / "methods.csv")] == ["scfe", "rocerf"]
    assert (tmp_path / "whole" / "report.html").is_file()
    for option in (["--quick"], ["--models", "lr"], ["--workers", "2"]):
        code, _, err = run("reproduce", "--out", "whole", "--join", "scfe", *option)
        assert code == 2
        assert option[0] in err


@pytest.fixture
def table(tmp_path: Path) -> list[object]:
    """Options of `rocerf compare` for a small table with its people."""
    rng = np.random.default_rng(5)
    raw = rng.normal(size=(160, 3)) * [900.0, 40.0, 9.0] + [2500.0, 100.0, 45.0]
    score = (raw - raw.mean(0)) / raw.std(0) @ [1.5, -1.0, 0.3]
    frame = pd.DataFrame(raw.round(2), columns=["income", "debt", "age"])
    granted = np.where(score + rng.logistic(size=160) > 0, "yes", "no")
    frame.assign(granted=granted).to_csv(tmp_path / "train.csv", index=False)
    people = frame[score < -0.5].head(8)
    pd.concat([people, people.head(1).assign(income=9000.0)]).to_csv(tmp_path / "refused.csv", index=False)
    files = ["--train", tmp_path / "train.csv", "--people", tmp_path / "refused.csv"]
    return ["compare", *files, "--label", "granted", "--favourable", "yes", "--k", "4"]


@pytest.mark.slow
def test_compare_shows_what_each_method_is_worth(run: Any, table: list[object], tmp_path: Path) -> None:
    chosen = ["--methods", "scfe,roar,rocerf,retrained", "--trials", "10", "--out", "found"]
    code, out, err = run(*table, *chosen)
    assert (code, err) == (0, "")
    assert all(name in out for name in ("scfe", "roar", "rocerf", "retrained", "compare.csv"))
    assert re.search(r"method.+answered.+L2.+L1.+random.+of all.+worst.+s ", out)  # in one line: 80 columns hold it
    assert re.search(r"retrained .+ 8/8 .+ \d+\.\d ± \d+\.\d .+ 100\.0 ", out)
    found = {row["method"]: row for row in rows(tmp_path / "found" / "compare.csv")}
    assert list(found) == ["scfe", "roar", "rocerf", "retrained"]
    assert {row["people"] for row in found.values()} == {"8"}  # the ninth is accepted as she is
    assert float(found["scfe"]["validity"]) < 0.9 < float(found["rocerf"]["validity"])
    assert (found["scfe"]["worst_case_validity"], found["retrained"]["worst_case_validity"]) == ("0.0", "1.0")
    assert float(found["scfe"]["l2"]) < float(found["rocerf"]["l2"]) < float(found["retrained"]["l2"])
    trials = rows(tmp_path / "found" / "trials.csv")
    assert len(trials) == 4 * 10
    mean = np.mean([float(row["validity"]) for row in trials if row["method"] == "scfe"])
    assert mean == pytest.approx(float(found["scfe"]["validity"]))


@pytest.mark.slow
def test_compare_with_a_network(run: Any, table: list[object]) -> None:
    options = ["--network", "--epochs", "60", "--methods", "scfe, retrained", "--trials", "3", "--json"]
    code, out, err = run(*table, *options)
    assert (code, err) == (0, "")
    plain, survivor = json.loads(out)["methods"]
    assert plain["worst_case_validity"] is None
    assert 0 <= plain["validity"] <= 1
    # So small a network is another one from each start, and hardly anybody can be promised anything: said, not failed.
    assert survivor["failure"] is None
    assert survivor["answered"] == survivor["people"] or survivor["unanswered"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--methods", "lime"], "'lime'"),
        (["--methods", ","], "none"),
        (["--k", "900"], "900"),
        (["--network", "--model", "model.skops"], "--network"),
        (["--network", "--threshold", "1.5"], "1.5"),
    ],
)
def test_compare_refuses_in_one_sentence(run: Any, table: list[object], arguments: list[str], word: str) -> None:
    code, out, err = run(*table, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert word in err


def test_compare_names_people_it_cannot_ask_for(run: Any, table: list[object], tmp_path: Path) -> None:
    people = pd.read_csv(tmp_path / "refused.csv")
    people.loc[[1, 4], "debt"] = [np.nan, np.inf]
    people.to_csv(tmp_path / "refused.csv", index=False)
    chosen = ["--methods", "scfe", "--trials", "2"]
    code, out, err = run(*table, *chosen)
    assert (code, err) == (0, "")
    assert "Left out for missing or infinite values: 2 (1, 4)." in out
    document = json.loads(run(*table, *chosen, "--json").out)
    assert (document["people"], document["accepted"], document["incomplete"]) == (6, 1, ["1", "4"])
    people["debt"] = np.nan
    people.to_csv(tmp_path / "refused.csv", index=False)
    code, _, err = run(*table, *chosen)
    assert code == 2
    assert "9 who all have missing or infinite values" in err


def test_compare_says_why_people_got_no_answer(run: Any, table: list[object], tmp_path: Path) -> None:
    """With half of the rows deleted no promise is possible; the table alone would be empty."""
    few = [*table[:-1], "80", "--methods", "scfe,retrained", "--trials", "2", "--effort", "quick", "--out", "found"]
    code, out, _ = run(*few)
    assert code == 0
    found = {row["method"]: row for row in rows(tmp_path / "found" / "compare.csv")}
    assert (found["retrained"]["answered"], found["retrained"]["validity"]) == ("0", "")
    assert float(found["retrained"]["validity_all"]) == 0
    assert found["retrained"]["unanswered"]
    assert f"retrained: 8 of 8 without an answer, mostly because {found['retrained']['unanswered']}." in out
    assert found["scfe"]["unanswered"] == ""


def test_compare_counts_the_unanswered(table: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that answers some is measured over them and over all."""
    import rocerf
    from rocerf.recourse.result import Status

    module = importlib.import_module("rocerf.evaluation.compare")  # the package has the function of that name

    frame = pd.read_csv(tmp_path / "train.csv")
    train = rocerf.TrainingSet(frame[["income", "debt", "age"]].to_numpy(), (frame["granted"] == "yes").to_numpy())
    people = pd.read_csv(tmp_path / "refused.csv").head(8).to_numpy()
    real = module.explainer_named

    class Shy:
        """Leaves the first two without an answer."""

        def __init__(self, explainer: Any) -> None:
            self.explainer = explainer

        def explain(self, asked: Any) -> Any:
            found = self.explainer.explain(asked)
            points = np.where(np.arange(len(asked))[:, None] < 2, np.nan, found.matrix)
            statuses = [Status.GAVE_UP, Status.GAVE_UP, *found.statuses[2:]]
            return SimpleNamespace(matrix=points, statuses=statuses, settings=found.settings)

    def shy(method: str, *rest: Any) -> Any:
        return Shy(real(method, *rest)) if method == "roar" else real(method, *rest)

    monkeypatch.setattr(module, "explainer_named", shy)
    model = rocerf.LogisticModel.fit(train)
    found = module.compare(model, people, 4, methods=["scfe", "roar"], trials=5, effort="quick")
    plain, roar = found.rows
    assert plain["validity_all"] == plain["validity"]
    assert (roar["answered"], roar["unanswered"]) == (6, Status.GAVE_UP.sentence)
    assert roar["validity_all"] == pytest.approx(roar["validity"] * 6 / 8)


def test_compare_when_nobody_is_refused(run: Any, table: list[object], tmp_path: Path) -> None:
    pd.read_csv(tmp_path / "refused.csv").tail(1).to_csv(tmp_path / "refused.csv", index=False)
    code, _, err = run(*table)
    assert code == 2
    assert "refuses" in err
