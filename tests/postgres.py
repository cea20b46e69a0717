"""A PostgreSQL server of the tests' own: in a temporary folder, on a free port, gone when the tests are.

It comes from the system's package (Debian: ``postgresql``). Without one, tests that need it are skipped, with one fixed
reason. It does not run as root: there, as the user ``postgres`` that the package brings.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

REASON = "needs PostgreSQL's server (initdb and pg_ctl), which is not installed"
USER = "postgres"

#: Quick rather than safe against the machine's own crash; against the server's it is safe all the same.
SETTINGS = "-c fsync=off -c shared_buffers=16MB -c max_connections=40 -c autovacuum=off"


def binaries() -> Path | None:
    """The folder of the server's programs, the newest version first."""
    found = [Path(p).parent for p in (shutil.which("initdb"), shutil.which("pg_ctl")) if p]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


class Server:
    """A server that tests may stop, start, and look into."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        # In memory where there is room: a loaded disk makes every statement wait.
        memory = Path("/dev/shm")
        roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**31
        self.folder = Path(tempfile.mkdtemp(prefix="rocerf-postgres-", dir=memory if roomy else None))
        self.data = self.folder / "data"
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._numbers = count(1)
        self._call("initdb", "-D", self.data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -h 127.0.0.1 {SETTINGS}"
        self._call("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-o", options, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._call("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self) -> str:
        """The address of a new, empty database."""
        name = f"ledger_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def sql(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        address = f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def _call(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", USER, "--", *command]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for all tests of a session (of a worker, under xdist)."""
    programs = binaries()
    if programs is None:
        pytest.skip(REASON)
    server = Server(programs)
    yield server
    server.remove()
