"""Design rows that are sums of functions of one column each: bins, codes, logarithms, powers, splines.

``x~ = A x + b + sum_j g_j(x_j)``, where each g_j is known by *pieces*: straight, with jumps between them. Bins are flat
pieces, of whole numbers each is a piece (equal or aligned neighbours are one), a smooth function is many short ones.
The deletion mathematics asks for design rows only, so that nothing changes there. What is a half-space of schema space
for an affine design is one of *lifted* space here: the design columns themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rocerf.models.design import AffineDesign, frozen_copy
from rocerf.types import Array


@dataclass(frozen=True, eq=False)
class Pieces:
    """What one column adds to the design columns ``places`` (t,), by m pieces.

    Piece c goes from ``low[c]`` to ``high[c]``, (m,), both included, and adds ``start[c]`` there and ``end[c]`` here,
    (m, t), on a straight line between. Between two pieces lies no value that the column can have. What is below the
    first or above the last piece is on their lines, within ``domain``, beyond which nothing is known. ``fill`` is the
    number that stands for a missing value, which then adds ``missing`` (t,).

    >>> bins = Pieces(np.array([0]), np.array([0.0, 12.0]), np.array([11.0, 24.0]), *np.array([[[1.0], [3.0]]] * 2))
    >>> bins(np.array([-5.0, 11.0, 12.0, 99.0]))[:, 0].tolist()
    [1.0, 1.0, 3.0, 3.0]
    """

    places: NDArray[np.intp]
    low: Array
    high: Array
    start: Array
    end: Array
    domain: tuple[float, float] = (-np.inf, np.inf)
    fill: float = np.nan
    missing: Array | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "start", "end"):
            object.__setattr__(self, name, frozen_copy(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.low)

    def piece_of(self, values: Array) -> NDArray[np.intp]:
        """The piece on whose line each value lies, (m,)."""
        return np.clip(np.searchsorted(self.low, values, side="right") - 1, 0, len(self) - 1)

    def __call__(self, values: Array) -> Array:
        """What values (m,) add, (m, t); NaN where a value is."""
        piece = self.piece_of(values)
        width = self.high[piece] - self.low[piece]
        share = np.divide(values - self.low[piece], width, out=np.zeros(len(values)), where=width > 0)
        rise = self.end[piece] - self.start[piece]
        added = self.start[piece] + np.where(rise == 0.0, 0.0, share[:, None] * rise)
        if self.missing is not None:
            added = np.where((values == self.fill)[:, None], self.missing, added)
        return np.where(np.isnan(values)[:, None], np.nan, added)

    def upper_line(self, low: float, high: float, weights: Array) -> tuple[Array, Array]:
        """Lines not below ``weights`` (k, t) times what is added, from ``low`` to ``high``: values at both, (k,) each.

        Inside one piece they are the thing itself.
        """
        first, last = self.piece_of(np.array([low, high]))
        ends = self.on_lines(np.array([low]), first) @ weights.T, self.on_lines(np.array([high]), last) @ weights.T
        at_low, at_high = ends[0][0], ends[1][0]
        if first == last:
            return at_low, at_high
        part = slice(first, last + 1)
        knots = np.concatenate([np.maximum(self.low[part], low), np.minimum(self.high[part], high)])
        pieces = np.tile(np.arange(first, last + 1), 2)
        heights = self.on_lines(knots, pieces) @ weights.T
        share = (knots - low) / (high - low)
        lift = (heights - at_low - share[:, None] * (at_high - at_low)).max(axis=0)
        return at_low + lift, at_high + lift

    def on_lines(self, values: Array, piece: NDArray[np.intp] | int) -> Array:
        """What values (m,) add on the lines of these pieces."""
        width = np.broadcast_to(self.high[piece] - self.low[piece], values.shape)
        share = np.divide(values - self.low[piece], width, out=np.zeros(len(values)), where=width > 0)
        rise = self.end[piece] - self.start[piece]
        return np.asarray(self.start[piece] + np.where(rise == 0.0, 0.0, share[:, None] * rise))

    def reach(self, side: int) -> Array:
        """Where each piece ends on one side, -1 or 1, (m,): flat ones that are believed to go on never end."""
        ends = (self.low if side < 0 else self.high).copy()
        place, domain = (0, self.domain[0]) if side < 0 else (-1, self.domain[1])
        if self.flat[place] and np.isinf(domain):
            ends[place] = domain
        return ends

    @property
    def flat(self) -> NDArray[np.bool_]:
        """Pieces along which nothing changes, (m,)."""
        return np.asarray((self.start == self.end).all(axis=1))


@dataclass(frozen=True, eq=False)
class AdditiveDesign(AffineDesign):
    """An affine design and, of the columns in ``pieces``, whose columns of A are 0, what their pieces add.

    >>> bins = Pieces(np.array([0]), np.array([0.0, 12.0]), np.array([11.0, 24.0]), *np.array([[[1.0], [3.0]]] * 2))
    >>> design = AdditiveDesign(np.zeros((1, 1)), np.array([10.0]), True, {0: bins})
    >>> design(np.array([[12.0]])).tolist(), design.lifted(np.array([[12.0]])).tolist()
    ([[13.0, 1.0]], [[13.0]])
    >>> slopes, constants = design.in_schema_space(np.array([2.0, 1.0]))  # of lifted space
    >>> slopes.tolist(), float(constants)
    ([2.0], 1.0)
    """

    pieces: Mapping[int, Pieces] = field(default_factory=dict)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Design rows of shape (m, p) for points of shape (m, d), written to ``out`` if that is given."""
        rows = super().__call__(X, out)
        for column, pieces in self.pieces.items():
            rows[:, pieces.places] += pieces(X[:, column])
        return rows

    def lifted(self, X: Array) -> Array:
        """The design columns without the intercept, (m, q), in which scores are affine."""
        return self(X)[:, : len(self.shift)]

    def in_schema_space(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (..., q) and constants (...) over *lifted* points: no half-space of schema space is this model."""
        q = len(self.shift)
        constants = coefficients[..., q] if self.intercept else np.zeros(coefficients.shape[:-1])
        return coefficients[..., :q], constants

    def bounds(self, X0: Array) -> tuple[Array, Array]:
        """Between which values (P, d) each is known what columns add; a person's own value always is."""
        lower, upper = np.full(X0.shape, -np.inf), np.full(X0.shape, np.inf)
        for column, pieces in self.pieces.items():
            lower[:, column] = np.minimum(pieces.domain[0], X0[:, column])
            upper[:, column] = np.maximum(pieces.domain[1], X0[:, column])
        return lower, upper

    def arrays(self) -> dict[str, Array]:
        """The pieces of all columns as arrays, for a file."""
        made: dict[str, Array] = {"pieces_columns": np.array(list(self.pieces), dtype=np.float64)}
        for column, p in self.pieces.items():
            made[f"pieces_{column}"] = np.column_stack([p.low, p.high, p.start, p.end])
            fill = np.full(len(p.places), np.nan) if p.missing is None else p.missing
            made[f"pieces_of_{column}"] = np.array([p.places, fill], dtype=np.float64)
            made[f"domain_{column}"] = np.array([*p.domain, p.fill])
        return made

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], intercept: bool) -> AdditiveDesign:
        """The inverse of :meth:`arrays`, with the affine part beside it."""
        pieces = {}
        for column in arrays["pieces_columns"].astype(int).tolist():
            places, missing = arrays[f"pieces_of_{column}"]
            table, (low, high, fill) = arrays[f"pieces_{column}"], arrays[f"domain_{column}"]
            t = len(places)
            pieces[column] = Pieces(
                places.astype(np.intp),
                table[:, 0],
                table[:, 1],
                table[:, 2 : 2 + t],
                table[:, 2 + t :],
                (float(low), float(high)),
                float(fill),
                None if np.isnan(missing).all() else missing,
            )
        return cls(arrays["matrix"], arrays["shift"], intercept, pieces)
