"""The folder shared/data beside the project: published tables that may not be in the repository.

Tests that compare with it carry ``@needs_shared``. Where the folder is missing they are skipped;
where it is there, conftest.py turns any such skip into a failure, so that a wrong path or a
forgotten mark cannot make the comparisons vanish.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"
REASON = "needs the folder shared/data beside the project"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=REASON)
