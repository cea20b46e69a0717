"""Numbers of a CSV file to the last digit, whatever version of pandas reads them."""

from __future__ import annotations

from typing import Any


def exact_numbers() -> dict[str, Any]:
    """Options of ``pandas.read_csv`` that it takes: from 3.1 on none."""
    import pandas as pd

    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}
