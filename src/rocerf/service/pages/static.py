"""The files that pages load: read once, their address holds their checksum, so that browsers may keep them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

#: Files that are served and what they are; nothing else in the folder is.
KINDS = {"style.css": "text/css", "htmx.min.js": "text/javascript", "icon.svg": "image/svg+xml"}

#: Where they are.
FOLDER = "/static"


@cache
def contents(name: str) -> bytes:
    """One of the files."""
    return (files("rocerf.service.pages") / "static" / name).read_bytes()


@cache
def checksum(name: str) -> str:
    """The start of its SHA-256."""
    return hashlib.sha256(contents(name)).hexdigest()[:12]


def address(name: str) -> str:
    """Where pages load it from.

    >>> address("icon.svg").startswith("/static/icon.svg?v=")
    True
    """
    return f"{FOLDER}/{name}?v={checksum(name)}"
