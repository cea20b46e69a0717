"""The pages over a real ledger, asked as browsers ask: what each role sees, and a deletion from form to certificate."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from page_forms import HTML, offered, said, send
from rocerf.errors import LedgerUnavailableError
from rocerf.ledger import RequestState
from rocerf.ledger.access import Role
from rocerf.ledger.states import LetterState
from rocerf.ledger.worker import Worker
from rocerf.letters.page import body_html
from rocerf.service.pages.rendering import place
from service_desk import Desk, desk_in

PAGES = ("/", "/letters/1", "/requests", "/requests/1", "/models", "/trail")
PEOPLE = (Role.OFFICER, Role.PROTECTION)


def names(desk: Desk) -> set[str]:
    """What people are called, and every value in their letters that is theirs."""
    found = set()
    for record in desk.ledger.letters.find(limit=100):
        letter = desk.ledger.letters.document(record.id)
        found |= {str(letter.person), *(c.before_text for option in letter.options for c in option.changes)}
    return found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Letters, a request that is previewed, one that is refused with a reason, one that was received."""
    made = desk_in(tmp_path_factory.mktemp("ledger"), letters=6)
    requests = made.ledger.requests
    for person in ("owner-3", "owner-4", "owner-5"):
        requests.receive(person, actor="desk")
    requests.verify_identity(1, actor="desk", how="document")
    requests.preview(1, actor="dpo")
    requests.refuse(2, reason="owner-4 is not who they say they are", actor="dpo")
    yield made
    made.ledger.close()


# --- who sees what --------------------------------------------------------------------------------


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("path", PAGES)
def test_every_role_gets_every_page_that_is_theirs(desk: Desk, role: Role, path: str) -> None:
    page = desk.browser(role).get(path, headers=HTML)
    assert page.status_code == (403 if (role, path) == (Role.OFFICER, "/trail") else 200)
    assert '<html lang="en">' in page.text


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.ADMIN])
@pytest.mark.parametrize("path", [*PAGES, "/requests/2", "/requests/3"])
def test_whoever_may_see_no_person_sees_none(desk: Desk, role: Role, path: str) -> None:
    page = html.unescape(desk.browser(role).get(path, headers=HTML).text)
    for name in names(desk) | {"owner-3", "owner-4", "owner-5", "not who they say"}:
        assert name not in page, name


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.ADMIN])
def test_whoever_may_see_no_person_gets_no_letter(desk: Desk, role: Role) -> None:
    assert desk.browser(role).get("/letters/1/page", headers=HTML).status_code == 403
    assert said("letters.not_for_you") in desk.browser(role).get("/letters/1").text


@pytest.mark.parametrize("role", PEOPLE)
def test_whoever_works_with_people_sees_them(desk: Desk, role: Role) -> None:
    client = desk.browser(role)
    assert str(desk.ledger.letters.document(1).person) in client.get("/").text
    assert "owner-3" in client.get("/").text
    assert "owner-4 is not who they say they are" in client.get("/requests/2").text


def test_officers_do_not_find_the_trail_in_their_menu(desk: Desk) -> None:
    assert 'href="/trail"' not in desk.browser(Role.OFFICER).get("/").text
    assert 'href="/trail"' in desk.browser(Role.AUDITOR).get("/").text


@pytest.mark.parametrize("path", PAGES)
def test_no_page_holds_a_parameter_or_a_full_margin(desk: Desk, path: str) -> None:
    page = desk.browser(Role.PROTECTION).get(path).text
    secret = [*desk.ledger.models.explainer().model.theta]
    assert not any(f"{value:.4f}"[:6] in page for value in secret)


# --- letters --------------------------------------------------------------------------------------


def test_the_letter_is_the_one_that_the_person_has(desk: Desk) -> None:
    letter = desk.ledger.letters.document(1)
    client = desk.browser(Role.OFFICER)
    assert body_html(letter) in client.get("/letters/1").text
    alone = client.get("/letters/1/page")
    assert alone.text == letter.to_html()
    assert re.search(r"style-src 'sha256-[A-Za-z0-9+/]+='", alone.headers["content-security-policy"])


def test_the_list_can_be_narrowed(desk: Desk) -> None:
    client = desk.browser(Role.OFFICER)
    everything = client.get("/").text
    assert everything.count('href="/letters/') >= 6
    assert said("portfolio.none_of_these") in client.get("/?budget=used").text
    assert client.get("/?promise=first_order&budget=few").text.count('href="/letters/') >= 6
    assert said("portfolio.none_of_these") in client.get("/?promise=nonsense").text


def test_only_an_officer_takes_a_letter_back(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=2)
    assert "/letters/1/withdraw" not in desk.browser(Role.PROTECTION).get("/letters/1").text
    officer = desk.browser(Role.OFFICER)
    done = send(officer, "/letters/1", "withdraw", reason="a mistake in the details")
    assert said("done.withdraw") in done
    assert desk.ledger.letters.get(1).state is LetterState.WITHDRAWN
    assert "/letters/1/withdraw" not in officer.get("/letters/1").text


# --- a deletion, by its forms ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["reissue", "honour"])
def test_from_receipt_to_certificate(tmp_path: Path, policy: str) -> None:
    desk = desk_in(tmp_path, letters=4)
    client = desk.browser(Role.PROTECTION)
    page = send(client, "/requests", "", subject="owner-7")
    assert offered(page) == {"verify", "hold", "extend", "refuse"}
    page = send(client, "/requests/1", "verify", evidence="document")
    assert offered(page) == {"preview", "hold", "extend", "refuse"}
    assert said("preview.none_yet") in page
    page = send(client, "/requests/1", "preview")
    assert said("done.preview") in page
    assert offered(page) == {"preview", "approve", "hold", "extend", "refuse"}
    assert said("preview.breaks", letters=4) in page
    assert "<strong>1</strong> " + said("preview.rows", count=1) in page
    page = send(client, "/requests/1", "approve")
    assert offered(page) == {"carry_out", "hold", "extend", "refuse"}
    page = send(client, "/requests/1", "carry_out", policy=policy)
    assert said("requests.waiting_job") in page
    assert offered(page) == set(), "nothing can stop it any more"
    assert 'hx-trigger="load delay:2s"' in page
    assert Worker(desk.ledger).run_once() is not None
    page = client.get("/requests/1").text
    assert desk.ledger.requests.get(1).state is RequestState.CERTIFIED
    assert "owner-7" not in page
    assert said("erased") in page
    assert page.count('<li class="done">') == 8
    assert desk.ledger.deletions.certificate(1).rows == 1, "a row really went"
    certificate = client.get(place("certificate", id=1)).text
    assert str(desk.ledger.deletions.certificate(1).number) in certificate
    assert said("trail.whole", length=desk.ledger.audit.head().seq) in send(client, "/trail", "verify")


def test_a_deletion_that_finds_nothing_is_said_before_it_is_approved(tmp_path: Path) -> None:
    """A name or an id that was written otherwise must not end in a certificate while the row stays."""
    desk = desk_in(tmp_path, letters=1)
    client = desk.browser(Role.PROTECTION)
    texts = {"nothing": said("preview.nothing_known"), "elsewhere": said("preview.elsewhere", rows=2)}
    texts["others"] = said("preview.of_others", rows=1)

    def warned(person: str, **given: Any) -> set[str]:
        number = desk.ledger.requests.receive(person, actor="desk", **given).id
        desk.ledger.requests.verify_identity(number, actor="desk")
        desk.ledger.requests.preview(number, actor="dpo")
        page = html.unescape(client.get(f"/requests/{number}").text)
        return {name for name, text in texts.items() if text in page}

    assert warned("Owner-7") == {"nothing"}
    assert warned("somebody", rows=["ROW-8", "row-999"]) == {"elsewhere"}
    assert warned("owner-7") == set()
    assert warned("owner-8", rows=["row-8", "row-9 "]) == {"others"}  # owner-9's, who does not ask
    assert warned(str(desk.ledger.letters.document(1).person)) == set()


def test_hold_and_resume_and_refuse(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=1)
    client = desk.browser(Role.PROTECTION)
    send(client, "/requests", "", subject="owner-7")
    page = send(client, "/requests/1", "hold", reason="waiting for a power of attorney")
    assert offered(page) == {"resume", "refuse", "extend"}
    assert '<li class="stopped">' in page
    assert "waiting for a power of attorney" in page
    page = send(client, "/requests/1", "resume")
    assert offered(page) == {"verify", "hold", "extend", "refuse"}
    page = send(client, "/requests/1", "extend", reason="many requests at once")
    assert said("requests.extended") in page
    assert "extend" not in offered(page)
    page = send(client, "/requests/1", "refuse", reason="not the person")
    assert offered(page) == set()
    assert said("requests.nothing_due") in page


def test_four_eyes(tmp_path: Path) -> None:
    """Who verified does not find the button, and is refused without it; somebody else finds it."""
    desk = desk_in(tmp_path, letters=1, policy={"four_eyes": True})
    first = desk.browser(Role.PROTECTION)
    send(first, "/requests", "", subject="owner-7")
    send(first, "/requests/1", "verify", evidence="in_person")
    page = send(first, "/requests/1", "preview")
    assert "approve" not in offered(page)
    assert said("acts.other_person") in page
    token = re.search(r'name="csrf_token" value="(\w+)"', page)
    assert token is not None
    sent = first.post("/requests/1/approve", data={"csrf_token": token.group(1)}, headers=HTML)
    assert sent.status_code == 409
    assert said("problem.conflict") in sent.text
    assert desk.ledger.requests.get(1).state is RequestState.PREVIEWED
    desk.secrets[Role.PROTECTION] = desk.access.issue("another", Role.PROTECTION).secret
    second = desk.browser(Role.PROTECTION)
    assert "approve" in offered(send(second, "/requests/1", "preview"))
    send(second, "/requests/1", "approve")
    assert desk.ledger.requests.get(1).state is RequestState.APPROVED


@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR, Role.ADMIN])
def test_others_find_no_button_and_are_refused(desk: Desk, role: Role) -> None:
    client = desk.browser(role)
    page = client.get("/requests/1").text
    assert offered(page) == set()
    token = re.search(r'name="csrf_token" value="(\w+)"', page)
    assert token is not None
    for act in ("verify", "preview", "approve", "refuse", "hold", "resume", "extend", "carry_out"):
        assert client.post(f"/requests/1/{act}", data={"csrf_token": token.group(1)}).status_code == 403
    assert desk.ledger.requests.get(1).state is RequestState.PREVIEWED


def test_a_form_that_is_filled_in_wrongly_changes_nothing(desk: Desk) -> None:
    client = desk.browser(Role.PROTECTION)
    token = re.search(r'name="csrf_token" value="(\w+)"', client.get("/requests/1").text)
    assert token is not None
    for values in ({}, {"reason": "   "}, {"reason": "x" * 1001}, {"reason": "a\x00b"}):
        sent = client.post("/requests/1/hold", data={"csrf_token": token.group(1), **values}, headers=HTML)
        assert sent.status_code == 422
        assert said("problem.invalid") in sent.text
    assert client.post("/requests/1/hold", data={"reason": "no token"}, headers=HTML).status_code == 403
    assert desk.ledger.requests.get(1).state is RequestState.PREVIEWED


def test_numbers_that_nothing_has(desk: Desk) -> None:
    client = desk.browser(Role.PROTECTION)
    for path in ("/letters/99", "/requests/99", "/letters/99/page", "/requests/99/certificate"):
        assert client.get(path, headers=HTML).status_code == 404
    assert client.get("/requests/1/certificate", headers=HTML).status_code == 409
    assert client.get("/letters/0", headers=HTML).status_code == 422


# --- the audit trail ------------------------------------------------------------------------------


def test_a_changed_event_is_found(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=2)
    client = desk.browser(Role.AUDITOR)
    assert "say good" in send(client, "/trail", "verify")
    with desk.ledger.core.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE events SET actor = 'somebody' WHERE seq = 2")
    page = send(client, "/trail", "verify")
    assert said("trail.broken") in page
    assert "event 2" in page


def test_the_trail_is_read_in_parts(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    for number in range(120):
        desk.ledger.audit.note("copy noted", actor="test", facts={"number": number})
    client = desk.browser(Role.AUDITOR)
    newest, last = client.get("/trail").text, client.get("/trail?page=3").text
    assert "number: 119" in newest
    assert "number: 119" not in last
    assert said("trail.page", page=3, pages=3) in last
    assert client.get("/trail?page=9999").status_code == 200


def test_german_over_the_ledger(desk: Desk) -> None:
    page = desk.browser(Role.PROTECTION).get("/requests/1", headers={"accept-language": "de"}).text
    assert said("preview.title", "de") in page
    assert said("evidence.document", "de") in page
    assert "model version" not in page


def test_what_is_planted_in_a_name_is_escaped(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=1)
    nasty = "<img src=x onerror=alert(1)>"
    desk.ledger.requests.receive(nasty, actor="desk")
    for path in ("/", "/requests", "/requests/1"):
        page = desk.browser(Role.PROTECTION).get(path).text
        assert nasty not in page
        assert html.escape(nasty) in page


def test_what_is_erased_and_what_does_not_answer_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_in(tmp_path, letters=1)
    person = str(desk.ledger.letters.document(1).person)
    number = desk.ledger.requests.receive(person, actor="desk").id
    desk.ledger.requests.verify_identity(number, actor="desk")
    desk.ledger.requests.preview(number, actor="dpo")
    desk.ledger.requests.approve(number, actor="dpo")
    desk.ledger.deletions.carry_out(number, actor="dpo")
    assert Worker(desk.ledger).run_once() is not None
    client = desk.browser(Role.OFFICER)
    gone = client.get("/letters/1/page", headers=HTML)
    assert gone.status_code == 410
    assert said("problem.not_found") in gone.text
    page = client.get("/letters/1").text
    assert said("letters.erased") in page
    assert person not in page

    def silent() -> None:
        raise LedgerUnavailableError("Expected an answer of the database, got none; try again later.")

    monkeypatch.setattr(type(desk.ledger.letters), "portfolio", lambda self: silent())
    away = client.get("/", headers=HTML)
    assert away.status_code == 503
    assert said("problem.unavailable") in away.text
