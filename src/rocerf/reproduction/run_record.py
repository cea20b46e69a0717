"""run.json: what is needed to make a run again, where its jobs were done, and what it met."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocerf.errors import OptionError
from rocerf.reproduction.code_hash import ROOT, code_hash
from rocerf.reproduction.jobs import JobFolder, Plan
from rocerf.reproduction.provenance import commit_of, computing_versions, sittings_of, versions
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.storage.whole_file import write_text


def finished_records(plan: Plan, jobs: JobFolder) -> dict[str, dict[str, Any]]:
    """The records of the plan's finished jobs, by name."""
    found = {name: jobs.record(name) for name in plan.jobs}
    return {
        name: record
        for name, record in found.items()
        if (record.get("hash"), record.get("status")) == (plan.hashes[name], "done")
    }


def write_run_record(
    path: Path,
    settings: ExperimentSettings,
    plan: Plan,
    jobs: JobFolder,
    missing: Mapping[str, str],
    failed: Mapping[str, str],
) -> None:
    """Write run.json from the records of the jobs: nothing in it is entered by hand.

    ``commit`` is that of the code at hand if it is unchanged since, whose hash all jobs carry; each sitting has the
    commit that was known where it was done, which may be none.
    """
    records = finished_records(plan, jobs)
    sessions = sittings_of(records.values())
    here = commit_of(ROOT)
    models = {name: record["result"] for name, record in records.items() if record["kind"] == "model"}
    document: dict[str, Any] = {
        "preset": settings.preset,
        "wall_seconds": sum(float(part["wall_seconds"]) for part in sessions),
        "code_sha256": code_hash(),
        "commit": None if here["dirty"] else here["commit"],
        "jobs": {"planned": len(plan.jobs), "done": len(records)},
        "sessions": sessions,
        "seeds": {"seed": settings.seed, "evaluation_seed": settings.evaluation_seed},
        "versions": sessions[-1]["versions"] if sessions else versions(),
        "data_sha256": {name.removesuffix("-model"): found["data_sha256"] for name, found in models.items()},
        "asked": ", ".join(sorted({found["asked"] for found in models.values()})),
        "missing": dict(missing),
        "failed": dict(failed),
    }
    write_text(path, json.dumps(document, indent=1))


def refuse_other_versions(plan: Plan, jobs: JobFolder) -> None:
    """Refuse to go on where the finished jobs were all made with other versions than ours: their figures would mix.

    In a folder that was put together from parts, the versions of one part are enough.
    """
    made = [record["made"] for record in finished_records(plan, jobs).values() if "versions" in record.get("made", {})]
    theirs = [computing_versions(facts) for facts in made]
    ours = computing_versions({"versions": versions()})
    if theirs and ours not in theirs:
        differing = [
            f"{name} {theirs[0].get(name)} (here {ours.get(name)})"
            for name in sorted(ours | theirs[0])
            if theirs[0].get(name) != ours.get(name)
        ]
        raise OptionError(
            f"Expected the versions with which the jobs in {jobs.path} were made, got others: {', '.join(differing)}; "
            "use another folder, and put the two together with --join if you mean to."
        )
