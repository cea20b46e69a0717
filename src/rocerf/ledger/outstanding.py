"""All outstanding letters at once: their points as one matrix, and what a model says of them in one product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.ledger.core import Core, about
from rocerf.ledger.issuing import LETTER, POINT, unpacked
from rocerf.ledger.keys import SUBJECT, opened
from rocerf.ledger.states import OUTSTANDING
from rocerf.ledger.tables import LetterRow, PayloadRow
from rocerf.models.model import Refittable
from rocerf.types import Array


@dataclass(frozen=True, eq=False)
class Outstanding:
    """Letters that somebody may still act on.

    ``points`` (m, d) are those of all options, ``letter_of`` (m,) says to which letter each belongs, by its place.
    """

    numbers: NDArray[np.int64]
    subjects: NDArray[np.int64]
    promises: tuple[str, ...]
    k: NDArray[np.int64]
    used: NDArray[np.int64]
    points: Array
    letter_of: NDArray[np.intp]
    missing: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, session: Session, core: Core, width: int) -> Outstanding:
        """All of them, in the order of their numbers; points have so many columns."""
        columns = LetterRow.id, LetterRow.subject, LetterRow.promise, LetterRow.k, LetterRow.used
        query = (
            select(*columns, PayloadRow.ciphertext)
            .join(PayloadRow, (PayloadRow.owner == LetterRow.id) & (PayloadRow.subject == LetterRow.subject))
            .where(
                LetterRow.answered,
                LetterRow.state.in_([state.code for state in OUTSTANDING]),
                PayloadRow.kind == LETTER,
                PayloadRow.part == POINT,
            )
            .order_by(LetterRow.id)
        )
        rows = session.execute(query).all()
        keys = core.keys.of(SUBJECT)
        found = [unpacked(opened(keys.get(row[1]), row[5], about(LETTER, row[0], POINT))) for row in rows]
        counts = [len(points) for points, _ in found]

        def column(place: int) -> NDArray[np.int64]:
            return np.array([row[place] for row in rows], dtype=np.int64)

        return cls(
            numbers=column(0),
            subjects=column(1),
            promises=tuple(row[2] for row in rows),
            k=column(3),
            used=column(4),
            points=np.concatenate([points for points, _ in found]) if found else np.empty((0, width)),
            letter_of=np.repeat(np.arange(len(rows)), counts),
            missing=tuple(missing for _, missing in found),
        )

    def held_by(self, old: Refittable, new: Refittable) -> tuple[NDArray[np.bool_], Array]:
        """Which letters the new model accepts in all their options, (n,); and the points in its columns, (m, d')."""
        points, known = in_columns_of(old, new, self.points, [self.missing[place] for place in self.letter_of])
        lowest = np.full(len(points), -np.inf)
        if known.any():
            lowest[known] = np.minimum(new.score(points[known]), new.deployed_score(points[known]))
        holds = np.ones(len(self), bool)
        np.logical_and.at(holds, self.letter_of, lowest >= 0)
        return holds, points


def in_columns_of(
    old: Refittable, new: Refittable, points: Array, missing: list[tuple[str, ...]]
) -> tuple[Array, NDArray[np.bool_]]:
    """Points (m, d) of the old model in the new one's columns, and which of them the new one can read at all.

    A category that only forgotten rows had is no column of the new model: a point that needs it cannot be read.
    """
    if old.frames is not None and new.frames is not None:
        return _through_frames(old, new, points, missing)
    before, after = old.train.columns, new.train.columns
    if before == after:
        return points, np.ones(len(points), bool)
    place = {name: number for number, name in enumerate(before)}
    gone = [place[name] for name in before if name not in set(after)]
    known = ~(points[:, gone] != 0).any(axis=1)
    return points[:, [place[name] for name in after]], known


def _through_frames(
    old: Refittable, new: Refittable, points: Array, missing: list[tuple[str, ...]]
) -> tuple[Array, NDArray[np.bool_]]:
    """As people would hand the points in: in the pipeline's own columns, what they came without still missing."""
    assert old.frames is not None
    assert new.frames is not None
    if not len(points):
        return np.empty((0, len(new.train.columns))), np.empty(0, bool)
    frame: Any = old.frames.decode(points, missing=tuple(missing))
    matrix, _, problems = new.frames.encode(frame)
    return matrix, np.array([problem == "" for problem in problems]) & np.isfinite(matrix).all(axis=1)
