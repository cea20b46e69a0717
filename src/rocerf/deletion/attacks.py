"""What the adversary found: the worst deletion for each point, truly retrained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.efforts import Effort
from rocerf.deletion.finding import Finding
from rocerf.types import Array, Places, Progress

if TYPE_CHECKING:
    from rocerf.drawing import Picture


@dataclass(frozen=True, eq=False)
class Search:
    """How P points are attacked: how hard, and from which seed random starts are drawn.

    The others save time or show it, and whoever cannot use them does without: a point whose score was brought below its
    ``stop_below`` (P,) need not be attacked further; ``known`` is a set of rows for each point, found elsewhere.
    """

    effort: Effort
    seed: int
    stop_below: Array | None = None
    known: list[Places] | None = None
    progress: Progress | None = None

    def at(self, places: Places) -> Search:
        """The same for some of the points, to the end."""
        known = None if self.known is None else [self.known[place] for place in places]
        return Search(self.effort, self.seed, known=known)


@dataclass(frozen=True, eq=False)
class Attack:
    """The worst deletion found for one point.

    ``score`` is the retrained model's score there (-inf: no model can be trained), ``theta`` its parameters.
    ``deleted_ids`` are other people's data. Where retraining starts anew, as of a network, ``score`` is the mean over
    ``models`` retrained without these rows, ``spread`` their standard deviation and ``share`` of them accept.
    """

    score: float
    deleted_ids: NDArray[Any] = field(repr=False)
    found_by: str
    retrainings: int
    theta: Array = field(repr=False)
    spread: float = 0.0
    share: float = 1.0
    models: int = 1

    def __repr__(self) -> str:
        word, rows = "accepted" if self.score >= 0 else "refused", len(self.deleted_ids)
        said = f"{word}, score {self.score:.4g}" + (f", by {self.share:.0%} of {self.models}" * (self.models > 1))
        return f"Attack({said}, without the worst {rows} {'row' if rows == 1 else 'rows'} found, by {self.found_by})"

    def plot(self) -> Picture:
        """The point's score after the worst deletion found for it; accepted from 0 on."""
        from rocerf.deletion.attack_pictures import draw_attack

        return draw_attack(self)

    def _repr_html_(self) -> str:
        from rocerf.deletion.attack_pictures import attack_html

        return attack_html(self)


@dataclass(frozen=True, eq=False)
class Attacks:
    """The worst deletions found for P points: arrays over points, and a sequence of :class:`Attack`.

    ``scores`` (P,), ``thetas`` (P, p), ``retrainings`` (P,): models retrained to convergence for each point;
    ``deleted_rows`` are row numbers in the training set, ``ids`` its ids. Linear models are also given in schema
    space, ``slopes`` (P, d) and ``constants`` (P,): the one for point j scores ``slopes[j]'x + constants[j]``. Where
    the preprocessing of a pipeline was fitted again, that is all there is: ``thetas``, of another design, are NaN.
    Where retraining has no single outcome, ``scores`` are means over ``models`` retrained without the rows, and
    ``spreads`` and ``accepted`` (P,) their standard deviation and the share of them that accept.
    """

    scores: Array
    thetas: Array = field(repr=False)
    slopes: Array = field(repr=False)
    constants: Array = field(repr=False)
    deleted_rows: tuple[Places, ...] = field(repr=False)
    ids: NDArray[Any] = field(repr=False)
    found_by: tuple[str, ...]
    retrainings: Places
    searches: tuple[str, ...]
    spreads: Array | None = field(default=None, repr=False)
    accepted: Array | None = field(default=None, repr=False)
    models: int = 1

    @classmethod
    def of(
        cls,
        findings: Sequence[Finding],
        ids: NDArray[Any],
        *,
        beyond: Array | float = 0.0,
        halfspaces: Callable[[Array], tuple[Array, Array]] | None = None,
    ) -> Attacks:
        """What was found for blocks of points, in their order.

        ``beyond`` (P,) is what scores are besides those found, ``halfspaces`` gives a linear model's parameters (m, p)
        as slopes and constants.
        """
        scores = np.concatenate([np.empty(0), *(f.scores for f in findings)])
        thetas = np.concatenate([f.thetas for f in findings]) if findings else np.empty((0, 0))
        slopes, constants = np.empty((len(scores), 0)), np.full(len(scores), np.nan)
        if findings and halfspaces is not None:
            slopes, constants = halfspaces(thetas)
        return cls(
            scores=scores + beyond,
            thetas=thetas,
            slopes=slopes,
            constants=constants,
            deleted_rows=tuple(rows for f in findings for rows in f.sets),
            ids=ids,
            found_by=tuple(name for f in findings for name in f.found_by),
            retrainings=np.concatenate([np.empty(0, np.intp), *(f.retrainings for f in findings)]),
            searches=tuple(dict.fromkeys(name for f in findings for name in f.ran)),
        )

    def __repr__(self) -> str:
        kept, lowest = int((self.scores >= 0).sum()), f", lowest score {self.scores.min():.4g}" if len(self) else ""
        mean = "" if self.accepted is None else f" on average over {self.models} models"
        return f"Attacks({kept} of {len(self)} points accepted{mean} after the worst deletion found{lowest})"

    def plot(self) -> Picture:
        """Every point's score after the worst deletion found for it, from low to high; accepted from 0 on."""
        from rocerf.deletion.attack_pictures import draw_attacks

        return draw_attacks(self)

    def _repr_html_(self) -> str:
        from rocerf.deletion.attack_pictures import attacks_html

        return attacks_html(self)

    @property
    def deleted_ids(self) -> tuple[NDArray[Any], ...]:
        """Ids of the rows deleted for each point: other people's data."""
        return tuple(self.ids[rows] for rows in self.deleted_rows)

    @property
    def shares(self) -> Array:
        """Share of the models retrained without the rows found that accept each point, (P,); 0 or 1 of a single one."""
        return (self.scores >= 0).astype(np.float64) if self.accepted is None else self.accepted

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, place: int) -> Attack:
        return Attack(
            float(self.scores[place]),
            self.ids[self.deleted_rows[place]],
            self.found_by[place],
            int(self.retrainings[place]),
            self.thetas[place],
            0.0 if self.spreads is None else float(self.spreads[place]),
            float(self.shares[place]),
            self.models,
        )

    def __iter__(self) -> Iterator[Attack]:
        return (self[place] for place in range(len(self)))

    def with_worse(self, places: Places, others: Attacks) -> Attacks:
        """The attacks with those at these places replaced by others, one for each, where these are worse."""
        own = np.arange(len(self))
        worse = others.scores < self.scores[places]
        own[places[worse]] = len(self) + np.flatnonzero(worse)
        counted = self.retrainings.copy()
        counted[places] += others.retrainings
        rows, names = (*self.deleted_rows, *others.deleted_rows), (*self.found_by, *others.found_by)
        return replace(
            self,
            scores=np.concatenate([self.scores, others.scores])[own],
            slopes=np.concatenate([self.slopes, others.slopes])[own],
            constants=np.concatenate([self.constants, others.constants])[own],
            deleted_rows=tuple(rows[place] for place in own),
            found_by=tuple(names[place] for place in own),
            retrainings=counted,
            searches=tuple(dict.fromkeys((*self.searches, *others.searches))),
        )
