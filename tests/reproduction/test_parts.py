"""Parts of one run: put together by the program, refused where code, settings or data differ; nothing is typed in."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rocerf.errors import FileFormatError, OptionError, RocerfError
from rocerf.reproduction import ExperimentSettings, provenance, reproduce, run_record, runner
from rocerf.reproduction.code_hash import code_hash
from rocerf.reproduction.jobs import JobFolder
from rocerf.reproduction.parts import pack, read_part
from rocerf.reproduction.provenance import commit_of, seconds_between, sittings_of
from rocerf.reproduction.runner import IN_NO_PART, join
from rocerf.reproduction.scheduling import Standing

FEW: dict[str, Any] = {
    "datasets": ["german"],
    "models": ["lr"],
    "methods": ["scfe"],
    "settings": ["corrected"],
    "alphas": [0.01],
    "trials": 2,
    "people": 4,
    "worst_people": 2,
    "theorem_sizes": [],
}


def few(**changes: Any) -> ExperimentSettings:
    return ExperimentSettings.preset_named("quick").changed(**FEW | changes)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: cell for name, cell in row.items() if "seconds" not in name} for row in csv.DictReader(file)]


def run_json(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
    return document


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has tests of its own."""
    monkeypatch.setattr(runner, "_report", lambda target: (target / "report.html", ""))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run whole, and as two parts, one of them packed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "_report", lambda target: (target / "report.html", ""))
        folder = tmp_path_factory.mktemp("parts")
        reproduce(few(methods=["scfe", "rocerf"]), folder / "whole")
        reproduce(few(), folder / "one")
        reproduce(few(methods=["rocerf"]), folder / "two", pack_into=folder / "two.zip")
    return folder


def test_every_job_says_where_and_with_what_it_was_made(parts: Path) -> None:
    jobs = JobFolder(parts / "one" / "jobs")
    for name in jobs.names():
        made = jobs.record(name)["made"]
        assert made["code_sha256"] == code_hash()
        assert made["cpu"] in made["machine"]
        assert (made["device"], made["gpu"], made["workers"], made["gpu_jobs"]) == ("cpu", None, 1, None)
        assert made["versions"]["numpy"]
        assert min(made["threads"], made["cores"]) >= 1
        assert made["sitting_started"] <= made["started"] <= made["ended"]
        assert {"commit", "dirty"} <= made.keys()
    run = run_json(parts / "one")
    (session,) = run["sessions"]
    assert run["code_sha256"] == session["code_sha256"] == code_hash()
    assert session["jobs_run"] == run["jobs"]["done"] == run["jobs"]["planned"] == len(jobs.names())
    assert session["wall_seconds"] == run["wall_seconds"] > 0
    assert session["wall_seconds"] == pytest.approx(seconds_between(session["started"], session["ended"]))


def test_parts_make_the_whole(parts: Path, tmp_path: Path) -> None:
    done = join([parts / "one", parts / "two.zip"], tmp_path / "joined")
    assert (done.ran, done.failed) == (0, {})
    for name in ("results", "methods", "models"):
        assert rows(tmp_path / "joined" / f"{name}.csv") == rows(parts / "whole" / f"{name}.csv")
    run = run_json(tmp_path / "joined")
    first = len(JobFolder(parts / "one" / "jobs").names())
    # What both parts have counts once, as the first one's.
    assert [session["jobs_run"] for session in run["sessions"]] == [first, done.kept - first]
    assert len({session["sitting"] for session in run["sessions"]}) == 2
    # Arrays come along from folders only, and going on in the joined folder repeats nothing.
    kept = {path.name for path in (tmp_path / "joined" / "jobs").glob("*.npz")}
    assert "corrected-german-lr-scfe-explain.npz" in kept
    assert "corrected-german-lr-rocerf-explain.npz" not in kept
    settings = ExperimentSettings.read(tmp_path / "joined" / "settings.yaml")
    assert settings == few(methods=["scfe", "rocerf"])
    assert reproduce(settings, tmp_path / "joined").ran == 0


def test_joining_again_adds_to_what_is_there(parts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "joined"
    join([parts / "two.zip"], folder, pack_into=tmp_path / "again.zip")
    done = join([parts / "one"], folder)
    assert rows(folder / "results.csv") == rows(parts / "whole" / "results.csv")
    assert join([parts / "two"], folder).kept == done.kept  # had already: the first one counts
    assert (tmp_path / "again.zip").read_bytes() == (parts / "two.zip").read_bytes()


def test_jobs_of_no_part_are_named_and_not_done(parts: Path, tmp_path: Path) -> None:
    lost = parts / "one" / "jobs" / "corrected-german-lr-scfe-measure.json"
    whole, part = pack(parts / "one", tmp_path / "all.zip"), tmp_path / "part.zip"
    with zipfile.ZipFile(whole) as packed, zipfile.ZipFile(part, "w") as less:
        for name in packed.namelist():
            if Path(name).name != lost.name:
                less.writestr(name, packed.read(name))
    done = join([part], tmp_path / "joined")
    assert done.failed == done.causes == {lost.stem: IN_NO_PART}
    assert rows(tmp_path / "joined" / "methods.csv") == []
    run = run_json(tmp_path / "joined")
    assert run["jobs"]["planned"] - run["jobs"]["done"] == 1


def test_a_packed_file_is_small_and_holds_no_arrays(parts: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(parts / "two.zip") as packed:
        names = packed.namelist()
    assert "settings.yaml" in names
    assert all(name == "settings.yaml" or name.endswith(".json") for name in names)
    assert pack(parts / "two", tmp_path / "two.zip").read_bytes() == (parts / "two.zip").read_bytes()


def test_an_interrupted_run_is_packed_and_listed(tmp_path: Path) -> None:
    def stop(standing: Standing) -> None:
        if standing.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(few(), tmp_path / "run", progress=stop, pack_into=tmp_path / "run.zip")
    (session,) = run_json(tmp_path / "run")["sessions"]
    assert session["jobs_run"] == 3
    assert join([tmp_path / "run.zip"], tmp_path / "joined").kept == 3
    done = reproduce(few(), tmp_path / "run")
    assert done.kept == 3
    assert [session["jobs_run"] for session in run_json(tmp_path / "run")["sessions"]] == [3, done.ran]


def test_other_code_is_refused(parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("identity", "parts", "run_record", "provenance"):
        monkeypatch.setattr(f"rocerf.reproduction.{module}.code_hash", lambda: "f" * 64)
    with pytest.raises(OptionError, match=rf"made by the code at hand \(ffffffffffff\).*{code_hash()[:12]}"):
        join([parts / "one"], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()
    # And nothing of it is taken over by a run that goes on in its folder.
    assert reproduce(few(), parts / "one", only=["model"]).kept == 0
    monkeypatch.undo()
    monkeypatch.setattr(runner, "_report", lambda target: (target, ""))
    reproduce(few(), parts / "one")


def test_other_settings_are_refused(parts: Path, tmp_path: Path) -> None:
    reproduce(few(people=3), tmp_path / "three", only=["model"])
    with pytest.raises(OptionError, match=r"got people 4 in .*one and 3 in .*three"):
        join([parts / "one", tmp_path / "three"], tmp_path / "joined")


def test_other_data_are_refused(parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocerf.data.datasets import load_dataset

    monkeypatch.setattr("rocerf.reproduction.identity.load_dataset", lambda _name: load_dataset("german-as-published"))
    with pytest.raises(OptionError, match="data files are the same"):
        join([parts / "one"], tmp_path / "joined")


@pytest.mark.parametrize("text", ["[]", "{", '{"job": "b"}', '{"job": "a", "files": {"../b": 1}}'])
def test_what_is_no_part_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileFormatError, match="Expected the folder of a run"):
        join([tmp_path], tmp_path / "joined")
    with pytest.raises(FileFormatError, match="Expected the folder of a run"):
        join([tmp_path / "nothing.zip"], tmp_path / "joined")
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("settings.yaml", few().to_yaml())
        packed.writestr("jobs/a.json", text)
    with pytest.raises(FileFormatError, match="Expected"):
        join([path], tmp_path / "joined")
    with pytest.raises(OptionError, match="at least one"):
        join([], tmp_path / "joined")


def test_a_damaged_file_is_refused_or_says_the_same(tmp_path: Path) -> None:
    """Cut anywhere or with a bit turned, a packed file is refused in words, or has no record but the true ones."""
    path, records = tmp_path / "part.zip", {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("settings.yaml", few().to_yaml())
        for name in ("a", "b"):
            records[name] = {"job": name, "status": "done", "files": {}, "result": {"x": list(range(40))}}
            packed.writestr(f"jobs/{name}.json", json.dumps(records[name]))
    whole, random, refused = path.read_bytes(), np.random.default_rng(0), 0
    assert read_part(path).records == records
    for _ in range(300):
        place = int(random.integers(len(whole)))
        turned = bytes([whole[place] ^ 1 << int(random.integers(8))]) + whole[place + 1 :]
        for damaged in (whole[:place], whole[:place] + turned):
            path.write_bytes(damaged)
            try:
                found = read_part(path).records
            except RocerfError:
                refused += 1
            else:
                assert found.items() <= records.items()
    assert refused > 300


def test_other_versions_are_not_mixed_in_unseen(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = provenance.versions() | {"numpy": "0.1", "matplotlib": "0.1"}
    monkeypatch.setattr(run_record, "versions", lambda: changed)
    with pytest.raises(OptionError, match=r"got others: numpy .* \(here 0\.1\); use another folder"):
        reproduce(few(), parts / "one")
    monkeypatch.setattr(run_record, "versions", lambda: changed | {"numpy": provenance.versions()["numpy"]})
    assert reproduce(few(), parts / "one").ran == 0  # what only draws may change


def test_sittings_come_from_the_jobs() -> None:
    def job(sitting: str, started: str, ended: str, threads: int = 1) -> dict[str, Any]:
        made = {"sitting": sitting, "sitting_started": started, "started": started, "ended": ended, "threads": threads}
        return {"seconds": 2.0, "made": made | {"cpu": "a"}}

    time = "2024-05-01T12:00:0{}.000+00:00".format
    late, early = job("b", time(5), time(8)), job("a", time(0), time(2))
    found = sittings_of([late, early, job("a", time(0), time(4), 3), {"seconds": 1.0}])
    assert [(f["sitting"], f["jobs_run"], f["wall_seconds"], f["threads"]) for f in found] == [
        ("a", 2, 4.0, 3),
        ("b", 1, 3.0, 1),
    ]
    assert [f["job_seconds"] for f in found] == [4.0, 2.0]
    assert all(f["cpu"] == "a" and "sitting_started" not in f for f in found)


def test_a_commit_is_that_of_the_package_s_own_repository(tmp_path: Path) -> None:
    from subprocess import run

    assert commit_of(tmp_path) == {"commit": None, "dirty": None}
    package = tmp_path / "src" / "rocerf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = run(["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    assert commit_of(package)["commit"] is None  # not tracked: somebody else's repository
    git("add", ".")
    git("commit", "-q", "-m", "one")
    assert commit_of(package) == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "notes.txt").write_text("beside the package", "utf-8")
    assert commit_of(package)["dirty"] is False
    (package / "new.py").write_text("", "utf-8")
    assert commit_of(package)["dirty"] is True
