"""Places at which a process can be told to die at once, so that tests can see what a crash there leaves behind.

Nothing happens unless the variable names the place; then it is as if the power had gone.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "ROCERF_FAILPOINT"


def reached(place: str) -> None:
    """Die here if this is the place that the variable names."""
    if os.environ.get(VARIABLE) == place:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
