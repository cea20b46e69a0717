"""Schemathesis asks the whole API in-process whatever its description allows, and what it does not, with every role.

No answer of a mistake of ours, none with a status, type or body that is not described, none beyond the role.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import validate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from length import THOROUGH
from rocerf.ledger.access import Role
from rocerf.service.examples import bodies
from rocerf.service.permissions import roles_of
from service_desk import Desk, desk_in

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
#: Without a line of its own there would be nobody left to ask; ended tokens are asked about in test_guard.
KEPT = {"DELETE /api/v1/tokens/{token_id}"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A service with letters, and requests in several states, that counts no requests."""
    desk = desk_in(tmp_path_factory.mktemp("desk"), letters=4, requests_per_minute=10**8, failures_per_minute=10**8)
    for place in range(4):
        desk.ledger.requests.receive(f"owner-{place}", actor="desk")
    desk.ledger.requests.verify_identity(2, actor="desk")
    return desk


@pytest.fixture(scope="module")
def operations(desk: Desk) -> list[Any]:
    schema = schemathesis.openapi.from_asgi("/openapi.json", desk.app)
    return [found.ok() for found in schema.get_all_operations()]


def ask(desk: Desk, operation: Any, role: Role | None, mode: GenerationMode, examples: int) -> int:
    """Ask one operation with one role so often; how many times it was."""
    method, _, path = operation.label.partition(" ")
    roles = roles_of(method, path)
    headers = {} if role is None else {"Authorization": f"Bearer {desk.secrets[role]}"}
    numbers: Iterator[int] = itertools.cycle(range(1, 6))
    asked = 0

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def every(case: Any) -> None:
        nonlocal asked
        asked += 1
        if "number" in (case.path_parameters or {}) and asked % 2:  # one that is there
            case.path_parameters["number"] = next(numbers)
        answer = case.call(headers=headers)
        given_away = str(answer.request.headers.get("Authorization", ""))
        known = role is not None and given_away == headers["Authorization"]  # wrong requests may come without it
        if roles is not None and not (known and role in roles) and answer.status_code not in (404, 405):
            assert answer.status_code == (403 if known else 401), (operation.label, role)
        case.validate_response(answer, checks=CHECKS)

    every()
    return asked


def test_what_is_described_is_answered(desk: Desk, operations: list[Any]) -> None:
    """A few requests to every operation, by a role that may."""
    asked = 0
    for operation in operations:
        method, _, path = operation.label.partition(" ")
        roles = roles_of(method, path)
        role = None if roles is None else sorted(roles)[0]
        asked += ask(desk, operation, role, GenerationMode.POSITIVE, 2)
    assert asked >= len(operations) >= 45


@pytest.mark.slow
@pytest.mark.parametrize("role", [None, *Role])
def test_no_role_finds_a_mistake_or_a_way_beyond(desk: Desk, operations: list[Any], role: Role | None) -> None:
    """Right requests and wrong ones to every operation."""
    examples = 12 if THOROUGH else 2
    asked = 0
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if operation.label not in KEPT:
                asked += _asked(lambda op=operation, m=mode: ask(desk, op, role, m, examples))
    assert asked > len(operations)


def _asked(attempt: Callable[[], int]) -> int:
    """Not every operation can be asked wrongly: some take nothing."""
    from hypothesis.errors import Unsatisfiable

    try:
        return attempt()
    except Unsatisfiable:
        return 0


def test_every_body_has_a_schema_and_every_problem_is_one(desk: Desk) -> None:
    described = desk.app.openapi()
    answers = 0
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary"), (method, path)
            for status, answer in operation["responses"].items():
                answers += 1
                content = answer.get("content", {})
                if status == "303":
                    continue
                assert content, (method, path, status)
                assert all(kind["schema"] for kind in content.values()), (method, path, status)
                if int(status) >= 400:
                    assert set(content) == {"application/problem+json"}, (method, path, status)
    assert answers > 300


def test_every_body_comes_with_an_example_that_fits(desk: Desk) -> None:
    """Whoever reads the description finds one for all that is sent and answered."""
    described = desk.app.openapi()
    found = 0
    for body in bodies(described):
        validate(body["example"], {**body["schema"], "components": described["components"]})
        assert body["example"] not in ({}, [], "", None)
        found += 1
    assert found > 300


def test_examples_of_fields_fit_their_fields(desk: Desk) -> None:
    described = desk.app.openapi()
    found = 0
    for whole in described["components"]["schemas"].values():
        for field in whole.get("properties", {}).values():
            for example in field.get("examples", ()):
                validate(example, {**field, "components": described["components"]})
                found += 1
    assert found > 60


def test_an_example_that_is_sent_is_taken(desk: Desk) -> None:
    """Of the bodies that only have to be right, whatever the ledger holds."""
    described = desk.app.openapi()["paths"]
    wanted = {
        "/api/v1/tokens": (Role.ADMIN, 201),
        "/api/v1/people/rows": (Role.PROTECTION, 200),
        "/api/v1/people/data": (Role.OFFICER, 200),
        "/api/v1/hooks/policy/pre": (Role.PROTECTION, 200),
    }
    for path, (role, status) in wanted.items():
        (body,) = described[path]["post"]["requestBody"]["content"].values()
        assert desk.client(role).post(path, json=body["example"]).status_code == status, path
