"""A deletion end to end: what was previewed comes true, letters are renewed or honoured, certificates say what went."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from ledgers import UNTIL, Clock, approved, asking, explainer, filled, fitted_without, harmful, opened, rows
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.errors import ErasedError, NotInLedgerError, RocerfError, TransitionError
from rocerf.ledger import JobState, Ledger, LetterState, RequestState, VersionState, core
from rocerf.ledger.issuing import ASKED, LETTER
from rocerf.ledger.outstanding import Outstanding
from rocerf.ledger.people import as_json
from rocerf.ledger.previews import split
from rocerf.ledger.worker import Worker


def carried_out(ledger: Ledger, *numbers: int, **options: object) -> None:
    job = ledger.deletions.carry_out(numbers, actor="dpo", **options)  # type: ignore[arg-type]
    done = Worker(ledger).run_once()
    assert done is not None
    assert (done.id, done.state, done.error) == (job.id, JobState.DONE, "")


def test_what_was_previewed_comes_true_and_broken_letters_are_made_anew(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 40, k=1)
    number = approved(ledger, "somebody", rows=harmful())
    preview = ledger.requests.preview(number, actor="dpo")
    carried_out(ledger, number)
    broken = list(ledger.letters.find(state=LetterState.REISSUED))
    assert tuple(letter.id for letter in broken) == preview.broken
    assert broken
    # The model is the one that never had the rows, to the last bit.
    assert np.array_equal(ledger.models.explainer().model.theta, fitted_without(harmful()).theta)
    for letter in broken:
        new = ledger.letters.get(letter.replaced_by or 0)
        assert (new.replaces, new.used, new.state, new.subject) == (letter.id, 0, LetterState.ISSUED, letter.subject)
        assert ledger.letters.document(new.id).person == ledger.letters.document(letter.id).person
    with ledger.core.database.reading() as session:
        letters = Outstanding.of(session, ledger.core)
    points = np.concatenate(letters.points)
    assert (fitted_without(harmful()).score(points) >= 0).all()
    held = list(ledger.letters.find(state=LetterState.RECHECKED))
    assert all(letter.used == 12 and letter.remaining == -11 for letter in held)
    assert ledger.letters.due() == tuple(held)
    assert ledger.requests.get(number).state is RequestState.CERTIFIED
    assert [version.state for version in ledger.models.all()] == [VersionState.CURRENT, VersionState.ERASED]
    with pytest.raises(ErasedError):
        ledger.models.explainer(1)
    assert ledger.audit.verify().whole


def test_the_policy_honour_keeps_to_the_old_letters(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 40, k=1)
    number = approved(ledger, "somebody", rows=harmful())
    broken = ledger.requests.preview(number, actor="dpo").broken
    carried_out(ledger, number, broken="honour")
    assert tuple(letter.id for letter in ledger.letters.find(state=LetterState.HONOURED)) == broken
    assert [entry.state.code for entry in ledger.letters.history(broken[0])] == ["issued", "broken", "honoured"]


def test_a_letter_that_breaks_within_its_budget_is_honoured_because_its_word_was_given(tmp_path: Path) -> None:
    outcomes = {}
    for rule in ("reissue", "replace"):
        ledger = filled(opened(tmp_path / rule), 40, k=1)  # 40 letters that speak about one deletion
        number = approved(ledger, "owner-18")
        preview = ledger.requests.preview(number, actor="dpo")
        within = preview.broken_within_promise
        assert len(within) >= 3  # one row is deleted, and these break all the same
        carried_out(ledger, number, broken=rule)
        (job,) = ledger.jobs.find()
        states = {ledger.letters.get(one).state for one in within}
        outcomes[rule] = states, job.result["honoured"], job.result["word_broken"], job.result["broken_within_promise"]
        assert job.result["broken_within_promise"] == len(within)
    count = len(within)
    assert outcomes["reissue"] == ({LetterState.HONOURED}, count, 0, count)
    assert outcomes["replace"] == ({LetterState.REISSUED}, 0, count, count)


def test_a_person_who_moved_on_gets_a_letter_from_their_data_as_they_are_now(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 40, k=1)
    number = approved(ledger, "somebody", rows=harmful())
    broken = ledger.requests.preview(number, actor="dpo").broken[0]
    person = ledger.letters.document(broken).person
    now = {"income": 21000.0, "debt": 15000.0}
    ledger.people.update(str(person), now, actor="officer")
    carried_out(ledger, number)
    new = ledger.letters.document(ledger.letters.get(broken).replaced_by or 0)
    shown = {change.feature: change.before for option in new.options for change in option.changes}
    assert shown
    assert all(now[feature] == value for feature, value in shown.items())


def test_several_requests_are_one_retraining_and_each_has_its_certificate(tmp_path: Path) -> None:
    clock = Clock()
    ledger = filled(opened(tmp_path, clock, lead=timedelta(days=7)))
    first = approved(ledger, "owner-3")
    clock.jump(days=10)
    second = approved(ledger, "owner-5")
    assert ledger.deletions.due() == ()
    clock.jump(days=12)  # 22 February: the first deadline, the 28th, is near; the second one comes along
    assert ledger.deletions.due() == (first, second)
    carried_out(ledger, *ledger.deletions.due())
    assert len(ledger.models.all()) == 2
    certificates = [ledger.deletions.certificate(number) for number in (first, second)]
    assert certificates[0].number != certificates[1].number
    for certificate in certificates:
        assert (certificate.rows, certificate.in_time, certificate.version_after) == (1, True, 2)
        assert certificate.removed["mapping"] == 1
        assert certificate.removed["versions"] == 1
        assert "owner" not in certificate.to_json() + certificate.to_text("de") + certificate.to_text()
    with pytest.raises(NotInLedgerError):
        ledger.people.rows_of("owner-3")
    assert ledger.people.rows_of("owner-4") == ("row-4",)


def test_a_certificate_counts_one_as_one(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    number = approved(ledger, "owner-7")
    carried_out(ledger, number)
    certificate = ledger.deletions.certificate(number)
    assert (certificate.removed["mapping"], certificate.removed["letters"]) == (1, 0)
    assert "1 note on which rows" in certificate.to_text()
    assert "0 letters withdrawn" in certificate.to_text()
    assert "1 Vermerk, welche" in certificate.to_text("de")


def test_whoever_has_a_letter_and_is_erased_has_none_afterwards(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    person = str(asking(ledger.models.explainer().model, 1).index[0])
    letter = ledger.letters.find(person=person)[0]
    carried_out(ledger, approved(ledger, person))
    assert ledger.letters.get(letter.id).state is LetterState.WITHDRAWN
    with pytest.raises(ErasedError):
        ledger.letters.document(letter.id)
    assert len(ledger.models.all()) == 1  # none of the rows was theirs: the model stays


def test_what_is_not_approved_or_already_on_its_way_is_not_carried_out(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    number = ledger.requests.receive("owner-1", actor="desk").id
    with pytest.raises(TransitionError, match="approved"):
        ledger.deletions.carry_out(number, actor="dpo")
    ready = approved(ledger, "owner-2")
    job = ledger.deletions.carry_out(ready, actor="dpo", idempotency_key="once")
    assert ledger.deletions.carry_out(ready, actor="dpo", idempotency_key="once") == job
    with pytest.raises(TransitionError, match="being carried out"):
        ledger.deletions.carry_out(ready, actor="dpo")
    with pytest.raises(TransitionError, match="no longer be stopped"):
        ledger.requests.refuse(ready, reason="changed my mind", actor="dpo")
    with pytest.raises(TransitionError, match="not yet"):
        ledger.deletions.certificate(ready)


def test_a_deletion_that_cannot_be_is_given_back_with_its_reason(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    number = ledger.requests.receive("all", actor="desk", rows=ledger.models.explainer().model.train.ids.tolist()).id
    ledger.requests.verify_identity(number, actor="desk")
    with ledger.core.database.writing() as session:  # nobody could preview this; as if the rows had become few since
        from rocerf.ledger.tables import RequestRow

        session.get_one(RequestRow, number).state = RequestState.APPROVED.code
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.state is JobState.FAILED
    assert "Expected" in job.error
    assert ledger.requests.get(number).batch is None
    assert ledger.models.current().id == 1
    assert ledger.audit.verify().whole


def test_a_job_that_kills_its_workers_is_given_up_and_goes_on_when_told_to(tmp_path: Path) -> None:
    clock = Clock()
    ledger = filled(opened(tmp_path, clock, tries=2))
    number = approved(ledger, "owner-7")
    job = ledger.deletions.carry_out(number, actor="dpo")
    for _ in range(2):
        assert ledger.jobs.claim("dies") is not None
        clock.jump(minutes=10)
    failed = Worker(ledger).run_once()
    assert failed is not None
    assert (failed.state, failed.attempts) == (JobState.FAILED, 3)
    assert "workers were lost" in failed.error
    assert Worker(ledger).run_once() is None
    assert ledger.requests.get(number).batch is None  # nothing was touched: it waits for another batch
    ledger.jobs.retry(job.id, actor="admin")
    empty = Worker(ledger).run_once()
    assert empty is not None
    assert (empty.state, empty.result) == (JobState.DONE, {"requests": 0})
    again = ledger.deletions.carry_out(number, actor="dpo")
    assert again.id != job.id
    done = Worker(ledger).run_once()
    assert done is not None
    assert done.state is JobState.DONE


def test_ids_that_came_as_text_are_the_rows_that_they_name(tmp_path: Path) -> None:
    frame, labels = rows()
    train = TrainingSet(frame.to_numpy(), labels)  # ids are whole numbers
    ledger = opened(tmp_path)
    ledger.models.register(Rocerf(LogisticModel.fit(train), 2, promise="first_order"), actor="admin")
    number = approved(ledger, "somebody", rows=["7", 8, "nobody", "8", " 9 ", 10.0])
    preview = ledger.requests.preview(number, actor="dpo")
    assert (preview.rows, preview.rows_elsewhere) == (4, 1)
    carried_out(ledger, number)
    assert {7, 8, 9, 10}.isdisjoint(ledger.models.explainer().model.train.ids.tolist())
    assert ledger.deletions.certificate(number).rows == 4


def test_umlauts_of_two_signs_are_those_of_one() -> None:
    umlaut, apart = "M\u00fcller-3", "Mu\u0308ller-3"
    assert split([umlaut, "x"], [apart, f" {umlaut}", "X"]) == ([umlaut], ["X"])
    assert split([apart, umlaut], [apart, umlaut]) == ([apart, umlaut], [])  # two rows: each by its own


def test_of_rows_whose_ids_are_written_alike_none_goes_for_another() -> None:
    assert split(["17 ", " 17", "18 "], ["17", "18"]) == (["18 "], ["17"])
    assert split(["17 ", " 17"], [" 17", "17  "]) == ([" 17"], ["17  "])
    assert split([17, "17 "], ["17"]) == split(["17 ", 17], ["17"]) == ([17], [])
    assert split(["017", "A1"], ["17", 17, "a1"]) == ([], ["17", 17, "a1"])


def test_a_name_that_was_written_otherwise_is_the_same_person(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 2)
    ledger.people.assign_rows({"M\u00fcller": ["row-30"], "x": ["row-31"]}, actor="admin")
    people = asking(ledger.models.explainer().model, 2).set_axis([" M\u00fcller", "x "], axis=0)
    ledger.letters.issue(people, valid_until=UNTIL, actor="officer")
    number = approved(ledger, "Mu\u0308ller ")
    assert ledger.requests.get(number).subject == ledger.people.number_of("M\u00fcller")
    carried_out(ledger, number)
    certificate = ledger.deletions.certificate(number)
    assert (certificate.rows, certificate.removed["letters"]) == (1, 1)
    with pytest.raises(NotInLedgerError):
        ledger.people.number_of("M\u00fcller")


def test_people_of_an_earlier_release_are_found_by_the_name_they_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(tmp_path)
    with monkeypatch.context() as before:
        before.setattr(core, "as_written", str)
        number = ledger.requests.receive("owner-1 ", actor="desk").subject
    assert ledger.people.number_of("owner-1 ") == number
    assert ledger.requests.receive("owner-1 ", actor="desk").subject == number
    # That release told two people apart where one would be seen now: each is who they were.
    with monkeypatch.context() as before:
        before.setattr(core, "as_written", str)
        other = ledger.requests.receive("owner-1", actor="desk").subject
    assert other != number
    assert (ledger.people.number_of("owner-1"), ledger.people.number_of("owner-1 ")) == (other, number)


def test_letters_are_renewed_before_their_budget_is_used_up(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path, renew_at=0.5), 6, k=3)
    carried_out(ledger, approved(ledger, "owner-1"))
    assert ledger.letters.due() == ()  # two of three are left
    carried_out(ledger, approved(ledger, "owner-2"))
    due = ledger.letters.due()
    assert len(due) == 6
    ledger.letters.renew([letter.id for letter in due], actor="officer")
    done = Worker(ledger).run_once()
    assert done is not None
    assert done.result == {"reissued": 6, "without_recourse": 0, "unwritten": 0}
    assert ledger.letters.due() == ()
    assert all(letter.remaining == 3 for letter in ledger.letters.find(outstanding=True))


def test_letters_are_due_while_something_of_their_budget_is_left(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 6, k=3)  # renew_at is a quarter: less than one deletion of three
    carried_out(ledger, approved(ledger, "owner-1"))
    assert ledger.letters.due() == ()
    waiting = approved(ledger, "somebody", rows=["row-2", "row-3", "row-4", "elsewhere"])
    assert ledger.requests.pending_rows() == 3
    held = ledger.letters.find(outstanding=True)
    assert {letter.remaining for letter in held} == {2}
    assert ledger.letters.due(pending=3) == held  # two are left and three are approved: a new letter covers them
    assert ledger.letters.due(pending=4) == ()  # no new letter would
    ledger.requests.refuse(waiting, reason="withdrawn", actor="dpo")
    assert ledger.requests.pending_rows() == 0
    carried_out(ledger, approved(ledger, "owner-2"))
    due = ledger.letters.due()
    assert due
    assert {letter.remaining for letter in due} == {1}  # not used up yet


def impossible(ledger: Ledger, person: str) -> int:
    """An approved request for rows without which there is no model: all of one class."""
    frame, labels = rows()
    number = ledger.requests.receive(person, actor="desk", rows=frame.index[labels == 1].tolist()).id
    with ledger.core.database.writing() as session:
        from rocerf.ledger.tables import RequestRow

        session.get_one(RequestRow, number).state = RequestState.APPROVED.code
    return number


def test_a_deletion_that_cannot_be_keeps_no_other_from_its_deadline_and_is_not_ordered_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    ledger = filled(opened(tmp_path, clock))
    bad, good = impossible(ledger, "everybody"), approved(ledger, "owner-3")
    clock.jump(days=27)
    for _ in range(8):  # as the worker's own loop does
        due = ledger.deletions.due()
        if due:
            ledger.deletions.carry_out(due, actor="clock")
        Worker(ledger).run_once()
        clock.jump(hours=1)
    assert ledger.requests.get(good).state is RequestState.CERTIFIED
    assert ledger.requests.get(bad).state is RequestState.APPROVED
    assert ledger.deletions.due() == ()
    assert [job.state for job in ledger.jobs.find()].count(JobState.FAILED) <= 3
    ordered = ledger.audit.events(kind="deletion ordered")
    assert len(ordered) <= 4
    assert ledger.deletions.certificate(good).in_time
    assert ledger.audit.verify().whole
    with pytest.raises(RocerfError, match="Expected"):  # and whoever looks is told why
        ledger.requests.preview(bad, actor="dpo")
    without = explainer(k=1).forget(["row-3"])
    ledger.models.register(without, actor="admin")
    assert ledger.deletions.due() == (bad,)  # another model may be able to


@pytest.mark.parametrize("also_then", [False, True])
def test_what_one_person_handed_in_keeps_no_other_from_being_erased(tmp_path: Path, also_then: bool) -> None:
    ledger = filled(opened(tmp_path))
    unreadable = {"income": "Zephyrine 1871", "debt": 3.0}
    for letter in ledger.letters.find():
        ledger.people.update(str(ledger.letters.document(letter.id).person), unreadable, actor="officer")
        if also_then:
            with ledger.core.database.writing() as session:
                ledger.core.put(session, [(LETTER, letter.id, ASKED, letter.subject, as_json(unreadable))])
    number = approved(ledger, "somebody", rows=harmful())
    carried_out(ledger, number, broken="replace")
    job = ledger.jobs.find()[0]
    assert job.result["broken"] > 0
    assert job.result["unwritten" if also_then else "reissued"] == job.result["broken"]
    assert len(ledger.letters.find(state=LetterState.BROKEN)) == job.result["unwritten"]
    ledger.letters.renew([letter.id for letter in ledger.letters.find(outstanding=True)], actor="officer")
    done = Worker(ledger).run_once()
    assert done is not None
    assert (done.state, done.error) == (JobState.DONE, "")
    assert "Zephyrine" not in str(ledger.jobs.find()) + str(ledger.audit.events())
    carried_out(ledger, approved(ledger, "owner-5"))  # and the next one goes on
