"""What a proof is about, in full: the arrays that it was made from, the rows behind them, and the code that made it.

A proof is made from these arrays (:func:`~rocerf.deletion.certificate.certify_model`), kept with them, and believed
only for a model and a number of deletions that give the same ones again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from rocerf.errors import OptionError
from rocerf.models.identity import same_array
from rocerf.models.model import ExactModel
from rocerf.storage.state import State
from rocerf.types import Array
from rocerf.version import __version__

#: How a certificate is laid out in arrays.
FORMAT = "rocerf-certificate/1"


@dataclass(frozen=True, eq=False)
class CertifiedAbout:
    """A model, as the proof sees it, and the deletions covered; n rows, p parameters."""

    k: int
    design: Array  # (n, p): what the training rows are to the model
    sign: Array  # (n,), 1 - 2 y
    theta: Array  # (p,)
    weights: Array  # (n,)
    penalty: Array  # (p,), diagonal
    row_penalty: Array  # (p,), what each row brings of it
    rows: str = ""  # checksum of the training rows; "" of bare arrays
    format: str = FORMAT
    version: str = __version__

    @classmethod
    def of(cls, model: ExactModel, k: int) -> Self:
        """Of this model and k, by this version."""
        objective, train = model.objective, model.train
        if model.kinked:
            raise OptionError("Expected a model with an L2 penalty to prove bounds about, got one with an L1 part.")
        return cls(
            k=k,
            design=model.training_design(),
            sign=1.0 - 2.0 * train.y,
            theta=model.theta,
            weights=np.ones(len(train)) if objective.weights is None else objective.weights,
            penalty=objective.penalty_diagonal,
            row_penalty=model.penalty.per_row * objective.penalised,
            rows=train.checksum,
        )

    def difference(self, other: CertifiedAbout) -> str | None:
        """What the other one is about that this one is not, in words; None where both are about the same."""
        for part in fields(self):
            one, two = getattr(self, part.name), getattr(other, part.name)
            same = same_array(one, two) if isinstance(one, np.ndarray) else one == two
            if not same:
                shown = f" ({two}, not {one})" if part.name in ("k", "format", "version") else ""
                return f"another {_WORDS[part.name]}{shown}"
        return None

    def state(self) -> State:
        """All of it, in arrays alone."""
        return State(FORMAT, {}, {part.name: np.asarray(getattr(self, part.name)) for part in fields(self)})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The inverse of :meth:`state`; further arrays are left aside."""
        arrays = {part.name: np.asarray(state.arrays[part.name]) for part in fields(cls)}
        plain = {"k": int(arrays["k"]), **{name: str(arrays[name]) for name in ("rows", "format", "version")}}
        return cls(**{**arrays, **plain})  # type: ignore[arg-type]


_WORDS = {
    "k": "number of deletions",
    "design": "design of the rows",
    "sign": "label of a row",
    "theta": "optimum",
    "weights": "weight of a row",
    "penalty": "penalty",
    "row_penalty": "penalty of each row",
    "rows": "set of training rows",
    "format": "format",
    "version": "version of rocerf",
}
