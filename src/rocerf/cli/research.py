"""The commands for research: reproduce the paper, and compare methods on one's own table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf.cli import options as opt
from rocerf.cli.models import ModelFiles, model_of, read_schema
from rocerf.cli.outputs import Target, check_targets, write_each
from rocerf.cli.terminal import console, print_json, say
from rocerf.cli.terminal import table as new_table
from rocerf.errors import OptionError
from rocerf.progress import showing as progress_bar
from rocerf.visible import visible

if TYPE_CHECKING:
    from rocerf.evaluation.compare import Comparison
    from rocerf.reproduction.runner import Reproduction
    from rocerf.reproduction.scheduling import Standing
    from rocerf.reproduction.settings import ExperimentSettings


#: People left out, and failed jobs, that are named one by one.
NAMED = 10


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for tables, figures, the report and finished jobs.")],
    quick: Annotated[
        bool | None, typer.Option("--quick/--full", help="Minutes, or the paper's size; default: quick.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="quick, cpu (for machines without a GPU) or full.")] = None,
    settings: Annotated[Path | None, typer.Option(help="Settings in YAML: a preset and what differs from it.")] = None,
    device: Annotated[str | None, typer.Option(help="Where networks are trained: cpu, cuda, ...")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes at a time; default: one for each core.")] = None,
    datasets: Annotated[
        str | None,
        typer.Option(help="Only these, with commas: german, compas, compas-30, compas-whole, compas-risk, adult."),
    ] = None,
    models: Annotated[str | None, typer.Option(help="Only these, with commas: lr, nn.")] = None,
    only: Annotated[str | None, typer.Option(help="Only these kinds of jobs, with commas, and what they need.")] = None,
    gpu_jobs: Annotated[int | None, typer.Option(min=1, help="At most so many jobs with networks at a time.")] = None,
    join: Annotated[
        list[Path] | None,
        typer.Option(help="Compute nothing: put the parts of one run together, folders or packed files; repeat it."),
    ] = None,
    pack: Annotated[
        Path | None, typer.Option(help="Also pack all that tables and report are made from into this one file.")
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Every table and figure of the paper, ours beside the paper's numbers; a run that was stopped is continued."""
    from rocerf.passes import workers as cores
    from rocerf.reproduction import runner

    changes = {"device": device, "datasets": _names(datasets), "models": _names(models)}
    if join:
        named = {
            "quick/--full": quick,
            "preset": preset,
            "settings": settings,
            "only": only,
            "workers": workers,
            "gpu-jobs": gpu_jobs,
        }
        _refuse_with_join(named | changes)
        done = runner.join(join, out, pack_into=pack)
    else:
        chosen = _settings(_preset(quick, preset), settings, changes)
        more: Any = {"workers": workers or cores(), "gpu_jobs": gpu_jobs, "only": _names(only), "pack_into": pack}
        with _standing(quiet=as_json) as tell:
            done = runner.reproduce(chosen, out, progress=tell, **more)
    if as_json:
        print_json(_document(done))
    else:
        _print_reproduction(done)
    if done.failed:  # a data set that cannot be had is no failure
        raise typer.Exit(1)


def compare(
    train: opt.Train,
    label: opt.Label,
    favourable: opt.Favourable,
    people: Annotated[Path, typer.Option(help="People who ask, .csv, .parquet or .json, with the same columns.")],
    k: Annotated[str, typer.Option("--k", help="Rows deleted: a number, or a share such as 0.5%.")],
    methods: Annotated[str | None, typer.Option(help="Methods to compare, with commas.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Random deletions of k rows.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Folder for compare.csv and trials.csv.")] = None,
    form: Annotated[opt.TableFormat, typer.Option("--format", help="Form of these tables.")] = opt.TableFormat.CSV,
    id_column: Annotated[str | None, typer.Option(help="Column that identifies people, left out.")] = None,
    train_id_column: opt.TrainIds = None,
    model: opt.ModelFile = None,
    pipeline: opt.PipelineFile = None,
    fit: opt.FitHere = False,
    preprocessing: opt.Preprocessing = None,
    schema: opt.SchemaFile = None,
    c: opt.InversePenalty = 1.0,
    threshold: opt.Threshold = None,
    network: Annotated[bool, typer.Option("--network", help="Train the paper's network instead.")] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the network.")] = 100,
    device: Annotated[str, typer.Option(help="Where the network is trained: cpu, cuda, ...")] = "cpu",
    effort: opt.EffortOption = opt.EffortName.NORMAL,
    refit: opt.Refit = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Methods side by side on your own rows and model: cost, and validity when rows are deleted and it is retrained."""
    from rocerf.cli.files import read_labelled_rows, read_people
    from rocerf.evaluation.compare import compare as run

    tables = {} if out is None else {name: out / f"{name}.{form.value}" for name in ("compare", "trials")}
    check_targets([Target("--out", path) for path in tables.values()], (train, people, model, pipeline, schema))
    files = ModelFiles(model, pipeline, preprocessing, c, fit, threshold=threshold)
    rows = read_labelled_rows(train, label=label, favourable=favourable, id_column=train_id_column)
    asking = read_people(people, id_column=id_column, like=rows)
    rules = None if schema is None else read_schema(schema)
    fitted = _network(rows, files, epochs=epochs, seed=seed, device=device) if network else model_of(rows, files, rules)
    with progress_bar(quiet=as_json, shorter="fewer --trials, fewer --methods or --effort quick take less") as step:
        who: Any = None if refit is None else refit.value
        options = {"trials": trials, "effort": effort, "seed": seed, "refit": who, "schema": rules}
        found = run(fitted, asking, k, methods=_names(methods), progress=step, **options)
    written = write_each([(tables["compare"], partial(_write_comparison, found, tables))] if tables else [])
    if as_json:
        counts = {"people": found.people, "accepted": found.accepted, "incomplete": list(map(str, found.incomplete))}
        print_json({"k": found.k, "training_rows": found.training_rows, **counts, "methods": found.rows})
    else:
        _print_comparison(found)
        for path in written.paths:
            say(f"Written: {path}")
    written.complain()


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _refuse_with_join(options: dict[str, Any]) -> None:
    """Parts bring their settings along."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise OptionError(
            f"Expected --join without {', '.join(given)}, got both; the parts have settings of their own."
        )


def _preset(quick: bool | None, named: str | None) -> str | None:
    """The preset that was asked for by either option, if any."""
    short = None if quick is None else "quick" if quick else "full"
    if short and named and short != named:
        raise OptionError(f"Expected one preset, got --{short} and --preset {named}; drop one of them.")
    return named or short


def _settings(preset: str | None, path: Path | None, changes: dict[str, Any]) -> ExperimentSettings:
    from rocerf.reproduction.settings import ExperimentSettings

    if path is None:
        chosen = ExperimentSettings.preset_named(preset or "quick")
    else:
        chosen = ExperimentSettings.read(path, preset or "quick")
        if preset is not None and chosen.preset != preset:
            raise OptionError(
                f"Expected the preset of {path} ({chosen.preset}), got {preset}; drop the option or edit the file."
            )
    return chosen.changed(**{name: value for name, value in changes.items() if value is not None})


@contextmanager
def _standing(*, quiet: bool) -> Iterator[Callable[[Standing], None] | None]:
    """A line that changes on a terminal, a line for each job in a log."""
    if quiet:
        yield None
        return
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda standing: screen.print(visible(standing), soft_wrap=True)
        return
    from rich.text import Text

    with screen.status("starting") as status:
        yield lambda standing: status.update(Text(visible(standing)))


def _document(done: Reproduction) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        "report": None if done.report is None else str(done.report),
        "jobs_run": done.ran,
        "jobs_kept": done.kept,
        "missing": done.missing,
        "failed": done.failed,
        "wall_seconds": done.wall_seconds,
    }


def _print_reproduction(done: Reproduction) -> None:
    say(f"{done.ran} jobs run, {done.kept} taken over, {len(done.failed)} failed; {done.wall_seconds:.0f} s.")
    for name, reason in done.missing.items():
        say(f"Missing: {name}. {reason}")
    causes = list(done.causes.items())
    for name, reason in causes[:NAMED]:
        say(f"Failed: {name}: {reason}")
    if len(causes) > NAMED:
        say(f"Failed: {len(causes) - NAMED} more; all are named in run.json.")
    say(f"Tables: {done.folder}")
    if done.report is not None:
        say(f"Report: {done.report}")
    if done.failed:
        say("Not everything could be done: what is named above as failed is tried again by the same command.")


def _network(rows: Any, files: ModelFiles, **options: Any) -> Any:
    """The paper's network, trained on the rows."""
    if files.model is not None or files.pipeline is not None or files.fit:
        raise OptionError("Expected --network alone, got a model, a pipeline or --fit beside it; drop one.")
    from rocerf.models.network.model import NeuralModel

    return NeuralModel.fit(rows.training_set(), **options, **files.accepting)


def _write_comparison(found: Comparison, tables: Mapping[str, Path]) -> None:
    from rocerf.cli.tables import write_records
    from rocerf.evaluation.compare import COLUMNS

    write_records([{name: row[name] for name in COLUMNS} for row in found.rows], tables["compare"])
    answered = {row["method"]: row["answered"] for row in found.rows if not row["failure"]}
    trials = [
        {"method": method, "k": found.k, "trial": trial, "validity": float(share)}
        | {"validity_all": float(share) * answered[method] / found.people, "seed": found.seed}
        for method, validity in found.validity.items()
        for trial, share in enumerate(validity.by_trial)
    ]
    write_records(trials, tables["trials"])


def _print_comparison(found: Comparison) -> None:
    from rocerf.evaluation import compared

    table = new_table(compared.caption(found), list(compared.COLUMNS))
    for line in compared.lines(found):
        table.add_row(*line)
    console().print(table)
    for sentence in _remarks(found):
        say(sentence)


def _remarks(found: Comparison) -> Iterator[str]:
    """What the table does not show: who was left out, who got no answer and mostly why, which method could not run."""
    if found.incomplete:
        shown = ", ".join(map(str, found.incomplete[:NAMED])) + (", ..." if len(found.incomplete) > NAMED else "")
        yield f"Left out for missing or infinite values: {len(found.incomplete)} ({shown})."
    for row in found.rows:
        if row["failure"]:
            yield f"{row['method']}: {row['failure']}"
        elif row["unanswered"]:
            count = row["people"] - row["answered"]
            yield f"{row['method']}: {count} of {row['people']} without an answer, mostly because {row['unanswered']}."
