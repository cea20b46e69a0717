"""Tokens belong to people, rows may stay with the user, idempotency keys know their request, reasons are sealed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0003", "0002", None, None


def upgrade() -> None:
    """Of tokens and requests from before, nobody knows whose they are: the four-eyes rule asks for them anew.

    Reasons that were written before stay where they are until the person is erased; new ones are sealed.
    """
    op.add_column("versions", sa.Column("rows_outside", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("access_tokens", sa.Column("person", sa.String(100), nullable=False, server_default=""))
    for name in ("verified_person", "approved_person"):
        op.add_column("requests", sa.Column(name, sa.String(), nullable=False, server_default=""))
    for table in ("requests", "jobs"):
        op.add_column(table, sa.Column("idempotency_body", sa.String(), nullable=True))
    op.add_column("letters", sa.Column("issue_body", sa.String(), nullable=True))
