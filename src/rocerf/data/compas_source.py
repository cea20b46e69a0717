"""Where the COMPAS table comes from: the user's own file, the cache, or ProPublica's repository."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from rocerf.errors import DatasetUnavailableError
from rocerf.storage.whole_file import write_bytes

RAW_NAME = "compas-scores-two-years.csv"
TRAIN_NAME = "compas-train.csv"
TEST_NAME = "compas-test.csv"

_COMMIT = "bafff5da3f2e45eca6c2d5055faad269defd135a"
_URL = f"https://raw.githubusercontent.com/propublica/compas-analysis/{_COMMIT}/{RAW_NAME}"
_SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
_TIMEOUT_S = 30.0
# Several times the file's size: an answer that does not end must not fill the memory.
_MOST_BYTES = 16 * 2**20


def locate(path: str | Path | None = None) -> tuple[Path, ...]:
    """The file with the table, or the pair of train and test file.

    Looked for in this order: ``path``, the environment variable ``ROCERF_COMPAS``, the cache, and the network. A place
    the user names is never passed over in silence: if nothing is there, that is an error.

    >>> locate("no/such/file.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rocerf.errors.DatasetUnavailableError: Expected COMPAS at no...file.csv (path=...), got no such file...
    """
    if path is not None:
        return _named_files(Path(path).expanduser(), "path=...")
    if os.environ.get("ROCERF_COMPAS"):
        return _named_files(Path(os.environ["ROCERF_COMPAS"]).expanduser(), "ROCERF_COMPAS")
    try:
        cached = cache_folder() / RAW_NAME
        if not (cached.is_file() and _is_genuine(cached.read_bytes())):
            _store(_fetch(_URL), cached)
    # URLError, HTTPError and TimeoutError are OSErrors; RuntimeError: no home folder.
    except (OSError, ValueError, RuntimeError) as error:
        raise DatasetUnavailableError(
            f"COMPAS may not be shipped with rocerf and fetching it from {_URL} failed ({error}): either pass "
            f'load_dataset("compas", path=...) with your own {RAW_NAME}, or set the environment variable '
            "ROCERF_COMPAS to that file, or try again where the network can be reached and the cache folder "
            "(ROCERF_CACHE) can be written."
        ) from error
    return (cached,)


def cache_folder() -> Path:
    """Where fetched files are kept: ``ROCERF_CACHE``, or ``rocerf`` in the platform's cache folder.

    >>> cache_folder().is_absolute()
    True
    """
    own = os.environ.get("ROCERF_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "rocerf"


def _named_files(place: Path, how: str) -> tuple[Path, ...]:
    folder = place if place.is_dir() else place.parent
    if place.is_dir() or place.name.removesuffix(".gz") in (TRAIN_NAME, TEST_NAME):
        train, test = _plain_or_gzip(folder / TRAIN_NAME), _plain_or_gzip(folder / TEST_NAME)
        if train and test:
            return train, test
    if place.is_file():
        return (place,)
    whole = _plain_or_gzip(place / RAW_NAME) if place.is_dir() else None
    if whole:
        return (whole,)
    what = f"a folder without {RAW_NAME} or the pair {TRAIN_NAME}, {TEST_NAME}" if place.is_dir() else "no such file"
    raise DatasetUnavailableError(f"Expected COMPAS at {place} ({how}), got {what}; correct the path.")


def _plain_or_gzip(file: Path) -> Path | None:
    for candidate in (file, file.with_name(file.name + ".gz")):
        if candidate.is_file():
            return candidate
    return None


def _is_genuine(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == _SHA256


def _fetch(url: str) -> bytes:
    """The file's content, refused unless its checksum is the pinned one."""
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read(_MOST_BYTES)
    except http.client.HTTPException as error:
        raise OSError(f"the answer broke off: {error!r}") from error
    if not _is_genuine(content):
        raise OSError(f"{len(content)} bytes came whose checksum is not the expected one; they were not kept")
    return content


def _store(content: bytes, target: Path) -> None:
    """Write in one step, so that no other process ever reads half a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, content)
