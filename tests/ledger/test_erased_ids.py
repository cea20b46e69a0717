"""Whoever tries to bring erased rows back: an old saved folder, an old table, an old note of whose rows are whose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ledgers import Clock, approved, explainer, filled, opened, rows
from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.errors import ErasedError, TransitionError
from rocerf.ledger import FileRows, JobState, Ledger
from rocerf.ledger.core import Policy
from rocerf.ledger.tables import ErasedIdRow
from rocerf.ledger.worker import Worker


def erased(ledger: Ledger, person: str, **options: object) -> int:
    number = approved(ledger, person, **options)
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.state is JobState.DONE, job.error
    return number


def test_a_folder_saved_before_a_deletion_does_not_bring_the_row_back(
    tmp_path: Path, database: Callable[[], str]
) -> None:
    ledger = filled(opened(tmp_path, url=database()))
    ledger.models.explainer().save(tmp_path / "saved")
    erased(ledger, "owner-7")
    old = Rocerf.load(tmp_path / "saved")
    with pytest.raises(ErasedError, match=r"1 of 120 rows"):
        ledger.models.register(old, actor="admin")
    assert ledger.models.current().id == 2
    ledger.models.register(old.forget(["row-7"]), actor="admin")  # without the row it may come
    ledger.models.register(old, actor="admin", reused_ids=True)  # somebody says that it is another row
    said = [event.facts for event in ledger.audit.events(kind="model registered")]
    assert [facts.get("reused_ids") for facts in said] == [None, None, 1]
    assert ledger.audit.verify().whole


def test_rows_that_only_another_model_had_do_not_come_either(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    erased(ledger, "somebody", rows=["row-of-another-table"])
    frame, labels = rows()
    train = TrainingSet(frame, labels, np.array(["row-of-another-table", *frame.index[1:]]))
    made = Rocerf(LogisticModel.fit(train, C=0.5), k=3, promise="first_order", schema=FeatureSchema.free(train.columns))
    with pytest.raises(ErasedError):
        ledger.models.register(made, actor="admin")


def test_whose_an_erased_row_was_is_not_noted_again(tmp_path: Path, database: Callable[[], str]) -> None:
    ledger = filled(opened(tmp_path, url=database()))
    erased(ledger, "owner-7")
    with pytest.raises(ErasedError, match="leave them out"):
        ledger.people.assign_rows({"owner-7": ["row-7"], "owner-8": ["row-8"]}, actor="admin")
    ledger.people.assign_rows({"owner-8": ["row-8"]}, actor="admin")
    again = ledger.requests.receive("owner-7", actor="desk", rows=["row-7"])  # to ask again is everybody's right
    assert again.state.code == "received"
    ledger.models.register(explainer(), actor="admin", reused_ids=True)
    ledger.people.assign_rows({"somebody else": ["row-7"]}, actor="admin")  # the model's row of that id is another


def test_a_row_that_two_people_share_is_noted_of_nobody_afterwards(tmp_path: Path, database: Callable[[], str]) -> None:
    ledger = filled(opened(tmp_path, url=database()))
    ledger.people.assign_rows({"owner-8": ["row-8", " row-7", "row-77"], "owner-9": ["row-9"]}, actor="admin")
    erased(ledger, "owner-7")
    assert ledger.people.rows_of("owner-8") == ("row-8", "row-77")
    assert ledger.people.rows_of("owner-9") == ("row-9",)
    ledger.people.assign_rows({"owner-8": ledger.people.rows_of("owner-8")}, actor="admin")
    assert ledger.requests.preview(approved(ledger, "owner-8"), actor="dpo").rows_elsewhere == 0


def test_ids_written_alike_are_the_same(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    tags = ledger.core.keys
    assert tags.row_tag(17) == tags.row_tag("17") == tags.row_tag(np.int64(17)) != tags.row_tag("017")
    assert tags.row_tag(17) == tags.row_tag(" 17 ") == tags.row_tag(17.0)
    other = opened(tmp_path / "other")
    assert other.core.keys.row_tag(17) != tags.row_tag(17)  # without the key nobody can try ids


def test_a_hash_is_all_that_is_kept_of_an_id(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    number = erased(ledger, "owner-7")
    with ledger.core.database.reading() as session:
        assert [row.tag for row in session.query(ErasedIdRow)] == [ledger.core.keys.row_tag("row-7")]
        assert list(ErasedIdRow.__table__.columns.keys()) == ["tag"]
    certificate = ledger.deletions.certificate(number)
    assert certificate.row_hashes == 1
    assert "1 " in certificate.to_text().split("\n\n")[1]
    assert "hash" in certificate.to_text()
    assert "Prüfsumme" in certificate.to_text("de")


def test_a_table_that_has_the_row_again_is_refused(tmp_path: Path) -> None:
    frame, labels = rows()
    table = frame.assign(repaid=labels).rename_axis("customer")
    path = tmp_path / "rows.csv"
    table.reset_index().to_csv(path, index=False)
    source = FileRows(path, label="repaid", id="customer", mask=tmp_path / "mask.txt")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=Clock(), policy=Policy(), rows=source) as ledger:
        filled(ledger)
        number = approved(ledger, "owner-7")
        ledger.deletions.carry_out(number, actor="dpo")
        Worker(ledger).run_once()  # waits for the source; the hash is there already, and the row must not be in the way
        table.drop(index="row-7").reset_index().to_csv(path, index=False)
        ledger.core.clock.jump(minutes=2)  # type: ignore[attr-defined]
        job = Worker(ledger).run_once()
        assert job is not None
        assert job.state is JobState.DONE, job.error
        left = ledger.models.explainer()
        table.reset_index().to_csv(path, index=False)  # as if from a backup
        with pytest.raises(ErasedError, match="row source"):
            ledger.models.register(left, actor="admin")
        (tmp_path / "mask.txt").write_text("row-7\n")  # stored, never given out: known from before
        ledger.models.register(left, actor="admin")


@pytest.mark.parametrize("step", ["recheck:before", "reissue:before", "erase:before", "certify:before"])
def test_no_model_is_registered_in_the_middle_of_a_deletion(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = filled(opened(tmp_path))
    number = approved(ledger, "owner-7")
    ledger.deletions.carry_out(number, actor="dpo")
    tried: list[str] = []

    def register_now(place: str) -> None:
        if place == step and not tried:
            tried.append(place)
            with pytest.raises((TransitionError, ErasedError)):
                ledger.models.register(explainer(), actor="admin", reused_ids=True)

    monkeypatch.setattr("rocerf.ledger.deletions.reached", register_now)
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.state is JobState.DONE, job.error
    assert tried == [step]
    assert "row-7" not in ledger.models.explainer().model.train.ids.tolist()
    # The next deletion finds every letter's points readable.
    assert ledger.requests.preview(approved(ledger, "owner-8"), actor="dpo").letters == 6
