"""One example for each command, shown under its help and in docs/cli.md; tests parse every one."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import Any

import typer

_ROWS = "--train train.csv --label granted --favourable yes"

EXAMPLES = {
    "init": "rocerf init train.csv --label granted --favourable yes --out loans",
    "demo": "rocerf demo --out out/demo.html",
    "datasets": "rocerf datasets",
    "schema": "rocerf schema --train train.csv --label granted --immutable age --out schema.yaml",
    "explain": f"rocerf explain {_ROWS} --people refused.csv --k 0.5% --out answers.csv",
    "letter": "rocerf letter --answers answers.json --explainer explainer --out letters --format html "
    "--valid-until 2027-06-30",
    "portfolio": "rocerf portfolio --answers answers.json --explainer explainer --out portfolio.html --group age",
    "attack": f"rocerf attack {_ROWS} --points answers.json --k 0.5%",
    "recheck": f"rocerf recheck {_ROWS} --recourses answers.json --deleted request.txt",
    "forget": "rocerf forget --explainer explainer --deleted request.txt --pipeline pipeline.skops "
    "--save-pipeline pipeline.skops",
    "reproduce": "rocerf reproduce --out out/paper --quick",
    "compare": f"rocerf compare {_ROWS} --people refused.csv --k 0.5% --out out/compare",
    "serve": "rocerf serve --demo",
    "worker": "rocerf worker --database postgresql://rocerf@db/ledger --keys /keys/ledger.keys",
}

#: Columns of an example, so that it can be copied from a terminal of 80.
WIDTH = 74


def add(app: typer.Typer, command: Callable[..., Any]) -> None:
    """Make a function a command whose help ends in its example."""
    lines = wrap(EXAMPLES[command.__name__], WIDTH, break_long_words=False, break_on_hyphens=False)
    shown = " \\\n    ".join(lines)
    app.command(epilog=f"Example:\n\n  {shown}")(command)


#: The commands of a project, in their order, and what each is for; rocerf init writes them down.
PROJECT = {
    "schema --check schema.yaml": "Hold the schema, as you corrected it, against the rows.",
    "explain": "Answer the people, and keep the answers and the explainer.",
    "letter": "A letter for each of them, every number checked again.",
    "portfolio": "All answers on one page.",
    "attack": "The worst deletions found, whatever the promise says.",
    "recheck": "What a deletion request would do to the letters already sent.",
    "compare": "Other methods on the same people.",
    "forget": "Carry the request out: the explainer and the pipeline are made anew without the rows.",
}
