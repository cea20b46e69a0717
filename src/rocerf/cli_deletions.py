"""The commands about deletions: the worst one (attack), and what a real one does to letters already sent (recheck)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rocerf.cli_models import ModelFiles, model_of, read_schema
from rocerf.cli_options import (
    Deletions,
    EffortName,
    EffortOption,
    Favourable,
    InversePenalty,
    Json,
    Label,
    ModelFile,
    Out,
    PeopleIds,
    PipelineFile,
    Preprocessing,
    Refit,
    SchemaFile,
    Seed,
    ShowRows,
    Train,
    TrainIds,
)
from rocerf.errors import OptionError
from rocerf.terminal import console, print_json
from rocerf.terminal import progress as progress_bar


def attack(
    train: Train,
    label: Label,
    favourable: Favourable,
    points: Annotated[Path, typer.Option(help="Points to attack, CSV, Parquet, or answers of rocerf explain in JSON.")],
    k: Deletions,
    effort: EffortOption = EffortName.THOROUGH,
    out: Out = None,
    id_column: PeopleIds = None,
    train_id_column: TrainIds = None,
    model: ModelFile = None,
    pipeline: PipelineFile = None,
    preprocessing: Preprocessing = None,
    schema: SchemaFile = None,
    c: InversePenalty = 1.0,
    seed: Seed = 1,
    training_rows: ShowRows = False,
    as_json: Json = False,
) -> None:
    """Search for the worst deletion of at most k rows at each point, retraining for real after each one tried."""
    from rocerf.deletion.adversary import Adversary
    from rocerf.files import attack_records, check_output, read_labelled_rows, read_points, write_records

    if out is not None:
        check_output(out)
    files = ModelFiles(model, pipeline, preprocessing, c)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    given = read_points(points, id_column=id_column)
    if schema is not None and given.schema is not None:
        raise OptionError("Expected --schema only with a table of points, got it with answers that bring their own.")
    fitted = model_of(rows, files, given.schema if schema is None else read_schema(schema))
    matrix, names = given.of(fitted)
    adversary = Adversary(fitted, k, effort=effort, seed=seed)
    with progress_bar(quiet=as_json) as step:
        attacks = adversary.attack_all(matrix, progress=lambda done, total: step("points", done, total))
    records = attack_records(attacks, fitted.score(matrix), names, training_rows=training_rows)
    if out is not None:
        write_records(records, out)
    survive = int((attacks.scores >= 0).sum())
    searches = ", ".join(attacks.searches)
    if as_json:
        print_json({"k": adversary.k, "survive": survive, "searches": attacks.searches, "points": records})
        return
    screen = console()
    screen.print(
        f"{survive} of {len(attacks)} points survived every deletion of at most {adversary.k} rows that was tried "
        f"({int(attacks.retrainings.sum())} models retrained; searches: {searches}).",
        soft_wrap=True,
    )
    if len(attacks):
        screen.print(f"Lowest score found: {attacks.scores.min():.6f} (accepted from 0 on).")
    if out is not None:
        screen.print(f"Written: {out}", soft_wrap=True)


def recheck(
    train: Train,
    label: Label,
    favourable: Favourable,
    recourses: Annotated[
        list[Path],
        typer.Option(help="Answers already given: JSON written by rocerf explain (repeatable: alternatives)."),
    ],
    deleted: Annotated[Path, typer.Option(help="Ids of the rows to delete, one a line.")],
    out: Out = None,
    train_id_column: TrainIds = None,
    model: ModelFile = None,
    pipeline: PipelineFile = None,
    preprocessing: Preprocessing = None,
    c: InversePenalty = 1.0,
    refit: Refit = None,
    as_json: Json = False,
) -> None:
    """What a deletion request does to the letters already sent: retrain without the rows, see which still hold."""
    from rocerf.files import check_output, read_ids, read_labelled_rows, write_records
    from rocerf.recourse.recheck import recheck as check_again
    from rocerf.recourse.result import Recourses

    if out is not None:
        check_output(out)
    files = ModelFiles(model, pipeline, preprocessing, c)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    given = [Recourses.from_json(path) for path in recourses]
    fitted = model_of(rows, files, given[0].schema)
    result = check_again(fitted, given, read_ids(deleted, fitted.train), refit=None if refit is None else refit.value)
    if out is not None:
        write_records(result.records(), out)
    if as_json:
        sys.stdout.write(result.to_json() + "\n")
        return
    console().print(f"{result}.", soft_wrap=True, highlight=False)
    for place in result.broken[:10]:
        option = "" if result.options is None else f", option {result.options[place]}"
        console().print(f"  no longer holds: person {result.names[place]}{option}", highlight=False, markup=False)
    if len(result.broken) > 10:
        console().print(f"  ... and {len(result.broken) - 10} more; write all with --out or --json")
    if out is not None:
        console().print(f"Written: {out}", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(attack)
    app.command()(recheck)
