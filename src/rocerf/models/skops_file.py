"""Fitted scikit-learn models from skops files, which cannot run code when they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocerf.errors import FileFormatError, UnsupportedModelError


def load_skops_model(path: Path) -> Any:
    """The estimator in the file; files with types that skops does not trust by itself are refused."""
    from skops.io import get_untrusted_types, load

    if not path.is_file():
        raise FileFormatError(f"Expected a model file at {path}, found none; check the path.")
    try:
        unknown = get_untrusted_types(file=path)
        if unknown:
            raise UnsupportedModelError(
                f"Expected a skops file that holds a LogisticRegression only, got one with {', '.join(unknown[:3])}, "
                "which is not trusted; save the LogisticRegression alone with skops.io.dump."
            )
        return load(path, trusted=[])
    except UnsupportedModelError:
        raise
    except Exception as error:  # skops raises whatever zip, json or its loaders raise
        raise FileFormatError(
            f"Expected a model written by skops.io.dump, got {path.name} which is not readable as one "
            f"({type(error).__name__}: {error}); save it again with skops.io.dump."
        ) from error
