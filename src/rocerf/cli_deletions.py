"""The commands about deletions: the worst one (attack), and what a real one does to letters already sent (recheck)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
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
    SchemaFile,
    Seed,
    ShowRows,
    Train,
    TrainIds,
)
from rocerf.cli_outputs import Target, Written, check_targets, write_each
from rocerf.errors import OptionError
from rocerf.terminal import print_document, print_json, say
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
    from rocerf.files import attack_records, read_labelled_rows, read_points, write_records

    _check_out(out, (train, points, model, pipeline, schema))
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
    written = write_each([] if out is None else [(out, partial(write_records, records, out))])
    survive = int((attacks.scores >= 0).sum())
    searches = ", ".join(attacks.searches)
    if as_json:
        print_json({"k": adversary.k, "survive": survive, "searches": attacks.searches, "points": records})
        written.complain()
        return
    say(
        f"{survive} of {len(attacks)} points survived every deletion of at most {adversary.k} rows that was tried "
        f"({int(attacks.retrainings.sum())} models retrained; searches: {searches})."
    )
    if len(attacks):
        say(f"Lowest score found: {attacks.scores.min():.6f} (accepted from 0 on).")
    _tell(written)


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
    as_json: Json = False,
) -> None:
    """What a deletion request does to the letters already sent: retrain without the rows, see which still hold."""
    from rocerf.files import read_ids, read_labelled_rows, write_records
    from rocerf.recourse.recheck import recheck as check_again
    from rocerf.recourse.result import Recourses

    _check_out(out, (train, *recourses, deleted, model, pipeline))
    files = ModelFiles(model, pipeline, preprocessing, c)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    given = [Recourses.from_json(path) for path in recourses]
    fitted = model_of(rows, files, given[0].schema)
    result = check_again(fitted, given, read_ids(deleted, fitted.train))
    written = write_each([] if out is None else [(out, partial(write_records, result.records(), out))])
    if as_json:
        print_document(result.to_json())
        written.complain()
        return
    say(f"{result}.")
    for place in result.broken[:10]:
        option = "" if result.options is None else f", option {result.options[place]}"
        say(f"  no longer holds: person {result.names[place]}{option}")
    if len(result.broken) > 10:
        say(f"  ... and {len(result.broken) - 10} more; write all with --out or --json")
    _tell(written)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(attack)
    app.command()(recheck)


def _check_out(out: Path | None, sources: Iterable[Path | None]) -> None:
    from rocerf.files import check_output

    if out is not None:
        check_output(out)
        check_targets([Target("--out", out)], sources)


def _tell(written: Written) -> None:
    for path in written.paths:
        say(f"Written: {path}")
    written.complain()
