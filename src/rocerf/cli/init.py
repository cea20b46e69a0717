"""The command that begins a project: a folder with a schema to correct, settings, and calls that run as written."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocerf.cli import options as opt
from rocerf.cli.outputs import Target, check_targets, write_each
from rocerf.cli.project import SETTINGS
from rocerf.cli.terminal import say
from rocerf.errors import FileFormatError, LabelError

if TYPE_CHECKING:
    import pandas as pd

#: Labels that people hope for and that leave no doubt: 1 and yes may be an answer to "did they default?".
HOPED_FOR = ("good", "granted", "approved", "accepted", "pass", "passed", "paid", "repaid", "hired", "admitted")

#: People who are written down to try the calls with.
TO_TRY = 20


def init(
    rows: Annotated[Path, typer.Argument(help="Your training rows: .csv, .parquet or .json, with a label.")],
    label: opt.Label,
    favourable: Annotated[
        str | None, typer.Option(help="The label a person hopes for; may be left out for words such as good.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the project.")] = Path("project"),
    train_id_column: opt.TrainIds = None,
    people: Annotated[Path | None, typer.Option(help="People to answer; default: some refused rows, to try.")] = None,
    immutable: Annotated[opt.Columns, typer.Option(help="Column that must not change (repeatable).")] = None,
    private: Annotated[opt.Columns, typer.Option(help="Column held fixed and never printed (repeatable).")] = None,
) -> None:
    """Begin a project from your rows: a commented schema.yaml to correct, settings.yaml, and calls that run."""
    from rocerf.cli.files import read_labelled_rows, typed_as
    from rocerf.cli.fitting import looks_like_ids
    from rocerf.cli.project_files import Beginning, calls_text, settings_text, write_people
    from rocerf.cli.schema_comments import commented_schema
    from rocerf.cli.tables import read_table
    from rocerf.storage.whole_file import write_text

    check_targets([Target("--out", out, folder=True)], (rows, people))
    if (out / SETTINGS).exists():
        raise FileFormatError(f"Expected a new folder for the project, got {out}, which has one; choose another --out.")
    if people is not None and not people.exists():
        raise FileFormatError(f"Expected a file at {people}, found none; check the path, or leave --people out.")
    table = read_table(rows, train_id_column)
    ids = train_id_column or next(iter(looks_like_ids(table.drop(columns=label, errors="ignore"))), None)
    hoped = favourable if favourable is not None or label not in table else _hoped_for(table[label], label)
    given = read_labelled_rows(rows, label=label, favourable=str(hoped), id_column=ids)
    known = given.frame
    _refuse_more_labels(given.labels, label)
    good = typed_as(given.labels, str(hoped), label) == given.labels
    beginning = Beginning(
        _from(out, rows), label, str(hoped), ids, known, None if people is None else _from(out, people)
    )
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "schema.yaml": commented_schema(known, beginning.left_out, immutable or (), private or ()),
        SETTINGS: settings_text(beginning),
        "calls.sh": calls_text(beginning),
        "request.txt": f"{known.index[-1]}\n",
    }
    steps: list[Any] = [(out / name, partial(write_text, out / name, text)) for name, text in texts.items()]
    if people is None:
        asking = known[~good].head(TO_TRY)
        steps.append((out / beginning.people, partial(write_people, asking, ids, out / beginning.people)))
    written = write_each(steps)
    _tell(beginning, written.paths, out, guessed=favourable is None)
    written.complain()


def _tell(beginning: Any, paths: tuple[Path, ...], out: Path, *, guessed: bool) -> None:
    for path in paths:
        say(f"Written: {path}")
    if guessed:
        say(f"Taken for the label that people hope for: {beginning.favourable!r} (--favourable names another).")
    if beginning.ids is not None:
        say(f"Taken for the ids of the rows: {beginning.ids!r} (--train-id-column names another).")
    for name, why in beginning.left_out.items():
        say(f"Left out: {name!r}, since {why}.")
    say(f"Now correct {out / 'schema.yaml'}: what people can change is for you to say. Then:")
    say(f"  rocerf --project {out} explain")
    say(f"{out / 'calls.sh'} has the other commands, each as it runs in this project.")


def _hoped_for(labels: pd.Series[Any], column: str) -> str:
    """The label that people hope for, where the two of them leave no doubt."""
    from rocerf.cli.files import spelling

    found = [spelling(value) for value in labels.dropna().unique().tolist()]
    hoped = [text for text in found if text.lower() in HOPED_FOR]
    if len(found) != 2 or len(hoped) != 1:
        raise LabelError(
            f"Expected --favourable, the label that people hope for, since {column!r} has {', '.join(found[:5])} and "
            "none of them says so; add it."
        )
    return hoped[0]


def _refuse_more_labels(labels: Any, column: str) -> None:
    """Refuse, before anything is written, labels that no command could use."""
    import pandas as pd

    from rocerf.cli.files import spelling

    gone = int(pd.isna(labels).sum())
    if gone:
        rows = "1 row" if gone == 1 else f"{gone} rows"
        raise LabelError(f"Expected a label in every row, got {rows} without one in {column!r}; drop or fill them.")
    found = [spelling(value) for value in pd.unique(pd.Series(labels).dropna())]
    if len(found) != 2:
        shown = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise LabelError(
            f"Expected two labels in column {column!r}, accepted and refused, got {len(found)}: {shown}; write a "
            "column that tells the hoped-for label from all others, and name it with --label."
        )


def _from(folder: Path, path: Path) -> str:
    """The path as the folder's files name it."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(folder))
