"""Reading files: whatever is wrong with one is said in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike

from rocerf.errors import FileFormatError, MissingExtraError, RocerfError


@contextmanager
def told_as(
    expected: str, got: str, advice: str, *, but: tuple[type[Exception], ...] = (MissingExtraError,)
) -> Iterator[None]:
    """Whatever goes wrong while something is read and understood is one error of ours, ``but`` these.

    A damaged file can make any library raise anything (zip, zlib, JSON, arrays of absurd sizes, endless nesting), so no
    list of errors would be complete.
    """
    try:
        yield
    except but:
        raise
    except Exception as error:
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            raise FileFormatError(f"Expected {expected}, found nothing at {error.filename}; {advice}.") from error
        text = str(error).strip().rstrip(".")
        said = text if isinstance(error, RocerfError) else f"{type(error).__name__}: {text}"
        raise FileFormatError(f"Expected {expected}, got {got} ({said}); {advice}.") from error


def reading(
    path: str | PathLike[str], form: str, writer: str, advice: str = "save the model again with this version"
) -> AbstractContextManager[None]:
    """As :func:`told_as`, of a file written by that writer; one that is not there, or closed to us, stays that."""
    expected = f"a file written by {writer} ({form})"
    return told_as(
        expected, f"{path} which is not", advice, but=(FileNotFoundError, PermissionError, MissingExtraError)
    )
