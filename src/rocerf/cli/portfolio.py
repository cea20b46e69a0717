"""The command that shows all answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocerf.cli import options as opt
from rocerf.cli.models import load_explainer
from rocerf.cli.outputs import Target, check_targets, write_each
from rocerf.cli.terminal import print_json, say
from rocerf.progress import showing as progress_bar


def portfolio(
    answers: Annotated[Path, typer.Option(help="JSON written by rocerf explain.")],
    explainer: Annotated[Path, typer.Option(help="Folder written by explain --save-explainer.")],
    out: Annotated[Path, typer.Option(help="Where to write the page, .html.")] = Path("out/portfolio.html"),
    group: Annotated[opt.Columns, typer.Option(help="Compare groups of this attribute (repeatable).")] = None,
    effort: opt.EffortOption = opt.EffortName.QUICK,
    seed: Annotated[int, typer.Option(min=0, help="Seed of that adversary.")] = 0,
    pipeline: opt.PipelineFile = None,
    as_json: opt.Json = False,
) -> None:
    """All answers at once: who has none and why, costs and survival by group, what is asked for, what breaks them."""
    from rocerf.evaluation.portfolio import portfolio as look_at
    from rocerf.recourse.result import Recourses

    check_targets([Target("--out", out)])
    given = Recourses.from_json(answers)
    with progress_bar(quiet=as_json, shorter="fewer answers or --effort quick take less") as step:
        seen = look_at(
            load_explainer(explainer, pipeline),
            given,
            groups=group or None,
            effort=effort.value,
            seed=seed,
            progress=lambda done, total: step("points", done, total),
        )
    written = write_each([(out, lambda: seen.write(out))])
    if as_json:
        print_json(seen.to_dict() | {"page": str(out) if written.paths else None})
    else:
        say(
            f"{seen.answered} of {seen.asking} refused people have a recourse; {seen.survived} survived what was tried."
        )
        say(f"Page: {out}")
    written.complain()
