"""Steps by which the ledger's tables come to today's form, run by Alembic when a ledger is opened."""
