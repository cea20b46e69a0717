"""What a job's hash covers beyond its inputs: the code that computes it, and the files it reads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from rocerf.data.datasets import load_dataset
from rocerf.reproduction.code_hash import code_hash
from rocerf.reproduction.jobs import Job

#: The environment variable that names the folder of the authors' files, and those files.
AUTHORS = "ROCERF_AUTHORS_CODE"
AUTHORS_FILES = ("vae_*_rr_cfe.*", "compas-train*.csv")


def identities() -> Callable[[Job], str]:
    """What a plan made now takes as the identity of its jobs.

    For every job the code's hash; for a model's job the rows it is trained and tried on too, and in the published
    setting the authors' files. Every other job of a case needs its model's, whose hash its own covers.
    """
    data_hash = cache(_data_hash)  # of this plan alone: files may change between two
    authors = _files_hash(os.environ.get(AUTHORS, ""))

    def identity(job: Job) -> str:
        data = job.inputs.get("data")
        if not isinstance(data, str):
            return code_hash()
        return " ".join((code_hash(), data_hash(data), authors if job.inputs.get("setting") == "published" else ""))

    return identity


def _data_hash(name: str) -> str:
    """The hashes of a data set's training and test rows."""
    data = load_dataset(name)
    return f"{data.train.checksum} {data.test.checksum}"


def _files_hash(folder: str) -> str:
    """One hash of the authors' weights and tables in a folder; empty without one."""
    digest = hashlib.sha256()
    paths = sorted(path for kind in AUTHORS_FILES for path in Path(folder).expanduser().rglob(kind)) if folder else []
    for path in paths:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest() if paths else ""
