"""The audit chain against whoever edits it: every edit, removal, insertion and move of every event is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from ledgers import opened
from rocerf.errors import FileFormatError
from rocerf.ledger import ChainHead, Ledger, chain
from rocerf.ledger.database import Database
from rocerf.ledger.keys import KeyFile
from rocerf.ledger.tables import Base, EventRow, HeadRow

Address = Callable[[], str]


def some(tmp_path: Path, database: Address) -> Ledger:
    ledger = opened(tmp_path, url=database())
    for number in range(6):
        ledger.requests.receive(f"person-{number}", actor="desk")
    return ledger


EDITS = {
    "an actor": "UPDATE events SET actor = 'nobody' WHERE seq = {n}",
    "facts": "UPDATE events SET facts = '{{}}' WHERE seq = {n}",
    "a kind": "UPDATE events SET kind = 'nothing' WHERE seq = {n}",
    "a subject": "UPDATE events SET subject = 99 WHERE seq = {n}",
    "a time": "UPDATE events SET at = '2020-01-01 00:00:00.000000' WHERE seq = {n}",
    "a hash": "UPDATE events SET hash = 'f' WHERE seq = {n}",
    "sealed content": "UPDATE events SET sealed = NULL WHERE seq = {n}",
    "removed": "DELETE FROM events WHERE seq = {n}",
    "moved": "UPDATE events SET seq = 70 WHERE seq = {n}",
}


def test_every_edit_of_every_event_is_found(tmp_path: Path, database: Address, figures: list[str]) -> None:
    ledger = some(tmp_path, database)
    assert ledger.audit.verify().whole
    found = 0
    for edit in EDITS.values():
        for number in (1, 3, 6):
            with ledger.core.database.engine.connect() as connection:
                trial = connection.begin()
                connection.execute(text(edit.format(n=number)))
                report = chain.verify(Session(connection), ledger.core.keys)
                trial.rollback()
            assert not report.whole, (edit, number)
            found += 1
    assert ledger.audit.verify().whole
    kind = "SQLite" if ledger.core.database.is_sqlite else "PostgreSQL"
    figures.append(f"audit chain on {kind}: {found} of {found} edits, removals and moves found")


def test_a_chain_cut_off_at_its_end_is_found(tmp_path: Path, database: Address) -> None:
    ledger = some(tmp_path, database)
    earlier, mac = ledger.audit.head(), ""
    with ledger.core.database.reading() as session:
        mac = session.execute(text("SELECT mac FROM chain_head")).scalar_one()
    ledger.audit.note("one more", actor="desk")
    ledger.audit.note("and one", actor="desk")
    noted = ledger.audit.head()
    put_back = f"UPDATE chain_head SET seq = {earlier.seq}, hash = '{earlier.hash}', mac = '{{mac}}'"
    with ledger.core.database.writing() as session:
        session.execute(text(f"DELETE FROM events WHERE seq > {earlier.seq}"))
    assert "removed" in str(ledger.audit.verify().faults)
    with ledger.core.database.writing() as session:
        session.execute(text(put_back.format(mac="0" * 64)))
    assert "key file" in str(ledger.audit.verify().faults)
    # With an old keyed hash, the database as a whole is as it once was: the key file knows that the chain was longer.
    with ledger.core.database.writing() as session:
        session.execute(text(put_back.format(mac=mac)))
    report = ledger.audit.verify(noted)
    assert "noted elsewhere" in str(report.faults)
    assert "in the key file" in str(ledger.audit.verify().faults)
    # Key file and database put back together: only what was noted elsewhere tells.
    with closing(sqlite3.connect(tmp_path / "ledger.keys")) as keys, keys:
        keys.execute("UPDATE mark SET seq = ?, hash = ?", (earlier.seq, earlier.hash))
    blind = ledger.audit.verify()
    assert blind.whole
    assert "put both back" in str(blind.undetectable)
    assert not ledger.audit.verify(noted).whole


def test_a_database_put_back_behind_the_key_files_mark_is_found(tmp_path: Path, database: Address) -> None:
    ledger = some(tmp_path, database)
    with ledger.core.database.reading() as session:
        head = session.execute(text("SELECT seq, hash, mac FROM chain_head")).one()
    ledger.audit.note("one more", actor="desk")  # nobody verified since
    with ledger.core.database.writing() as session:
        session.execute(text(f"DELETE FROM events WHERE seq > {head[0]}"))
        session.execute(text(f"UPDATE chain_head SET seq={head[0]}, hash='{head[1]}', mac='{head[2]}'"))
    assert "in the key file" in str(ledger.audit.verify().faults)


def test_a_chain_without_its_end_takes_no_event(tmp_path: Path, database: Address) -> None:
    ledger = some(tmp_path, database)
    with ledger.core.database.writing() as session:
        session.execute(text("DELETE FROM chain_head"))
    assert not ledger.audit.verify(ChainHead(1, "x")).whole
    with pytest.raises(FileFormatError):
        ledger.audit.note("another", actor="desk")


def test_migrations_make_the_tables_that_are_declared(database: Address) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    made = Database(database())
    made.migrate()
    made.migrate()  # a second time changes nothing
    with made.engine.connect() as connection:
        ours = set(Base.metadata.tables)
        context = MigrationContext.configure(
            connection, opts={"include_name": lambda name, kind, _: kind != "table" or name in ours}
        )
        assert compare_metadata(context, Base.metadata) == []
    made.close()


def test_a_chain_written_anew_with_hashes_that_fit_is_found(tmp_path: Path, database: Address) -> None:
    ledger = some(tmp_path, database)
    noted, before = ledger.audit.head(), chain.START
    with ledger.core.database.writing() as session:  # somebody with the database, who knows how links are made
        for row in session.query(EventRow).order_by(EventRow.seq):
            row.actor = "somebody else" if row.seq == 3 else row.actor
            row.hash = before = chain.link(before, row)
        session.get_one(HeadRow, 1).hash = before
    found = str(ledger.audit.verify().faults)
    assert "key file" in found  # the keyed hash of the end, and the end noted in the key file
    assert "noted elsewhere" in str(ledger.audit.verify(noted).faults)


def test_an_event_that_is_not_kept_is_not_noted_in_the_key_file(tmp_path: Path, database: Address) -> None:
    ledger = some(tmp_path, database)

    def undone() -> None:
        with ledger.core.database.writing() as session:
            ledger.core.note(session, "never", "desk", {})
            raise KeyError("undone")

    with pytest.raises(KeyError):
        undone()
    assert ledger.core.keys.mark() == (6, ledger.audit.head().hash)
    assert ledger.audit.verify().whole


def test_an_event_that_comes_while_the_chain_is_verified_is_not_taken_for_lost(
    tmp_path: Path, database: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, read = some(tmp_path, database), KeyFile.mark

    def one_more_first(keys: KeyFile) -> tuple[int, str] | None:
        ledger.audit.note("meanwhile", actor="desk")
        return read(keys)

    monkeypatch.setattr(KeyFile, "mark", one_more_first)
    assert ledger.audit.verify().whole
