"""How the user's own model computes, held against the double precision that promises are proven in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.types import Array
from rocerf.words import Said

#: Rounding errors of a design column that are allowed for at least, in units of the last place of what it adds up.
LEAST_ERROR = 4 * np.finfo(np.float64).eps

#: What stands for the largest error of all rows, in times of the largest that was measured.
SAFETY = 2.0


def bits_of(*dtypes: Any) -> int:
    """Bits of the narrowest floating-point type among dtypes or their names; whatever is no such type counts as 64.

    >>> bits_of("float64", "Float32", "int8"), bits_of("halffloat[pyarrow]"), bits_of(np.dtype("float32"), "object")
    (32, 16, 32)
    """
    names = [str(dtype).lower() for dtype in dtypes]
    if any(name.startswith(("float16", "half")) for name in names):
        return 16
    return 32 if any(name.startswith("float32") or name == "float[pyarrow]" for name in names) else 64


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """How a model taken over from scikit-learn computes.

    ``bits`` are those of its numbers (64, 32 or 16). ``score_error`` is the largest difference between its scores and
    ours of the same parameters, over the training rows. ``design_error`` (q,) is what its design columns differ by, at
    most, from the affine map that stands for its preprocessing, within the training rows' ranges; None where the
    design rows are the rows themselves.
    """

    bits: int = 64
    score_error: float = 0.0
    design_error: Array | None = None

    @classmethod
    def of(
        cls, bits: int, own: Callable[[], Array], ours: Callable[[], Array], error: Array | None = None
    ) -> Arithmetic:
        """Of so many bits, with both scores of the training rows (n,), asked for only where they may differ."""
        return cls(bits, float(np.abs(own() - ours()).max()) if bits < 64 else 0.0, error)

    @property
    def narrow(self) -> bool:
        """Whether it computes in less than double precision."""
        return self.bits < 64

    def assumptions(self) -> tuple[Said, ...]:
        """What has to be said of a model that computes in less than double precision."""
        if not self.narrow:
            return ()
        return (Said.of("models.arithmetic.narrow", bits=self.bits, error=self.score_error),)


def allowed_error(images: Array, stand_in: Array, scale: Array) -> Array:
    """``design_error`` (q,) from what preprocessing and stand-in make of the same rows, (m, q) each.

    ``scale`` (q,) is the size of what each column adds up.
    """
    measured = np.abs(images - stand_in).max(axis=0, initial=0.0)
    return np.asarray(np.maximum(SAFETY * measured, LEAST_ERROR * scale))
