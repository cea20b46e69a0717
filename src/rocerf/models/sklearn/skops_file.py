"""Fitted scikit-learn models from skops files, which cannot run code when they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocerf.errors import FileFormatError, UnsupportedModelError

#: Types of a pipeline's file that are trusted beyond those that skops trusts: a dtype is read as that of an empty
#: array, and runs nothing; a selector of columns holds words and types, and looks at a table's own.
TRUSTED = ("numpy.dtype", "sklearn.compose._column_transformer.make_column_selector")


def load_skops_model(path: Path) -> Any:
    """The estimator in the file; files with types that skops does not trust by itself are refused."""
    expected, advice = "that holds a LogisticRegression only", "save the LogisticRegression alone with skops.io.dump"
    return _loaded(path, (), expected, advice)


def load_skops_pipeline(path: Path) -> Any:
    """A fitted pipeline from a skops file; files with steps that are not scikit-learn's own are refused."""
    return _loaded(path, TRUSTED, *_OF_PIPELINES)


def skops_pipeline(content: bytes) -> Any:
    """A fitted pipeline from the bytes of a skops file, never written to the disk; as :func:`load_skops_pipeline`."""
    return _understood(content, "bytes", TRUSTED, *_OF_PIPELINES)


_OF_PIPELINES = (
    "of a Pipeline of scikit-learn's own steps",
    "leave that step out, and save the Pipeline again with skops.io.dump",
)


def _loaded(path: Path, trusted: tuple[str, ...], expected: str, advice: str) -> Any:
    if not path.is_file():
        raise FileFormatError(f"Expected a model file at {path}, found none; check the path.")
    return _understood(path.read_bytes(), path.name, trusted, expected, advice)


def _understood(content: bytes, name: str, trusted: tuple[str, ...], expected: str, advice: str) -> Any:
    from skops.io import get_untrusted_types, loads

    try:
        strange = sorted(set(get_untrusted_types(data=content)) - set(trusted))
        if strange:
            raise UnsupportedModelError(
                f"Expected a skops file {expected}, got one with {', '.join(strange[:3])}, which is not trusted; "
                f"{advice}."
            )
        return loads(content, trusted=list(trusted))
    except UnsupportedModelError:
        raise
    except Exception as error:  # skops raises whatever zip, json or its loaders raise
        raise FileFormatError(
            f"Expected a model written by skops.io.dump, got {name} which is not readable as one "
            f"({type(error).__name__}: {error}); save it again with skops.io.dump."
        ) from error
