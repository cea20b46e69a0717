"""The commands about deletions: the worst one (attack), what one does to letters (recheck), and doing it (forget)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf.cli import options as opt
from rocerf.cli.models import ModelFiles, load_explainer, model_of, read_schema, write_pipeline
from rocerf.cli.outputs import Target, Written, check_targets, write_each
from rocerf.cli.terminal import print_document, print_json, say
from rocerf.errors import NotRemovedError, OptionError
from rocerf.progress import showing as progress_bar

if TYPE_CHECKING:
    from rocerf.deletion.attacks import Attacks
    from rocerf.explainer.explainer import Rocerf


@opt.with_runner
def attack(
    train: opt.Train,
    label: opt.Label,
    favourable: opt.Favourable,
    points: Annotated[Path, typer.Option(help="Points to attack, CSV, Parquet, or answers of rocerf explain in JSON.")],
    k: opt.Deletions,
    effort: opt.EffortOption = opt.EffortName.THOROUGH,
    out: opt.Out = None,
    id_column: opt.PeopleIds = None,
    train_id_column: opt.TrainIds = None,
    model: opt.ModelFile = None,
    pipeline: opt.PipelineFile = None,
    fit: opt.FitHere = False,
    preprocessing: opt.Preprocessing = None,
    schema: opt.SchemaFile = None,
    c: opt.InversePenalty = 1.0,
    threshold: opt.Threshold = None,
    seed: opt.Seed = 1,
    runner: opt.Runner = "auto",
    scheduler: opt.Scheduler = None,
    training_rows: opt.ShowRows = False,
    as_json: opt.Json = False,
) -> None:
    """Search for the worst deletion of at most k rows at each point, retraining for real after each one tried."""
    from rocerf.cli.files import SURVIVE, attack_records, read_labelled_rows, read_points, survivors
    from rocerf.cli.tables import write_records
    from rocerf.deletion.adversary import Adversary

    _check_out(out, (train, points, model, pipeline, schema))
    files = ModelFiles(model, pipeline, preprocessing, c, fit, threshold=threshold)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    given = read_points(points, id_column=id_column, like=rows)
    if schema is not None and given.schema is not None:
        raise OptionError("Expected --schema only with a table of points, got it with answers that bring their own.")
    fitted = model_of(rows, files, given.schema if schema is None else read_schema(schema))
    matrix, names = given.of(fitted)
    adversary = Adversary(fitted, k, effort=effort, seed=seed)
    with progress_bar(quiet=as_json, shorter="fewer points or --effort quick take less") as step:
        attacks = adversary.attack_all(matrix, progress=lambda done, total: step("points", done, total))
    records = attack_records(attacks, fitted.score(matrix), names, training_rows=training_rows)
    written = write_each([] if out is None else [(out, partial(write_records, records, out, private=training_rows))])
    survive = int(survivors(attacks).sum())
    if as_json:
        counted = {} if attacks.accepted is None else {"share": SURVIVE, "models": attacks.models}
        print_json({"k": adversary.k, "survive": survive, **counted, "searches": attacks.searches, "points": records})
        written.complain()
        return
    say(
        f"{survive} of {len(attacks)} points survived every deletion of at most {adversary.k} "
        f"{'row' if adversary.k == 1 else 'rows'} that was tried "
        f"({int(attacks.retrainings.sum())} models retrained; searches: {', '.join(attacks.searches)})."
    )
    _print_worst(attacks, SURVIVE)
    _tell(written)


def _print_worst(attacks: Attacks, survive: float) -> None:
    """The point that fares worst, and what surviving means where retraining has no single outcome."""
    if not len(attacks):
        return
    if attacks.accepted is None:
        say(f"Lowest score found: {attacks.scores.min():.6f} (accepted from 0 on).")
        return
    worst = attacks[int(attacks.scores.argmin())]
    rows = f"{len(worst.deleted_ids)} {'row' if len(worst.deleted_ids) == 1 else 'rows'}"
    models = f"{worst.models} {'model' if worst.models == 1 else 'models'}"
    say(
        f"Lowest mean score found: {worst.score:.6f}, with a spread of {worst.spread:.6f} (accepted from 0 on), "
        f"without {rows}: of {models} retrained without them, {round(worst.share * worst.models)} accept."
    )
    say(
        f"A point survives where at least {survive:.0%} of the models accept it that are retrained without the worst "
        "rows found for it."
    )


@opt.with_runner
def recheck(
    train: opt.Train,
    label: opt.Label,
    favourable: opt.Favourable,
    recourses: Annotated[
        list[Path],
        typer.Option(help="Answers already given: JSON written by rocerf explain (repeatable: alternatives)."),
    ],
    deleted: Annotated[Path, typer.Option(help="Ids of the rows to delete, one a line.")],
    out: opt.Out = None,
    train_id_column: opt.TrainIds = None,
    model: opt.ModelFile = None,
    pipeline: opt.PipelineFile = None,
    fit: opt.FitHere = False,
    preprocessing: opt.Preprocessing = None,
    c: opt.InversePenalty = 1.0,
    threshold: opt.Threshold = None,
    refit: opt.Refit = None,
    runner: opt.Runner = "auto",
    scheduler: opt.Scheduler = None,
    as_json: opt.Json = False,
) -> None:
    """What a deletion request does to the letters already sent: retrain without the rows, see which still hold."""
    from rocerf.audit.recheck import recheck as check_again
    from rocerf.cli.files import read_ids, read_labelled_rows
    from rocerf.cli.tables import write_records
    from rocerf.recourse.result import Recourses

    _check_out(out, (train, *recourses, deleted, model, pipeline))
    files = ModelFiles(model, pipeline, preprocessing, c, fit, threshold=threshold)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    given = [Recourses.from_json(path) for path in recourses]
    fitted = model_of(rows, files, given[0].schema)
    who: Any = None if refit is None else refit.value
    result = check_again(fitted, given, read_ids(deleted, fitted.train), refit=who)
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


def forget(
    explainer: Annotated[Path, typer.Option(help="Folder written by explain --save-explainer.")],
    deleted: Annotated[Path, typer.Option(help="Ids of the rows to forget, one a line.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the new explainer; default: replaces the old.")] = None,
    pipeline: opt.PipelineFile = None,
    save_pipeline: Annotated[Path | None, typer.Option(help="Write the pipeline fitted anew here, .skops.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Carry out a deletion request: model and explainer made anew, in which nothing of these rows is left.

    A LogisticRegression that was given as --model is not in the folder: rocerf fits the new model, to the exact
    optimum, and promises are then about rocerf's exact retraining.
    """
    from rocerf.cli.files import read_ids

    if (pipeline is None) != (save_pipeline is None):
        raise OptionError(
            "Expected --pipeline and --save-pipeline together, since a pipeline that was fitted on the rows to forget "
            "must not stay in use, got one of them; add the other (it may name the same file)."
        )
    old = load_explainer(explainer, pipeline)
    ids = read_ids(deleted, old.model.train)
    new = old.forget(ids)
    target = out or explainer
    left = _saved(new, target)
    if save_pipeline is not None:
        write_pipeline(new.model, save_pipeline)
    written = Written((target,) if save_pipeline is None else (target, save_pipeline), (), left)
    rows, unreached = len(new.model.train), _not_reached(old, new, explainer if target != explainer else None)
    gone = len(old.model.train) - rows
    if as_json:
        print_json({"forgotten": gone, "training_rows": rows, "not_reached": unreached})
        written.complain()
        return
    say(
        f"Forgotten: {gone} {'row' if gone == 1 else 'rows'}; {rows} are left. Made anew from these: the model with "
        "its scaling and preprocessing, what was guessed of the schema (ranges, categories), the units of costs, a "
        "calibrated margin, and what the promise had found or proven."
    )
    say("Not reached from here, and yours to see to:")
    for sentence in unreached:
        say(f"  {sentence}")
    _tell(written)


def _saved(new: Rocerf, target: Path) -> tuple[str, ...]:
    """Save the explainer; what is left of the old one, in sentences, to be said when all is done."""
    try:
        new.save(target)
    except NotRemovedError as error:
        return (str(error),)
    return ()


def _not_reached(old: Rocerf, new: Rocerf, kept: Path | None) -> list[str]:
    """What may still hold something of the rows, in sentences."""
    from rocerf.models.model import LinearModel

    unreached = [] if kept is None else [f"the old explainer in {kept}: delete it"]
    deployed = [m.deployed_theta if isinstance(m, LinearModel) else None for m in (old.model, new.model)]
    if deployed[0] is not None and deployed[1] is None:
        unreached.append(
            "the fitted model that the explainer was made from, which judges people today: it was fitted on these "
            "rows, and files do not keep how; the new one is the exact optimum of its objective on the rows left, and "
            "from now on retraining means rocerf's exact retraining (model.without), of which another fit may stop "
            "short: deploy the new one, or fit yours on the rows left and make an explainer of that"
        )
    return [
        *unreached,
        "copies and backups of the folder, the training table, the file of ids, and model files of your own",
        "answers written with --training-rows, which name rows, and schema files written from the rows",
        "other answers written before as JSON, which hold traces of the rows: a checksum of all of them, by which "
        "guesses at one row can be tried, numbers put for missing ones, and guessed bounds and categories",
        "letters already sent, and their files, which were found with these rows: rocerf recheck says which still hold",
        "the schema's declared parts: a category or bound that you wrote down stays",
    ]


def _check_out(out: Path | None, sources: Iterable[Path | None]) -> None:
    from rocerf.cli.tables import check_output

    if out is not None:
        check_output(out)
        check_targets([Target("--out", out)], sources)


def _tell(written: Written) -> None:
    for path in written.paths:
        say(f"Written: {path}")
    written.complain()
