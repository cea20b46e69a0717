"""The commands that answer people: what may change (schema), and the answers (explain)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf.cli import options as opt
from rocerf.cli.models import ModelFiles, model_of, read_schema, write_pipeline
from rocerf.cli.outputs import Target, check_targets, write_each
from rocerf.cli.terminal import console, print_document, print_json, say, say_aside
from rocerf.cli.terminal import table as new_table
from rocerf.errors import FileFormatError, OptionError
from rocerf.progress import showing as progress_bar
from rocerf.visible import visible

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema
    from rocerf.explainer.explainer import Rocerf
    from rocerf.recourse.result import Recourses


#: Files of alternatives that are looked at before the work; nobody has more.
MOST_CHECKED = 100


def schema(
    train: Annotated[Path, typer.Option(help="Training rows, CSV or Parquet; columns of numbers and text, a label.")],
    label: opt.Label,
    train_id_column: opt.TrainIds = None,
    immutable: Annotated[opt.Columns, typer.Option(help="Column that must not change (repeatable).")] = None,
    increase_only: Annotated[opt.Columns, typer.Option(help="Column that may only rise (repeatable).")] = None,
    decrease_only: Annotated[opt.Columns, typer.Option(help="Column that may only fall (repeatable).")] = None,
    integer: Annotated[opt.Columns, typer.Option(help="Column of whole numbers (repeatable).")] = None,
    private: Annotated[opt.Columns, typer.Option(help="Column held fixed and never printed (repeatable).")] = None,
    quantiles: Annotated[tuple[float, float], typer.Option(help="Shares of the rows that give the bounds.")] = (0, 1),
    out: Annotated[Path | None, typer.Option(help="Write the schema here, .yaml, to edit it.")] = None,
    check: Annotated[Path | None, typer.Option(help="Hold this schema (.yaml) against the rows instead.")] = None,
    as_json: opt.Json = False,
) -> None:
    """What columns mean and what people may change: guessed from rows, or a schema of yours held against them."""
    from rocerf.cli.files import read_features
    from rocerf.data.schema import FeatureSchema

    if out is not None and not out.name.lower().endswith((".yaml", ".yml")):
        raise FileFormatError(f"Expected a schema file ending in .yaml, got {out.name}; rename it.")
    rules = (immutable, increase_only, decrease_only, integer, private)
    if check is not None and (any(rules) or out is not None or tuple(quantiles) != (0, 1)):
        raise OptionError("Expected --check alone, since it guesses and writes nothing, got other options; drop them.")
    frame, _ = read_features(train, label=label, id_column=train_id_column)
    if check is not None:
        _print_check(FeatureSchema.from_yaml(check), frame, as_json)
        return
    frame, ids = _without_unusable(frame)
    guessed = FeatureSchema.from_frame(
        frame,
        immutable=(*(immutable or ()), *ids),
        increase_only=increase_only or (),
        decrease_only=decrease_only or (),
        integer=integer or (),
        private=private or (),
        quantiles=quantiles,
    )
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        guessed.to_yaml(out)
    if as_json:
        print_json(guessed.to_dict())
        return
    for line in str(guessed).split("\n"):
        say(line)
    if out is not None:
        say(f"Written: {out}")


@opt.with_runner
def explain(
    train: opt.Train,
    label: opt.Label,
    favourable: opt.Favourable,
    people: Annotated[Path, typer.Option(help="People to answer, CSV or Parquet, with the same columns.")],
    k: opt.Deletions,
    promise: Annotated[opt.PromiseName, typer.Option(help="What is promised.")] = "retrained",
    out: opt.Out = None,
    id_column: opt.PeopleIds = None,
    train_id_column: opt.TrainIds = None,
    model: opt.ModelFile = None,
    pipeline: opt.PipelineFile = None,
    fit: opt.FitHere = False,
    preprocessing: opt.Preprocessing = None,
    c: opt.InversePenalty = 1.0,
    threshold: opt.Threshold = None,
    delta: Annotated[str, typer.Option(help="Margin in score units, or 'calibrate'.")] = "0",
    cost: Annotated[opt.CostName | None, typer.Option(help="What a change costs; default: l2.")] = None,
    prices: Annotated[Path | None, typer.Option(help="Your own prices of changes, .yaml, instead of --cost.")] = None,
    schema: opt.SchemaFile = None,
    free: opt.Free = False,
    immutable: Annotated[opt.Columns, typer.Option(help="Column that must not change (repeatable).")] = None,
    max_changes: Annotated[int | None, typer.Option(min=1, help="At most so many attributes change.")] = None,
    alternatives: Annotated[int, typer.Option(min=1, help="Up to so many answers for each person.")] = 1,
    solver: Annotated[opt.SolverName, typer.Option(help="How the optimum is found.")] = "auto",
    effort: opt.EffortOption = opt.EffortName.NORMAL,
    seed: opt.Seed = 0,
    audit: Annotated[bool, typer.Option(help="With simulated: look at rows picked to do harm, too.")] = False,
    save_explainer: Annotated[Path | None, typer.Option(help="Folder to keep the explainer in, for letters.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder for rounds done, to go on after a stop.")] = None,
    runner: opt.Runner = "auto",
    scheduler: opt.Scheduler = None,
    training_rows: opt.ShowRows = False,
    as_json: opt.Json = False,
) -> None:
    """Recourse for every person of a file, with a stated promise about deleted training rows."""
    from rocerf.cli.files import read_labelled_rows, read_people, write_recourses
    from rocerf.cli.guessing import rules_of

    files = ModelFiles(model, pipeline, preprocessing, c, fit, validate=True, threshold=threshold)
    kept = None if out is None or not fit else out.with_name(f"{out.stem}-pipeline.skops")
    _check_places(out, alternatives, save_explainer, kept, (train, people, model, pipeline, prices, schema))
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    asking = read_people(people, id_column=id_column, like=rows)
    given = None if schema is None else read_schema(schema)
    fitted = model_of(rows, files, given)
    rules = rules_of(given, fitted, rows, immutable, free=free)
    options = {"cost": _cost(cost, prices), "schema": rules, "max_changes": max_changes}
    chosen = _audited(promise) if audit else promise
    explainer = _explainer(fitted, k, chosen, delta, options, {"solver": solver, "effort": effort, "seed": seed})
    if checkpoint is not None and alternatives > 1:
        raise OptionError("Expected --checkpoint or --alternatives, got both; drop one.")
    batches = _answers(explainer, asking, alternatives, checkpoint, quiet=as_json)
    places = [] if out is None else _numbered(out, len(batches))
    # The answers first: what follows can be made again from them and the same files.
    answers = zip(places, batches, strict=False)
    steps: list[Any] = [(path, partial(write_recourses, b, path, training_rows=training_rows)) for path, b in answers]
    steps += [] if kept is None else [(kept, partial(write_pipeline, fitted, kept))]
    steps += [] if save_explainer is None else [(save_explainer, partial(explainer.save, save_explainer))]
    written = write_each(steps)
    if as_json:
        print_document(_json_of(batches, alternatives, training_rows))
    else:
        _print_summary(batches, written.paths, show=not places, audit=audit)
        _print_remarks(batches[0], rules if given is None else None, immutable, free=free)
    written.complain()


def _check_places(
    out: Path | None,
    alternatives: int,
    save_explainer: Path | None,
    pipeline: Path | None,
    sources: Sequence[Path | None],
) -> None:
    """Refuse, before the work, what could not be written, alternatives beside the first one, and what not saved."""
    from rocerf.cli.tables import check_output
    from rocerf.explainer.files import check_folder

    targets = []
    if out is not None:
        check_output(out)
        targets += [Target("--out", path) for path in _numbered(out, min(alternatives, MOST_CHECKED))]
    if pipeline is not None:
        targets.append(Target("--fit", pipeline))
    if save_explainer is not None:
        targets.append(Target("--save-explainer", save_explainer, folder=True))
    check_targets(targets, sources)
    if save_explainer is not None:
        check_folder(save_explainer)


def _without_unusable(frame: Any) -> tuple[Any, list[str]]:
    """The columns that a schema can have, and which of them are ids that nobody changes; both are told."""
    from rocerf.cli.fitting import looks_like_ids, unusable

    left_out = unusable(frame, chosen=True)
    for name, why in left_out.items():
        say_aside(f"Left out: {name!r}, since {why}.")
    used = frame.drop(columns=list(left_out))
    ids = looks_like_ids(used)
    for name in ids:
        say_aside(f"Held fixed: {name!r}, since it is different in every row, as ids are.")
    return used, ids


def _print_check(given: FeatureSchema, frame: Any, as_json: bool) -> None:
    complete, found = _complete_rows(given, frame)
    found += given.validate(complete)
    unknown = [str(name) for name in frame.columns if str(name) not in given.names]
    if unknown:
        found.append(f"columns that the schema does not know: {', '.join(unknown)}")
    if as_json:
        print_json({"rows": len(frame), "findings": found})
        return
    for line in str(given).split("\n"):
        say(line)
    say(f"The schema fits all {len(frame)} rows." if not found else f"The schema can be used with {len(frame)} rows:")
    for sentence in found:
        say(f"  {sentence}")


def _complete_rows(given: FeatureSchema, frame: Any) -> tuple[Any, list[str]]:
    """The rows with all numbers, and how many have not: those a pipeline may fill in, so they are no mistake."""
    from rocerf.data.feature import Kind

    numbers = [f.name for f in given if f.kind is not Kind.CATEGORICAL and f.name in frame.columns]
    gone = frame[numbers].isna()
    unchecked = [
        f"{int(count)} of {len(frame)} rows have no value of {name!r}, and are not checked; a pipeline must fill it in"
        for name, count in gone.sum().items()
        if count
    ]
    return frame[~gone.any(axis=1)], unchecked


def _cost(cost: opt.CostName | None, prices: Path | None) -> Any:
    from rocerf.cli.files import read_mapping
    from rocerf.recourse.costs.prices import CostTable

    if prices is None:
        return str(cost or "l2")
    if cost is not None:
        raise OptionError("Expected --cost or --prices, got both; drop one.")
    return CostTable(read_mapping(prices, "prices of changes"))


def _audited(promise: opt.PromiseName) -> Any:
    """The options that ask for the audit, which only one promise has."""
    from rocerf.promises.simulated import Simulated

    if promise != "simulated":
        raise OptionError(
            f"Expected --audit with --promise simulated, got it with {str(promise)!r}; drop it: what 'retrained' says "
            "about networks and estimators is checked with picked rows already, and rocerf attack looks at any points."
        )
    return Simulated(audit=True)


def _explainer(
    fitted: Any, k: str, promise: Any, delta: str, options: dict[str, Any], search: dict[str, Any]
) -> Rocerf:
    from rocerf.explainer.explainer import Rocerf

    if promise == opt.PLAIN:
        return Rocerf(fitted, promise=opt.PLAIN, **options)
    margin: Any = delta if delta == "calibrate" else _number(delta, "--delta")
    return Rocerf(fitted, k, promise=promise, delta=margin, **options, **search)


def _answers(
    explainer: Rocerf, asking: Any, alternatives: int, checkpoint: Path | None, *, quiet: bool
) -> tuple[Recourses, ...]:
    from dataclasses import replace

    from rocerf.explainer.preparation import announcement
    from rocerf.passes import watching
    from rocerf.progress import following

    line = announcement(explainer, len(asking))
    if line is not None:
        console(stderr=True).print(visible(line[:1].upper() + line[1:]), soft_wrap=True)
    fewer = "" if explainer.max_changes is None else "no --max-changes, "
    shorter = f"fewer people, {fewer}--effort quick or --promise first_order take less"
    with (
        progress_bar(quiet=quiet, shorter=shorter) as step,
        watching(partial(step, "pass over the rows")),
        following(step),
    ):
        told: Any = {"progress": partial(step, "people"), "preparing": partial(step, "preparation")}
        if explainer.promise.proven:
            explainer.prepare(partial(step, "proof"))
        batches = (
            explainer.alternatives(asking, alternatives, **told)
            if alternatives > 1
            else (explainer.explain(asking, checkpoint=checkpoint, **told),)
        )
    if explainer.promise.name != opt.PLAIN:
        return batches
    return tuple(replace(batch, settings=replace(batch.settings, method="scfe")) for batch in batches)


def _numbered(out: Path, count: int) -> list[Path]:
    """Where alternatives go: answers.json, answers-2.json, ..."""
    return [out if place == 0 else out.with_name(f"{out.stem}-{place + 1}{out.suffix}") for place in range(count)]


def _json_of(batches: Sequence[Recourses], alternatives: int, training_rows: bool) -> str:
    texts = [batch.to_json(training_rows=training_rows) for batch in batches]
    return texts[0] if alternatives == 1 else f'{{"alternatives": [{", ".join(texts)}]}}'


def _print_summary(batches: Sequence[Recourses], written: Sequence[Path], *, show: bool, audit: bool) -> None:
    import numpy as np

    from rocerf.recourse.result import Status

    recourses = batches[0]
    settings = recourses.settings
    people = "1 person" if len(recourses) == 1 else f"{len(recourses)} people"
    table = new_table(f"{people}, k = {settings.k} of {settings.training_rows} rows", ["status", "people"])
    counts: dict[str, int] = {}
    for status in recourses.statuses:
        counts[status.code] = counts.get(status.code, 0) + 1
    for code, count in counts.items():
        table.add_row(code, str(count))
    console().print(table)
    if recourses.answered.any():
        say(f"Mean cost {recourses.costs[recourses.answered].mean():.3f} ({settings.cost}).")
        say(f"Promise: {settings.sentence}.")
    for number, batch in enumerate(batches[1:], start=2):
        say(f"{int(batch.answered.sum())} of them have {number} options or more.")
    _print_checks(recourses, audit)
    for status in dict.fromkeys(recourses.statuses):
        if status is not Status.ANSWERED:
            first = recourses.statuses.index(status)
            say(f"{status.code}: {recourses.reasons[first]}")
    if show:
        shown = np.flatnonzero(recourses.answered)[:5]
        for place in shown:
            recourse = recourses[int(place)]
            say(f"  person {recourse.name}: {'; '.join(map(str, recourse.changes))}")
        if len(recourses) > len(shown):
            say("  ... write all of them with --out answers.csv or --json")
    for path in written:
        say(f"Written: {path}")


def _print_remarks(
    recourses: Recourses, guessed: FeatureSchema | None, immutable: Sequence[str] | None, *, free: bool
) -> None:
    """What to think of before anybody is told: too many changes at once, and rules that nobody has looked at."""
    from rocerf.cli.guessing import many_changes, what_was_guessed

    for sentence in many_changes(recourses):
        say(sentence)
    if guessed is not None:
        for sentence in what_was_guessed(guessed, immutable, free=free):
            say(sentence)


def _print_checks(recourses: Recourses, audit: bool) -> None:
    k = recourses.settings.k
    if recourses.held_out is not None:
        say(f"Checked: {recourses.held_out}.")
    if recourses.picked is not None:
        say(f"Not promised, with up to {k} {'row' if k == 1 else 'rows'} picked to do harm: {recourses.picked}.")
    elif audit:
        say(
            "No audit with rows picked to do harm: nobody was answered, or the model comes out the same each time it "
            "is trained on the same rows, so that its copies would be no trials. rocerf attack looks for such rows."
        )


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"Expected a number >= 0 or 'calibrate' for {option}, got {text!r}.") from None
