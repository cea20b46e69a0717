"""Erasure: what is left of people and of earlier models, in tables, keys, copies and free pages.

Effects of rows give rows back exactly, and two versions of a model give a deleted row back nearly; so of every version
but the current one everything goes: parameters, training rows, pools of cuts, curvature, certificates, scaling. A hash
over ciphertext stays.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from rocerf.errors import NotRemovedError
from rocerf.ledger.core import Core
from rocerf.ledger.keys import SUBJECT, VERSION
from rocerf.ledger.letters import move
from rocerf.ledger.models import Models
from rocerf.ledger.people import PERSON, ROWS, People, notes_of_others
from rocerf.ledger.previews import split
from rocerf.ledger.requests import SOURCES, rows_named
from rocerf.ledger.states import JobState, LetterState, VersionState
from rocerf.ledger.tables import (
    ArtefactRow,
    BatchRow,
    CopyRow,
    JobRow,
    LetterEventRow,
    LetterRow,
    PayloadRow,
    RequestRow,
    SubjectRow,
    VersionRow,
)
from rocerf.ledger.written import as_written

#: Tables from which something personal is deleted or overwritten.
TOUCHED = (
    *("payloads", "artefacts", "subjects", "letters", "letter_events"),
    *("requests", "versions", "copies", "jobs", "batches"),
)

#: What stands in place of why a job failed, once anything was erased.
FORGOTTEN = "erased with a deletion that was carried out since; have the job tried again to see why it fails"


def shared_notes(
    session: Session, core: Core, models: Models, people: People, batch: BatchRow, asked: Sequence[RequestRow]
) -> dict[int, set[Any]]:
    """Ids of rows that went and are noted of somebody who stays: two people may share a row, and it went for both."""
    # Gone where another worker was quicker: then nothing of this one is kept anyway.
    if batch.rows == 0 or session.get(ArtefactRow, batch.version_before) is None:
        return {}
    assert batch.version_before is not None
    own = models.ids(session, batch.version_before)
    gone = set(split(own, [i for row in asked for i in rows_named(core, people, session, row)])[0])
    shared = notes_of_others(session, core, set(map(as_written, gone)), [row.subject for row in asked])
    return {owner: {i for i in ids if gone & set(split(own, [i])[0])} for owner, ids in shared.items()}


def erase(
    session: Session, core: Core, batch: BatchRow, asked: Sequence[RequestRow], shared: Mapping[int, set[Any]]
) -> dict[str, Any]:
    """Remove people and earlier versions from the tables, in this transaction; counts and hashes by number."""
    now = core.now()
    notes = {number: json.loads(ids) for number, ids in core.get_many(session, PERSON, ROWS, shared).items()}
    left = {number: [i for i in ids if i not in shared[number]] for number, ids in notes.items()}
    core.put(session, ((PERSON, number, ROWS, number, json.dumps(ids).encode()) for number, ids in left.items()))
    subjects = {str(row.subject): _erased(session, core, row.subject) for row in asked}
    for request in session.scalars(select(RequestRow).where(RequestRow.subject.in_([row.subject for row in asked]))):
        request.reason, request.idempotency_body = "", None
        if request.source not in SOURCES:  # from before such texts were sealed
            request.source = ""
    versions, with_rows = {}, False
    for version in session.scalars(select(VersionRow).where(VersionRow.state == VersionState.RETIRED.code)):
        version.state, version.erased, version.label = VersionState.ERASED.code, now, ""
        versions[str(version.id)] = version.artefact_sha256
        with_rows |= not version.rows_outside
    # Whatever an error of the library said about data, it does not outlive the data.
    failed = (JobRow.state == JobState.FAILED.code, JobRow.error != "")
    session.execute(update(JobRow).where(*failed).values(error=FORGOTTEN))
    session.execute(delete(ArtefactRow).where(ArtefactRow.version.in_([int(number) for number in versions])))
    copies = list(session.scalars(select(CopyRow.id).where(CopyRow.removed.is_(None))))
    told = {"subjects": subjects, "versions": versions, "copies_to_remove": copies}
    return {**told, "rows_were_inside": with_rows}


def _erased(session: Session, core: Core, subject: int) -> dict[str, int]:
    """One person out of the tables; how many parts and letters there were."""
    letters = session.scalars(
        select(LetterRow).where(LetterRow.subject == subject, LetterRow.state != LetterState.WITHDRAWN.code)
    ).all()
    move(session, core, letters, LetterState.WITHDRAWN)
    for letter in session.scalars(select(LetterRow).where(LetterRow.subject == subject)):
        letter.margin, letter.reason, letter.issue_body = None, "", None
    own_letters = select(LetterRow.id).where(LetterRow.subject == subject)
    session.execute(update(LetterEventRow).where(LetterEventRow.letter.in_(own_letters)).values(reason=""))
    own = PayloadRow.subject == subject
    parts = session.scalar(select(func.count()).select_from(PayloadRow).where(own)) or 0
    mapping = session.get(PayloadRow, (PERSON, subject, ROWS)) is not None
    session.execute(delete(PayloadRow).where(own))
    row = session.get_one(SubjectRow, subject)
    row.tag, row.erased = None, core.now()
    session.flush()
    return {"payloads": parts - mapping, "mapping": int(mapping), "letters": len(letters)}


def destroy_keys(core: Core, facts: dict[str, Any]) -> None:
    """Nobody can open any more what was sealed, here or in any copy."""
    core.keys.destroy(SUBJECT, [int(number) for number in facts["subjects"]])
    core.keys.destroy(VERSION, [int(number) for number in facts["versions"]])


def remove_copies(core: Core, facts: dict[str, Any]) -> int:
    """Remove backups and saved explainers that we know of; how many. What cannot be removed is an error."""
    with core.database.reading() as session:
        rows = [session.get_one(CopyRow, number) for number in facts["copies_to_remove"]]
        paths = [Path(row.path) for row in rows]
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif os.path.lexists(path):
                path.unlink()
        except OSError as error:
            raise NotRemovedError(
                f"Expected to remove a copy that holds what is to be erased, got {error.strerror or error}; see to it "
                "that it can be removed, then let the job be tried again."
            ) from error
    with core.database.writing() as session:
        for number in facts["copies_to_remove"]:
            row = session.get_one(CopyRow, number)
            row.removed, row.path = core.now(), ""
    return len(paths)


def compact(core: Core) -> None:
    """No page, log or dead row of the database holds what was deleted."""
    core.database.compact(TOUCHED)
