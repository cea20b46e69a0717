"""The commands that answer people: what may change (schema), and the answers (explain)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf.cli_models import ModelFiles, model_of, read_schema
from rocerf.cli_options import (
    Columns,
    CostName,
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
    PromiseName,
    SchemaFile,
    Seed,
    ShowRows,
    SolverName,
    Train,
    TrainIds,
)
from rocerf.errors import FileFormatError, OptionError
from rocerf.terminal import console, print_json
from rocerf.terminal import progress as progress_bar
from rocerf.terminal import table as new_table

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema
    from rocerf.recourse.explainer import Rocerf
    from rocerf.recourse.result import Recourses


def schema(
    train: Annotated[Path, typer.Option(help="Training rows, CSV or Parquet; columns of numbers and text, a label.")],
    label: Label,
    train_id_column: TrainIds = None,
    immutable: Annotated[Columns, typer.Option(help="Column that must not change (repeatable).")] = None,
    increase_only: Annotated[Columns, typer.Option(help="Column that may only rise (repeatable).")] = None,
    decrease_only: Annotated[Columns, typer.Option(help="Column that may only fall (repeatable).")] = None,
    integer: Annotated[Columns, typer.Option(help="Column of whole numbers (repeatable).")] = None,
    quantiles: Annotated[tuple[float, float], typer.Option(help="Shares of the rows that give the bounds.")] = (0, 1),
    out: Annotated[Path | None, typer.Option(help="Write the schema here, .yaml, to edit it.")] = None,
    check: Annotated[Path | None, typer.Option(help="Hold this schema (.yaml) against the rows instead.")] = None,
    as_json: Json = False,
) -> None:
    """What columns mean and what people may change: guessed from rows, or a schema of yours held against them."""
    from rocerf.data.schema import FeatureSchema
    from rocerf.files import read_features

    if out is not None and not out.name.lower().endswith((".yaml", ".yml")):
        raise FileFormatError(f"Expected a schema file ending in .yaml, got {out.name}; rename it.")
    rules = (immutable, increase_only, decrease_only, integer)
    if check is not None and (any(rules) or out is not None or tuple(quantiles) != (0, 1)):
        raise OptionError("Expected --check alone, since it guesses and writes nothing, got other options; drop them.")
    frame, _ = read_features(train, label=label, id_column=train_id_column)
    if check is not None:
        _print_check(FeatureSchema.from_yaml(check), frame, as_json)
        return
    guessed = FeatureSchema.from_frame(
        frame,
        immutable=immutable or (),
        increase_only=increase_only or (),
        decrease_only=decrease_only or (),
        integer=integer or (),
        quantiles=quantiles,
    )
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        guessed.to_yaml(out)
    if as_json:
        print_json(guessed.to_dict())
        return
    _say(str(guessed))
    if out is not None:
        _say(f"Written: {out}")


def explain(
    train: Train,
    label: Label,
    favourable: Favourable,
    people: Annotated[Path, typer.Option(help="People to answer, CSV or Parquet, with the same columns.")],
    k: Deletions,
    promise: Annotated[PromiseName, typer.Option(help="What is promised.")] = PromiseName.RETRAINED,
    out: Out = None,
    id_column: PeopleIds = None,
    train_id_column: TrainIds = None,
    model: ModelFile = None,
    pipeline: PipelineFile = None,
    preprocessing: Preprocessing = None,
    c: InversePenalty = 1.0,
    delta: Annotated[str, typer.Option(help="Margin in score units, or 'calibrate'.")] = "0",
    cost: Annotated[CostName | None, typer.Option(help="What a change costs; default: l2.")] = None,
    prices: Annotated[Path | None, typer.Option(help="Your own prices of changes, .yaml, instead of --cost.")] = None,
    schema: SchemaFile = None,
    immutable: Annotated[Columns, typer.Option(help="Column that must not change (repeatable).")] = None,
    max_changes: Annotated[int | None, typer.Option(min=1, help="At most so many attributes change.")] = None,
    alternatives: Annotated[int, typer.Option(min=1, help="Up to so many answers for each person.")] = 1,
    solver: Annotated[SolverName, typer.Option(help="How the optimum is found.")] = SolverName.AUTO,
    effort: EffortOption = EffortName.NORMAL,
    seed: Seed = 0,
    save_explainer: Annotated[Path | None, typer.Option(help="Folder to keep the explainer in, for letters.")] = None,
    training_rows: ShowRows = False,
    as_json: Json = False,
) -> None:
    """Recourse for every person of a file, with a stated promise about deleted training rows."""
    from rocerf.files import check_output, read_labelled_rows, read_people, write_recourses
    from rocerf.recourse.explainer_files import check_folder

    if out is not None:
        check_output(out)
    if save_explainer is not None and promise is PromiseName.PLAIN:
        raise OptionError("Expected a promise about deletions to save with --save-explainer, got 'plain'; drop one.")
    if save_explainer is not None:
        check_folder(save_explainer)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    asking = read_people(people, id_column=id_column)
    rules = None if schema is None else read_schema(schema)
    fitted = model_of(rows, ModelFiles(model, pipeline, preprocessing, c), rules)
    options = {
        "cost": _cost(cost, prices),
        "schema": _with_fixed(rules or fitted.schema or _plain_schema(fitted.train), immutable or []),
        "max_changes": max_changes,
    }
    explainer = _explainer(fitted, k, promise, delta, options, {"solver": solver, "effort": effort, "seed": seed})
    with progress_bar(quiet=as_json) as step:
        batches = _answers(explainer, asking, alternatives, lambda done, total: step("people", done, total))
    if save_explainer is not None:
        explainer.save(save_explainer)
    files = [] if out is None else _numbered(out, len(batches))
    for batch, path in zip(batches, files, strict=False):
        write_recourses(batch, path, training_rows=training_rows)
    if as_json:
        sys.stdout.write(_json_of(batches, alternatives, training_rows) + "\n")
        return
    _print_summary(batches, files, save_explainer)
    if schema is None and not immutable:
        _say("No --schema and no --immutable: nothing was held fixed, age and the like included.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(schema)
    app.command()(explain)


def _say(text: str) -> None:
    console().print(text, soft_wrap=True, highlight=False, markup=False)


def _print_check(given: FeatureSchema, frame: Any, as_json: bool) -> None:
    complete, found = _complete_rows(given, frame)
    found += given.validate(complete)
    unknown = [str(name) for name in frame.columns if str(name) not in given.names]
    if unknown:
        found.append(f"columns that the schema does not know: {', '.join(unknown)}")
    if as_json:
        print_json({"rows": len(frame), "findings": found})
        return
    _say(str(given))
    _say(f"The schema fits all {len(frame)} rows." if not found else f"The schema can be used with {len(frame)} rows:")
    for sentence in found:
        _say(f"  {sentence}")


def _complete_rows(given: FeatureSchema, frame: Any) -> tuple[Any, list[str]]:
    """The rows with all numbers, and how many have not: those a pipeline may fill in, so they are no mistake."""
    from rocerf.data.feature import Kind

    numbers = [f.name for f in given if f.kind is not Kind.CATEGORICAL and f.name in frame.columns]
    gone = frame[numbers].isna()
    told = [
        f"{int(count)} of {len(frame)} rows have no value of {name!r}, and are not checked; a pipeline must fill it in"
        for name, count in gone.sum().items()
        if count
    ]
    return frame[~gone.any(axis=1)], told


def _plain_schema(train: Any) -> FeatureSchema:
    """Numbers move freely; columns of 0 and 1 are questions, and nobody is told to be 1.13 of something."""
    from rocerf.data.schema import FeatureSchema, Kind

    made = FeatureSchema.free(train.columns)
    for name, column in zip(train.columns, train.X.T, strict=True):
        if ((column == 0) | (column == 1)).all():
            made = made.edit(name, kind=Kind.BINARY)
    return made


def _with_fixed(rules: FeatureSchema, immutable: Sequence[str]) -> FeatureSchema:
    from rocerf.data.schema import Direction

    for name in immutable:
        rules = rules.edit(name, direction=Direction.FIXED)
    return rules


def _cost(cost: CostName | None, prices: Path | None) -> Any:
    from rocerf.files import read_mapping
    from rocerf.recourse.cost import CostTable

    if prices is None:
        return str(cost or CostName.L2)
    if cost is not None:
        raise OptionError("Expected --cost or --prices, got both; drop one.")
    return CostTable(read_mapping(prices, "prices of changes"))


def _explainer(
    fitted: Any, k: str, promise: PromiseName, delta: str, options: dict[str, Any], search: dict[str, Any]
) -> Rocerf:
    from rocerf.promises.plain import Plain
    from rocerf.recourse.explainer import Rocerf

    if promise is PromiseName.PLAIN:
        return Rocerf(fitted, 0, promise=Plain(fitted), **options)
    margin: Any = delta if delta == "calibrate" else _number(delta, "--delta")
    return Rocerf(fitted, k, promise=promise, delta=margin, **options, **search)


def _answers(explainer: Rocerf, asking: Any, alternatives: int, progress: Any) -> tuple[Recourses, ...]:
    from dataclasses import replace

    batches = (
        explainer.alternatives(asking, alternatives, progress=progress)
        if alternatives > 1
        else (explainer.explain(asking, progress=progress),)
    )
    if explainer.promise.wording.name != PromiseName.PLAIN:
        return batches
    return tuple(replace(batch, settings=replace(batch.settings, method="scfe")) for batch in batches)


def _numbered(out: Path, count: int) -> list[Path]:
    """Where alternatives go: answers.json, answers-2.json, ..."""
    return [out if place == 0 else out.with_name(f"{out.stem}-{place + 1}{out.suffix}") for place in range(count)]


def _json_of(batches: Sequence[Recourses], alternatives: int, training_rows: bool) -> str:
    texts = [batch.to_json(training_rows=training_rows) for batch in batches]
    return texts[0] if alternatives == 1 else f'{{"alternatives": [{", ".join(texts)}]}}'


def _print_summary(batches: Sequence[Recourses], files: Sequence[Path], saved: Path | None) -> None:
    import numpy as np

    from rocerf.recourse.result import Status

    screen, recourses = console(), batches[0]
    settings = recourses.settings
    table = new_table(
        f"{len(recourses)} people, k = {settings.k} of {settings.training_rows} rows", ["status", "people"]
    )
    counts: dict[str, int] = {}
    for status in recourses.statuses:
        counts[status.code] = counts.get(status.code, 0) + 1
    for code, count in counts.items():
        table.add_row(code, str(count))
    screen.print(table)
    if recourses.answered.any():
        screen.print(f"Mean cost {recourses.costs[recourses.answered].mean():.3f} ({settings.cost}).")
        screen.print(f"Promise: {settings.sentence}.", soft_wrap=True)
    for number, batch in enumerate(batches[1:], start=2):
        _say(f"{int(batch.answered.sum())} of them have {number} options or more.")
    if recourses.held_out is not None:
        screen.print(f"Checked: {recourses.held_out}.", soft_wrap=True)
    for status in dict.fromkeys(recourses.statuses):
        if status is not Status.ANSWERED:
            first = recourses.statuses.index(status)
            _say(f"{status.code}: {recourses.reasons[first]}")
    if not files:
        shown = np.flatnonzero(recourses.answered)[:5]
        for place in shown:
            recourse = recourses[int(place)]
            _say(f"  person {recourse.name}: {'; '.join(map(str, recourse.changes))}")
        if len(recourses) > len(shown):
            screen.print("  ... write all of them with --out answers.csv or --json")
    for path in [*files, *([] if saved is None else [saved])]:
        screen.print(f"Written: {path}", soft_wrap=True)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"Expected a number >= 0 or 'calibrate' for {option}, got {text!r}.") from None
