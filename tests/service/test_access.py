"""Tokens and sessions: shown once, kept hashed, ended by time, by hand, and with each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from rocerf.errors import NotSignedInError, OptionError, UnknownTokenError
from rocerf.ledger.access import DAY, SESSION_SECONDS, Access, Role
from service_desk import Seconds, memory_access


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def access(clock: Seconds) -> Iterator[Access]:
    access = memory_access(clock)
    yield access
    access.engine.dispose()


def test_a_secret_is_nowhere_but_in_the_answer(access: Access) -> None:
    issued = access.issue("desk", Role.OFFICER)
    session = access.open_session(issued.token)
    with access.engine.connect() as connection:
        kept = str([connection.execute(text(f"SELECT * FROM access_{what}")).all() for what in ("tokens", "sessions")])
    for secret in (issued.secret, issued.secret.rpartition("_")[2], session):
        assert secret not in kept
    assert issued.secret not in repr(issued)
    assert issued.secret not in str(access.tokens())


def test_a_token_lasts_until_its_last_second(access: Access, clock: Seconds) -> None:
    issued = access.issue("desk", "auditor", days=2)
    clock.now += 2 * DAY - 1
    assert access.authenticate(issued.secret) == issued.token
    clock.now += 1
    with pytest.raises(NotSignedInError, match="not expired"):
        access.authenticate(issued.secret)


def test_a_revoked_token_ends_with_its_sessions(access: Access) -> None:
    kept, ended = access.issue("a", Role.ADMIN), access.issue("b", Role.ADMIN)
    sessions = [access.open_session(issued.token) for issued in (kept, ended)]
    revoked = access.revoke(ended.token.id)
    assert revoked.revoked_at == access.now()
    assert access.revoke(ended.token.id) == revoked
    assert access.session(sessions[0]) == kept.token
    for ask, secret in ((access.authenticate, ended.secret), (access.session, sessions[1])):
        with pytest.raises(NotSignedInError):
            ask(secret)


def test_a_session_ends_by_time_by_hand_and_with_its_token(access: Access, clock: Seconds) -> None:
    long, short = access.issue("a", Role.ADMIN), access.issue("b", Role.ADMIN, days=1)
    clock.now += DAY - 60
    of_long, of_short, closed = (access.open_session(token) for token in (long.token, short.token, long.token))
    access.close_session(closed)
    access.close_session(closed)
    with pytest.raises(NotSignedInError):
        access.session(closed)
    clock.now += 60
    with pytest.raises(NotSignedInError):
        access.session(of_short)
    assert access.session(of_long) == long.token
    clock.now += SESSION_SECONDS
    with pytest.raises(NotSignedInError, match="sign in again"):
        access.session(of_long)


@pytest.mark.parametrize(
    "change",
    [
        "",
        "x",
        "rocerf",
        "rocerf_",
        "other_{id}_{rest}",
        "rocerf_{id}_",
        "rocerf_{id}_x{rest}",
        "rocerf_000000000000_{rest}",
        "rocerf_{id}_{rest} ",
        "rocerf_' OR 1=1_{rest}",
        "é_{id}",
    ],
)
def test_no_other_secret_opens(access: Access, change: str) -> None:
    issued = access.issue("desk", Role.OFFICER)
    _, token_id, rest = issued.secret.split("_", 2)
    with pytest.raises(NotSignedInError, match="Expected a token that is known"):
        access.authenticate(change.format(id=token_id, rest=rest))


def test_impossible_tokens_are_refused(access: Access) -> None:
    for name, role, days in (
        ("", "admin", 1),
        ("x" * 101, "admin", 1),
        ("a\nb", "admin", 1),
        ("a", "boss", 1),
        ("a", "admin", 0),
    ):
        with pytest.raises(OptionError, match="Expected"):
            access.issue(name, role, days=days)
    with pytest.raises(UnknownTokenError, match="list the tokens"):
        access.revoke("nobody")
    assert access.tokens() == ()
