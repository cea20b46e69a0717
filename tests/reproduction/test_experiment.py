"""The experiment as jobs: resumed without repetition, invalidated by a changed setting, honest about failures."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rocerf
from paper_runs import drawn
from rocerf.baselines import Scfe
from rocerf.errors import DatasetUnavailableError, FileFormatError, OptionError, UnsupportedModelError
from rocerf.evaluation import validity_curves, worst_case_validity
from rocerf.reproduction import ExperimentSettings, experiment, reproduce, runner
from rocerf.reproduction.as_published import people_of
from rocerf.reproduction.experiment import Experiment
from rocerf.reproduction.jobs import Job, JobFolder, Plan
from rocerf.reproduction.planning import Case, cases_of, plan_case
from rocerf.reproduction.scheduling import Standing, run_jobs
from rocerf.reproduction.theorem import extra_costs
from searches import fewer_steps

pytestmark = pytest.mark.slow  # minutes of retraining and of commands

TINY: dict[str, Any] = {
    "datasets": ["german"],
    "models": ["lr"],
    "methods": ["scfe", "rocerf", "retrained"],
    "settings": ["corrected"],
    "alphas": [0, 0.01, 0.05],
    "trials": 3,
    "chunk": 2,
    "people": 6,
    "sensitivity_k": [0.005, 0.02],
    "worst_people": 4,
    "sweep_people": 0,  # sweeps have tests of their own
    "seeds": 1,
    "theorem_sizes": [],
    "seed": 0,
}


def tiny(**changes: Any) -> ExperimentSettings:
    return ExperimentSettings.preset_named("quick").changed(**TINY | changes)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has tests of its own."""
    monkeypatch.setattr(runner, "_report", lambda target: (target / "report.html", ""))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each job was computed."""
    calls: Counter[str] = Counter()
    real = Experiment.__call__

    def counting(self: Experiment, job: Job, folder: JobFolder) -> Any:
        calls[job.name] += 1
        return real(self, job, folder)

    monkeypatch.setattr(Experiment, "__call__", counting)
    return calls


def test_tables_have_the_promised_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer_steps(monkeypatch)
    settings = tiny(settings=["published", "corrected"], methods=["rocerf", "retrained"], theorem_sizes=[300])
    done = reproduce(settings.changed(theorem_k=[1]), tmp_path)
    assert (done.kept, done.failed, done.missing) == (0, {}, {})
    results = rows(tmp_path / "results.csv")
    where, counts = ["setting", "dataset", "model", "seed", "method"], ["answered", "people", "evaluation_seed"]
    assert list(results[0]) == [*where, "alpha", "trial", "validity", "validity_all", *counts]
    assert {row["seed"] for row in results} == {"0"}
    assert all(row["validity"] == row["validity_all"] for row in results)  # everybody was answered
    # Without removals a logistic model is retrained to itself: one trial is all there is.
    assert len(results) == (1 + 2) * (1 + 3 + 3)
    assert {row["people"] for row in results} == {"6"}
    methods = {(row["setting"], row["method"]): row for row in rows(tmp_path / "methods.csv")}
    assert list(methods) == [("published", "rocerf"), ("corrected", "rocerf"), ("corrected", "retrained")]
    paper, ours = methods["corrected", "rocerf"], methods["corrected", "retrained"]
    assert 1.0 < float(paper["cost_over_plain"]) < float(ours["cost_over_plain"])
    assert (paper["worst_case_validity"], ours["worst_case_validity"], ours["worst_case_people"]) == ("0.0", "1.0", "4")
    assert (ours["k"], ours["parameters"].split(";")[0]) == ("4", "promise=retrained")
    models = rows(tmp_path / "models.csv")
    assert [(row["setting"], row["train_rows"], row["test_rows"], row["denied"]) for row in models] == [
        ("published", "800", "200", "19"),
        ("corrected", "800", "200", "45"),
    ]
    sensitivity = rows(tmp_path / "sensitivity.csv")
    assert [(row["k_share"], row["k"]) for row in sensitivity] == [("0.005", "4")] * 3 + [("0.02", "16")] * 3
    assert float(sensitivity[-1]["l2"]) > float(sensitivity[0]["l2"])
    (theorem,) = rows(tmp_path / "theorem.csv")
    assert 0 < float(theorem["extra_cost"]) <= float(theorem["bound"])
    run = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert run["data_sha256"]["corrected-german-lr"] == rocerf.load_dataset("german").train.checksum
    assert run["versions"]["rocerf"] == rocerf.__version__
    assert ExperimentSettings.read(tmp_path / "settings.yaml").trials == 3


@pytest.mark.slow
def test_validity_is_that_of_validity_curves(tmp_path: Path) -> None:
    settings = tiny(chunk=25)
    reproduce(settings, tmp_path)
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    denied = drawn(data.test.X[model.predict(data.test.X) == 0], 6)
    points = {"scfe": Scfe(model).explain(denied).points}
    points["rocerf"] = rocerf.Rocerf(model, "0.5%", promise="first_order").explain(denied).points
    curves = validity_curves(model, points, settings.alphas, 3, settings.evaluation_seed)
    results = rows(tmp_path / "results.csv")
    for name, curve in curves.items():
        for validity in curve:
            mine = [row for row in results if row["method"] == name and float(row["alpha"]) == validity.fraction]
            assert [float(row["validity"]) for row in mine] == validity.by_trial.tolist()
    # Cut into chunks, the removals stay what they were.
    reproduce(tiny(chunk=1), tmp_path / "chunks")
    assert rows(tmp_path / "chunks" / "results.csv") == results


@pytest.mark.slow
def test_networks_are_those_of_validity_curves(tmp_path: Path) -> None:
    settings = tiny(models=["nn"], methods=["scfe"], epochs=60, alphas=[0.05])
    done = reproduce(settings.changed(chunk=3), tmp_path)
    assert done.failed == {}
    data = rocerf.load_dataset("german")
    model = rocerf.NeuralModel.fit(data.train, seed=0, epochs=60)
    denied = drawn(data.test.X[model.predict(data.test.X) == 0], 6)
    curve = validity_curves(model, {"scfe": Scfe(model).explain(denied).points}, [0.05], 3, settings.evaluation_seed)
    results = rows(tmp_path / "results.csv")
    assert [float(row["validity"]) for row in results if row["method"] == "scfe"] == curve["scfe"][0].by_trial.tolist()
    (measured,) = rows(tmp_path / "methods.csv")
    assert (measured["worst_case_people"], 0 <= float(measured["worst_case_validity"]) <= 1) == ("4", True)


def test_a_stopped_run_repeats_nothing(tmp_path: Path, counted: Counter[str]) -> None:
    total = 0

    def stop(standing: Standing) -> None:
        nonlocal total
        total = standing.total
        if standing.done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(tiny(), tmp_path, progress=stop)
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "jobs").iterdir()}
    assert sum(counted.values()) == 7
    done = reproduce(tiny(), tmp_path)
    assert (done.kept, done.ran) == (7, total - 7)
    assert set(counted.values()) == {1}
    assert len(counted) == total
    assert all(path.stat().st_mtime_ns == before for path, before in finished.items())
    again = reproduce(tiny(), tmp_path)
    assert (again.ran, again.kept) == (0, total)
    sessions = json.loads((tmp_path / "run.json").read_text("utf-8"))["sessions"]
    # The interrupted run is on record with its time; a run that did nothing is no session.
    assert [session["jobs_run"] for session in sessions] == [7, total - 7]
    assert all(session["wall_seconds"] > 0 for session in sessions)


@pytest.mark.parametrize("lost", ["deleted", "cut short"])
def test_a_finished_job_without_its_arrays_is_done_again_when_they_are_needed(
    tmp_path: Path, counted: Counter[str], lost: str
) -> None:
    few = tiny(methods=["scfe"], chunk=3)
    reproduce(few, tmp_path)
    name = "corrected-german-lr-retrain-5-0"
    path = tmp_path / "jobs" / f"{name}.npz"
    content = path.read_bytes()
    if lost == "deleted":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2])
    counted.clear()
    assert reproduce(few, tmp_path).ran == 0  # nobody needs them: what was measured with them is there
    done = reproduce(few.changed(methods=["scfe", "roar"]), tmp_path)
    assert done.failed == {}
    assert counted.pop(name) == 1
    assert all("roar" in other for other in counted)
    assert path.read_bytes() == content


def test_a_lost_model_is_fitted_again(tmp_path: Path, counted: Counter[str]) -> None:
    reproduce(tiny(methods=["scfe"]), tmp_path)
    (tmp_path / "jobs" / "corrected-german-lr-model.model.npz").unlink()
    counted.clear()
    assert reproduce(tiny(methods=["scfe", "roar"]), tmp_path).failed == {}
    assert counted["corrected-german-lr-model"] == 1


@pytest.mark.parametrize("answers", [4, 0])
def test_people_without_an_answer_count_as_not_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    real = experiment.explainer_named

    class Shy:
        """Leaves the last people without an answer."""

        def __init__(self, explainer: Any) -> None:
            self.explainer = explainer

        def explain(self, people: Any) -> Any:
            found = self.explainer.explain(people)
            points = np.where(np.arange(len(people))[:, None] < answers, found.matrix, np.nan)
            return SimpleNamespace(matrix=points, statuses=found.statuses, settings=found.settings)

    def shy(method: str, *rest: Any) -> Any:
        return Shy(real(method, *rest)) if method == "scfe" else real(method, *rest)

    monkeypatch.setattr(experiment, "explainer_named", shy)
    done = reproduce(tiny(methods=["scfe"]), tmp_path)
    assert done.failed == {}
    results = rows(tmp_path / "results.csv")
    assert len(results) == 1 + 3 + 3
    for row in results:
        assert (row["answered"], row["people"]) == (str(answers), "6")
        expected = float(row["validity"]) * answers / 6 if answers else 0.0
        assert (row["validity"] == "") == (answers == 0)
        assert float(row["validity_all"]) == pytest.approx(expected)


def test_a_changed_setting_repeats_what_depends_on_it(tmp_path: Path, counted: Counter[str]) -> None:
    reproduce(tiny(), tmp_path)
    counted.clear()
    reproduce(tiny(people=5), tmp_path)
    kinds = {name.rsplit("-", 1)[-1] for name in counted}
    assert kinds == {"explain", "measure", "worst"}  # models and retrained ones stay
    counted.clear()
    reproduce(tiny(people=5, methods=["scfe", "rocerf", "retrained", "roar"]), tmp_path)
    assert set(counted) == {f"corrected-german-lr-roar-{kind}" for kind in ("explain", "measure", "worst")}
    counted.clear()
    reproduce(tiny(people=5, evaluation_seed=7), tmp_path)
    assert {name.split("-")[3] for name in counted} == {"retrain", "scfe", "rocerf", "retrained"}
    assert not any(name.endswith("explain") for name in counted)
    counted.clear()
    reproduce(tiny(people=5, evaluation_seed=7, device="elsewhere"), tmp_path)
    assert not counted  # where networks live is no part of what is asked


def test_a_failing_method_costs_the_others_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = experiment.explainer_named

    def broken(method: str, *rest: Any) -> Any:
        if method == "rocerf":
            raise ZeroDivisionError("on purpose")
        return real(method, *rest)

    monkeypatch.setattr(experiment, "explainer_named", broken)
    done = reproduce(tiny(), tmp_path)
    name = "corrected-german-lr-rocerf"
    assert done.causes == {f"{name}-explain": "ZeroDivisionError: on purpose"}
    assert done.failed[f"{name}-measure"] == f"needs {name}-explain, which failed"
    assert {row["method"] for row in rows(tmp_path / "methods.csv")} == {"scfe", "retrained"}
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["failed"] == done.failed
    record = json.loads((tmp_path / "jobs" / f"{name}-explain.json").read_text("utf-8"))
    assert (record["status"], record["reason"]) == ("failed", "ZeroDivisionError: on purpose")
    monkeypatch.undo()
    mended = reproduce(tiny(), tmp_path)
    assert (mended.ran, mended.causes.keys() - {"report"}) == (3, set())
    assert {row["method"] for row in rows(tmp_path / "methods.csv")} == {"scfe", "rocerf", "retrained"}


def test_two_runs_agree_in_all_but_seconds(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        reproduce(tiny(), tmp_path / folder)
    assert rows(tmp_path / "one" / "methods.csv")[0]["cost_over_plain"] == "1.0"  # scfe is the plain counterfactual
    for name in ("results", "methods", "models", "sensitivity", "theorem"):
        one, two = (rows(tmp_path / folder / f"{name}.csv") for folder in ("one", "two"))
        for row in one + two:
            for seconds in ("seconds_per_person", "seconds_fit"):
                row.pop(seconds, None)
        assert one == two


def test_missing_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = runner.load_dataset

    def without_compas(name: str) -> Any:
        if name == "compas":
            raise DatasetUnavailableError("Expected COMPAS, found nothing; give a path.")
        return real(name)

    monkeypatch.setattr(runner, "load_dataset", without_compas)
    done = reproduce(tiny(datasets=["german", "compas"], methods=["scfe"]), tmp_path)
    assert done.missing == {"compas": "Expected COMPAS, found nothing; give a path."}
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["missing"] == done.missing
    assert {row["dataset"] for row in rows(tmp_path / "models.csv")} == {"german"}


def test_published_people_are_scaled_by_their_own_file() -> None:
    data = rocerf.load_dataset("german-as-published")
    people = people_of(data, "published")
    standardised = (people - data.train.X.mean(axis=0)) / data.train.spread
    varying = data.test.X.std(axis=0) > 0
    np.testing.assert_allclose(standardised[:, varying].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(standardised[:, varying].std(axis=0), 1.0, atol=1e-9)
    assert people_of(data, "corrected") is data.test.X


def test_some_kinds_of_work_can_be_done_ahead(tmp_path: Path, counted: Counter[str]) -> None:
    first = reproduce(tiny(methods=["scfe"]), tmp_path, only=["retrain"])
    assert {name.split("-")[3] for name in counted} == {"model", "retrain"}
    assert rows(tmp_path / "methods.csv") == []
    assert reproduce(tiny(methods=["scfe"]), tmp_path).kept == first.ran
    with pytest.raises(OptionError, match="retrian"):
        reproduce(tiny(), tmp_path, only=["retrian"])


def test_parts_of_people_cover_everybody_once() -> None:
    plan = plan_case(tiny(models=["nn"], people=None), Case("corrected", "adult", "nn"), 1234)
    parts = [job.inputs for job in plan.jobs if job.kind == "explain" and job.inputs["method"] == "rocerf"]
    assert [(part["first"], part["count"]) for part in parts] == [(0, 500), (500, 500), (1000, 500)]
    paper = plan_case(tiny(people=None), Case("published", "adult", "lr"), 700)  # the sensitivity's jobs, too
    methods = Counter(job.inputs["method"] for job in paper.jobs if job.kind == "explain")
    assert methods == {"plain": 2, "scfe": 2, "rocerf": 2, "rocerf_k2": 2}


@pytest.mark.slow
def test_processes_give_the_same(tmp_path: Path) -> None:
    reproduce(tiny(), tmp_path / "one")
    reproduce(tiny(), tmp_path / "two", workers=2)
    assert rows(tmp_path / "one" / "results.csv") == rows(tmp_path / "two" / "results.csv")


def die_once(job: Job, folder: JobFolder) -> Any:
    """A process that is killed while it works: the first time for one job, always for another."""
    mark = folder.path / f"{job.name}.seen"
    if job.inputs["dies"] == "always" or (job.inputs["dies"] == "once" and not mark.exists()):
        mark.touch()
        os._exit(1)
    return {"value": job.inputs["dies"]}, {}


@pytest.mark.slow
def test_a_killed_process_is_survived(tmp_path: Path) -> None:
    jobs = [Job(f"job-{dies}", "any", {"dies": dies}) for dies in ("never", "once", "always")]
    outcome = run_jobs(Plan(jobs), JobFolder(tmp_path), die_once, workers=2)
    assert "ended abruptly" in outcome.failed["job-always"]
    assert "job-never" in outcome.finished


def test_estimates_come_from_jobs_of_the_same_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("rocerf.reproduction.scheduling.time", SimpleNamespace(perf_counter=lambda: now[0]))

    def work(job: Job, _folder: JobFolder) -> Any:
        now[0] += job.inputs["seconds"]
        return {}, {}

    sizes = {"slow": 50.0, "fast": 0.0}
    jobs = [Job(f"{g}-{i}", "any", {"seconds": s, "i": i}, group=g) for i in range(3) for g, s in sizes.items()]
    seen: list[Standing] = []
    run_jobs(Plan(jobs), JobFolder(tmp_path), work, progress=seen.append)
    assert [standing.done for standing in seen] == [1, 2, 3, 4, 5, 6]
    assert [standing.seconds_left for standing in seen[1:]] == [100.0, 50.0, 50.0, 0.0, 0.0]
    assert str(seen[-1]) == "6 of 6 jobs, about 0 s left; last: fast-2"


def test_a_half_written_job_is_done_again(tmp_path: Path) -> None:
    plan, folder = Plan([Job("one", "any", {})]), JobFolder(tmp_path)
    run_jobs(plan, folder, lambda _job, _folder: ({"value": np.float64("nan")}, {"a": np.arange(3)}))
    assert folder.result("one") == {"value": None}
    assert folder.arrays("one")["a"].tolist() == [0, 1, 2]
    folder.record_path("one").write_text('{"hash": "', "utf-8")
    assert run_jobs(plan, folder, lambda _job, _folder: ({}, {})).ran == ["one"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json"]  # no arrays of others


def test_settings_in_yaml_go_both_ways(tmp_path: Path) -> None:
    settings = tiny(epochs={"german": 30})
    others = ("german-as-published", "compas", "compas-as-published", "adult")
    assert settings.epochs == {"german": 30, **dict.fromkeys(others, 100)}
    path = tmp_path / "settings.yaml"
    path.write_text(settings.to_yaml(), "utf-8")
    assert ExperimentSettings.read(path) == settings
    path.write_text("trials: 7\nalphas: [0.05, 0]\n", "utf-8")
    read = ExperimentSettings.read(path, "quick")
    assert (read.preset, read.trials, read.alphas, read.people) == ("quick", 7, (0.0, 0.05), 40)
    path.write_text("", "utf-8")
    assert ExperimentSettings.read(path) == ExperimentSettings.preset_named("full")
    full = ExperimentSettings()
    assert (full.trials, full.people, full.epochs["adult"]) == (100, None, 100)
    assert full.methods_of("corrected", "lr") == ("scfe", "margin", "roar", "cchvae", "rocerf", "retrained")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"datasets": ["gernam"]}, "'gernam'"),
        ({"datasets": []}, "none"),
        ({"models": "lr"}, "list"),
        ({"methods": ["lime"]}, "'lime'"),
        ({"alphas": [0.5, 1.5]}, "1.5"),
        ({"k": "0.5%"}, "0.005"),
        ({"trials": 0}, "trials"),
        ({"people": -1}, "people"),
        ({"epochs": {"iris": 3}}, "'iris'"),
        ({"epochs": 0}, "epochs"),
        ({"simulated": [1, 2]}, "three"),
        ({"worst_effort": "huge"}, "thorough"),
        ({"device": 3}, "cuda"),
        ({"seed": -1}, "seed"),
        ({"seeds": 0}, "seeds"),
        ({"sweep_people": -1}, "sweep_people"),
        ({"sweeps": [1]}, "roar"),
        ({"sweeps": {"lime": [1]}}, "'lime'"),
        ({"sweeps": {"roar": [-1]}}, "roar"),
        ({"sweeps": {"roar": 0.1}}, "list"),
        ({"networks": [1]}, "by name"),
        ({"networks": {"k": 0.1}}, "'k'"),
        ({"networks": {"trials": 0}}, "trials"),
        ({"networks": {"networks": {}}}, "'networks'"),
        ({"trails": 3}, "trails"),
        ({"preset": "huge"}, "huge"),
        ({"preset": ["quick"]}, "['quick']"),
        ({"preset": {"a": 1}}, "{'a': 1}"),
        ({"worst_effort": ["quick"]}, "['quick']"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match="Expected") as error:
        ExperimentSettings.from_dict(changes)
    assert word in str(error.value)


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2"])
def test_bad_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(FileFormatError, match="Expected settings"):
        ExperimentSettings.read(path)


def test_networks_may_have_settings_of_their_own(tmp_path: Path) -> None:
    settings = tiny(models=["lr", "nn"], networks={"trials": 2, "alphas": [0.05, 0], "seeds": 2})
    assert settings.of("lr") == settings
    assert (settings.of("nn").trials, settings.of("nn").alphas, settings.of("nn").people) == (2, (0.0, 0.05), 6)
    path = tmp_path / "settings.yaml"
    path.write_text(settings.to_yaml(), "utf-8")
    assert ExperimentSettings.read(path) == settings
    assert [(case.model, case.seed) for case in cases_of(settings, "corrected", "german")] == [
        *[("lr", 0), ("nn", 0), ("nn", 1)]
    ]
    for model, count in (("lr", 3), ("nn", 2)):
        jobs = plan_case(settings, Case("corrected", "german", model), 200).jobs
        judges = [job.inputs["count"] for job in jobs if job.kind == "retrain" and job.inputs["alpha"] == 0.05]
        assert sum(judges) == count
    preset = ExperimentSettings.preset_named("cpu")
    assert ExperimentSettings.from_dict(preset.to_dict()) == preset
    assert preset.of("nn").seeds == preset.seeds == 5


def test_a_network_and_a_logistic_model_share_the_autoencoder_of_their_rows(tmp_path: Path) -> None:
    both = {"methods": ["cchvae"], "trials": 1, "seeds": 2}
    plans = {
        models: {job.name: job for case in runner.plan_cases(tiny(models=models, **both))[0] for job in case.jobs}
        for models in (("lr", "nn"), ("lr",), ("nn",))
    }
    trained = {models: {name for name in plan if name.endswith("autoencoder")} for models, plan in plans.items()}
    assert trained["lr", "nn"] == trained["lr",] == trained["nn",]
    assert sorted(trained["nn",]) == [f"corrected-german-lr{seed}-cchvae-autoencoder" for seed in ("", "-s1")]
    for name in ("corrected-german-nn-cchvae-explain", "corrected-german-nn-s1-cchvae-explain"):
        assert plans["nn",][name] == plans["lr", "nn"][name]
    hashes = [Plan(list(plan.values())).hashes for plan in plans.values()]
    assert all(hashes[0][name] == digest for own in hashes[1:] for name, digest in own.items())


def test_the_theorem_s_bound_holds_and_falls_with_n() -> None:
    small, large = extra_costs(500, [1, 4], people=10), extra_costs(2000, [1, 4], people=10)
    for few, many in zip(small, large, strict=True):
        assert 0 < many["extra_cost"] < few["extra_cost"]
        for row in (few, many):
            assert row["bound"] is None or row["extra_cost"] <= row["bound"]
            assert row["bound_42"] is None or row["bound"] <= row["bound_42"]
    with pytest.raises(OptionError, match="36177"):
        extra_costs(10**6, [1])


def test_worst_case_validity_needs_a_logistic_model() -> None:
    data = rocerf.load_dataset("german")
    model = rocerf.EstimatorModel.__new__(rocerf.EstimatorModel)
    with pytest.raises(UnsupportedModelError, match="LogisticModel"):
        worst_case_validity(model, data.test.X, 1)  # type: ignore[arg-type]
