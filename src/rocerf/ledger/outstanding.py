"""All outstanding letters at once: their points as one matrix, and what a model says of them in one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.ledger.core import Core, about
from rocerf.ledger.issuing import LETTER, POINT, Box, unpacked
from rocerf.ledger.keys import SUBJECT, opened
from rocerf.ledger.states import OUTSTANDING
from rocerf.ledger.tables import LetterRow, PayloadRow
from rocerf.models.model import ExactModel, Refittable
from rocerf.recourse.ranges_again import lowest_in
from rocerf.types import Array


@dataclass(frozen=True, eq=False)
class Outstanding:
    """Letters that somebody may still act on.

    ``points`` are for each letter those of its options, (options, d), in the columns of the version in ``versions``.
    """

    numbers: NDArray[np.int64]
    subjects: NDArray[np.int64]
    #: The version in whose columns each letter's points are.
    versions: NDArray[np.int64]
    promises: tuple[str, ...]
    k: NDArray[np.int64]
    used: NDArray[np.int64]
    points: tuple[Array, ...]
    #: For each letter and option the features that are still missing there.
    missing: tuple[tuple[tuple[str, ...], ...], ...]
    #: For each letter and option the ranges that are stated.
    boxes: tuple[tuple[Box, ...], ...]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of(cls, session: Session, core: Core) -> Outstanding:
        """All of them, in the order of their numbers."""
        columns = (
            *(LetterRow.id, LetterRow.subject, LetterRow.promise, LetterRow.k, LetterRow.used),
            *(LetterRow.checked_by, PayloadRow.ciphertext),
        )
        query = (
            select(*columns)
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
        found = [unpacked(opened(keys.get(row[1]), row[6], about(LETTER, row[0], POINT))) for row in rows]

        def column(place: int) -> NDArray[np.int64]:
            return np.array([row[place] for row in rows], dtype=np.int64)

        return cls(
            numbers=column(0),
            subjects=column(1),
            versions=column(5),
            promises=tuple(row[2] for row in rows),
            k=column(3),
            used=column(4),
            points=tuple(points for points, _, _ in found),
            missing=tuple(missing for _, missing, _ in found),
            boxes=tuple(boxes for _, _, boxes in found),
        )

    def without(self, subjects: Sequence[int], version: int | None = None) -> Outstanding:
        """Those of other people, and not yet checked by this version."""
        chosen = ~np.isin(self.subjects, np.array(subjects, dtype=np.int64))
        if version is not None:
            chosen &= self.versions != version
        places = np.flatnonzero(chosen)
        arrays: dict[str, Any] = {
            name: getattr(self, name)[places] for name in ("numbers", "subjects", "versions", "k", "used")
        }
        lists: dict[str, Any] = {
            n: tuple(getattr(self, n)[p] for p in places) for n in ("promises", "points", "missing", "boxes")
        }
        return replace(self, **arrays, **lists)

    def held_by(self, new: Refittable, old: Callable[[int], Refittable]) -> tuple[NDArray[np.bool_], list[Array]]:
        """Which letters the new model accepts in all their options, at every value of their ranges, (n,); and their
        points in its columns.

        ``old`` gives the model of a version. All points of one version go through the model in one product.
        """
        holds, moved = np.ones(len(self), bool), list(self.points)
        for version in np.unique(self.versions):
            places = np.flatnonzero(self.versions == version)
            counts = [len(self.points[place]) for place in places]
            joined, owners = np.concatenate([self.points[place] for place in places]), np.repeat(places, counts)
            missing = [names for place in places for names in self.missing[place]]
            points, known = in_columns_of(old(int(version)), new, joined, missing)
            boxes = [box for place in places for box in self.boxes[place]]
            lowest = np.full(len(points), -np.inf)
            if known.any():
                lowest[known] = _lowest(new, points[known], [boxes[place] for place in np.flatnonzero(known).tolist()])
            np.logical_and.at(holds, owners, lowest >= 0)
            for place, own in zip(places, np.split(points, np.cumsum(counts)[:-1]), strict=True):
                moved[place] = own
        return holds, moved


def _lowest(new: Refittable, points: Array, boxes: Sequence[Box]) -> Array:
    """The lowest score in force at points (m, d) and, where ranges are stated around them, anywhere in these; (m,)."""
    lowest = np.minimum(new.score(points), new.deployed_score(points))
    stated = np.flatnonzero([bool(box) for box in boxes])
    if not len(stated):
        return lowest
    if not isinstance(new, ExactModel):
        lowest[stated] = -np.inf  # nothing but an exact model states ranges, and no other can be held against them
        return lowest
    low, high = points[stated].copy(), points[stated].copy()
    places = {name: place for place, name in enumerate(new.train.columns)}
    unknown = np.zeros(len(stated), bool)
    for row, box in enumerate(boxes[place] for place in stated.tolist()):
        for name, ends in box.items():
            if name in places:
                low[row, places[name]], high[row, places[name]] = ends
            else:
                unknown[row] = True
    found = lowest_in(new, points[stated], low, high)
    lowest[stated] = np.where(unknown, -np.inf, np.minimum(lowest[stated], found))
    return lowest


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
    moved = np.full((len(points), len(after)), np.nan)
    for number, name in enumerate(after):
        if name in place:
            moved[:, number] = points[:, place[name]]
    return moved, known & np.isfinite(moved).all(axis=1)


def _through_frames(
    old: Refittable, new: Refittable, points: Array, missing: list[tuple[str, ...]]
) -> tuple[Array, NDArray[np.bool_]]:
    """As people would hand the points in: in the pipeline's own columns, what they came without still missing."""
    assert old.frames is not None
    assert new.frames is not None
    frame: Any = old.frames.decode(points, people=points, missing=missing)
    matrix, _, problems = new.frames.encode(frame)
    return matrix, np.array([problem == "" for problem in problems]) & np.isfinite(matrix).all(axis=1)
