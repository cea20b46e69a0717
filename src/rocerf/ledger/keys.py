"""The key file: keys of people and of model versions, kept apart from what they open.

It is an SQLite database of its own, beside the ledger's or wherever it is put. What a key opened is lost with the key:
in the ledger, in its write-ahead logs, and in every backup of it that anybody has. So backups of the key file are to be
few, short-lived, and not where those of the ledger are; a lost key file is a lost ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from rocerf.errors import ErasedError, FileFormatError, LedgerUnavailableError
from rocerf.ledger.written import as_written
from rocerf.storage import disk

_BYTES, _NONCE = 32, 12

_TABLES = """
CREATE TABLE IF NOT EXISTS keys (
    scope TEXT NOT NULL, id INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (scope, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mark (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL);
"""

#: Scopes of keys: of people, of model versions, and the three of the ledger as a whole.
SUBJECT, VERSION, LEDGER = "subject", "version", "ledger"
_TAGS, _CHAIN, _ROWS = 1, 2, 3


class KeyFile:
    """Keys by scope and number; made once, read often, destroyed for good.

    >>> import tempfile
    >>> keys = KeyFile(Path(tempfile.mkdtemp()) / "example.keys")
    >>> key = keys.made(SUBJECT, [7])[7]
    >>> opened(key, sealed(key, b"private", "letter/1/point"), "letter/1/point")
    b'private'
    >>> keys.destroy(SUBJECT, [7])
    1
    >>> keys.of(SUBJECT, [7])
    {}
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _unless_there():
                os.close(disk.create(self.path, 0o600))  # its owner's only, from the first byte on
        with self._changing() as file:
            for statement in _TABLES.split(";"):
                file.execute(statement)
        #: The keys of the ledger as a whole, which live as long as it does.
        self._own = self.made(LEDGER, [_TAGS, _CHAIN, _ROWS])

    def made(self, scope: str, numbers: Iterable[int]) -> dict[int, bytes]:
        """Keys of these numbers, new ones for those that have none; on the disk before anything is sealed by them."""
        wanted = list(dict.fromkeys(numbers))
        found = self.of(scope, wanted)
        new = [number for number in wanted if number not in found]
        if new:
            fresh = [(scope, number, secrets.token_bytes(_BYTES)) for number in new]
            with self._changing() as file:
                file.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", fresh)
            found = self.of(scope, wanted)  # somebody else may have been first
        return found

    def of(self, scope: str, numbers: Iterable[int] | None = None) -> dict[int, bytes]:
        """The keys that there are of these numbers, or of all."""
        with self._opened() as file:
            if numbers is None:
                return dict(file.execute("SELECT id, key FROM keys WHERE scope = ?", (scope,)).fetchall())
            found: dict[int, bytes] = {}
            wanted = list(numbers)
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT id, key FROM keys WHERE scope = ? AND id IN ({marks})"
                found.update(file.execute(query, (scope, *part)).fetchall())
            return found

    def destroy(self, scope: str, numbers: Iterable[int]) -> int:
        """Overwrite and remove keys; how many there were. The file is then written anew without free pages."""
        with self._changing() as file:
            gone = sum(
                file.execute("DELETE FROM keys WHERE scope = ? AND id = ?", (scope, number)).rowcount
                for number in numbers
            )
        with self._opened() as file:
            file.execute("VACUUM")
        return gone

    def tag(self, name: str) -> str:
        """A keyed hash of what somebody is called: without the key file names cannot even be tried."""
        return hmac.new(self._own[_TAGS], name.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def row_tag(self, number: object) -> str:
        """A keyed hash of the id of a training row, as it is written: 17 and "17" are the same."""
        return hmac.new(
            self._own[_ROWS], as_written(number).encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()

    def mac(self, content: bytes) -> str:
        """A keyed hash of the end of the audit chain."""
        return hmac.new(self._own[_CHAIN], content, hashlib.sha256).hexdigest()

    def mark(self) -> tuple[int, str] | None:
        """The farthest that the audit chain is known to have come: its number and hash."""
        with self._opened() as file:
            found: tuple[int, str] | None = file.execute("SELECT seq, hash FROM mark").fetchone()
            return found

    def set_mark(self, seq: int, link: str) -> None:
        """Note how far the audit chain has come; never back."""
        with self._changing() as file:
            file.execute(
                "INSERT INTO mark VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, "
                "hash = excluded.hash WHERE excluded.seq > seq",
                (seq, link),
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            # A connection a time: threads and processes share the file, and no page of it stays in memory.
            with closing(sqlite3.connect(self.path, timeout=30.0, isolation_level=None)) as file:
                file.execute("PRAGMA secure_delete = ON")
                file.execute("PRAGMA synchronous = FULL")
                file.execute("PRAGMA temp_store = MEMORY")  # writing it anew puts no key into a file elsewhere
                yield file
        except sqlite3.OperationalError as error:
            raise LedgerUnavailableError(
                f"Expected to read and write the key file {self.path}, got {error}; see that the file and its folder "
                "can be written to and the disk has room, then try again: nothing was changed."
            ) from error
        except sqlite3.DatabaseError as error:
            raise FileFormatError(
                f"Expected a key file of the ledger, got {self.path} which is not ({error}); check the path."
            ) from error

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as file:
            file.execute("BEGIN IMMEDIATE")
            try:
                yield file
                file.execute("COMMIT")
            except BaseException:
                if file.in_transaction:  # a full disk has ended it already: that is what is to be told
                    file.execute("ROLLBACK")
                raise


@contextmanager
def _unless_there() -> Iterator[None]:
    try:
        yield
    except FileExistsError:  # another process made it meanwhile
        return


def sealed(key: bytes, content: bytes, about: str) -> bytes:
    """Ciphertext of the content, bound to what it is about: in another place it cannot be opened."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, content, about.encode())


def opened(key: bytes | None, ciphertext: bytes, about: str) -> bytes:
    """The content; a key that was destroyed, and content of another place, are refused."""
    if key is None:
        raise ErasedError(
            f"Expected what is kept of {about}, got nothing: the key to it was destroyed when the person was erased; "
            "there is no way to bring it back."
        )
    try:
        return AESGCM(key).decrypt(ciphertext[:_NONCE], ciphertext[_NONCE:], about.encode())
    except InvalidTag as error:
        raise FileFormatError(
            f"Expected what the ledger kept of {about}, got content that was changed or belongs to another place or "
            "key file; take a copy of the database and the key file that belong together."
        ) from error
