"""Who may speak to the service: tokens with a role, and the sessions of browsers that were opened with one.

A token is shown once, when it is made. What is kept is the SHA-256 of its secret part: the secret has 256 random bits,
so there is nothing to guess and a slow hash would only slow every request. Tokens expire and can be revoked; a session
ends with its token. Nothing here is about the people in the ledger.

>>> from sqlalchemy import create_engine
>>> access = Access(create_engine("sqlite://"))
>>> access.create_tables()
>>> issued = access.issue("the desk in Ulm", Role.OFFICER)
>>> access.authenticate(issued.secret).role
<Role.OFFICER: 'officer'>
>>> issued.secret in str(access.tokens())
False
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import BigInteger, Column, Engine, Row, String, Table, delete, insert, or_, select, update

from rocerf.errors import NotSignedInError, OptionError, UnknownTokenError
from rocerf.ledger.tables import Base

tokens_table = Table(
    "access_tokens",
    Base.metadata,
    Column("id", String(16), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("role", String(32), nullable=False),
    Column("secret_sha256", String(64), nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger, nullable=True),
    Column("person", String(100), nullable=False, default=""),
)

sessions_table = Table(
    "access_sessions",
    Base.metadata,
    Column("secret_sha256", String(64), primary_key=True),
    Column("token_id", String(16), nullable=False, index=True),
    Column("expires_at", BigInteger, nullable=False),
)

#: How every token begins, so that scanners for leaked secrets can find it.
PREFIX = "rocerf"
DAY = 24 * 3600
LONGEST_DAYS = 366
#: A browser is asked for its token again after so many seconds.
SESSION_SECONDS = 8 * 3600

_REFUSED = "Expected a token that is known, not expired and not revoked, got another; ask an administrator for one."


class Role(StrEnum):
    """Who somebody is towards the service; what each may do stands in one table, `rocerf.service.permissions`."""

    OFFICER = "officer"
    PROTECTION = "data-protection-officer"
    AUDITOR = "auditor"
    ADMIN = "admin"


@dataclass(frozen=True)
class Token:
    """What is known of a token: everything but its secret. Times are seconds since 1970."""

    id: str
    name: str
    role: Role
    made_at: int
    expires_at: int
    revoked_at: int | None = None
    #: Whose it is: a human being who may have several. "" for one that was made before this was noted.
    person: str = ""


@dataclass(frozen=True)
class IssuedToken:
    """A token with its secret, which is nowhere else from now on."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"IssuedToken({self.token!r}, secret=...)"  # a secret in a log is a secret no more


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()


class Access:
    """The tokens and sessions in a database."""

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.time) -> None:
        self.engine = engine
        #: On SQLite whoever means to write says so at once: two of them wait for each other, instead of failing.
        self._writing = engine.execution_options(writes=True)
        self._clock = clock

    def create_tables(self) -> None:
        """Make the tables in a database that has no ledger; in one with a ledger its migrations make them."""
        Base.metadata.create_all(self.engine, tables=[tokens_table, sessions_table])

    def now(self) -> int:
        """Seconds since 1970."""
        return int(self._clock())

    def issue(self, name: str, role: Role | str, *, days: int = 90, person: str | None = None) -> IssuedToken:
        """A new token; its secret is in the answer and nowhere else.

        ``person`` is the human being whose it is (by default called as the token): the four-eyes rule tells people
        apart, not tokens. Whether two names are one human being, nobody can see here.
        """
        person = name if person is None else person
        if not isinstance(days, int) or not 1 <= days <= LONGEST_DAYS:
            raise OptionError(f"Expected 1 to {LONGEST_DAYS} days until the token expires, got {days!r}; choose some.")
        for one, what in ((name, "the token"), (person, "whose it is")):
            if not one.strip() or len(one) > 100 or not one.isprintable():
                raise OptionError(f"Expected a name of 1 to 100 printable signs for {what}, got another; shorten it.")
        try:
            role = Role(role)
        except ValueError:
            known = ", ".join(Role)
            raise OptionError(f"Expected a role out of {known}, got {role!r}; choose one of them.") from None
        now = self.now()
        token = Token(secrets.token_hex(6), name, role, now, now + days * DAY, person=person)
        secret = f"{PREFIX}_{token.id}_{secrets.token_urlsafe(32)}"
        with self._writing.begin() as connection:
            connection.execute(
                insert(tokens_table).values(
                    id=token.id,
                    name=token.name,
                    role=token.role.value,
                    secret_sha256=digest(secret),
                    made_at=token.made_at,
                    expires_at=token.expires_at,
                    person=token.person,
                )
            )
        return IssuedToken(token, secret)

    def tokens(self) -> tuple[Token, ...]:
        """Every token ever made, the newest first, without secrets."""
        order = (tokens_table.c.made_at.desc(), tokens_table.c.id)
        with self.engine.connect() as connection:
            return tuple(_token(row) for row in connection.execute(select(tokens_table).order_by(*order)))

    def revoke(self, token_id: str) -> Token:
        """End a token and its sessions now; one that has ended already stays as it is."""
        with self._writing.begin() as connection:
            mine = tokens_table.c.id == token_id
            connection.execute(
                update(tokens_table).where(mine, tokens_table.c.revoked_at.is_(None)).values(revoked_at=self.now())
            )
            connection.execute(delete(sessions_table).where(sessions_table.c.token_id == token_id))
            row = connection.execute(select(tokens_table).where(mine)).first()
        if row is None:
            raise UnknownTokenError("Expected the id of a token, got one that no token has; list the tokens first.")
        return _token(row)

    def authenticate(self, secret: str) -> Token:
        """The token with this secret; whatever is wrong with it, the sentence is the same."""
        prefix, _, rest = secret.partition("_")
        token_id, _, _ = rest.partition("_")
        if prefix != PREFIX or not token_id.isalnum() or len(token_id) > 16:
            raise NotSignedInError(_REFUSED)
        with self.engine.connect() as connection:
            row = connection.execute(select(tokens_table).where(tokens_table.c.id == token_id)).first()
        kept = digest("") if row is None else row.secret_sha256
        if not hmac.compare_digest(kept, digest(secret)) or row is None:
            raise NotSignedInError(_REFUSED)
        return self._valid(_token(row))

    def open_session(self, token: Token) -> str:
        """A session for a browser that has shown its token: the secret for its cookie."""
        secret = secrets.token_urlsafe(32)
        now = self.now()
        with self._writing.begin() as connection:
            connection.execute(delete(sessions_table).where(sessions_table.c.expires_at <= now))
            connection.execute(
                insert(sessions_table).values(
                    secret_sha256=digest(secret),
                    token_id=token.id,
                    expires_at=min(now + SESSION_SECONDS, token.expires_at),
                )
            )
        return secret

    def session(self, secret: str) -> Token:
        """The token that a session was opened with."""
        asked = (
            select(tokens_table)
            .join(sessions_table, sessions_table.c.token_id == tokens_table.c.id)
            .where(sessions_table.c.secret_sha256 == digest(secret), sessions_table.c.expires_at > self.now())
        )
        with self.engine.connect() as connection:
            row = connection.execute(asked).first()
        if row is None:
            raise NotSignedInError("Expected a session that is still open, got none; sign in again.")
        return self._valid(_token(row))

    def close_session(self, secret: str) -> None:
        """End a session; one that is not there is ended already."""
        with self._writing.begin() as connection:
            ended = or_(sessions_table.c.secret_sha256 == digest(secret), sessions_table.c.expires_at <= self.now())
            connection.execute(delete(sessions_table).where(ended))

    def _valid(self, token: Token) -> Token:
        if token.revoked_at is not None or token.expires_at <= self.now():
            raise NotSignedInError(_REFUSED)
        return token


def _token(row: Row[tuple[object, ...]]) -> Token:
    return Token(row.id, row.name, Role(row.role), row.made_at, row.expires_at, row.revoked_at, row.person)
