"""Names of types that many rooms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Numbers in double precision, of the shape that is said where it is used.
Array: TypeAlias = NDArray[np.float64]

#: Which of several, true or false for each.
Mask: TypeAlias = NDArray[np.bool_]

#: Row numbers or places.
Places: TypeAlias = NDArray[np.intp]

#: Called with (done, in all); may raise to interrupt.
Progress: TypeAlias = Callable[[int, int], None]
