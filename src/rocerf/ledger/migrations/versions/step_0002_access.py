"""Tokens of the service, and the sessions of browsers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None


def upgrade() -> None:
    """The tables of ``access.py``."""
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_tokens")),
    )
    op.create_table(
        "access_sessions",
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("token_id", sa.String(16), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("secret_sha256", name=op.f("pk_access_sessions")),
    )
    op.create_index(op.f("ix_access_sessions_token_id"), "access_sessions", ["token_id"], unique=False)
