"""Workers for numeric blocks: several threads with one BLAS thread each.

BLAS threads of their own fight with ours (and with other processes) for the cores; on small blocks that
costs more than it brings, up to a factor of twenty on a busy machine.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def workers() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Within this context BLAS calls use one thread."""
    context: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return context


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
