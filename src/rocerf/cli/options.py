"""Options that several commands share, and the choices they offer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

#: Choices that follow a registry, so that whatever is registered can be asked for; and what is offered besides.
REGISTRIES = {
    "PromiseName": ("rocerf.promises.registry", "PROMISES", ()),
    "CostName": ("rocerf.recourse.costs.registry", "COSTS", ()),
    "SolverName": ("rocerf.recourse.solvers.solving", "SOLVERS", ("auto",)),
}

if TYPE_CHECKING:
    PromiseName: TypeAlias = str
    CostName: TypeAlias = str
    SolverName: TypeAlias = str
else:

    def __getattr__(name: str) -> Any:
        """The type of an option whose choices are in a registry.

        Registries are slow to import, so where no command is asked for (``rocerf --help``) they are left alone.
        """
        if name not in REGISTRIES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        room, registry, besides = REGISTRIES[name]
        completed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
        if sys.argv[1:] in ([], ["--help"]) and "explain" not in completed:
            return str
        names = (*getattr(import_module(room), registry), *besides)
        return StrEnum(name, [(text.upper(), text) for text in names])


#: The promise of nothing about deletions.
PLAIN = "plain"


class EffortName(StrEnum):
    """How hard the adversary looks."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


class PreprocessingName(StrEnum):
    """What happens to a pipeline's preprocessing when rows are deleted."""

    FROZEN = "frozen"
    REFITTED = "refitted"


class RefitName(StrEnum):
    """Who retrains in an audit."""

    OWN = "own"
    EXACT = "exact"


class LetterFormat(StrEnum):
    """Forms of letters."""

    TEXT = "text"
    HTML = "html"
    JSON = "json"


class TableFormat(StrEnum):
    """Forms of tables."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to standard output, nothing else.")]
Train = Annotated[
    Path,
    typer.Option(help="Training rows, .csv, .parquet or .json: columns and a label; texts need --fit or --pipeline."),
]
Label = Annotated[str, typer.Option(help="Name of the label column.")]
Favourable = Annotated[str, typer.Option(help="The label a person hopes for.")]
Deletions = Annotated[str, typer.Option("--k", help="Deletions to withstand: a number, or a share such as 0.5%.")]
Out = Annotated[Path | None, typer.Option(help="Write the result here: .csv, .parquet or .json.")]
PeopleIds = Annotated[str | None, typer.Option(help="Column that identifies people in the answers.")]
TrainIds = Annotated[str | None, typer.Option(help="Column with the ids of the training rows.")]
ModelFile = Annotated[
    Path | None, typer.Option(help="Fitted LogisticRegression in skops format, or a saved model of ours, .npz.")
]
PipelineFile = Annotated[Path | None, typer.Option(help="Fitted scikit-learn Pipeline in skops format.")]
FitHere = Annotated[
    bool, typer.Option("--fit", help="Fit a pipeline here, for texts and gaps: scaling, one-hot, logistic regression.")
]
Preprocessing = Annotated[
    PreprocessingName | None, typer.Option(help="Whether a pipeline's preprocessing is fitted again.")
]
Refit = Annotated[
    RefitName | None,
    typer.Option(help="Who retrains a model given: its own estimator (own, the default), or rocerf exactly (exact)."),
]
SchemaFile = Annotated[Path | None, typer.Option(help="What may change: .yaml, as rocerf schema writes it.")]
Free = Annotated[bool, typer.Option("--free", help="Without a schema: numbers without bounds, the paper's setting.")]
InversePenalty = Annotated[float, typer.Option("--c", help="Inverse penalty when the model is fitted here.")]
Threshold = Annotated[
    float | None,
    typer.Option(help="Probability of the favourable label from which people are accepted; default: 0.5, or its own."),
]
EffortOption = Annotated[EffortName, typer.Option(help="How hard the adversary looks.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random steps.")]
ShowRows = Annotated[
    bool, typer.Option("--training-rows", help="Add ids of the worst training rows: other people's data.")
]
Runner = Annotated[str, typer.Option(help="Who walks over the training rows: auto, serial, threads or dask.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, whose workers read the same files.")]
Columns = list[str] | None


def with_runner(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options ``runner`` and ``scheduler``, in which passes over rows are run so."""

    @wraps(command)
    def run(**options: Any) -> None:
        from rocerf.runners import running

        with running(options["runner"], scheduler=options["scheduler"]):
            command(**options)

    return run
