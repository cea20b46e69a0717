"""A job's hash covers the code that computes it: any byte of it, and nothing that only shows results."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocerf.reproduction.code_hash import ROOT, SHOWING, code_hash, files_run, modules_run
from rocerf.reproduction.identity import AUTHORS, identities
from rocerf.reproduction.jobs import Job, Plan

ENTRY = "rocerf.reproduction.experiment"

#: A module that imports in every way there is.
EVERY_WAY = """
import rocerf.direct
from rocerf.room import thing
from . import beside
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from rocerf import typed
else:
    import rocerf.otherwise
def f():
    from rocerf.late import x
    import rocerf.cli.app
    return {"a": "rocerf.named"}, f"rocerf.wide.{x}"
"""
PACKAGE = {
    "__init__.py": "from rocerf.never import nothing\n",
    "never.py": "",
    "entry.py": EVERY_WAY,
    "direct.py": "from rocerf import further as g\n",
    "further.py": "import rocerf.direct\nimport json\n",  # a circle
    "typed.py": "",
    "otherwise.py": "",
    "late.py": "",
    "named.py": "",
    "beside.py": "",
    "room/__init__.py": "from .thing import something\n",
    "room/thing.py": "",
    "room/other.py": "",
    "wide/__init__.py": "",
    "wide/one.py": "",
    "wide/two.py": "from rocerf.deep.down.here import x\n",
    "wide/table.yaml": "a: 1\n",
    "deep/__init__.py": "",
    "deep/down/__init__.py": "",
    "deep/down/here.py": "",
    "cli/app.py": "",
    "cli/__init__.py": "",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "rocerf"
    for name, text in PACKAGE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_every_way_of_importing_is_followed(package: Path) -> None:
    left_out = {"never.py", "typed.py", "room/other.py", "cli/app.py", "cli/__init__.py"}
    found = {path.relative_to(package).as_posix() for path in files_run("rocerf.entry", package)}
    assert found == set(PACKAGE) - left_out


def test_any_byte_of_the_files_run_changes_the_hash_and_no_other(package: Path) -> None:
    before = code_hash("rocerf.entry", package)
    run = set(files_run("rocerf.entry", package))
    for path in [package / name for name in PACKAGE]:
        content = path.read_bytes()
        path.write_bytes(content + b"#")
        code_hash.cache_clear()
        assert (code_hash("rocerf.entry", package) != before) == (path in run), path
        path.write_bytes(content)
    (package / "direct.py").write_bytes((package / "direct.py").read_bytes().replace(b"\n", b"\r\n"))
    code_hash.cache_clear()
    assert code_hash("rocerf.entry", package) == before


#: Files that compute, and files that do not; of what is imported in functions or by name there is one each.
COMPUTES = (
    "reproduction/experiment.py",
    "reproduction/theorem.py",
    "baselines/roar_descent.py",
    "models/network/training.py",
    "data/german.py",
    "data/embedded/german.data.gz",
    "data/embedded/adult.yaml",
    "promises/retrained_groups.py",
    "deletion/searches.py",
)
SHOWS = (
    "reproduction/report.py",
    "reproduction/report.yaml",
    "reproduction/figures.py",
    "reproduction/words.py",
    "reproduction/findings.py",
    "reproduction/scheduling.py",
    "words/en.yaml",
    "cli/research.py",
    "letters/page.py",
    "html.py",
)


def test_the_report_s_words_are_no_part_of_a_job(tmp_path: Path) -> None:
    root = tmp_path / "rocerf"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    run = {path.relative_to(root).as_posix() for path in files_run(ENTRY, root)}
    assert set(COMPUTES) <= run
    assert not run & set(SHOWS)
    for names, same in ((SHOWS, True), (COMPUTES[:1], False)):
        for name in names:
            (root / name).write_bytes((root / name).read_bytes() + b"\n#")
        code_hash.cache_clear()
        assert (code_hash(ENTRY, root) == code_hash()) == same


LOADED = """
import json, sys, tempfile
from pathlib import Path
from rocerf.reproduction import runner
from rocerf.reproduction.experiment import Experiment
from rocerf.reproduction.jobs import JobFolder, Plan
from rocerf.reproduction.scheduling import run_jobs
from rocerf.reproduction.settings import ExperimentSettings

settings = ExperimentSettings.preset_named("quick").changed(
    datasets=["german"], settings=["corrected"], people=2, trials=1, alphas=[0.01], epochs=2, worst_people=1,
    sensitivity_k=[0.005], theorem_sizes=[300], theorem_k=[1], simulated=[2, 2, 2])
asked = {"lr": ["scfe", "roar", "rocerf", "retrained"], "nn": ["scfe"]}
plans = [runner.plan_cases(settings.changed(models=[model], methods=asked[model]))[0] for model in asked]
jobs = [job for plan in plans for case in plan for job in case.jobs if case.case.name.endswith(case.case.model)]
with tempfile.TemporaryDirectory() as folder:
    outcome = run_jobs(Plan(jobs + runner.theorem_jobs(settings)), JobFolder(Path(folder)), Experiment())
print(json.dumps([sorted(name for name in sys.modules if name.startswith("rocerf")), len(outcome.ran)]))
"""


@pytest.mark.slow
def test_whatever_jobs_load_is_covered() -> None:
    """The oracle: jobs of every kind are run, and what was then imported was found in the sources before."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded, ran = json.loads(done.stdout.splitlines()[-1])
    assert ran > 15
    # The package of the study imports all of itself: of its own modules only those that compute are asked for.
    outside = {name for name in loaded if not name.startswith("rocerf.reproduction.")}
    shown = {name for name in outside if any(name == one or name.startswith(f"{one}.") for one in SHOWING)}
    assert outside - shown <= modules_run(ENTRY)
    assert shown <= {"rocerf.html", "rocerf.evaluation.demo", "rocerf.evaluation.plots", "rocerf.evaluation.report"}


def test_hashes_cover_code_data_and_the_authors_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("published", "corrected")
    jobs = [Job(name, "model", {"setting": name, "data": "german"}) for name in names]
    jobs += [Job(f"{name}-explain", "explain", {}, (name,)) for name in names]

    def hashes() -> dict[str, str]:
        return dict(Plan(jobs, identities()).hashes)

    before = hashes()
    assert set(before.values()).isdisjoint(Plan(jobs).hashes.values())
    weights = tmp_path / "vae_german_rr_cfe.npz"
    weights.write_bytes(b"1")
    monkeypatch.setenv(AUTHORS, str(tmp_path))
    seen = hashes()
    weights.write_bytes(b"2")
    for name in jobs:
        published = name.name.startswith("published")
        assert (seen[name.name] != before[name.name]) == published
        assert (hashes()[name.name] != seen[name.name]) == published
    monkeypatch.setattr("rocerf.reproduction.identity.code_hash", lambda: "other code")
    assert set(hashes().values()).isdisjoint(before.values())
    assert Plan(jobs, identities()).only(["explain"]).hashes == hashes()


def test_other_rows_are_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocerf.data.datasets import load_dataset

    plan = Plan([Job("a", "model", {"data": "german"})], identities())
    monkeypatch.setattr("rocerf.reproduction.identity.load_dataset", lambda _name: load_dataset("german-as-published"))
    assert Plan([Job("a", "model", {"data": "german"})], identities()).hashes != plan.hashes
