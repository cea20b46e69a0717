"""Keyed hashes of the ids of erased rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0004", "0003", None, None


def upgrade() -> None:
    """Ids of rows that were erased before are gone, so they are not in it: nothing tells that they come back."""
    op.create_table(
        "erased_ids",
        sa.Column("tag", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tag", name=op.f("pk_erased_ids")),
    )
