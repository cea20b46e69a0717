"""The ledger: model versions, letters, deletion requests, jobs and the audit trail. Nothing here speaks HTTP."""
