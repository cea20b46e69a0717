"""A letter: the words one person reads about their recourse, as text, as a page to print, and as JSON.

It holds what concerns this person and nothing of anybody else: no ids of training rows, no checksum of the data. The
reasons for a refusal are kept apart from the changes. :meth:`rocerf.Rocerf.letters` writes letters, and checks every
number again as it is written there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from rocerf.data.documents import json_document, read_text
from rocerf.recourse.result import Status
from rocerf.storage.reading import told_as
from rocerf.storage.whole_file import write_text
from rocerf.visible import one_line, visible
from rocerf.words import Language, language_named

FILE_FORMAT = "rocerf-letter/1"


@dataclass(frozen=True)
class Detail:
    """One detail of a person: its value (a number, a category, None where there is none), and as people read it."""

    feature: str
    label: str
    value: Any
    text: str
    unit: str = ""


@dataclass(frozen=True)
class LetterChange:
    """One detail to change, from the person's own value to another one; the texts hold the unit."""

    feature: str
    label: str
    before: Any
    after: Any
    before_text: str
    after_text: str
    unit: str = ""


@dataclass(frozen=True)
class LetterPromise:
    """What is promised about deletions, in its exact sentence; ``proven`` only where there is a proof."""

    name: str
    sentence: str
    k: int
    proven: bool
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One way to be accepted: all of these changes, nothing else changed. ``rounded`` tells whether numbers were."""

    changes: tuple[LetterChange, ...]
    promise: LetterPromise
    rounded: bool = False


@dataclass(frozen=True)
class Letter:
    """What one person reads.

    Parameters
    ----------
    person : str or int
        How the person is called: the reference.
    status : Status
        How the request was answered; ``options`` are there only for ``Status.ANSWERED``.
    options : tuple of Option
        Ways to be accepted, cheapest first.
    held : tuple of Detail
        Details that were held fixed for this person.
    held_unlisted : int
        How many more were held fixed and are not listed, because the schema marks them as private.
    not_given : tuple of str
        Labels of details that the person's application lacks and that the options leave so.
    unreadable : tuple of str
        Labels of details that are missing or could not be read, where that is why there is no answer.
    issued, valid_until : date
        ``valid_until`` may be None: then the letter says that it names no date.
    model_version : str
        Of the model that the letter speaks about, "" if it has none.
    refusal_reasons : tuple of str, optional
        The reasons for the decision, if the letter is to hold them; in a section of their own.
    language : Language
        In which it is written.

    Examples
    --------
    >>> letter = Letter("A-17", Status.ALREADY_ACCEPTED, issued=date(2026, 3, 1))
    >>> print(letter.to_text().splitlines()[3])
    Reference: A-17
    >>> Letter.from_json(letter.to_json()) == letter
    True
    """

    person: str | int
    status: Status
    options: tuple[Option, ...] = ()
    held: tuple[Detail, ...] = ()
    held_unlisted: int = 0
    not_given: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    issued: date = date.min
    valid_until: date | None = None
    model_version: str = ""
    refusal_reasons: tuple[str, ...] | None = None
    language: Language = field(default_factory=lambda: language_named("en"))

    def __repr__(self) -> str:
        options = f"{len(self.options)} {'option' if len(self.options) == 1 else 'options'}"
        return f"Letter({self.person!r}: {self.status.code}, {options}, {self.language.code})"

    def __str__(self) -> str:
        return self.to_text()

    def say(self, name: str, **values: Any) -> str:
        """One of the sentences that letters are made of, in the letter's language."""
        return self.language.say(f"letters.{name}", **values)

    def to_text(self) -> str:
        """Plain text, at most 80 columns wide but for long values."""
        from rocerf.letters.page import as_text

        return as_text(self)

    def printable(self) -> Letter:
        """The letter as it is shown: what came from data stays in its line, so that nobody can add a paragraph."""
        shown: Letter = _in_their_lines(self)
        return replace(shown, person=visible(self.person))

    def _repr_html_(self) -> str:
        from rocerf.html import tag

        return tag("pre", self.to_text())

    def to_html(self) -> str:
        """One page that loads nothing, to be read or printed."""
        from rocerf.letters.page import as_html

        return as_html(self)

    def to_json(self, path: str | PathLike[str] | None = None, *, indent: int | None = 1) -> str:
        """JSON as :func:`letter_schema` describes it, also written to ``path`` if given.

        ``indent=None`` writes one line, in a fifth of the time: for machines that keep many letters.
        """
        document = {
            "format": FILE_FORMAT,
            "language": self.language.code,
            "person": self.person,
            "issued": self.issued.isoformat(),
            "valid_until": None if self.valid_until is None else self.valid_until.isoformat(),
            "model_version": self.model_version,
            "status": self.status.code,
            "message": self.say(self.status.code),
            "options": [_option_document(option) for option in self.options],
            "held": [dict(vars(detail)) for detail in self.held],
            "held_unlisted": self.held_unlisted,
            "not_given": list(self.not_given),
            "unreadable": list(self.unreadable),
            "refusal_reasons": None if self.refusal_reasons is None else list(self.refusal_reasons),
        }
        text = _with_escapes(json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False))
        if path is not None:
            write_text(path, text)
        return text

    @classmethod
    def from_json(cls, source: str | PathLike[str], *, language: str | Language | None = None) -> Letter:
        """Read what :meth:`to_json` wrote: the text itself, or a path to it.

        A letter in a language that is not registered needs that ``language`` to be written out again.
        """
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        expected = f"a letter written by Letter.to_json ({FILE_FORMAT}), as text or as a path to it"
        with told_as(expected, "something else", "check the path, or write it again"):
            document = json_document(str(source) if is_text else read_text(Path(source)))
            if document["format"] != FILE_FORMAT:
                raise KeyError(document["format"])
            until, reasons = document["valid_until"], document["refusal_reasons"]
            return cls(
                person=document["person"],
                status=Status(document["status"]),
                options=tuple(_read_option(option) for option in document["options"]),
                held=tuple(Detail(**detail) for detail in document["held"]),
                held_unlisted=int(document.get("held_unlisted", 0)),  # letters of earlier versions list everything
                not_given=tuple(document["not_given"]),
                unreadable=tuple(document["unreadable"]),
                issued=date.fromisoformat(document["issued"]),
                valid_until=None if until is None else date.fromisoformat(until),
                model_version=document["model_version"],
                refusal_reasons=None if reasons is None else tuple(reasons),
                language=language_named(document["language"] if language is None else language),
            )


@cache
def letter_schema() -> dict[str, Any]:
    """The JSON schema of letters (draft 2020-12), as shipped.

    >>> letter_schema()["properties"]["format"]["const"]
    'rocerf-letter/1'
    """
    text = (files("rocerf.letters") / "letter.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _in_their_lines(part: Any) -> Any:
    """A part of a letter with every text in it as one line."""
    if isinstance(part, str):
        return one_line(part)
    if isinstance(part, tuple):
        return tuple(map(_in_their_lines, part))
    if not isinstance(part, Letter | Option | LetterChange | LetterPromise | Detail):
        return part
    return replace(part, **{one.name: _in_their_lines(getattr(part, one.name)) for one in fields(part)})


def _with_escapes(text: str) -> str:
    """JSON in which the characters that no file or terminal should meet are written as JSON writes them."""
    return re.sub(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", lambda c: f"\\u{ord(c.group()):04x}", text)


#: What the values of a change are called in documents.
_IN_DOCUMENTS = {"before": "from", "after": "to", "before_text": "from_text", "after_text": "to_text"}


def _option_document(option: Option) -> dict[str, Any]:
    changes = [{_IN_DOCUMENTS.get(name, name): v for name, v in vars(c).items()} for c in option.changes]
    promise = {**vars(option.promise), "assumptions": list(option.promise.assumptions)}
    return {"changes": changes, "promise": promise, "rounded": option.rounded}


def _read_option(document: dict[str, Any]) -> Option:
    changes = tuple(
        LetterChange(c["feature"], c["label"], c["from"], c["to"], c["from_text"], c["to_text"], c["unit"])
        for c in document["changes"]
    )
    promise = {**document["promise"], "assumptions": tuple(document["promise"]["assumptions"])}
    return Option(changes, LetterPromise(**promise), document["rounded"])
