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
    ("GET", "/api/v1/models"): EVERYBODY,
    ("GET", "/api/v1/models/{number}"): EVERYBODY,
    ("GET", "/api/v1/portfolio"): EVERYBODY,
    ("GET", "/api/v1/letters"): EVERYBODY,
    ("POST", "/api/v1/letters"): frozenset({OFFICER}),
    ("POST", "/api/v1/letters/search"): PEOPLE,
    ("GET", "/api/v1/letters/{number}"): EVERYBODY,
    ("GET", "/api/v1/letters/{number}/history"): EVERYBODY,
    ("GET", "/api/v1/letters/{number}/document"): PEOPLE,
    ("GET", "/api/v1/letters/{number}/text"): PEOPLE,
    ("POST", "/api/v1/letters/{number}/withdraw"): frozenset({OFFICER}),
    ("GET", "/api/v1/deletions"): EVERYBODY,
    ("POST", "/api/v1/deletions"): PEOPLE,
    ("POST", "/api/v1/deletions/preview"): frozenset({PROTECTION}),
    ("GET", "/api/v1/deletions/{number}"): EVERYBODY,
    ("POST", "/api/v1/deletions/{number}/verify"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/preview"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/approve"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/refuse"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/hold"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/resume"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/{number}/extend"): frozenset({PROTECTION}),
    ("POST", "/api/v1/deletions/carry-out"): frozenset({PROTECTION}),
    ("GET", "/api/v1/deletions/{number}/certificate"): EVERYBODY,
    ("POST", "/api/v1/letters/renew"): frozenset({OFFICER}),
    ("GET", "/api/v1/jobs"): EVERYBODY,
    ("GET", "/api/v1/jobs/{number}"): EVERYBODY,
    ("POST", "/api/v1/jobs/{number}/retry"): frozenset({PROTECTION, ADMIN}),
    ("POST", "/api/v1/people/rows"): frozenset({PROTECTION}),
    ("POST", "/api/v1/people/data"): frozenset({OFFICER}),
    ("POST", "/api/v1/hooks/deletion"): frozenset({PROTECTION}),
    ("POST", "/api/v1/hooks/policy/pre"): frozenset({PROTECTION}),
    ("POST", "/api/v1/hooks/policy/post"): frozenset({PROTECTION}),
    ("GET", "/api/v1/audit/events"): frozenset({PROTECTION, AUDITOR, ADMIN}),
    ("GET", "/api/v1/audit/head"): frozenset({PROTECTION, AUDITOR, ADMIN}),
    ("POST", "/api/v1/audit/verify"): frozenset({PROTECTION, AUDITOR, ADMIN}),
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


def as_table() -> str:
    """The programs' part of the table as Markdown, as the administrator's guide has it."""
    lines = ["| | " + " | ".join(role.value for role in Role) + " |", "|---|" + "---|" * len(Role)]
    for (method, path), roles in PERMISSIONS.items():
        if path.startswith(("/api/", "/metrics")) and roles is not None:
            marks = ("yes" if role in roles else "" for role in Role)
            lines.append(f"| `{method} {path}` | " + " | ".join(marks) + " |")
    return "\n".join(lines)
