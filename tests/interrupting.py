"""Pressing Ctrl-C on programs, whatever the tests themselves were started by.

A shell that starts the tests in the background has them ignore Ctrl-C, and whatever they start inherits that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def hearing_ctrl_c() -> Iterator[None]:
    """In here Ctrl-C is what it is in a terminal, for this process and those that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(command: Sequence[str], ready: Callable[[], bool]) -> tuple[int, str]:
    """Exit code and standard error of a program that got Ctrl-C, with all its processes, when it was ``ready``."""
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with hearing_ctrl_c(), subprocess.Popen(command, **pipes, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + 300
            while not ready():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=120)  # ends only when nobody holds the pipe any more
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, err.decode()
