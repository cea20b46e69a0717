"""What a person gets: recourses, frozen, with the settings they were made with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rocerf.data.foreign import Origin
from rocerf.data.frames import Frames
from rocerf.data.schema import Attribute, FeatureSchema
from rocerf.promises.held_out import HeldOut
from rocerf.recourse.change import Change
from rocerf.recourse.places import place_of
from rocerf.storage.state import State
from rocerf.storage.whole_file import write_text
from rocerf.types import Array
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.training_set import TrainingSet
    from rocerf.drawing import Picture


#: Changes that are told where an answer is one line.
MOST_TOLD = 6


class Status(Enum):
    """How a person's request was answered; each carries the sentence shown to users."""

    ANSWERED = "answered"
    ALREADY_ACCEPTED = "already_accepted"
    UNREACHABLE = "unreachable"
    NOT_ROBUST = "not_robust"
    CONTRADICTION = "contradiction"
    PROMISE_IMPOSSIBLE = "promise_impossible"
    INVALID_INPUT = "invalid_input"
    NO_FURTHER = "no_further"
    GAVE_UP = "gave_up"

    @property
    def code(self) -> str:
        """Its name in files."""
        return self.value

    @property
    def sentence(self) -> Said:
        """What it means."""
        return Said.of(f"recourse.{self.value}")

    @classmethod
    def of_code(cls, code: str) -> Status:
        """The status with this code."""
        return {status.code: status for status in cls}[code]


@dataclass(frozen=True)
class CertificateNote:
    """What is proven about one point: a lower bound of its score after any covered deletion, or why there is none.

    ``bound`` is NaN where nothing is proven; ``reason`` says why.
    """

    bound: float
    reason: str


@dataclass(frozen=True)
class Settings:
    """How a batch was made: enough to make it again, and to know which rows it speaks about."""

    method: str
    promise: str
    sentence: str
    k: int
    training_rows: int
    delta: float
    cost: str
    solver: str
    seed: int
    version: str
    data_checksum: str
    max_changes: int | None = None
    searches: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    proven: bool = False


@dataclass(frozen=True, eq=False)
class Recourse:
    """One person's answer.

    ``name`` is what the person is called: their index value, or their place. ``person`` and ``point`` are in schema
    space. ``margin`` is the lowest score that the promise foresees at ``point`` (accepted from 0 on): estimated, found
    in ``retrainings`` true retrainings, or proven, as ``promise`` says. ``certified`` is true only for the last, and
    then ``certificate.bound`` is the proven lower bound. ``picked`` says, where it was asked for, how the point fared
    without rows picked to harm it, which ``promise`` is not about. ``worst_ids`` are training rows, other people's
    data: never show them to the person.
    """

    name: Any
    status: Status
    reason: str
    person: Array
    point: Array
    cost: float
    margin: float
    changes: tuple[Change, ...]
    promise: str
    certified: bool
    certificate: CertificateNote
    retrainings: int = 0
    worst_ids: NDArray[Any] | None = field(default=None, repr=False)
    picked: str | None = None
    schema: FeatureSchema | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        if not self.answered:
            return f"Recourse({self.name!r}: {self.status.code}, {self.reason})"
        told = "; ".join(change.brief for change in self.changes[:MOST_TOLD])
        more = f"; and {len(self.changes) - MOST_TOLD} more" * (len(self.changes) > MOST_TOLD)
        return f"Recourse({self.name!r}: cost {self.cost:.3f}; {told}{more})"

    @property
    def answered(self) -> bool:
        """Whether there is a point."""
        return self.status is Status.ANSWERED

    def plot(self, train: TrainingSet | None = None) -> Picture:
        """What moves, how far and within which bounds; with the training rows, where others stand."""
        from rocerf.recourse.pictures import draw_recourse

        return draw_recourse(self, train)

    def _repr_html_(self) -> str:
        from rocerf.recourse.pictures import recourse_html

        return recourse_html(self)


@dataclass(frozen=True, eq=False)
class Recourses:
    """A batch of answers: arrays over people, and a sequence of :class:`Recourse`.

    ``people`` and ``matrix`` have shape (P, d) over the columns of schema space, ``costs``, ``margins``, ``scores`` and
    ``gaps`` (P,); scores are those of the points at the model as it was, gaps the share of the cost by which a cheaper
    answer is not excluded (missing where the solver cannot tell). ``schema`` says what the columns mean; ``frames``
    how they are written in the user's own table, and ``missing`` which features each person came without.
    ``held_out`` says how the points fared with models retrained only to check them, where the promise has such models;
    ``picked``, where it was asked for, without rows picked to harm them, of which a promise about random deletions says
    nothing.
    Where nobody answered, the point is missing (NaN) and ``statuses`` and ``reasons`` say why. ``origin`` is what the
    people's table was where it was not one of pandas: :attr:`points` and :meth:`to_frame` are tables of that kind.

    ``recourses[0]`` is the first person's answer, ``recourses["A0004"]`` that of the person called so by their index
    (where names are whole numbers, a number is a place).
    """

    people: Array
    matrix: Array
    costs: Array
    margins: Array
    statuses: tuple[Status, ...]
    reasons: tuple[str, ...]
    schema: FeatureSchema
    settings: Settings
    index: NDArray[Any] | None = None
    worst_ids: tuple[NDArray[Any] | None, ...] | None = None
    retrainings: NDArray[np.intp] | None = None
    scores: Array | None = None
    held_out: HeldOut | None = None
    frame_columns: tuple[str, ...] | None = None
    gaps: Array | None = None
    frames: Frames | None = None
    missing: tuple[tuple[str, ...], ...] | None = None
    picked: HeldOut | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        # What was checked stays what it was: nobody can move a point under its certificate.
        for name in ("people", "matrix", "costs", "margins", "retrainings", "scores", "gaps"):
            values = getattr(self, name)
            if values is not None:
                kept = np.array(values)
                kept.setflags(write=False)
                object.__setattr__(self, name, kept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of schema space."""
        return self.schema.columns

    def __len__(self) -> int:
        return len(self.statuses)

    @overload
    def __getitem__(self, place: int | str) -> Recourse: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Recourse]: ...
    def __getitem__(self, place: int | str | slice) -> Recourse | Sequence[Recourse]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        i = place_of(self.names if isinstance(place, str) else range(len(self)), place)
        return Recourse(
            name=i if self.index is None else self.index[i : i + 1].tolist()[0],
            status=self.statuses[i],
            reason=self.reasons[i],
            person=self.people[i],
            point=self.matrix[i],
            cost=float(self.costs[i]),
            margin=float(self.margins[i]),
            changes=self._changes(i),
            promise=self._sentence(i),
            certified=self.settings.proven and self.statuses[i] is Status.ANSWERED,
            certificate=self._certificate(i),
            retrainings=0 if self.retrainings is None else int(self.retrainings[i]),
            worst_ids=None if self.worst_ids is None else self.worst_ids[i],
            picked=None if self.picked is None else self.picked.audit_of(i, self.settings.k),
            schema=self.schema,
        )

    def __iter__(self) -> Iterator[Recourse]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        answered = int(self.answered.sum())
        mean = f", mean cost {self.costs[self.answered].mean():.3f}" if answered else ""
        s = self.settings
        return f"Recourses({answered} of {len(self)} answered{mean}; {s.promise}, k={s.k}, {s.cost})"

    def plot(self) -> Picture:
        """What the answers cost, and which changes they ask for most."""
        from rocerf.recourse.pictures import draw_recourses

        return draw_recourses(self)

    def _repr_html_(self) -> str:
        from rocerf.recourse.pictures import recourses_html

        return recourses_html(self)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Mask of the people who got a point, shape (P,)."""
        return np.array([status is Status.ANSWERED for status in self.statuses], dtype=bool)

    @property
    def names(self) -> tuple[Any, ...]:
        """How people are called: the index values they came with, else their places from 0."""
        return tuple(range(len(self))) if self.index is None else tuple(self.index.tolist())

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Mask of the people whose point is proven to survive every covered deletion, shape (P,)."""
        return self.answered & self.settings.proven

    def _sentence(self, i: int) -> str:
        if self.statuses[i] is not Status.ANSWERED:
            return Said.of("recourse.nothing_promised")
        if self.held_out is None:
            return self.settings.sentence
        return Said.of("recourse.promise_and_check", promise=self.settings.sentence, check=self.held_out.sentence_of(i))

    def _certificate(self, i: int) -> CertificateNote:
        settings = self.settings
        if not settings.proven:
            return CertificateNote(math.nan, Said.of("recourse.nothing_proven", promise=settings.promise))
        if self.statuses[i] is not Status.ANSWERED:
            return CertificateNote(math.nan, self.reasons[i])
        return CertificateNote(float(self.margins[i]), settings.sentence)

    @property
    def points(self) -> Array | pd.DataFrame:
        """The recommended values, in the form and order the people came in; missing where unanswered."""
        return self.matrix.copy() if self.index is None else self._given_back(self._frame(self.matrix))

    def _given_back(self, frame: pd.DataFrame) -> Any:
        """The frame in the type that the people came in."""
        return frame if self.origin is None else self.origin.give_back(frame)

    def _frame(self, matrix: Array) -> pd.DataFrame:
        import pandas as pd

        if self.frames is not None and self.index is not None:
            frame = self.frames.decode(matrix, index=self.index, people=self.people, missing=self.missing)
        else:
            frame = pd.DataFrame(matrix, columns=list(self.columns), index=self.index)
        return frame if self.frame_columns is None else frame[list(self.frame_columns)]

    def _changes(self, i: int) -> tuple[Change, ...]:
        if self.statuses[i] is not Status.ANSWERED:
            return ()
        before, after = self.people[i], self.matrix[i]
        moved = after != before
        missing = () if self.missing is None else self.missing[i]
        changes = []
        for attribute in self.schema.attributes:
            places = list(attribute.places)
            if moved[places].any():
                was = None if attribute.name in missing else _value(attribute, before[places])
                unit = self.schema.column_features[places[0]].unit if attribute.categories is None else ""
                changes.append(Change(attribute.name, attribute.label, was, _value(attribute, after[places]), unit))
        return tuple(changes)

    def to_frame(self) -> pd.DataFrame:
        """One row for each person: status, reason, cost, margin, then the recommended values.

        Where a feature has one of these names, ours is called ``recourse_status`` and so on.
        """
        frame = self._frame(self.matrix)
        taken = set(frame.columns)
        ours = {
            "margin": self.margins,
            "cost": self.costs,
            "reason": list(map(str, self.reasons)),
            "status": [status.code for status in self.statuses],
        }
        for name, values in ours.items():
            while name in taken:
                name = f"recourse_{name}"  # noqa: PLW2901
            frame.insert(0, name, values)
        return self._given_back(frame)

    def state(self, *, training_rows: bool = False) -> State:
        """The batch as plain values, to be kept anywhere; ids of training rows only where asked for."""
        from rocerf.recourse.result_file import state_of

        return state_of(self, training_rows=training_rows)

    @classmethod
    def from_state(cls, state: State) -> Recourses:
        """What :meth:`state` gave."""
        from rocerf.recourse.result_file import from_state

        return from_state(state)

    def to_json(self, path: str | PathLike[str] | None = None, *, training_rows: bool = False) -> str:
        """The batch as JSON text, also written to ``path`` if given, in one step.

        It carries a checksum of its content, by which :meth:`from_json` notices changes. Ids of training rows are other
        people's data; they are included only with ``training_rows=True``.
        """
        from rocerf.recourse.result_file import written

        text = written(self, training_rows=training_rows)
        if path is not None:
            write_text(path, text, private=training_rows)
        return text

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Recourses:
        """Read what :meth:`to_json` wrote: the text itself, or a path to it; what was changed since is refused."""
        from rocerf.recourse.result_file import read

        return read(source)


def _value(attribute: Attribute, values: Array) -> Any:
    """An attribute's value at its columns: a number, or the category whose column is 1."""
    if attribute.categories is None:
        return float(values[0])
    return attribute.words[int(values.argmax())] if values.any() else "none of these"


def finite_or_none(value: Any) -> float | None:
    """A number for JSON: None where it is missing or infinite."""
    return float(value) if np.isfinite(value) else None
