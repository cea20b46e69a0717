"""What the routes do with the ledger: letters, deletions up to their approval, hooks, the audit trail."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import ledgers
from rocerf.ledger.access import Role
from rocerf.ledger.worker import Worker
from rocerf.letters.letter import letter_schema
from service_desk import Desk, desk_in

OFFICER, PROTECTION, AUDITOR, ADMIN = Role.OFFICER, Role.PROTECTION, Role.AUDITOR, Role.ADMIN


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return desk_in(tmp_path, letters=4)


def people(desk: Desk, count: int = 2) -> list[dict[str, Any]]:
    frame = ledgers.asking(desk.ledger.models.explainer().model, 40).iloc[20 : 20 + count]
    return [{"person": str(name), "values": dict(row)} for name, row in frame.iterrows()]


def test_letters_are_issued_once_and_read_by_those_who_may(desk: Desk) -> None:
    officer = desk.client(OFFICER)
    body = {"people": people(desk), "valid_until": "2027-01-31", "language": "de"}
    key = {"Idempotency-Key": "b9f8c2a0-one"}
    first = officer.post("/api/v1/letters", json=body, headers=key)
    again = officer.post("/api/v1/letters", json=body, headers=key)
    assert (first.status_code, first.json()) == (201, again.json())
    assert [letter["state"] for letter in first.json()["letters"]] == ["issued", "issued"]
    number = first.json()["letters"][0]["id"]
    found = officer.post("/api/v1/letters/search", json={"person": body["people"][0]["person"]}).json()["letters"]
    assert [letter["id"] for letter in found] == [number]
    document = officer.get(f"/api/v1/letters/{number}/document").json()
    jsonschema.validate(document, letter_schema())
    assert document["person"] == body["people"][0]["person"]
    text = officer.get(f"/api/v1/letters/{number}/text")
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text == desk.ledger.letters.document(number).to_text()
    other = officer.post("/api/v1/letters", json=body, headers={"Idempotency-Key": "b9f8c2a0-two"})
    assert other.json()["letters"][0]["id"] > number


def test_a_withdrawn_letter_is_out(desk: Desk) -> None:
    officer = desk.client(OFFICER)
    assert officer.post("/api/v1/letters/2/withdraw", json={"reason": "sent twice"}).json()["state"] == "withdrawn"
    assert officer.post("/api/v1/letters/2/withdraw", json={"reason": "sent twice"}).status_code == 409
    out = officer.get("/api/v1/letters", params={"outstanding": True}).json()["letters"]
    assert 2 not in [letter["id"] for letter in out]
    history = officer.get("/api/v1/letters/2/history").json()["history"]
    assert [entry["state"] for entry in history] == ["issued", "withdrawn"]
    page = officer.get("/api/v1/letters", params={"after": 2, "limit": 1}).json()["letters"]
    assert [letter["id"] for letter in page] == [3]
    assert desk.client(AUDITOR).get("/api/v1/portfolio").json()["states"]["withdrawn"] == 1


def test_a_deletion_is_previewed_and_approved_as_the_ledger_does(desk: Desk) -> None:
    protection = desk.client(PROTECTION)
    asked = {"person": "owner-7", "rows": ledgers.harmful(), "source": "desk"}
    made = desk.client(OFFICER).post("/api/v1/deletions", json=asked).json()
    number = made["id"]
    assert (made["state"], made["deadline"]) == ("received", "2026-02-28")
    early = protection.post(f"/api/v1/deletions/{number}/approve")
    assert (early.status_code, early.json()["type"]) == (409, "urn:rocerf:problem:TransitionError")
    assert protection.post(f"/api/v1/deletions/{number}/verify", json={"how": "passport"}).status_code == 200
    preview = protection.post(f"/api/v1/deletions/{number}/preview").json()
    expected = desk.ledger.requests.preview(number, actor="me")
    assert preview["broken_letters"] == list(expected.broken)
    assert {name: preview[name] for name in ("rows", "broken", "letters")} == {
        name: expected.summary()[name] for name in ("rows", "broken", "letters")
    }
    assert preview["broken"] > 0
    assert protection.post("/api/v1/deletions/preview", json={"requests": [number]}).json()["rows"] == preview["rows"]
    approved = protection.post(f"/api/v1/deletions/{number}/approve").json()
    assert approved["state"] == "approved"
    assert approved["approved_by"].startswith("data-protection-officer:")
    assert protection.get("/api/v1/deletions", params={"urgent": True}).json()["deletions"][0]["id"] == number


def test_a_deletion_is_carried_out_to_its_certificate(desk: Desk) -> None:
    """Approved, ordered (202, once), done by a worker, polled; the letters that broke are replaced, and all is said."""
    protection = desk.client(PROTECTION)
    number = ledgers.approved(desk.ledger, "owner-7", rows=ledgers.harmful())
    expected = desk.ledger.requests.preview(number, actor="me", keep=False)
    key = {"Idempotency-Key": "carry-it-out"}
    early = protection.get(f"/api/v1/deletions/{number}/certificate")
    assert early.status_code == 409
    ordered = [protection.post("/api/v1/deletions/carry-out", json={"requests": [number]}, headers=key) for _ in "ab"]
    assert [answer.status_code for answer in ordered] == [202, 202]
    place = ordered[0].headers["location"]
    assert ordered[0].json()["id"] == ordered[1].json()["id"]
    assert protection.get(place).json()["state"] == "waiting"
    assert protection.post(f"{place}/retry").status_code == 409
    Worker(desk.ledger).run_once()
    job = protection.get(place).json()
    assert (job["state"], job["result"]["broken"]) == ("done", len(expected.broken))
    assert protection.get(f"/api/v1/deletions/{number}").json()["state"] == "certified"
    certificate = protection.get(f"/api/v1/deletions/{number}/certificate").json()
    assert certificate["rows"] == expected.rows
    for broken in expected.broken:
        letter = protection.get(f"/api/v1/letters/{broken}").json()
        assert letter["state"] == "reissued"
        assert protection.get(f"/api/v1/letters/{letter['replaced_by']}").json()["outstanding"]
    assert desk.client(AUDITOR).post("/api/v1/audit/verify").json()["whole"]
    assert desk.client(AUDITOR).get(f"/api/v1/deletions/{number}/certificate").json()["subject"] is None


def test_rows_and_data_of_people_and_letters_renewed(desk: Desk) -> None:
    protection, officer = desk.client(PROTECTION), desk.client(OFFICER)
    assert protection.post("/api/v1/people/rows", json={"rows": {"new one": ["row-50", 3]}}).json() == {"people": 1}
    assert desk.ledger.people.rows_of("new one") == ("row-50", 3)
    values = {"income": 20000.5, "debt": 9000, "note": None}
    assert officer.post("/api/v1/people/data", json={"person": "new one", "values": values}).json() == {"people": 1}
    assert desk.ledger.people.data_of("new one") == values
    ordered = officer.post("/api/v1/letters/renew", json={"letters": [1, 2]})
    assert ordered.status_code == 202
    Worker(desk.ledger).run_once()
    assert officer.get(ordered.headers["location"]).json()["state"] == "done"
    assert [officer.get(f"/api/v1/letters/{number}").json()["state"] for number in (1, 2)] == ["reissued"] * 2


def test_an_approved_request_is_carried_out_by_the_hook_after(desk: Desk) -> None:
    protection = desk.client(PROTECTION)
    sent = {"privacy_request_id": "pri_9", "identity": {"customer": "owner-9"}}
    number = protection.post("/api/v1/hooks/policy/pre", json=sent).json()["deletion"]["id"]
    protection.post(f"/api/v1/deletions/{number}/verify", json={})
    protection.post(f"/api/v1/deletions/{number}/preview")
    protection.post(f"/api/v1/deletions/{number}/approve")
    answers = [protection.post("/api/v1/hooks/policy/post", json=sent).json() for _ in range(2)]
    assert answers[0]["job"]["state"] == "waiting"
    Worker(desk.ledger).run_once()
    assert protection.get(f"/api/v1/deletions/{number}").json()["state"] == "certified"
    assert protection.post("/api/v1/hooks/policy/post", json=sent).json()["known"] is False


def test_hold_resume_extend_refuse(desk: Desk) -> None:
    protection = desk.client(PROTECTION)
    number = protection.post("/api/v1/deletions", json={"person": "owner-1"}).json()["id"]
    place = f"/api/v1/deletions/{number}"
    because = {"reason": "a court has asked to keep it"}
    assert protection.post(f"{place}/hold", json=because).json()["state"] == "on_hold"
    assert protection.post(f"{place}/resume").json()["state"] == "received"
    extended = protection.post(f"{place}/extend", json=because).json()
    assert (extended["extended"], extended["deadline"]) == (True, "2026-04-30")
    assert protection.post(f"{place}/refuse", json={"reason": " "}).status_code == 422
    assert protection.post(f"{place}/refuse", json=because).json()["state"] == "refused"
    assert desk.client(AUDITOR).get(place).json()["reason"] == ""


def test_four_eyes_are_two_tokens(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=2, policy={"four_eyes": True})
    one = desk.client(PROTECTION)
    second = desk.access.issue("the other", PROTECTION).secret
    number = one.post("/api/v1/deletions", json={"person": "owner-1"}).json()["id"]
    one.post(f"/api/v1/deletions/{number}/verify", json={})
    one.post(f"/api/v1/deletions/{number}/preview")
    assert one.post(f"/api/v1/deletions/{number}/approve").status_code == 409
    other = desk.client().post(f"/api/v1/deletions/{number}/approve", headers={"Authorization": f"Bearer {second}"})
    assert other.json()["state"] == "approved"


def test_a_notice_of_a_privacy_tool(desk: Desk) -> None:
    protection = desk.client(PROTECTION)
    sent = {"subject": "owner-3", "operation": "delete", "time": "2026-01-30T09:30:00+01:00", "tool": "any"}
    key = {"Idempotency-Key": "notice-0001"}
    answers = [protection.post("/api/v1/hooks/deletion", json=sent, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["received"].startswith("2026-01-30T08:30:00")
    several = {**sent, "subject": {"email": "x@example.org", "customer": "owner-4"}}
    assert protection.post("/api/v1/hooks/deletion", json=several).json()["subject"] == desk.ledger.people.number_of(
        "owner-4"
    )
    wrongs = ({"subject": "nobody"}, 404), ({"operation": "copy"}, 422), ({"time": "2099-01-01T00:00:00Z"}, 422)
    for wrong, status in wrongs:
        assert protection.post("/api/v1/hooks/deletion", json={**sent, **wrong}).status_code == status


def test_the_hooks_of_a_policy(desk: Desk) -> None:
    """Before: what it would do, and whether somebody should look. Twice: one request. After: the same letters again."""
    protection = desk.client(PROTECTION)
    desk.ledger.people.assign_rows({"owner-7": ledgers.harmful()}, actor="admin")
    sent = {"privacy_request_id": "pri_1", "identity": {"email": "owner-7", "phone_number": None}}
    before = [protection.post("/api/v1/hooks/policy/pre", json=sent).json() for _ in range(2)]
    assert before[0]["deletion"]["id"] == before[1]["deletion"]["id"]
    assert before[0]["halt"] is True
    assert before[0]["preview"]["broken"] > 0
    after = protection.post("/api/v1/hooks/policy/post", json=sent).json()
    assert after["preview"]["broken_letters"] == before[0]["preview"]["broken_letters"]
    assert after["deletion"]["state"] == "received"  # no hook approves anything
    harmless = {**sent, "privacy_request_id": "pri_2", "identity": {"email": "owner-11"}}
    assert protection.post("/api/v1/hooks/policy/pre", json=harmless).json()["halt"] is False
    stranger = {**sent, "privacy_request_id": "pri_3", "identity": {"email": "nobody"}}
    assert protection.post("/api/v1/hooks/policy/pre", json=stranger).json() == {
        "derived_identity": {},
        "halt": False,
        "known": False,
        "deletion": None,
        "preview": None,
        "job": None,
    }


def test_a_policy_that_deletes_nobody_takes_nothing_in(desk: Desk) -> None:
    """Privacy tools call the same webhooks for access and consent."""
    protection = desk.client(PROTECTION)
    before = desk.ledger.audit.head()
    for place in ("pre", "post"):
        for action in ("access", "consent", "update"):
            sent = {"privacy_request_id": "pri_9", "identity": {"email": "owner-12"}, "policy_action": action}
            answer = protection.post(f"/api/v1/hooks/policy/{place}", json=sent)
            assert (answer.status_code, answer.json()["known"], answer.json()["deletion"]) == (200, False, None)
    assert desk.ledger.audit.head() == before


def test_identifiers_of_a_policy_may_be_labelled_numbers_or_several(desk: Desk) -> None:
    """As Fides sends those of kinds that an organisation added itself."""
    protection = desk.client(PROTECTION)
    number = desk.ledger.people.number_of("owner-13")
    for place, identity in enumerate(
        (
            {"customer": {"label": "Customer number", "value": "owner-13"}, "phone_number": None},
            {"email": "x@example.org", "customers": {"label": "Numbers", "value": ["owner-13", 7]}},
            {"account": 12, "customer": "owner-13"},
        )
    ):
        sent = {
            "privacy_request_id": f"pri_l{place}",
            "privacy_request_status": "in_processing",
            "callback_type": "pre",
            "policy_action": "erasure",
            "identity": identity,
        }
        answer = protection.post("/api/v1/hooks/policy/pre", json=sent)
        assert answer.status_code == 200, answer.text
        assert answer.json()["deletion"]["subject"] == number


def test_the_audit_trail_names_who_did_it_and_verifies(desk: Desk) -> None:
    desk.client(PROTECTION).post("/api/v1/deletions", json={"person": "owner-7"})
    auditor = desk.client(AUDITOR)
    events = auditor.get("/api/v1/audit/events", params={"kind": "request received"}).json()["events"]
    assert [event["actor"].partition(":")[0] for event in events] == ["data-protection-officer"]
    head = auditor.get("/api/v1/audit/head").json()
    report = auditor.post("/api/v1/audit/verify", json=head).json()
    assert (report["whole"], report["faults"], report["head"]) == (True, [], head)
    wrong = auditor.post("/api/v1/audit/verify", json={**head, "hash": "0" * 64}).json()
    assert not wrong["whole"]


def test_tokens_made_and_ended_are_in_the_audit_trail(desk: Desk) -> None:
    admin = desk.client(ADMIN)
    made = admin.post("/api/v1/tokens", json={"name": "desk", "person": "Ada", "role": "officer"}).json()
    admin.delete(f"/api/v1/tokens/{made['id']}")
    events = admin.get("/api/v1/audit/events").json()["events"]
    kinds = [event["kind"] for event in events if event["actor"].startswith("admin:")]
    assert kinds == ["token made", "token ended"]
    assert made["secret"] not in json.dumps(events)


def test_nothing_publishes_parameters_or_full_margins(desk: Desk) -> None:
    """No number that leaves has more than a few digits of a margin, and none is a parameter of the model."""
    model = desk.ledger.models.explainer().model
    inverse = model.curvature().solve(np.eye(len(model.theta)))
    secret = np.concatenate([np.ravel(part) for part in (model.theta, inverse, np.linalg.inv(inverse))])
    text = ""
    for role in Role:
        for path in ("letters", "letters/1", "letters/1/document", "models", "models/1", "portfolio", "audit/events"):
            text += desk.client(role).get(f"/api/v1/{path}").text
    text += desk.client(ADMIN).get("/metrics").text
    margins = {letter["margin"] for letter in desk.client(OFFICER).get("/api/v1/letters").json()["letters"]}
    assert len(margins - {None}) > 0
    assert all(len(f"{margin:.15g}".lstrip("-0.").replace(".", "").rstrip("0")) <= 2 for margin in margins - {None})
    assert len(secret) >= 3
    published = {float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)}
    for parameter in secret[np.abs(secret % 1) > 1e-9]:
        assert not any(abs(number - parameter) <= 1e-6 * abs(parameter) for number in published)


def test_what_is_not_there_is_a_404_and_what_is_erased_says_so(desk: Desk) -> None:
    officer = desk.client(OFFICER)
    for path in ("letters/99", "letters/99/document", "deletions/99", "models/99"):
        answer = officer.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["title"]) == (404, "Not Found")
    assert officer.post("/api/v1/letters/search", json={"person": "nobody"}).status_code == 404


def test_odd_people_are_told_what_is_wrong(desk: Desk) -> None:
    officer = desk.client(OFFICER)
    one = people(desk, 1)[0]
    for values in ({"income": 1.0}, {**one["values"], "income": "much"}, {"income": None, "debt": None}, {"": 1}):
        answer = officer.post("/api/v1/letters", json={"people": [{**one, "values": values}]})
        assert answer.status_code in (201, 422), answer.text
        if answer.status_code == 201:  # a letter that says so, and promises nothing
            assert not answer.json()["letters"][0]["answered"]
    quoted = officer.post("/api/v1/letters", json={"people": [{**one, "values": {**one["values"], "debt": "Erika's"}}]})
    assert "in column 'debt' (for example '...')" in quoted.json()["detail"]
    twice = officer.post("/api/v1/letters", json={"people": [one, one]})
    assert (twice.status_code, twice.json()["detail"][:26]) == (422, "Expected each person once,")
    nothing = b'{"people": [{"person": "x", "values": {"income": NaN}}]}'
    control = b'{"people": [{"person": "x\\u0000", "values": {"a": 1}}]}'
    for content in (nothing, control, b"\xff-1\x16^"):
        answer = officer.post("/api/v1/letters", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422


@pytest.mark.slow
def test_the_same_on_postgresql(tmp_path: Path, postgres: Any) -> None:
    """Tokens, letters and a deletion to its certificate on the other database."""
    desk = desk_in(tmp_path, letters=3, url=postgres.fresh())
    try:
        test_a_deletion_is_carried_out_to_its_certificate(desk)
        test_tokens_made_and_ended_are_in_the_audit_trail(desk)
        browser = desk.browser(OFFICER)
        assert browser.get("/api/v1/portfolio").json()["states"]
        assert desk.client(ADMIN).get("/metrics").status_code == 200
    finally:
        desk.ledger.close()


def test_without_its_database_the_service_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem that asks to try again, from the tokens as from the ledger; the process itself stays healthy."""
    from sqlalchemy.exc import OperationalError

    def gone(*_: object, **__: object) -> None:
        raise OperationalError("SELECT 'Erika'", {}, Exception("Erika"))

    officer = desk.client(OFFICER)
    monkeypatch.setattr(desk.access.engine, "connect", gone)
    answers = [officer.get("/api/v1/letters"), officer.get("/ready")]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(answer.headers["retry-after"] == "5" for answer in answers)
    assert all(answer.headers["content-type"] == "application/problem+json" for answer in answers)
    assert "Erika" not in answers[0].text
    assert officer.get("/health").status_code == 200


def test_one_person_with_two_tokens_is_one_pair_of_eyes(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, letters=1, policy={"four_eyes": True})
    admin = desk.client(ADMIN)

    def token(name: str, person: str) -> dict[str, str]:
        wanted = {"name": name, "person": person, "role": "data-protection-officer"}
        return {"Authorization": f"Bearer {admin.post('/api/v1/tokens', json=wanted).json()['secret']}"}

    first, again, other = (
        token("laptop", "Ada Lovelace"),
        token("phone", " ada LOVELACE"),
        token("desk", "Grace Hopper"),
    )
    client = desk.client()
    place = f"/api/v1/deletions/{client.post('/api/v1/deletions', json={'person': 'x'}, headers=first).json()['id']}"
    assert client.post(f"{place}/verify", json={}, headers=first).status_code == 200
    assert client.post(f"{place}/preview", headers=first).status_code == 200
    refused = client.post(f"{place}/approve", headers=again)
    assert refused.status_code == 409
    assert "four-eyes" in refused.json()["detail"]
    assert client.post(f"{place}/approve", headers=other).json()["state"] == "approved"
    assert admin.post("/api/v1/tokens", json={"name": "x", "role": "officer"}).status_code == 422  # nobody's


def test_an_idempotency_key_with_another_body_is_refused(desk: Desk) -> None:
    client = desk.client(PROTECTION)
    key = {"Idempotency-Key": "8e03978e-40d5"}
    first = client.post("/api/v1/deletions", json={"person": "somebody new"}, headers=key)
    assert client.post("/api/v1/deletions", json={"person": "somebody new"}, headers=key).json() == first.json()
    other = client.post("/api/v1/deletions", json={"person": "somebody else"}, headers=key)
    assert other.status_code == 422
    assert other.json()["type"] == "urn:rocerf:problem:KeyReusedError"
    assert "somebody" not in other.text


def test_where_a_request_came_from_is_for_those_who_see_people(desk: Desk) -> None:
    client = desk.client(PROTECTION)
    made = client.post("/api/v1/deletions", json={"person": "p-1", "source": "letter of Erika"}).json()
    assert made["source"] == "letter of Erika"
    for role in (AUDITOR, ADMIN):
        seen = desk.client(role)
        texts = [seen.get(f"/api/v1/deletions/{made['id']}").text, seen.get("/api/v1/deletions").text]
        texts.append(seen.get("/api/v1/audit/events?limit=1000").text)
        assert not any("Erika" in text for text in texts)
    assert "Erika" not in client.get("/api/v1/audit/events?limit=1000").text  # in the trail it would stay for ever


def test_an_auditor_sees_how_many_were_erased_and_no_persons_number(desk: Desk) -> None:
    number = ledgers.approved(desk.ledger, "owner-7")
    subject = desk.ledger.requests.get(number).subject
    desk.ledger.deletions.carry_out(number, actor="dpo")
    Worker(desk.ledger).run_once()

    def told(role: Role) -> list[Any]:
        events = desk.client(role).get("/api/v1/audit/events", params={"kind": "data erased"}).json()["events"]
        return [event["facts"]["subjects"] for event in events]

    assert [list(one) for one in told(PROTECTION)] == [[str(subject)]]
    assert told(AUDITOR) == [1]
