"""Whoever looks for something finds it: letters of a person, of a state, in long lists; and what to do about a job."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from pathlib import Path

import pytest

import ledgers
from page_forms import HTML, offered, said, send
from rocerf.ledger import JobState, LetterState, RequestState
from rocerf.ledger.access import Role
from rocerf.ledger.worker import Worker
from rocerf.service.pages import listing
from rocerf.service.pages.texts import page_language
from service_desk import Desk, desk_in

OFFICER, PROTECTION, AUDITOR, ADMIN = Role.OFFICER, Role.PROTECTION, Role.AUDITOR, Role.ADMIN


def listed(text: str) -> list[int]:
    """Numbers of the letters in the list."""
    return [int(number) for number in re.findall(r'<a href="/letters/(\d+)">', text)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_in(tmp_path, letters=6)


def test_a_person_s_letters_and_requests_are_found_by_name(desk: Desk) -> None:
    person = str(desk.ledger.letters.document(3).person)
    desk.ledger.letters.withdraw(3, reason="a mistake", actor="officer")
    asked = desk.ledger.requests.receive(person, actor="desk").id
    for role in (OFFICER, PROTECTION):
        page = send(desk.browser(role), "/letters", "search", start="/", person=f" {person} ")
        assert listed(page) == [3]
        assert f'<a href="/requests/{asked}">' in page
        assert said("letter_states.withdrawn") in page
        nobody = send(desk.browser(role), "/letters", "search", start="/", person="nobody")
        assert said("found.unknown") in nobody
    for role in (AUDITOR, ADMIN):
        assert 'action="/letters/search"' not in desk.browser(role).get("/").text
        assert desk.client(role).post("/letters/search", data={"person": person}).status_code == 403


def test_letters_of_every_state_are_found(desk: Desk) -> None:
    client = desk.browser(AUDITOR)
    desk.ledger.letters.withdraw(2, reason="a mistake", actor="officer")
    assert listed(client.get("/?state=withdrawn").text) == [2]
    assert 2 not in listed(client.get("/").text)
    assert listed(client.get("/?state=honoured").text) == []
    assert listed(client.get("/?state=nonsense").text) == [1, 3, 4, 5, 6]


def test_long_lists_are_read_in_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "IN_A_PART", 4)
    monkeypatch.setattr(listing, "PRESSING", 2)
    client = desk.browser(OFFICER)
    first = client.get("/").text
    assert listed(first) == [1, 2, 3, 4]
    onward = html.unescape(re.findall(rf'<a href="([^"]+)">{said("site.further")}', first)[0])
    assert listed(client.get(onward).text) == [5, 6]
    for number in range(9):
        desk.ledger.requests.receive(f"person {number}", actor="desk")
    for number in range(1, 6):
        desk.ledger.requests.refuse(number, reason="not they", actor="dpo")
    start = client.get("/").text
    assert len(re.findall(r'<a href="/requests/\d+">', start)) == 2
    assert said("portfolio.all_requests", requests=4) in start
    seen = re.findall(r'<a href="/requests/(\d+)">', client.get("/requests?page=1&closed=2").text)
    assert seen == ["6", "7", "8", "9", "1"]


def test_letters_that_are_due_are_ordered_and_written(desk: Desk) -> None:
    officer = desk.browser(OFFICER)
    assert said("portfolio.due_title") not in officer.get("/").text
    number = ledgers.approved(desk.ledger, "owner-7", rows=["row-7", "row-8"])
    desk.ledger.deletions.carry_out(number, actor="dpo", broken="honour")
    Worker(desk.ledger).run_once()
    due = [letter.id for letter in desk.ledger.letters.due()]
    assert due
    shown = desk.client(OFFICER).get("/api/v1/letters", params={"due": True}).json()["letters"]
    assert [letter["id"] for letter in shown] == due
    assert desk.client(AUDITOR).get("/api/v1/portfolio").json()["due"] == len(due)
    assert said("portfolio.due", letters=len(due)) in desk.browser(PROTECTION).get("/").text
    assert 'action="/letters/renew"' not in desk.browser(PROTECTION).get("/").text
    key = {"Idempotency-Key": "all-that-are-due"}
    ordered = [desk.client(OFFICER).post("/api/v1/letters/renew", json={}, headers=key).json()["id"] for _ in "ab"]
    assert ordered[0] == ordered[1]
    assert said("done.renew_due") in send(officer, "/letters", "renew", start="/")
    for _ in range(2):
        job = Worker(desk.ledger).run_once()
        assert job is not None
        assert job.state is JobState.DONE
    assert [desk.ledger.letters.get(one).state for one in due] == [LetterState.REISSUED] * len(due)
    assert said("portfolio.due_title") not in officer.get("/").text
    assert desk.client(OFFICER).post("/api/v1/letters/renew", json={}, headers=key).json()["id"] == ordered[0]


def test_one_letter_is_replaced_from_its_page(desk: Desk) -> None:
    officer = desk.browser(OFFICER)
    assert 'action="/letters/1/renew"' not in desk.browser(PROTECTION).get("/letters/1").text
    assert said("done.renew") in send(officer, "/letters/1", "renew")
    Worker(desk.ledger).run_once()
    page = officer.get("/letters/1").text
    assert desk.ledger.letters.get(1).state is LetterState.REISSUED
    assert '<a href="/letters/7">' in page
    assert not re.search('action="/letters/1/', page)


def test_a_deletion_that_failed_says_why_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_in(tmp_path, letters=2, policy={"tries": 1, "lease": timedelta(seconds=5)})
    number = ledgers.approved(desk.ledger, "owner-7")
    desk.ledger.deletions.carry_out(number, actor="dpo")
    fails = True

    def failing(place: str) -> None:
        if fails and place == "recheck:before":
            raise ZeroDivisionError("Erika")

    monkeypatch.setattr("rocerf.ledger.deletions.reached", failing)
    Worker(desk.ledger).run_once()
    for role in (OFFICER, AUDITOR):
        page = desk.browser(role).get(f"/requests/{number}").text
        assert said("requests.failed_job") in page
        assert "an unexpected ZeroDivisionError" in page
        assert offered(page) == set()
    fails = False
    page = send(desk.browser(ADMIN), f"/requests/{number}", "retry")
    assert said("done.retry") in page
    assert said("requests.waiting_job") in page
    Worker(desk.ledger).run_once()
    assert desk.ledger.requests.get(number).state is RequestState.CERTIFIED
    again = desk.browser(PROTECTION)
    token = re.search(r'name="csrf_token" value="(\w+)"', again.get("/").text)
    assert token is not None
    refused = again.post(f"/requests/{number}/retry", data={"csrf_token": token.group(1)}, headers=HTML)
    assert refused.status_code == 409


def test_a_deletion_that_was_given_back_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_in(tmp_path, letters=2, policy={"tries": 1})
    number = ledgers.approved(desk.ledger, "owner-7")
    desk.ledger.deletions.carry_out(number, actor="dpo")

    def failing(place: str) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("rocerf.ledger.deletions.reached", failing)
        Worker(desk.ledger).run_once()
    page = desk.browser(PROTECTION).get(f"/requests/{number}").text
    assert said("requests.gave_up") in page
    assert "carry_out" in offered(page)


def test_a_deletion_that_waits_for_readers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_in(tmp_path, letters=1)
    number = ledgers.approved(desk.ledger, "owner-7")
    desk.ledger.deletions.carry_out(number, actor="dpo")
    from rocerf.ledger.database import Database, _still_read

    def busy(*_: object) -> None:
        raise _still_read()

    monkeypatch.setattr(Database, "compact", busy)
    Worker(desk.ledger).run_once()
    for code in ("en", "de"):
        page = desk.browser(PROTECTION).get(f"/requests/{number}", headers={"accept-language": code}).text
        assert said("requests.reader_job", code) in page


def test_a_name_that_turns_letters_round_is_written_out(desk: Desk) -> None:
    number = desk.ledger.requests.receive("\u202edevorppa", actor="desk").id
    for path in ("/", "/requests", f"/requests/{number}"):
        page = desk.browser(PROTECTION).get(path).text
        assert "\u202e" not in page
        assert r"\u202edevorppa" in page


def test_every_event_and_fact_has_a_name_in_every_language(desk: Desk) -> None:
    """What no list of names has is shown as it is called in the code, in English."""
    admin = desk.client(ADMIN)
    made = admin.post("/api/v1/tokens", json={"name": "desk", "person": "Ada", "role": "officer"}).json()
    admin.delete(f"/api/v1/tokens/{made['id']}")
    number = ledgers.approved(desk.ledger, "owner-7", source="desk")
    desk.ledger.copies.tell("/nowhere", actor="admin")
    desk.ledger.requests.receive("owner-7", actor="desk")
    desk.ledger.letters.renew([1], actor="officer")
    Worker(desk.ledger).run_once()
    desk.ledger.deletions.carry_out(number, actor="dpo")
    Worker(desk.ledger).run_once()
    german = page_language("de").sentences
    for event in desk.ledger.audit.events(limit=1000):
        assert f"pages.events.{event.kind.replace(' ', '_')}" in german, event.kind
        for name in event.facts:
            assert f"pages.facts.{name}" in german, (event.kind, name)
