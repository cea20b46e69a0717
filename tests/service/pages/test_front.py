"""Signing in and out, the language, files and problems, as a browser asks for them."""

from __future__ import annotations

import re

import pytest

from rocerf.ledger.access import Role
from rocerf.service.pages import static
from rocerf.service.pages.texts import page_language
from service_desk import Desk, desk_in

HTML = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return desk_in(tmp_path_factory.mktemp("ledger"))


def said(key: str, code: str = "en", **values: object) -> str:
    return page_language(code).say(f"pages.{key}", **values)


def test_a_stranger_is_sent_to_sign_in_and_told_why(desk: Desk) -> None:
    client = desk.client()
    sent = client.get("/api/v1/me", headers=HTML)
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?why=first")
    page = client.get(sent.headers["location"], headers=HTML)
    assert page.status_code == 200
    assert said("login.first") in page.text
    assert '<form method="post" action="/login"' in page.text
    assert client.get("/api/v1/me").status_code == 401, "programs are told so"


def test_htmx_is_told_to_go_to_the_login_page(desk: Desk) -> None:
    found = desk.client().get("/api/v1/me", headers={**HTML, "hx-request": "true"})
    assert (found.status_code, found.headers["hx-redirect"]) == (401, "/login?why=first")


def test_a_wrong_token_shows_the_form_again_without_the_token(desk: Desk) -> None:
    found = desk.client().post("/login", data={"token": "rocerf_wrong_token"}, headers=HTML)
    assert found.status_code == 401
    assert said("login.refused") in found.text
    assert "rocerf_wrong_token" not in found.text


def test_whoever_is_signed_in_does_not_sign_in_twice(desk: Desk) -> None:
    found = desk.browser(Role.OFFICER).get("/login", headers=HTML)
    assert (found.status_code, found.headers["location"]) == (303, "/")


@pytest.mark.parametrize("code", ["en", "de"])
def test_a_role_that_may_not_is_told_its_role(desk: Desk, code: str) -> None:
    client = desk.browser(Role.OFFICER)
    found = client.get("/api/v1/tokens", headers={**HTML, "accept-language": code})
    assert found.status_code == 403
    assert said("problem.forbidden_text", code, role=said("roles.officer", code)) in found.text


def test_a_form_without_its_token_is_refused_in_words(desk: Desk) -> None:
    found = desk.browser(Role.ADMIN).post("/api/v1/tokens", data={"name": "x"}, headers=HTML)
    assert found.status_code == 403
    assert said("problem.form_text") in found.text


def test_no_such_page(desk: Desk) -> None:
    found = desk.client().get("/nowhere", headers=HTML)
    assert found.status_code == 404
    assert said("problem.not_found") in found.text


def test_the_switch_remembers_the_language_and_goes_back(desk: Desk) -> None:
    client = desk.client()
    page = client.get("/login", headers={"accept-language": "de"})
    assert '<html lang="de">' in page.text
    assert page.headers["content-language"] == "de"
    to_english = re.search(r'href="(/language\?[^"]*)"', page.text)
    assert to_english is not None
    sent = client.get(to_english.group(1).replace("&amp;", "&"))
    assert (sent.status_code, sent.headers["location"]) == (303, "/login")
    assert '<html lang="en">' in client.get("/login", headers={"accept-language": "de"}).text


@pytest.mark.parametrize("back", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "\x00"])
def test_the_switch_leads_nowhere_else(desk: Desk, back: str) -> None:
    assert desk.client().get("/language", params={"to": "de", "back": back}).headers["location"] == "/"


def test_files_are_kept_by_browsers_only_under_their_checksum(desk: Desk) -> None:
    client = desk.client()
    for name, kind in static.KINDS.items():
        found = client.get(static.address(name))
        assert (found.status_code, found.content) == (200, static.contents(name))
        assert found.headers["content-type"].startswith(kind)
        assert "immutable" in found.headers["cache-control"]
        assert client.get(f"/static/{name}?v=old").headers["cache-control"] == "no-cache"
    for name in ("NOTICE.md", "..%2F__init__.py", "nothing.css"):
        assert client.get(f"/static/{name}").status_code == 404


def test_pages_allow_no_script_or_style_but_files_of_this_site(desk: Desk) -> None:
    policy = desk.client().get("/login").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
