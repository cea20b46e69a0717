"""The command line: one thin command for each verb of the library.

Exit codes: 0 done (people without a recourse are a result, not a failure); 1 a mistake of ours; 2 bad
input, said in one sentence on standard error; 130 interrupted. Heavy imports happen inside the
commands, so that ``rocerf --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf import cli_research
from rocerf.errors import RocerfError
from rocerf.terminal import console, fail, print_json
from rocerf.terminal import progress as progress_bar
from rocerf.terminal import table as new_table

if TYPE_CHECKING:
    from rocerf.recourse.result import Recourses

app = typer.Typer(
    name="rocerf",
    help="Recourse that survives the right to be forgotten.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

INTERRUPTED = 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output, nothing else.")]


class CostName(StrEnum):
    """Costs offered on the command line."""

    L2 = "l2"
    L1 = "l1"


class SolverName(StrEnum):
    """Solvers offered on the command line."""

    AUTO = "auto"
    CUTTING_PLANE = "cutting_plane"
    SEQUENTIAL = "sequential"
    PENALTY = "penalty"


class EffortName(StrEnum):
    """How hard the adversary looks."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


class PromiseName(StrEnum):
    """Promises offered on the command line; "plain" promises nothing about deletions."""

    RETRAINED = "retrained"
    CERTIFIED = "certified"
    FIRST_ORDER = "first_order"
    SIMULATED = "simulated"
    PLAIN = "plain"


Train = Annotated[Path, typer.Option(help="Training rows, CSV or Parquet; numeric columns and a label.")]
Label = Annotated[str, typer.Option(help="Name of the label column.")]
Favourable = Annotated[str, typer.Option(help="The label a person hopes for.")]
Deletions = Annotated[str, typer.Option("--k", help="Deletions to withstand: a number, or a share such as 0.5%.")]
Out = Annotated[Path | None, typer.Option(help="Write the result here: .csv or .json.")]
PeopleIds = Annotated[str | None, typer.Option(help="Column that identifies people in the answers.")]
TrainIds = Annotated[str | None, typer.Option(help="Column with the ids of the training rows.")]
ModelFile = Annotated[Path | None, typer.Option(help="Fitted LogisticRegression in skops format.")]
InversePenalty = Annotated[float, typer.Option("--c", help="Inverse penalty when the model is fitted here.")]
EffortOption = Annotated[EffortName, typer.Option(help="How hard the adversary looks.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random steps.")]
ShowRows = Annotated[
    bool, typer.Option("--training-rows", help="Add ids of the worst training rows: other people's data.")
]


def main() -> None:
    """Run the command line; every error on purpose becomes one sentence and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except RocerfError as error:
        fail(str(error))
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        fail(f"Expected files that can be read and written, got {error.strerror or error}{where}; check the path.")
    except (KeyboardInterrupt, typer.Abort):  # which of them depends on typer's version; newer ones return 130
        code = INTERRUPTED
    except Exception as error:
        if not hasattr(error, "exit_code"):  # not one of the command-line library's own: our mistake
            if os.environ.get("ROCERF_DEBUG"):
                raise
            said = f"internal error ({type(error).__name__}: {error})"
            fail(f"{said}; please run it again with ROCERF_DEBUG=1 and report what it prints.", 1)
        message = error.format_message() if hasattr(error, "format_message") else ""
        if message:
            fail(f"{message.rstrip('.?')}; try 'rocerf --help'.", int(error.exit_code))
        raise SystemExit(int(error.exit_code)) from None
    if code == INTERRUPTED:
        fail("interrupted.", INTERRUPTED)
    raise SystemExit(code if isinstance(code, int) else 0)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the HTML report.")] = Path("out/demo.html"),
    trials: Annotated[int, typer.Option(min=1, help="Random deletions at each share.")] = 100,
    people: Annotated[int | None, typer.Option(min=1, help="Only the first so many of the refused.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random deletions.")] = 0,
    as_json: Json = False,
) -> None:
    """German Credit: what each promise is worth under random and worst-case deletion, with true retraining."""
    from rocerf.evaluation.demo import run_demo
    from rocerf.evaluation.report import write_demo_report

    with progress_bar(quiet=as_json) as step:
        result = run_demo(trials=trials, seed=seed, people=people, progress=step)
    report = write_demo_report(result, out)
    if as_json:
        print_json({**result.to_dict(), "report": str(report)})
        return
    title = (
        f"German Credit: {result.denied} of {result.applicants} applicants refused. Still accepted after deleting "
        f"rows and retraining: at random ({trials} times each share), and by the worst deletion found of at most k rows"
    )
    random = [f"{v.fraction:.1%}" for v in result.methods[0].validity[1:]]
    table = new_table(title, ["promise", "mean cost", *random, "worst k"])
    for method in result.methods:
        shares = [f"{v.mean:.1%}" for v in method.validity[1:]]
        worst = f"{method.survivors}/{len(method.audited)}"
        table.add_row(method.name, f"{method.mean_cost:.2f}", *shares, worst)
    console().print(table)
    console().print(f"Report: {report}", soft_wrap=True)


@app.command()
def datasets(as_json: Json = False) -> None:
    """List the data sets that come with rocerf."""
    from dataclasses import asdict

    from rocerf.data.datasets import list_datasets

    known = list_datasets()
    if as_json:
        print_json([asdict(info) for info in known])
        return
    table = new_table("Data sets", ["name", "train rows", "test rows", "columns"])
    for info in known:
        table.add_row(info.name, *(str(size) for size in (info.rows_train, info.rows_test, info.columns)))
    console().print(table)
    for info in known:
        about = f"{info.name}: {info.title}. {info.availability} Licence: {info.licence}."
        console().print(about, highlight=False, markup=False)


@app.command()
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
    c: InversePenalty = 1.0,
    delta: Annotated[str, typer.Option(help="Margin in score units, or 'calibrate'.")] = "0",
    cost: Annotated[CostName, typer.Option(help="Norm of the change.")] = CostName.L2,
    immutable: Annotated[list[str] | None, typer.Option(help="Column that must not change (repeatable).")] = None,
    solver: Annotated[SolverName, typer.Option(help="How the optimum is found.")] = SolverName.AUTO,
    effort: EffortOption = EffortName.NORMAL,
    seed: Seed = 0,
    training_rows: ShowRows = False,
    as_json: Json = False,
) -> None:
    """Recourse for every person of a file, with a stated promise about deleted training rows."""
    from rocerf.files import check_output, read_people, read_training_set, write_recourses

    if out is not None:
        check_output(out)
    rows = read_training_set(train, label=label, favourable=favourable, id_column=train_id_column)
    asking = read_people(people, id_column=id_column)
    fitted = _model(model, rows, c)
    with progress_bar(quiet=as_json) as step:
        recourses = _explain(fitted, asking, k, promise, delta, cost, immutable or [], solver, effort, seed, step)
    if out is not None:
        write_recourses(recourses, out, training_rows=training_rows)
    if as_json:
        sys.stdout.write(recourses.to_json(training_rows=training_rows) + "\n")
        return
    _print_summary(recourses, out)


@app.command()
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
    c: InversePenalty = 1.0,
    seed: Seed = 1,
    training_rows: ShowRows = False,
    as_json: Json = False,
) -> None:
    """Search for the worst deletion of at most k rows at each point, retraining for real after each one tried."""
    from rocerf.deletion.adversary import Adversary
    from rocerf.files import attack_records, check_output, read_points, read_training_set, write_records

    if out is not None:
        check_output(out)
    rows = read_training_set(train, label=label, favourable=favourable, id_column=train_id_column)
    fitted = _model(model, rows, c)
    matrix, names = read_points(points, fitted, id_column=id_column)
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


@app.command()
def recheck(
    train: Train,
    label: Label,
    favourable: Favourable,
    recourses: Annotated[Path, typer.Option(help="Answers already given: JSON written by rocerf explain.")],
    deleted: Annotated[Path, typer.Option(help="Ids of the rows to delete, one a line.")],
    out: Out = None,
    train_id_column: TrainIds = None,
    model: ModelFile = None,
    c: InversePenalty = 1.0,
    as_json: Json = False,
) -> None:
    """What a deletion request does to the letters already sent: retrain without the rows, see which still hold."""
    from rocerf.files import check_output, read_ids, read_training_set, write_records
    from rocerf.recourse.recheck import recheck as check_again
    from rocerf.recourse.result import Recourses

    if out is not None:
        check_output(out)
    rows = read_training_set(train, label=label, favourable=favourable, id_column=train_id_column)
    given = Recourses.from_json(recourses)
    result = check_again(_model(model, rows, c), given, read_ids(deleted, rows))
    if out is not None:
        write_records(result.records(), out)
    if as_json:
        sys.stdout.write(result.to_json() + "\n")
        return
    console().print(f"{result}.", soft_wrap=True, highlight=False)
    for place in result.broken[:10]:
        console().print(f"  no longer holds: person {result.names[place]}", highlight=False, markup=False)
    if len(result.broken) > 10:
        console().print(f"  ... and {len(result.broken) - 10} more; write all with --out or --json")
    if out is not None:
        console().print(f"Written: {out}", soft_wrap=True)


cli_research.register(app)


def _model(path: Path | None, rows: Any, c: float) -> Any:
    from rocerf.models.logistic import LogisticModel

    if path is None:
        return LogisticModel.fit(rows, C=c)
    from rocerf.models.skops_file import load_skops_model

    return LogisticModel.from_sklearn(load_skops_model(path), rows)


def _explain(
    fitted: Any,
    asking: Any,
    k: str,
    promise: PromiseName,
    delta: str,
    cost: CostName,
    immutable: list[str],
    solver: SolverName,
    effort: EffortName,
    seed: int,
    step: Callable[[str, int, int], None],
) -> Recourses:
    from rocerf.baselines.scfe import Scfe
    from rocerf.data.schema import Direction, FeatureSchema, Kind
    from rocerf.recourse.explainer import Rocerf

    schema = FeatureSchema.free(fitted.train.columns)
    for name, column in zip(fitted.train.columns, fitted.train.X.T, strict=True):
        if ((column == 0) | (column == 1)).all():  # yes or no: nobody is told to be 1.13 of something
            schema = schema.edit(name, kind=Kind.BINARY, lower=0.0, upper=1.0)
    for name in immutable:
        schema = schema.edit(name, direction=Direction.FIXED)

    def progress(done: int, total: int) -> None:
        step("people", done, total)

    if promise is PromiseName.PLAIN:
        return Scfe(fitted, cost=cost, schema=schema).explain(asking, progress=progress)
    margin: Any = delta if delta == "calibrate" else _number(delta, "--delta")
    options: dict[str, Any] = {"cost": cost, "schema": schema, "solver": solver, "effort": effort, "seed": seed}
    explainer = Rocerf(fitted, k, promise=promise, delta=margin, **options)
    return explainer.explain(asking, progress=progress)


def _print_summary(recourses: Recourses, out: Path | None) -> None:
    screen = console()
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
    if recourses.held_out is not None:
        screen.print(f"Checked: {recourses.held_out}.", soft_wrap=True)
    if out is None:
        for place, recourse in enumerate(recourses[:5]):
            said = "; ".join(map(str, recourse.changes)) if recourse.answered else recourse.reason
            screen.print(f"  person {recourses.names[place]}: {said}", soft_wrap=True, highlight=False, markup=False)
        if len(recourses) > 5:
            screen.print("  ... write all of them with --out answers.csv or --json")
    else:
        screen.print(f"Written: {out}", soft_wrap=True)


def _number(text: str, option: str) -> float:
    from rocerf.errors import OptionError

    try:
        return float(text)
    except ValueError:
        raise OptionError(f"Expected a number >= 0 or 'calibrate' for {option}, got {text!r}.") from None


if __name__ == "__main__":
    main()
