"""Keeps a run of `rocerf reproduce` as a record: copies what it measured, and makes tables, figures and report anew.

Usage: python tools/keep_run.py FOLDER_OF_THE_RUN docs/results/reproduction

What is copied are the tidy tables, the settings and run.json, as the run wrote them: nothing is typed, and run.json
says by what code, commit and machine each job was done. The rest is made from these by the code at hand. A run of
changed files, or one in which something failed, is refused.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

from rocerf.reproduction.report import write_report
from rocerf.reproduction.tables import COLUMNS

#: Tables that are kept packed: a row a trial.
PACKED = ("results",)


def keep(run: Path, record: Path) -> Path:
    """Replace the record by this run; returns its report."""
    facts = json.loads((run / "run.json").read_text("utf-8"))
    wrong = list(facts["failed"]) + [f"{name} is missing" for name in facts["missing"]]
    wrong += ["files changed since the commit" for part in facts["sessions"] if part["dirty"] or not part["commit"]]
    if wrong:
        raise SystemExit(f"Expected a run of a commit without failures, got {wrong[0]} ({len(wrong)} in all).")
    record.mkdir(parents=True, exist_ok=True)
    for path in record.iterdir():
        path.unlink()
    for name in ("settings.yaml", "run.json", *(f"{table}.csv" for table in COLUMNS)):
        content = (run / name).read_bytes()
        if Path(name).stem in PACKED:
            (record / f"{name}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        else:
            (record / name).write_bytes(content)
    return write_report(record)


if __name__ == "__main__":
    print(keep(Path(sys.argv[1]), Path(sys.argv[2])))
