"""After a deletion nothing of the person is left: in no file, no page, no log, and no key that would open anything.

What was personal is ciphertext from the first day, so it is not enough to look for the values themselves: the keys and
ciphertexts of the person and of the old model are noted before, and looked for after.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from ledgers import PLANTED, Clock, approved, asking, filled, opened
from postgres import Server
from residue import Planted, unpacked
from rocerf.errors import ErasedError, FileFormatError, LedgerUnavailableError
from rocerf.ledger import JobState, Ledger
from rocerf.ledger.issuing import LETTER
from rocerf.ledger.keys import SUBJECT, VERSION, KeyFile
from rocerf.ledger.keys import opened as unsealed
from rocerf.ledger.tables import ArtefactRow, PayloadRow
from rocerf.ledger.worker import Worker

NAME = "Zephyrine Quintaloup 1871"


def spellings() -> Iterator[bytes]:
    """The planted values in every form in which they might lie about."""
    for number in PLANTED.values():
        for kind in ("<f8", ">f8", "<f4", ">f4"):
            yield np.array(number, kind).tobytes()
        yield from (str(number).encode(), repr(np.float64(number)).encode(), json.dumps(number).encode())
        yield from (f"{number:.2f}".encode(), f"{number:,}".encode(), str(number).encode("utf-16-le"))
    yield from (NAME.encode(), NAME.encode("utf-16-le"), b'row-7"')


def where(folder: Path, wanted: list[bytes], since: float = 0.0) -> list[str]:
    """Files (and files packed in files) in which any of these bytes are, of those written to since then."""
    changed = {
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.stat().st_mtime >= since
    }
    return sorted(
        {
            name
            for name, data in unpacked(folder)
            if any(name == path or name.startswith(f"{path}/") for path in changed)
            for one in wanted
            if one in data
        }
    )


def secrets_of(ledger: Ledger, subject: int) -> tuple[list[bytes], list[bytes]]:
    """The keys and the ciphertexts of a person and of the model that knew them."""
    with ledger.core.database.reading() as session:
        parts = [row.ciphertext for row in session.query(PayloadRow).where(PayloadRow.subject == subject)]
        parts += [row.ciphertext for row in session.query(ArtefactRow)]
    keys = [*ledger.core.keys.of(SUBJECT, [subject]).values(), *ledger.core.keys.of(VERSION).values()]
    assert len(keys) == 2
    # Of a long ciphertext any piece counts: pages may hold parts of it.
    return keys, [part[at : at + 24] for part in parts for at in range(0, max(1, len(part) - 24), 512)]


def planted(folder: Path, url: str | None = None, **options: Any) -> tuple[Ledger, int]:
    """A ledger in which the person with the rare values has rows, a letter, data and a request."""
    ledger = filled(opened(folder, url=url), promise=options.pop("promise", "retrained"), **options)
    ledger.people.assign_rows({NAME: ["row-7"]}, actor="admin")
    own = asking(ledger.models.explainer().model, 1).set_axis([NAME], axis=0).assign(debt=51987.65625)
    ledger.letters.issue(own, valid_until=None, actor="officer", options=2)
    ledger.people.update(NAME, PLANTED, actor="officer")
    return ledger, approved(ledger, NAME)


def test_the_search_finds_what_is_written_in_the_clear(tmp_path: Path) -> None:
    ledger, _ = planted(tmp_path / "ledger")
    ledger.models.explainer().save(tmp_path / "saved")
    files = where(tmp_path / "saved", list(spellings()))
    assert files
    assert Planted([NAME], PLANTED.values()).in_files(tmp_path / "saved")
    ledger.close()
    assert where(tmp_path / "ledger", list(spellings())) == []  # sealed from the first day


@pytest.mark.parametrize("promise", ["retrained", "certified"])
def test_nothing_of_a_person_is_left_in_any_file(tmp_path: Path, figures: list[str], promise: str) -> None:
    folder = tmp_path / "ledger"
    ledger, number = planted(folder, promise=promise, k=1)
    subject = ledger.requests.get(number).subject
    keys, pieces = secrets_of(ledger, subject)
    ledger.models.explainer().save(folder / "saved")
    ledger.copies.tell(folder / "saved", actor="admin")
    ledger.copies.backup(folder / "backup.db", actor="admin")
    assert where(folder, keys) == ["ledger.keys"]
    assert {"backup.db"} < set(where(folder, pieces)) <= {"backup.db", "ledger.db", "ledger.db-wal"}
    assert where(folder, list(spellings()))  # in the saved explainer
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.error == ""
    assert not (folder / "saved").exists()
    assert not (folder / "backup.db").exists()
    chained = [event.hash for event in ledger.audit.events(subject=subject)]
    assert chained
    assert where(folder, [*keys, *pieces, *spellings()]) == []  # while the ledger is open
    assert ledger.audit.verify().whole
    ledger.close()
    assert where(folder, [*keys, *pieces, *spellings()]) == []
    looked_for = len([*keys, *pieces, *spellings()])
    figures.append(f"erasure ({promise}): {looked_for} pieces of the person and the old model looked for, 0 found")


def opens(key: bytes, seq: int, content: bytes) -> bool:
    try:
        unsealed(key, content, f"event/{seq}")
    except FileFormatError:
        return False
    return True


def test_what_is_left_of_a_persons_events_can_be_opened_by_nobody(tmp_path: Path) -> None:
    ledger, number = planted(tmp_path)
    subject, before = ledger.requests.get(number).subject, sqlite3.connect(tmp_path / "ledger.db")
    copy = {row[0]: row[1] for row in before.execute("SELECT seq, sealed FROM events WHERE sealed IS NOT NULL")}
    before.close()
    key = ledger.core.keys.of(SUBJECT, [subject])[subject]
    assert any(NAME.encode() in unsealed(key, content, f"event/{seq}") for seq, content in copy.items())
    ledger.deletions.carry_out(number, actor="dpo")
    Worker(ledger).run_once()
    assert ledger.core.keys.of(SUBJECT, [subject]) == {}
    own = [seq for seq, content in copy.items() if opens(key, seq, content)]
    assert own
    for other in ledger.core.keys.of(SUBJECT).values():
        assert not any(opens(other, seq, copy[seq]) for seq in own)
    with pytest.raises(ErasedError):
        unsealed(None, b"", LETTER)
    assert ledger.audit.verify().whole


@pytest.mark.slow
def test_nothing_is_left_in_postgresqls_folder_but_in_its_log(
    tmp_path: Path, postgres: Server, figures: list[str]
) -> None:
    start = time.time() - 5.0  # what was written before this test holds nothing of it
    ledger, number = planted(tmp_path, postgres.fresh())
    subject = ledger.requests.get(number).subject
    keys, pieces = secrets_of(ledger, subject)
    postgres.sql("CHECKPOINT")
    tables = [name for name in where(postgres.data, pieces, start) if not name.startswith("pg_wal")]
    assert tables
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.error == ""
    postgres.sql("CHECKPOINT")
    postgres.sql("SELECT pg_switch_wal()")
    postgres.sql("CHECKPOINT")
    assert (
        where(postgres.data, [*keys, *spellings()], start) == []
    )  # keys were never there, nor was anything in the clear
    left = where(postgres.data, pieces, start)
    assert all(name.startswith("pg_wal/") for name in left)  # ciphertext, whose key is destroyed
    assert where(tmp_path, [*keys, *spellings()]) == []
    assert ledger.audit.verify().whole
    assert {"wal_archive", "untold_copies"} <= set(ledger.deletions.certificate(number).beyond_reach)
    figures.append(
        f"erasure on PostgreSQL: ciphertext was in {len(tables)} files of tables before and in 0 after; in {len(left)} "
        "of the write-ahead log it may stay until the server writes over it, without a key"
    )


@contextmanager
def reading_on(ledger: Ledger, holds: str) -> Iterator[None]:
    """Meanwhile somebody reads an older state of the database, or the very tables (PostgreSQL), as a backup does."""
    other: Any
    if ledger.core.database.file is not None:
        other = sqlite3.connect(ledger.core.database.file, isolation_level=None)
        other.execute("BEGIN")
    else:
        other = psycopg.connect(ledger.core.database.engine.url.set(drivername="postgresql").render_as_string(False))
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    other.execute(f"SELECT * FROM {holds}").fetchall()
    try:
        yield
    finally:
        other.close()


@pytest.mark.parametrize("holds", ["alembic_version", "letters"])
def test_nothing_is_certified_while_somebody_reads_what_was_before(
    tmp_path: Path, database: Callable[[], str], monkeypatch: pytest.MonkeyPatch, holds: str
) -> None:
    """Their snapshot keeps the dead rows in the files; and a deletion that waits for them is tried however often."""
    monkeypatch.setattr("rocerf.ledger.database.PATIENCE", 0.6)
    monkeypatch.setattr("rocerf.ledger.database.BRIEFLY", 1)
    clock = Clock()
    ledger = filled(opened(tmp_path, clock, database(), tries=2))
    number = approved(ledger, "owner-7")
    ledger.deletions.carry_out(number, actor="dpo")
    with reading_on(ledger, holds):
        for _ in range(4):
            job = Worker(ledger).run_once()
            assert job is not None
            assert (job.state, job.step) == (JobState.WAITING, "erase")
            assert "read an older state" in job.error
            clock.jump(minutes=2)
    job = Worker(ledger).run_once()
    assert job is not None
    assert (job.state, job.error) == (JobState.DONE, "")
    assert ledger.deletions.certificate(number).rows == 1


def test_no_key_gets_into_a_file_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite writes a large file anew by way of a temporary one, on another disk."""
    seen: set[str] = set()

    def watch() -> int:
        links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
        seen.update(os.readlink(link) for link in links if link.is_symlink())
        return 0

    def watched(*given: Any, **more: Any) -> sqlite3.Connection:
        connection = sqlite3.Connection(*given, **more)
        connection.set_progress_handler(watch, 5000)
        return connection

    keys = KeyFile(tmp_path / "keys")
    keys.made(SUBJECT, range(60_000))
    monkeypatch.setattr("rocerf.ledger.keys.sqlite3.connect", watched)
    assert keys.destroy(SUBJECT, [7]) == 1
    assert any(name.endswith("/keys") for name in seen)
    assert not [name for name in seen if "etilqs" in name]


def test_a_full_disk_of_the_key_file_is_told_as_that(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys")
    before, own = keys.of(SUBJECT), resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, own[1]))
    try:
        with pytest.raises(LedgerUnavailableError, match=r"got (database or disk is full|disk I/O error)"):
            keys.made(SUBJECT, range(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, own)
        signal.signal(signal.SIGXFSZ, ignored)
    assert keys.of(SUBJECT) == before
    assert len(keys.made(SUBJECT, range(5000))) == 5000


def test_a_key_file_keeps_nothing_of_a_key_that_was_destroyed(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys")
    made = keys.made(SUBJECT, range(300))
    assert where(tmp_path, [made[7]]) == ["keys"]
    assert keys.destroy(SUBJECT, range(250)) == 250
    assert where(tmp_path, [made[number] for number in range(250)]) == []
    assert keys.of(SUBJECT) == {number: made[number] for number in range(250, 300)}


def test_a_letter_cannot_be_opened_in_anothers_place(tmp_path: Path, database: Callable[[], str]) -> None:
    ledger = filled(opened(tmp_path, url=database()))
    one, two = (letter.id for letter in ledger.letters.find()[:2])
    with ledger.core.database.writing() as session:
        rows = [session.get_one(PayloadRow, (LETTER, number, "document")) for number in (one, two)]
        rows[0].ciphertext = rows[1].ciphertext
    with pytest.raises(FileFormatError):
        ledger.letters.document(one)
