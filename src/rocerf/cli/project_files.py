"""The files of a project: settings, calls that run as written, and some people to try them with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Said beside people of the rows' own.
TRY_OUT = "  # people of your own rows with another label, to try: put yours here"


@dataclass(frozen=True, eq=False)
class Beginning:
    """What is known when a project begins; paths are those that its files name."""

    rows: str
    label: str
    favourable: str
    ids: str | None
    frame: pd.DataFrame
    asking: str | None = None

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Columns that no model should have, with the reason."""
        from rocerf.cli.fitting import unusable

        return unusable(self.frame)

    @cached_property
    def fits(self) -> bool:
        """Whether a pipeline is needed: for texts, gaps, and columns that are left out."""
        from rocerf.cli.fitting import text_columns

        return bool(text_columns(self.frame) or self.left_out or self.frame.isna().any(axis=None))

    @property
    def people(self) -> str:
        """Where people are: their own file, or those to try the calls with, in the form that the rows have."""
        if self.asking is not None:
            return self.asking
        ending = Path(self.rows.lower().removesuffix(".gz")).suffix
        return "people.csv" if ending not in (".parquet", ".pq", ".json", ".jsonl") else _form(ending)


def _form(ending: str) -> str:
    return "people.json" if ending.startswith(".json") else "people.parquet"


def settings_text(beginning: Beginning) -> str:
    """settings.yaml: what the commands of this project are given."""
    people = _line("people", beginning.people)
    lines = [
        "# Options of rocerf's commands in this project: rocerf --project THIS_FOLDER explain",
        "# A line holds for every command that has such an option, a section for one. What is typed comes first.",
        "# Paths are those of this folder.",
        *_shared(beginning),
        *_answering(people if beginning.asking is not None else f"{people}{TRY_OUT}"),
        *_following(beginning.fits),
        "# No max-changes here: other methods know no such limit, so answers are cheaper and change more at once.",
        "compare:",
        f"  {people}",
        "  schema: schema.yaml",
        "  k: 0.5%",
        "  trials: 20",
        "  out: compare",
    ]
    return "\n".join([*lines, ""])


def _line(name: str, value: Any) -> str:
    import yaml

    return str(yaml.safe_dump({name: value}, allow_unicode=True, width=10_000)).rstrip("\n")


def _shared(beginning: Beginning) -> list[str]:
    """What holds for every command."""
    named = {"train": beginning.rows, "label": beginning.label, "favourable": beginning.favourable}
    lines = [_line(name, value) for name, value in named.items()]
    if beginning.ids is not None:
        lines += ["# Ids of the training rows (for deletions), and of the people who ask."]
        lines += [_line("train-id-column", beginning.ids), _line("id-column", beginning.ids)]
    if beginning.fits:
        lines += ["# A pipeline is fitted for the texts and gaps. Yours instead: pipeline: model.skops", "fit: true"]
    return lines


def _answering(people: str) -> list[str]:
    return [
        "explain:",
        f"  {people}",
        "  schema: schema.yaml",
        "  # Deletions to withstand: a number of rows, or a share of them.",
        "  k: 0.5%",
        "  # Or certified (proven, where the proof closes), simulated, first_order, plain: docs/choosing.md.",
        "  promise: retrained",
        "  # l2 shares what is to be done among the changes; l1 puts nearly all of it on one.",
        "  cost: l2",
        "  # At most so many changes at once.",
        "  max-changes: 3",
        "  out: answers.json",
        "  # Holds all training rows: keep it as you keep them.",
        "  save-explainer: explainer",
    ]


def _following(fits: bool) -> list[str]:
    """What is done with answers: those of a pipeline that was fitted here are read with it at hand."""
    why = "  # The pipeline that was fitted is asked itself. With one of your own take out this line and those like it."
    pipeline = ["  pipeline: answers-pipeline.skops"] if fits else []
    forgets = [*pipeline, "  save-pipeline: answers-pipeline.skops"] if fits else []
    return [
        "letter:",
        "  answers: answers.json",
        "  explainer: explainer",
        "  format: html",
        "  out: letters",
        "  # valid-until: 2027-06-30",
        *([why] if fits else []),
        *pipeline,
        "# Groups of private columns are compared only where they are named, group: [COLUMN, COLUMN].",
        "portfolio:",
        "  answers: answers.json",
        "  explainer: explainer",
        "  out: portfolio.html",
        *pipeline,
        "attack: {points: answers.json, k: 0.5%, effort: quick}",
        "# request.txt holds ids of rows whose deletion was asked for, one a line; now the last row of your table.",
        "recheck: {recourses: answers.json, deleted: request.txt}",
        "forget:",
        "  explainer: explainer",
        "  deleted: request.txt",
        *forgets,
    ]


def calls_text(beginning: Beginning) -> str:
    """calls.sh: every command as it runs in this project."""
    from rocerf.cli.examples import PROJECT

    lines = [f"# {said}\nrocerf --project . {call}" for call, said in PROJECT.items()]
    head = "#!/bin/sh\n# Calls of this project, in their order; each runs as written in this folder.\nset -e\n"
    return f'{head}cd "$(dirname "$0")"\n\n' + "\n\n".join(lines) + "\n"


def write_people(people: pd.DataFrame, ids: str | None, path: Path) -> None:
    """Some of the rows as people who ask; they are your own rows, so that only their owner can read the file."""
    from rocerf.cli.tables import write_frame, write_records

    frame = people.reset_index(names=ids) if ids is not None else people.reset_index(drop=True)
    if path.suffix == ".json":
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        write_records(rows, path, private=True)
    else:
        write_frame(frame, path, private=True)
