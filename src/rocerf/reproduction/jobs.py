"""Work cut into jobs that are done once: each a pure function of its inputs, kept in a file of its own.

A job's hash covers its kind and inputs, the hashes of the jobs it needs, the version of rocerf, :data:`FORMAT` and what
the plan adds to it (``identity``: the code that computes it and the data it reads). A file with the same hash is taken
over. Files are written beside and renamed: an interrupted run leaves finished jobs and nothing else. A record says on
which machine and with which code it was made, and lists the sizes of the files that belong to it; if one is lost or cut
short and a job still to be done needs it, it is made again. How jobs are done, one after another or many at a time, is
`scheduling.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.storage.whole_file import write_bytes, write_text
from rocerf.version import __version__

#: Changes when what a job of the same inputs computes changes.
FORMAT = "rocerf-job/3"

Arrays = Mapping[str, NDArray[Any]]

#: What a job found: plain values for JSON, and arrays.
JobFound = tuple[dict[str, Any], Arrays]


@dataclass(frozen=True)
class Job:
    """One piece of work: its name (also its file), its kind, plain inputs, and the names of the jobs it needs.

    ``group`` names jobs that take about as long.
    """

    name: str
    kind: str
    inputs: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    group: str = ""


#: What a job computes; it may read what it needs from the folder.
Compute = Callable[[Job, "JobFolder"], JobFound]


class JobFolder:
    """The files of finished jobs; a result counts only with the hash of the plan at hand.

    ``made`` are facts that every record written here carries: where and with what it was made.
    """

    def __init__(self, path: Path, made: Mapping[str, Any] | None = None) -> None:
        self.path, self.made = path, dict(made or {})

    def record_path(self, name: str) -> Path:
        """Where a job's record is."""
        return self.path / f"{name}.json"

    def arrays_path(self, name: str) -> Path:
        """Where its arrays are."""
        return self.path / f"{name}.npz"

    def side_path(self, name: str) -> Path:
        """Where a job may keep one more file, to be put in place at once."""
        return self.path / f"{name}.model.npz"

    def record(self, name: str) -> dict[str, Any]:
        """A job's record, empty if there is no readable one."""
        try:
            record = json.loads(self.record_path(name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def result(self, name: str) -> dict[str, Any]:
        """What a finished job found."""
        result: dict[str, Any] = self.record(name)["result"]
        return result

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a finished job."""
        with np.load(self.arrays_path(name), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def is_done(self, name: str, digest: str) -> bool:
        """Whether the job was finished with this hash: its result is in the record."""
        record = self.record(name)
        finished = (record.get("hash"), record.get("status")) == (digest, "done")
        return (
            finished
            and isinstance(record.get("result"), dict)
            and record.get("result_sha256") == sealed(record["result"])
        )

    def is_whole(self, name: str) -> bool:
        """Whether the arrays and further files of a finished job are there, as long as they were written."""
        files = self.record(name).get("files")
        if not isinstance(files, dict):
            return False
        return all((path := self.path / file).is_file() and path.stat().st_size == size for file, size in files.items())

    def names(self) -> list[str]:
        """Names of the jobs that have a record, finished or failed."""
        return sorted(path.stem for path in self.path.glob("*.json"))

    def keep(self, job: Job, digest: str, timing: Mapping[str, Any], result: dict[str, Any], arrays: Arrays) -> None:
        """Write a finished job, arrays first: the record says that all is there.

        ``timing`` has its ``seconds``, and may have more that is recorded of how it was made.
        """
        if arrays:
            packed = io.BytesIO()
            np.savez(packed, **arrays)  # type: ignore[arg-type]
            write_bytes(self.arrays_path(job.name), packed.getvalue())
        else:
            self.arrays_path(job.name).unlink(missing_ok=True)  # those of other inputs
        written = [path for path in (self.arrays_path(job.name), self.side_path(job.name)) if path.is_file()]
        files = {path.name: path.stat().st_size for path in written}
        made = self.made | {name: value for name, value in timing.items() if name != "seconds"}
        done = {"hash": digest, "status": "done", "seconds": timing["seconds"], "files": files, "made": made}
        found = _plain(result)
        self._write_record(job, {**done, "result_sha256": sealed(found), "result": found})

    def keep_failure(self, job: Job, digest: str, reason: str) -> None:
        """Write down why a job has no result."""
        self._write_record(job, {"hash": digest, "status": "failed", "reason": reason})

    def _write_record(self, job: Job, more: dict[str, Any]) -> None:
        document = {"job": job.name, "kind": job.kind, "inputs": dict(job.inputs), "needs": list(job.needs), **more}
        write_text(self.record_path(job.name), json.dumps(document, indent=1, allow_nan=False))


class Plan:
    """Jobs in an order in which each comes after those it needs, with their hashes.

    ``identity`` gives a text for each job that its hash covers too, such as a hash of the code that computes it.
    """

    def __init__(self, jobs: Sequence[Job], identity: Callable[[Job], str] | None = None) -> None:
        self.identity = identity
        self.jobs: dict[str, Job] = {}
        self.hashes: dict[str, str] = {}
        for job in jobs:
            missing = [name for name in job.needs if name not in self.jobs]
            if job.name in self.jobs or missing:
                raise OptionError(f"Expected each job once and after {missing or 'others'}, got {job.name!r}.")
            self.jobs[job.name] = job
            needed = [self.hashes[name] for name in job.needs]
            more = "" if identity is None else identity(job)
            content = json.dumps([FORMAT, __version__, job.kind, dict(job.inputs), needed, more], sort_keys=True)
            self.hashes[job.name] = hashlib.sha256(content.encode()).hexdigest()

    def only(self, kinds: Sequence[str]) -> Plan:
        """The jobs of these kinds and all that they need; their hashes stay."""
        wanted: set[str] = set()
        for job in reversed(self.jobs.values()):
            if job.kind in kinds or job.name in wanted:
                wanted.update((job.name, *job.needs))
        return Plan([job for job in self if job.name in wanted], self.identity)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs.values())


def sealed(result: Mapping[str, Any]) -> str:
    """A hash of what a job found, so that a record changed afterwards is not taken over."""
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Values that JSON has: NumPy's numbers made Python's, what is not finite made null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
