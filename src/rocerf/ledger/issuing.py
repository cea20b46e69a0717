"""From people to letters that the ledger keeps: explained, written, and every part of it that is personal sealed."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sqlalchemy import insert
from sqlalchemy.orm import Session

from rocerf.explainer.explainer import Rocerf
from rocerf.ledger.core import Core
from rocerf.ledger.people import as_json
from rocerf.ledger.states import LetterState
from rocerf.ledger.tables import LetterEventRow, LetterRow
from rocerf.letters.letter import Letter
from rocerf.letters.writing import letters_and_points
from rocerf.recourse.ranges import Ranges
from rocerf.recourse.result import Recourses, Status, finite_or_none
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

#: Kind and parts of what is kept of a letter: the points it names, what the person reads, the data it was made from,
#: why it was withdrawn.
LETTER, POINT, DOCUMENT, ASKED, REASON = "letter", "point", "document", "asked", "reason"

#: The ranges of one option: by column their ends, of which one may be infinite.
Box: TypeAlias = Mapping[str, tuple[float, float]]

#: Letters are made in one step; so many rows at most go to the database in one call.
CHUNK = 5000


@dataclass(frozen=True, eq=False)
class Written:
    """Letters that are written but not yet kept: in the order of the people, with points, margins and their data."""

    letters: tuple[Letter, ...]
    #: For each person the points of the options, shape (options, d).
    points: tuple[Array, ...]
    #: For each person and option the features that the person came without and that the option leaves so.
    missing: tuple[tuple[tuple[str, ...], ...], ...]
    #: For each person and option the ranges that the letter states.
    boxes: tuple[tuple[Box, ...], ...]
    margins: tuple[float | None, ...]
    promise: str
    proven: bool
    k: int
    people: tuple[bytes, ...]

    def joined(self, other: Written) -> Written:
        """These letters and then the others, of the same explainer."""
        lists = ("letters", "points", "missing", "boxes", "margins", "people")
        both: dict[str, Any] = {name: (*getattr(self, name), *getattr(other, name)) for name in lists}
        return replace(self, **both)


def written(
    explainer: Rocerf,
    people: pd.DataFrame,
    *,
    valid_until: date | None,
    issued: date,
    version: int,
    language: str,
    options: int = 1,
) -> Written:
    """Letters for the people of a table, as this explainer writes them."""
    found = explainer.explain(people) if options == 1 else explainer.alternatives(people, options)
    letters, batches, around = letters_and_points(
        explainer, found, valid_until=valid_until, issued=issued, model_version=str(version), language=language
    )
    own, places = explainer.settings(), range(len(people))
    offered = [_offered(batches, around, place) for place in places]
    return Written(
        letters=letters,
        points=tuple(points for points, _, _ in offered),
        missing=tuple(missing for _, missing, _ in offered),
        boxes=tuple(boxes for _, _, boxes in offered),
        margins=tuple(_margin(batches, place) for place in places),
        promise=own.promise,
        proven=own.proven,
        k=own.k,
        people=tuple(as_json(record) for record in people.to_dict("records")),
    )


def keep(
    session: Session,
    core: Core,
    made: Written,
    subjects: Sequence[int],
    version: int,
    *,
    replaces: Sequence[int] | None = None,
    once: Sequence[tuple[str, str]] | None = None,
) -> list[int]:
    """Keep written letters in this transaction; their numbers, in order. ``once`` are idempotency keys and bodies."""
    now, rows = core.now(), []
    for place, letter in enumerate(made.letters):
        answered = letter.status is Status.ANSWERED
        rows.append(
            {
                "subject": subjects[place],
                "version": version,
                "checked_by": version,
                "state": LetterState.ISSUED.code,
                "answered": answered,
                "promise": made.promise,
                "proven": made.proven,
                "k": made.k,
                "used": 0,
                "margin": made.margins[place],
                "options": len(letter.options),
                "language": letter.language.code,
                "issued": now,
                "valid_until": letter.valid_until,
                "replaces": None if replaces is None else replaces[place],
                "issue_key": None if once is None else once[place][0],
                "issue_body": None if once is None else once[place][1],
                "reason": "" if answered else letter.status.code,
            }
        )
    numbers: list[int] = []
    for start in range(0, len(rows), CHUNK):
        part = insert(LetterRow).returning(LetterRow.id, sort_by_parameter_order=True)
        numbers += session.scalars(part, rows[start : start + CHUNK])
    events = [{"letter": n, "at": now, "state": "issued", "used": 0, "version": version, "reason": ""} for n in numbers]
    if events:
        session.execute(insert(LetterEventRow), events)
    core.put(session, (part for place, number in enumerate(numbers) for part in _parts(made, place, number, subjects)))
    return numbers


def _parts(made: Written, place: int, number: int, subjects: Sequence[int]) -> list[tuple[str, int, str, int, bytes]]:
    subject, letter = subjects[place], made.letters[place]
    found = [
        (LETTER, number, DOCUMENT, subject, letter.to_json(indent=None).encode()),
        (LETTER, number, ASKED, subject, made.people[place]),
    ]
    if len(made.points[place]):
        point = packed(made.points[place], made.missing[place], made.boxes[place])
        found.append((LETTER, number, POINT, subject, point))
    return found


def packed(points: Array, missing: Sequence[Sequence[str]], boxes: Sequence[Box]) -> bytes:
    """The points of a letter's options (options, d), each with the features still missing there and its ranges."""
    buffer = io.BytesIO()
    ranges = [{name: [finite_or_none(low), finite_or_none(high)] for name, (low, high) in box.items()} for box in boxes]
    about = {"shape": points.shape, "missing": list(map(list, missing)), "ranges": ranges}
    buffer.write(json.dumps(about).encode() + b"\n")
    buffer.write(np.ascontiguousarray(points, "<f8").tobytes())
    return buffer.getvalue()


def unpacked(content: bytes) -> tuple[Array, tuple[tuple[str, ...], ...], tuple[Box, ...]]:
    """The inverse of :func:`packed`; of letters kept before ranges were, none is known.

    >>> points, missing, boxes = unpacked(packed(np.array([[1.5, 2.0]]), [["age"]], [{"debt": (-np.inf, 2.0)}]))
    >>> points.tolist(), missing, boxes
    ([[1.5, 2.0]], (('age',),), ({'debt': (-inf, 2.0)},))
    """
    end = content.index(b"\n")
    about = json.loads(content[:end])
    points = np.frombuffer(content, "<f8", offset=end + 1).reshape(about["shape"])
    ranges = about.get("ranges", [{} for _ in points])
    boxes = tuple(
        {name: (-np.inf if low is None else low, np.inf if high is None else high) for name, (low, high) in box.items()}
        for box in ranges
    )
    return points.astype(np.float64), tuple(map(tuple, about["missing"])), boxes


def _offered(
    batches: Sequence[Recourses], around: Sequence[Ranges], place: int
) -> tuple[Array, tuple[tuple[str, ...], ...], tuple[Box, ...]]:
    """The points that one person's letter offers, each once, what is still missing there, and ranges around it."""
    found: dict[bytes, tuple[Array, tuple[str, ...], Box]] = {}
    for batch, ranges in zip(batches, around, strict=True):
        if batch.statuses[place] is Status.ANSWERED:
            point, own = batch.matrix[place], batch.people[place]
            names = () if batch.missing is None else batch.missing[place]
            places = {attribute.name: list(attribute.places) for attribute in batch.schema.attributes} if names else {}
            still = tuple(name for name in names if np.array_equal(point[places[name]], own[places[name]]))
            box = {
                batch.schema.columns[j]: (float(ranges.low[place, j]), float(ranges.high[place, j]))
                for j in np.flatnonzero(ranges.wide[place])
            }
            found.setdefault(point.tobytes(), (point, still, box))
    if not found:
        return np.empty((0, batches[0].matrix.shape[1])), (), ()
    points, missing, boxes = zip(*found.values(), strict=True)
    return np.array(points), tuple(missing), tuple(boxes)


def _margin(batches: Sequence[Recourses], place: int) -> float | None:
    """The lowest margin among the options, rounded down to two digits behind the point."""
    given = [float(b.margins[place]) for b in batches if b.statuses[place] is Status.ANSWERED]
    lowest: Any = min((margin for margin in given if math.isfinite(margin)), default=None)
    return None if lowest is None else math.floor(lowest * 100) / 100
