"""Every role against every endpoint: who may is let through to the ledger, who may not is stopped, whatever is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rocerf.ledger.access import Role
from rocerf.service.app import every_route
from rocerf.service.permissions import PERMISSIONS, as_table
from service_desk import Desk, desk_in

PUBLIC = {("GET", "/health"), ("GET", "/ready"), ("GET", "/openapi.json"), ("POST", "/login"), ("POST", "/logout")}
#: Endpoints that answer with something about persons: nobody else may have them.
PERSONAL = re.compile(r"/letters/\{number\}/(document|text)$|/letters/search$")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return desk_in(tmp_path_factory.mktemp("desk"), letters=3, requests_per_minute=10**6, failures_per_minute=10**6)


def endpoints(desk: Desk) -> list[tuple[str, str]]:
    return sorted({(method, route.path) for route in every_route(desk.app) for method in route.methods or ()})


def test_the_table_and_the_routes_are_the_same(desk: Desk) -> None:
    assert set(endpoints(desk)) == set(PERMISSIONS)
    assert {endpoint for endpoint, roles in PERMISSIONS.items() if roles is None} >= PUBLIC


@pytest.mark.parametrize("role", [None, *Role])
def test_every_role_at_every_endpoint(desk: Desk, role: Role | None) -> None:
    asked = 0
    for method, path in endpoints(desk):
        roles = PERMISSIONS[method, path]
        if roles is None:
            continue
        address = re.sub(r"\{[a-z_]+\}", "999999", path)
        for body in (None, b"{", b'{"reason": "x"}'):
            answer = desk.client(role).request(
                method, address, content=body, headers={"Content-Type": "application/json"} if body else {}
            )
            asked += 1
            if role is None:
                assert answer.status_code == 401, (method, path)
            elif role in roles:
                assert answer.status_code not in (401, 403, 405, 500), (method, path, answer.text)
            else:
                assert answer.status_code == 403, (method, path)
                assert json.loads(answer.text)["type"].endswith("ForbiddenError")
    assert asked > 90


def test_persons_are_for_those_who_work_with_them() -> None:
    people = frozenset({Role.OFFICER, Role.PROTECTION})
    found = [endpoint for endpoint in PERMISSIONS if PERSONAL.search(endpoint[1])]
    assert len(found) == 4
    assert all(PERMISSIONS[endpoint] == people for endpoint in found)


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.ADMIN])
def test_who_sees_no_person_sees_none(desk: Desk, role: Role) -> None:
    """Nothing that such a role can read holds a name, a subject's number or a text written about somebody."""
    officer = desk.client(Role.OFFICER)
    protection = desk.client(Role.PROTECTION)
    taken = officer.post("/api/v1/deletions", json={"person": "owner-7"}).json()
    protection.post(f"/api/v1/deletions/{taken['id']}/hold", json={"reason": "Erika is abroad"})
    officer.post("/api/v1/letters/1/withdraw", json={"reason": "Erika has moved"})
    client = desk.client(role)
    read = ""
    for method, path in endpoints(desk):
        if method == "GET" and role in (PERMISSIONS[method, path] or ()):
            read += client.get(re.sub(r"\{[a-z_]+\}", "1", path)).text
    assert '"letters":[{' in read
    assert not re.search(r'"subject":\s*[0-9]', read)
    for personal in ("Erika", "owner-7", "person-", "73219.8125"):
        assert personal not in read
    assert re.search(r'"subject":\s*[0-9]', officer.get("/api/v1/letters").text)


def test_the_guide_has_the_table_of_the_code() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "service.md").read_text("utf-8")
    shown = re.search(r"<!-- roles: begin -->\n(.*?)\n<!-- roles: end -->", guide, flags=re.DOTALL)
    assert shown is not None
    assert shown[1] == as_table(), "docs/service.md differs from rocerf.service.permissions.as_table()"
