"""Checksums that documents and arrays carry of themselves: what was changed after it was written is noticed.

This is against accidents and mix-ups. Whoever can write a file can also give it a new checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import FileFormatError

#: The entry of a document that holds its checksum.
SEAL = "sha256"


def sha256_of(content: bytes) -> str:
    """The checksum of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def sealed(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> dict[str, Any]:
    """A document of plain JSON values with the checksum of its content, and of the arrays that go with it.

    >>> document = sealed({"k": 1})
    >>> check_seal(document)
    >>> check_seal({**document, "k": 3})
    Traceback (most recent call last):
    rocerf.errors.FileFormatError: Expected content that matches its checksum, got content that was changed after ...
    """
    plain = {name: value for name, value in document.items() if name != SEAL}
    return {**plain, SEAL: _content(plain, arrays or {})}


def check_seal(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> None:
    """Refuse a document, or arrays that go with it, that are not what they were when they were sealed."""
    if sealed(document, arrays)[SEAL] != document.get(SEAL):
        raise FileFormatError(
            "Expected content that matches its checksum, got content that was changed after it was written, or is "
            "damaged; take a copy that is as it was written, or write it again."
        )


def _content(document: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    # Spaces, line breaks and the order of names are not content: a document may be laid out anew.
    digest = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
