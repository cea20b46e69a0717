"""A ledger of an earlier form with everything in it, brought to today's form: nothing of it is lost or changed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, insert, inspect, select, text

from ledgers import approved, filled, opened
from rocerf.errors import FileFormatError, MissingExtraError, TransitionError
from rocerf.ledger import JobState
from rocerf.ledger.access import Access, Role
from rocerf.ledger.database import Database
from rocerf.ledger.worker import Worker

#: What was written in the clear before reasons were sealed.
WRITTEN = "Zephyrine wrote to us twice"


def at_step(url: str, step: str) -> Database:
    """A new database whose tables have the form of this step."""
    from alembic.script import ScriptDirectory

    whole = ScriptDirectory._upgrade_revs
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ScriptDirectory, "_upgrade_revs", lambda self, _, now: whole(self, step, now))
        made = Database(url)
        made.migrate()
    return made


def copied(new: Engine, old: Engine) -> MetaData:
    """Everything of today's ledger that a ledger of the old form has a place for, put there; the old form."""
    form = MetaData()
    form.reflect(old)
    with new.connect() as source, old.begin() as target:
        for table in form.sorted_tables:
            if table.name != "alembic_version":
                rows = [dict(row._mapping) for row in source.execute(select(table))]
                if rows:
                    target.execute(insert(table), rows)
                if old.dialect.name == "postgresql" and "id" in table.columns and rows and table.name != "chain_head":
                    name = f"pg_get_serial_sequence('{table.name}', 'id')"
                    known = target.execute(text(f"SELECT {name}")).scalar() if isinstance(rows[0]["id"], int) else None
                    if known:
                        target.execute(text(f"SELECT setval('{known}', {max(row['id'] for row in rows)})"))
    return form


def content(engine: Engine, form: MetaData) -> dict[str, list[str]]:
    """Every row of the old form's tables, by its columns."""
    with engine.connect() as connection:
        return {
            table.name: sorted(repr(tuple(row)) for row in connection.execute(select(table)))
            for table in form.sorted_tables
            if table.name != "alembic_version"
        }


@pytest.mark.parametrize("step", ["0002", "0003"])
def test_an_old_ledger_with_data_is_brought_to_todays_form(
    tmp_path: Path, database: Callable[[], str], step: str
) -> None:
    before = filled(opened(tmp_path, url=database()))
    letter = before.letters.find()[0].id
    waiting = approved(before, "owner-7", idempotency_key="from the portal")
    verified = before.requests.receive("owner-8", actor="desk").id
    before.requests.verify_identity(verified, actor="desk")
    before.requests.preview(verified, actor="dpo")
    token = Access(before.core.database.engine).issue("the desk", Role.OFFICER)
    said = before.letters.document(letter)

    old_url = database()
    old = at_step(old_url, step)
    form = copied(before.core.database.engine, old.engine)
    with old.engine.begin() as connection:  # as it was written then
        connection.execute(text(f"UPDATE requests SET reason = '{WRITTEN}', source = '{WRITTEN}' WHERE id = {waiting}"))
    assert ("person" in {c["name"] for c in inspect(old.engine).get_columns("access_tokens")}) is (step == "0003")
    kept = content(old.engine, form)
    assert len(kept["letters"]) == 6
    assert len(kept["requests"]) == 2
    assert len(kept["access_tokens"]) == 1
    old.close()
    before.close()
    with closing(sqlite3.connect(tmp_path / "ledger.keys")) as keys, keys:  # key files had two keys of the ledger
        keys.execute("DELETE FROM keys WHERE scope = 'ledger' AND id = 3")

    ledger = opened(tmp_path, url=old_url, four_eyes=True)
    engine = ledger.core.database.engine
    assert content(engine, form) == kept
    assert ledger.audit.verify().whole
    assert ledger.letters.document(letter) == said
    assert ledger.requests.get(waiting).reason == WRITTEN
    assert not ledger.models.current().rows_outside
    access = Access(engine)
    assert access.authenticate(token.secret).person == ("" if step == "0002" else "the desk")
    if step == "0002":  # nobody noted who verified: asked for again, not guessed
        with pytest.raises(TransitionError, match="verified again"):
            ledger.requests.approve(verified, actor="dpo", colleague="Ada")
    _goes_on(ledger, waiting)
    assert WRITTEN not in str(content(engine, form))  # in the clear from then, gone with the person


def _goes_on(ledger: Any, waiting: int) -> None:
    """What was begun in the old form is carried out in the new one, and numbers go on."""
    assert ledger.requests.receive("owner-9", actor="desk").id > waiting + 1
    again = ledger.requests.receive("owner-7", actor="desk", idempotency_key="from the portal")
    assert again.id == waiting
    ledger.deletions.carry_out(waiting, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.state is JobState.DONE, job.error
    assert ledger.deletions.certificate(waiting).row_hashes == 1
    assert ledger.audit.verify().whole


def test_a_database_of_a_later_form_is_not_touched(tmp_path: Path, database: Callable[[], str]) -> None:
    url = database()
    ledger = opened(tmp_path, url=url)
    with ledger.core.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(FileFormatError, match="later release"):
        opened(tmp_path, url=url)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'psycopg'.*rocerf\[service\]"):
        Database("postgresql://somebody@localhost/ledger")
