"""All tables of the ledger, and the beginning of its audit chain."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0001", None, None, None


def upgrade() -> None:
    """From nothing."""
    op.create_table(
        "chain_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("mac", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chain_head")),
    )
    op.create_table(
        "copies",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("made", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_copies")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("subject", sa.Integer(), nullable=True),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_subject"), "events", ["subject"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("idempotency", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("idempotency", name=op.f("uq_jobs_idempotency")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_state"), "jobs", ["state"], unique=False)
    op.create_table(
        "subjects",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.String(), nullable=True),
        sa.Column("erased", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subjects")),
        sa.UniqueConstraint("tag", name=op.f("uq_subjects_tag")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("promise", sa.String(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("training_rows", sa.Integer(), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired", sa.DateTime(timezone=True), nullable=True),
        sa.Column("erased", sa.DateTime(timezone=True), nullable=True),
        sa.Column("artefact_sha256", sa.String(), nullable=False),
        sa.Column("made_from", sa.Integer(), nullable=True),
        sa.Column("rows_forgotten", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["made_from"], ["versions.id"], name=op.f("fk_versions_made_from")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_versions_state"), "versions", ["state"], unique=False)
    op.create_table(
        "artefacts",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["version"], ["versions.id"], name=op.f("fk_artefacts_version")),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_artefacts")),
    )
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("broken", sa.String(), nullable=False),
        sa.Column("version_before", sa.Integer(), nullable=True),
        sa.Column("version_after", sa.Integer(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["version_after"], ["versions.id"], name=op.f("fk_batches_version_after")),
        sa.ForeignKeyConstraint(["version_before"], ["versions.id"], name=op.f("fk_batches_version_before")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "letters",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("subject", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("checked_by", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("answered", sa.Boolean(), nullable=False),
        sa.Column("promise", sa.String(), nullable=False),
        sa.Column("proven", sa.Boolean(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("margin", sa.Float(), nullable=True),
        sa.Column("options", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(), nullable=False),
        sa.Column("issued", sa.DateTime(timezone=True), nullable=False),
        sa.Column("valid_until", sa.Date(), nullable=True),
        sa.Column("replaces", sa.Integer(), nullable=True),
        sa.Column("issue_key", sa.String(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["checked_by"], ["versions.id"], name=op.f("fk_letters_checked_by")),
        sa.ForeignKeyConstraint(["replaces"], ["letters.id"], name=op.f("fk_letters_replaces")),
        sa.ForeignKeyConstraint(["subject"], ["subjects.id"], name=op.f("fk_letters_subject")),
        sa.ForeignKeyConstraint(["version"], ["versions.id"], name=op.f("fk_letters_version")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_letters")),
        sa.UniqueConstraint("issue_key", name=op.f("uq_letters_issue_key")),
        sa.UniqueConstraint("replaces", name=op.f("uq_letters_replaces")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_letters_state_answered", "letters", ["state", "answered"], unique=False)
    op.create_index(op.f("ix_letters_subject"), "letters", ["subject"], unique=False)
    op.create_index(op.f("ix_letters_valid_until"), "letters", ["valid_until"], unique=False)
    op.create_table(
        "payloads",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("owner", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("subject", sa.Integer(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["subject"], ["subjects.id"], name=op.f("fk_payloads_subject")),
        sa.PrimaryKeyConstraint("kind", "owner", "part", name=op.f("pk_payloads")),
    )
    op.create_index(op.f("ix_payloads_subject"), "payloads", ["subject"], unique=False)
    op.create_table(
        "letter_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("letter", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["letter"], ["letters.id"], name=op.f("fk_letter_events_letter")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_letter_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_letter_events_letter"), "letter_events", ["letter"], unique=False)
    op.create_table(
        "requests",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("subject", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("held_from", sa.String(), nullable=True),
        sa.Column("received", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deadline", sa.Date(), nullable=False),
        sa.Column("extended", sa.Boolean(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("verified_by", sa.String(), nullable=False),
        sa.Column("approved_by", sa.String(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=True),
        sa.Column("preview", sa.JSON(), nullable=True),
        sa.Column("idempotency", sa.String(), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["batch"], ["batches.id"], name=op.f("fk_requests_batch")),
        sa.ForeignKeyConstraint(["subject"], ["subjects.id"], name=op.f("fk_requests_subject")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sa.UniqueConstraint("idempotency", name=op.f("uq_requests_idempotency")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_requests_batch"), "requests", ["batch"], unique=False)
    op.create_index(op.f("ix_requests_deadline"), "requests", ["deadline"], unique=False)
    op.create_index(op.f("ix_requests_state"), "requests", ["state"], unique=False)
    op.create_index(op.f("ix_requests_subject"), "requests", ["subject"], unique=False)
    op.create_table(
        "certificates",
        sa.Column("request", sa.Integer(), nullable=False),
        sa.Column("number", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["request"], ["requests.id"], name=op.f("fk_certificates_request")),
        sa.PrimaryKeyConstraint("request", name=op.f("pk_certificates")),
        sa.UniqueConstraint("number", name=op.f("uq_certificates_number")),
    )
