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


#: Types of a pipeline's file that are trusted beyond those that skops trusts, and ``load_skops_model`` with it: a dtype
#: is read as that of an empty array, and runs nothing.
TRUSTED = ("numpy.dtype",)


def load_skops_pipeline(path: Path) -> Any:
    """A fitted pipeline from a skops file; files with steps that are not scikit-learn's own are refused."""
    from skops.io import get_untrusted_types, load

    try:
        unknown = set(get_untrusted_types(file=path)) if path.is_file() else set()
    except Exception:  # not readable at all: the same words as for any model
        return load_skops_model(path)
    strange = sorted(unknown - set(TRUSTED))
    if strange:
        raise UnsupportedModelError(
            f"Expected a skops file of a Pipeline of scikit-learn's own steps, got one with {', '.join(strange[:3])}, "
            "which is not trusted; leave that step out, and save the Pipeline again with skops.io.dump."
        )
    if not unknown:
        return load_skops_model(path)
    try:
        return load(path, trusted=list(TRUSTED))
    except Exception as error:  # skops raises whatever zip, json or its loaders raise
        raise FileFormatError(
            f"Expected a pipeline written by skops.io.dump, got {path.name} which is not readable as one "
            f"({type(error).__name__}: {error}); save it again with skops.io.dump."
        ) from error
