"""Records measured in several sittings, put together."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_rows_are_taken_whole_and_name_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of one code never gets numbers of another, and older ones name theirs."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.chdir(tmp_path)
    from benchmarks.record import joined_record

    for name, code, rows in (
        ("old", "a", {"plain": {"people": 4, "thorough": 0.5}, "margin": {"people": 4}}),
        ("new", "b", {"plain": {"people": 9}}),
    ):
        Path(f"{name}.json").write_text(json.dumps({"code_sha256": code, "measured": {"german": rows}}))
    with pytest.raises(SystemExit, match="one version of the code"):
        joined_record(["old.json", "new.json"], "both")
    joined_record(["old.json", "new.json"], "both", part="people")
    assert json.loads(Path("out/both.json").read_text())["measured"]["german"] == {
        "plain": {"people": 9, "code_sha256": "b"},
        "margin": {"people": 4, "code_sha256": "a"},
    }
