"""The command line run in the tests' own process, as the installed script does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import Run
from rocerf.cli import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run the command line here, in an empty folder, as the installed script does."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["rocerf", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Run(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run
