"""One line of JSON a request: when, which route, how it went, by whose token; nothing that came with it.

Paths are written as their routes spell them (``/api/v1/letters/{letter_id}``), without queries, headers and bodies, and
an error is its kind and place without its text: so no person and no secret can get in.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

log = logging.getLogger("rocerf.service")


class JsonLines(logging.Formatter):
    """Each record as one JSON object; of other people's records only their level and where they come from."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.msg if record.name == log.name and not record.args else record.name,
        }
        line |= getattr(record, "facts", {})
        return json.dumps(line)


def to_stream(stream: TextIO | None = None) -> logging.Handler:
    """Write the lines of the service to standard error, or to a stream; the handler, to take it away again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    return handler


def others_to(handler: logging.Handler) -> None:
    """Warnings and errors of other people's code go the same way: without this, Python prints them with their text."""
    logging.captureWarnings(True)
    logging.getLogger().addHandler(handler)


def place_of(error: BaseException) -> list[str]:
    """Where an error came about: the innermost calls, without their values."""
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
