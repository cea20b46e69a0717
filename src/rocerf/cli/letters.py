"""The command that writes letters: what people read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rocerf.cli import options as opt
from rocerf.cli.models import load_explainer
from rocerf.cli.outputs import Target, check_targets, touches
from rocerf.cli.terminal import print_document, print_text, say
from rocerf.errors import OptionError
from rocerf.words import known_languages

DAY = ["%Y-%m-%d"]


def letter(
    answers: Annotated[list[Path], typer.Option(help="JSON written by rocerf explain (repeatable: alternatives).")],
    explainer: Annotated[Path | None, typer.Option(help="Folder written by explain --save-explainer.")] = None,
    person: Annotated[opt.Columns, typer.Option(help="Only this person (repeatable); default: everybody.")] = None,
    form: Annotated[opt.LetterFormat, typer.Option("--format", help="Form of the letters.")] = opt.LetterFormat.TEXT,
    out: Annotated[Path | None, typer.Option(help="Folder for the letters, one file each.")] = None,
    valid_until: Annotated[datetime | None, typer.Option(formats=DAY, help="Last day on which they are valid.")] = None,
    issued: Annotated[datetime | None, typer.Option(formats=DAY, help="Their date; default: today.")] = None,
    model_version: Annotated[str, typer.Option(help="Version of the model that they speak of.")] = "",
    digits: Annotated[int, typer.Option(min=1, max=15, help="Significant digits of rounded numbers.")] = 3,
    language: Annotated[str, typer.Option(help=f"Their language: {', '.join(known_languages())}.")] = "en",
    reasons: Annotated[
        Path | None, typer.Option(help="Reasons for the refusals, .yaml: person: [reason, ...].")
    ] = None,
    pipeline: opt.PipelineFile = None,
) -> None:
    """What people read: their changes in words, every number checked again as it is written."""
    from rocerf.cli.files import letter_as, read_mapping, spelled_as, write_letters
    from rocerf.letters.writing import of_people
    from rocerf.recourse.result import Recourses

    _check_places(explainer, out)
    assert explainer is not None
    batches = [Recourses.from_json(path) for path in answers]
    if person:
        places = spelled_as(batches[0].names, person)
        batches = [of_people(batch, places) if batch.names == batches[0].names else batch for batch in batches]
    if out is None and len(batches[0]) != 1:
        raise OptionError(
            f"Expected --out with a folder for {len(batches[0])} letters, or one --person, got neither; add one."
        )
    given = None if reasons is None else read_mapping(reasons, "reasons for refusals")
    letters = load_explainer(explainer, pipeline).letters(
        batches,
        valid_until=None if valid_until is None else valid_until.date(),
        issued=None if issued is None else issued.date(),
        model_version=model_version,
        language=language,
        digits=digits,
        refusal_reasons=None if given is None else _by_person(given, batches[0].names, chosen=bool(person)),
        progress=True,
    )
    if out is None:
        # A page says of itself that it is in UTF-8, and so does JSON; plain text is the terminal's own.
        (print_text if form is opt.LetterFormat.TEXT else print_document)(letter_as(letters[0], form))
        return
    written = write_letters(letters, out, form)
    count = "1 letter" if len(written) == 1 else f"{len(written)} letters"
    say(f"Written: {count} in {out}")


def _check_places(explainer: Path | None, out: Path | None) -> None:
    """Refuse, before the work, a command without an explainer, and letters that would go into its folder."""
    if explainer is None:
        raise OptionError(
            "Expected --explainer with the folder that rocerf explain --save-explainer wrote, got none: numbers in "
            "letters are rounded and must be checked again; run explain with --save-explainer."
        )
    if out is not None:
        check_targets([Target("--out", out, folder=True)])
        if touches(Target("--explainer", explainer, folder=True), out):
            raise OptionError(f"Expected --out apart from the explainer's folder, got {out}; choose another.")


def _by_person(given: dict[Any, Any], names: Sequence[Any], *, chosen: bool) -> dict[Any, Any]:
    """Reasons by the people's own names, however the file spells them; of others only if those were left out here."""
    from rocerf.cli.files import spelled_as

    known = {str(name) for name in names}
    typed = {str(name): reasons for name, reasons in given.items() if str(name) in known or not chosen}
    return {names[place]: typed[name] for name, place in zip(typed, spelled_as(names, list(typed)), strict=True)}
