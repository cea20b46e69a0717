"""Who may do what: one table, and no route without its line in it.

A route is made by :class:`rocerf.service.guard.GuardedRoute`, which looks its own line up when it is made: a path that
is not here does not start. Tests walk the same table, role by role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rocerf.errors import OptionError
from rocerf.ledger.access import Role

#: A method and a path as its route spells it.
Endpoint: TypeAlias = tuple[str, str]

OFFICER, PROTECTION, AUDITOR, ADMIN = Role.OFFICER, Role.PROTECTION, Role.AUDITOR, Role.ADMIN
#: Anybody, signed in or not.
PUBLIC: frozenset[Role] | None = None
EVERYBODY = frozenset(Role)
#: Those who work with people; an auditor and an administrator see no person.
PEOPLE = frozenset({OFFICER, PROTECTION})

#: Method and path -> the roles that may; None where nobody has to sign in.
PERMISSIONS: dict[Endpoint, frozenset[Role] | None] = {
    ("GET", "/health"): PUBLIC,
    ("GET", "/ready"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
    ("POST", "/login"): PUBLIC,
    ("POST", "/logout"): PUBLIC,
    ("GET", "/metrics"): frozenset({AUDITOR, ADMIN}),
    ("GET", "/api/v1/me"): EVERYBODY,
    ("GET", "/api/v1/tokens"): frozenset({AUDITOR, ADMIN}),
    ("POST", "/api/v1/tokens"): frozenset({ADMIN}),
    ("DELETE", "/api/v1/tokens/{token_id}"): frozenset({ADMIN}),
}


def declare(permissions: Mapping[Endpoint, frozenset[Role] | None]) -> None:
    """Add the lines of further routes, as the pages do; a line that is there already cannot be changed."""
    for endpoint, roles in permissions.items():
        if PERMISSIONS.setdefault(endpoint, roles) != roles:
            method, path = endpoint
            raise OptionError(f"Expected one line for {method} {path}, got a second that differs; remove one.")


def roles_of(method: str, path: str) -> frozenset[Role] | None:
    """Who may; None for everybody, signed in or not."""
    try:
        return PERMISSIONS[method, path]
    except KeyError:
        raise OptionError(
            f"Expected a line of the table of permissions for {method} {path}, got none; declare who may."
        ) from None
