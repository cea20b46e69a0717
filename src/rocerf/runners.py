"""Who walks over the rows, as users say it: nobody in particular, threads, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rocerf.errors import OptionError
from rocerf.passes import RUNNERS, using


@contextmanager
def running(runner: Any = "auto", *, scheduler: str | None = None) -> Iterator[None]:
    """Within this context passes over training rows are run so.

    Parameters
    ----------
    runner : "auto", "serial", "threads", "dask", a registered name, or a ``distributed.Client``
        "auto" leaves it to each pass: threads for rows on the disk, one chunk after another for small tables.
    scheduler : str, optional
        The address of a Dask scheduler, for "dask" (or "auto").

    Examples
    --------
    >>> import rocerf
    >>> with rocerf.running("threads"):
    ...     model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0]], [0, 1, 0]))
    """
    if scheduler is not None and runner not in ("auto", "dask"):
        raise OptionError(f"Expected a scheduler only with the runner 'dask', got it with {runner!r}; drop one.")
    if isinstance(runner, str) and runner not in (*RUNNERS, "auto", "dask"):
        names = ", ".join((*RUNNERS, "auto"))
        raise OptionError(f"Expected one of the runners {names} and dask, got {runner!r}; choose one of them.")
    if runner == "dask" and scheduler is None:
        raise OptionError("Expected the address of a scheduler with the runner 'dask', got none; give it.")
    if scheduler is not None:
        from rocerf.dask_runner import DaskRunner

        here = DaskRunner.at(scheduler)
        try:
            with using(here):
                yield
        finally:
            here.client.close()
    elif isinstance(runner, str) and runner == "auto":
        yield
    elif isinstance(runner, str):
        with using(runner):
            yield
    else:
        with using(_runner_of(runner)):
            yield


def _runner_of(given: Any) -> Any:
    """A Dask client as a runner, or a runner as it is."""
    if type(given).__module__.split(".")[0] == "distributed" and hasattr(given, "scatter"):
        from rocerf.dask_runner import DaskRunner

        if given.asynchronous:
            raise OptionError(
                "Expected a Dask client whose calls wait for their answers, got an asynchronous one; make another with "
                "distributed.Client(client.scheduler.address)."
            )
        return DaskRunner(given)
    if not callable(getattr(given, "run", None)):
        names = ", ".join(("auto", "dask", *RUNNERS))
        raise OptionError(f"Expected one of the runners {names} or a Dask client, got {given!r}; give one of these.")
    return given
