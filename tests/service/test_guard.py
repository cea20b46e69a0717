"""Who is let in: by token, by session, by role, not too often, and not from another site."""

from __future__ import annotations

import io
import json
import logging
import warnings
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from rocerf import errors
from rocerf.errors import OptionError, RocerfError
from rocerf.ledger.access import Role
from rocerf.service import logs, permissions
from rocerf.service.envelope import HEADERS
from rocerf.service.guard import GuardedRoute, guarded_router
from rocerf.service.problems import MEDIA_TYPE, status_of
from service_desk import Desk, desk_in


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return desk_in(tmp_path_factory.mktemp("desk"), failures_per_minute=10_000, requests_per_minute=100_000)


def test_strangers_and_wrong_tokens_get_a_problem(desk: Desk) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer rocerf_x_y"},
        {"Authorization": "Basic eDp5"},
        {"Cookie": "rocerf_session=x"},
    ):
        answer = desk.client().get("/api/v1/me", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["detail"].startswith("Expected")
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_the_role_is_asked_before_anything_is_read(desk: Desk) -> None:
    broken = {"content": b"{not json", "headers": {"Content-Type": "application/json"}}
    assert desk.client().post("/api/v1/tokens", **broken).status_code == 401
    answer = desk.client(Role.AUDITOR).post("/api/v1/tokens", **broken)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:rocerf:problem:ForbiddenError")
    assert desk.client(Role.ADMIN).post("/api/v1/tokens", **broken).status_code == 422


def test_a_token_s_life_over_http(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    admin = desk.client(Role.ADMIN)
    made = admin.post("/api/v1/tokens", json={"name": "desk", "person": "Ada", "role": "officer", "days": 3}).json()
    mine = {"Authorization": f"Bearer {made['secret']}"}
    assert desk.client().get("/api/v1/me", headers=mine).json()["id"] == made["id"]
    listed = admin.get("/api/v1/tokens")
    assert made["id"] in {token["id"] for token in listed.json()["tokens"]}
    assert made["secret"] not in listed.text
    assert admin.delete(f"/api/v1/tokens/{made['id']}").json()["revoked_at"] is not None
    assert desk.client().get("/api/v1/me", headers=mine).status_code == 401
    assert admin.delete("/api/v1/tokens/none").status_code == 404


def test_a_browser_signs_in_and_out(desk: Desk) -> None:
    client = desk.client()
    answer = client.post("/login", data={"token": desk.secrets[Role.OFFICER]})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert desk.secrets[Role.OFFICER].lower() not in cookie
    assert client.get("/api/v1/me").json()["role"] == "officer"
    session = client.cookies["rocerf_session"]
    assert client.post("/logout").headers["location"] == "/login"
    assert client.get("/api/v1/me", headers={"Cookie": f"rocerf_session={session}"}).status_code == 401
    assert (
        "secure"
        in desk.client(base_url="https://testserver")
        .post("/login", data={"token": desk.secrets[Role.OFFICER]})
        .headers["set-cookie"]
        .lower()
    )


def test_signing_in_again_ends_the_session_before(desk: Desk) -> None:
    """Neither goes a forgotten session on, nor is one taken over that somebody else put into the browser."""
    planted = desk.browser(Role.OFFICER).cookies["rocerf_session"]
    client = desk.client()
    headers = {"Cookie": f"rocerf_session={planted}"}
    answer = client.post("/login", data={"token": desk.secrets[Role.ADMIN]}, headers=headers)
    assert answer.status_code == 303
    assert client.cookies["rocerf_session"] != planted
    assert client.get("/api/v1/me").json()["role"] == "admin"
    assert desk.client().get("/api/v1/me", headers=headers).status_code == 401


def test_a_form_of_another_site_is_refused(desk: Desk) -> None:
    from rocerf.service.guard import csrf_token

    browser = desk.browser(Role.ADMIN)
    right = csrf_token(browser.cookies["rocerf_session"])
    body = {"name": "x", "person": "Ada", "role": "auditor"}
    for headers in (
        {},
        {"X-CSRF-Token": "x"},
        {"X-CSRF-Token": right[:-1]},
        {"X-CSRF-Token": right, "Sec-Fetch-Site": "cross-site"},
    ):
        assert browser.post("/api/v1/tokens", json=body, headers=headers).status_code == 403
    assert browser.post("/api/v1/tokens", json=body, headers={"X-CSRF-Token": right}).status_code == 201
    elsewhere = desk.client().post(
        "/login", data={"token": desk.secrets[Role.ADMIN]}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert elsewhere.status_code == 403
    assert right != browser.cookies["rocerf_session"]


def test_a_form_field_is_as_good_as_the_header(tmp_path: Path) -> None:
    permissions.declare({("POST", "/a-form"): frozenset({Role.OFFICER})})
    desk = desk_in(tmp_path)
    router = guarded_router()

    @router.post("/a-form")
    def form(word: str = __import__("fastapi").Form()) -> str:
        return word

    desk.app.include_router(router)
    browser = desk.browser(Role.OFFICER)
    from rocerf.service.guard import csrf_token

    right = csrf_token(browser.cookies["rocerf_session"])
    try:
        assert browser.post("/a-form", data={"word": "yes", "csrf_token": right}).json() == "yes"
        assert browser.post("/a-form", data={"word": "yes"}).status_code == 403
        assert browser.post("/a-form", data={"word": "yes", "csrf_token": "x"}).status_code == 403
    finally:
        del permissions.PERMISSIONS["POST", "/a-form"]


def test_too_many_requests_and_too_many_guesses_wait(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, requests_per_minute=20, failures_per_minute=3)
    officer = desk.client(Role.OFFICER)
    answers = [officer.get("/api/v1/me") for _ in range(7)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert desk.client(Role.AUDITOR).get("/api/v1/me").status_code == 200  # each token has its own
    for _ in range(3):
        assert desk.client().post("/login", data={"token": "rocerf_x_y"}).status_code == 401
    assert desk.client().post("/login", data={"token": "rocerf_x_y"}).status_code == 429
    wrong = {"Authorization": "Bearer rocerf_x_y"}
    assert desk.client().get("/api/v1/me", headers=wrong).status_code == 429
    # A program with a token that has ended locks nobody out who is behind the same address.
    assert desk.client(Role.AUDITOR).get("/api/v1/me").status_code == 200
    assert desk.client().post("/login", data={"token": desk.secrets[Role.ADMIN]}).status_code == 303
    assert desk.client().get("/api/v1/me").status_code == 401  # who shows nothing, guesses nothing


def test_every_answer_has_the_secure_headers(desk: Desk) -> None:
    for path in ("/health", "/nowhere", "/api/v1/me", "/openapi.json"):
        answer = desk.client().get(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["content-security-policy"]
    https = desk.client(base_url="https://testserver").get("/health")
    assert "strict-transport-security" in https.headers


def test_bodies_have_a_limit(tmp_path: Path) -> None:
    client = desk_in(tmp_path, largest_body=100).client(Role.ADMIN)
    announced = client.post("/api/v1/tokens", json={"name": "x" * 200, "person": "Ada", "role": "admin"})
    streamed = client.post(
        "/api/v1/tokens", content=iter([b"x" * 60] * 3), headers={"Content-Type": "application/json"}
    )
    for answer in (announced, streamed):
        assert (answer.status_code, answer.headers["content-type"]) == (413, MEDIA_TYPE)


def test_a_route_without_a_line_does_not_start() -> None:
    router = guarded_router()
    with pytest.raises(OptionError, match="Expected a line of the table"):
        router.get("/undeclared")(lambda: None)
    with pytest.raises(OptionError, match="a second that differs"):
        permissions.declare({("GET", "/health"): frozenset()})


def test_every_error_of_ours_has_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RocerfError)]
    assert len(kinds) > 10
    for kind in kinds:
        error = kind.__new__(kind)
        assert 400 <= status_of(error) <= 503


def test_a_mistake_of_ours_says_nothing_of_its_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    desk = desk_in(tmp_path)

    def broken(*_: object) -> None:
        raise ValueError("Erika Mustermann, 7 children")

    monkeypatch.setattr(desk.access, "tokens", broken)
    stream = io.StringIO()
    handler = logs.to_stream(stream)
    try:
        answer = desk.client(Role.ADMIN).get("/api/v1/tokens")
    finally:
        logs.log.removeHandler(handler)
    assert (answer.status_code, answer.headers["content-type"]) == (500, MEDIA_TYPE)
    assert "Erika" not in answer.text + stream.getvalue()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["mistake", "request"]
    assert lines[0]["kind"] == "ValueError"
    assert lines[0]["request_id"] == answer.json()["request_id"]


def test_a_caller_s_own_id_is_taken_over_where_no_name_fits(tmp_path: Path) -> None:
    client = desk_in(tmp_path).client()
    for own in ("0af7651916cd43dd8448eb211c80319c", "8e03978e-40d5-43dd-bc93-6894a57f9324"):
        assert client.get("/health", headers={"X-Request-Id": own}).headers["x-request-id"] == own
    for other in ("Erika-Mustermann-1964", "customer17abcdef00", "deadbeef", "Adele-Beda-Abbe-Dea"):
        assert client.get("/health", headers={"X-Request-Id": other}).headers["x-request-id"] != other


def test_what_others_log_is_a_line_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    stream = io.StringIO()
    handler = logs.to_stream(stream)
    try:
        logs.others_to(handler)
        try:
            raise ValueError("Erika")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("for %s", "Erika")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning("Erika", UserWarning, "anywhere.py", 1)
    finally:
        logs.log.removeHandler(handler)
        logging.captureWarnings(False)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("error", "uvicorn.error"),
        ("warning", "py.warnings"),
    ]
    assert "Erika" not in stream.getvalue()


def test_a_database_s_errors_hold_no_value(tmp_path: Path) -> None:
    engine = desk_in(tmp_path).ledger.core.database.engine
    with pytest.raises(DBAPIError) as caught, engine.begin() as connection:
        connection.execute(text("INSERT INTO copies (id, kind, path) VALUES (1, :kind, NULL)"), {"kind": "Erika"})
    assert "Erika" not in str(caught.value)


def test_logs_hold_routes_and_no_secrets(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    stream = io.StringIO()
    handler = logs.to_stream(stream)
    try:
        browser = desk.browser(Role.OFFICER)
        session = browser.cookies["rocerf_session"]
        desk.client(Role.ADMIN).delete("/api/v1/tokens/Mustermann?person=Erika")
        wanted = {"name": "Erika", "person": "Erika", "role": "officer"}
        made = desk.client(Role.ADMIN).post("/api/v1/tokens", json=wanted).json()
        desk.client().get("/nowhere/Erika")
    finally:
        logs.log.removeHandler(handler)
    written = stream.getvalue()
    for secret in (*desk.secrets.values(), session, made["secret"], "Erika", "Mustermann"):
        assert secret not in written
    assert "/api/v1/tokens/{token_id}" in written
    assert len(written.splitlines()) == 4


def test_metrics_count_by_route(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    desk.client(Role.ADMIN).delete("/api/v1/tokens/none")
    text = desk.client(Role.AUDITOR).get("/metrics").text
    assert 'rocerf_requests_total{method="DELETE",route="/api/v1/tokens/{token_id}",status="404"} 1.0' in text


def test_every_route_is_guarded_and_declared(desk: Desk) -> None:
    from rocerf.service.app import every_route

    routes = list(every_route(desk.app))
    assert {type(route) for route in routes} == {GuardedRoute}
    assert all(isinstance(route, APIRoute) for route in routes)
    declared = {(method, route.path) for route in routes for method in route.methods or ()}
    assert declared <= set(permissions.PERMISSIONS)
