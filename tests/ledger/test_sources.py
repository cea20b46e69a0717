"""Training rows that stay with the user: nothing of them inside, and no certificate before they are gone there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ledgers import OPEN, PLANTED, UNTIL, Clock, approved, asking, explainer, fitted_without, rows
from residue import Planted
from rocerf.errors import DataError, OptionError, RowSourceError
from rocerf.ledger import CalledRows, FileRows, JobState, Ledger, Policy, RequestState
from rocerf.ledger.outside import ROWS
from rocerf.ledger.tables import ArtefactRow
from rocerf.ledger.worker import Worker
from rocerf.storage.state import State

NAME = "Zephyrine Quintaloup 1871"


def table() -> pd.DataFrame:
    frame, labels = rows()
    return frame.assign(repaid=labels).rename_axis("customer").reset_index()


def written(folder: Path, kind: str, frame: pd.DataFrame) -> Path:
    """The table as a user may have it: one CSV file, one Parquet file, or a folder of them."""
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False)
        return folder / "rows.csv"
    if kind == "parquet":
        frame.to_parquet(folder / "rows.parquet")
        return folder / "rows.parquet"
    (folder / "rows").mkdir(exist_ok=True)
    for part in range(3):
        frame.iloc[part::3].to_parquet(folder / "rows" / f"part-{part}.parquet")
    return folder / "rows"


def ledger_over(source: Any, home: Path, url: str | None = None, clock: Clock | None = None) -> Ledger:
    home.mkdir(exist_ok=True)
    where = url or f"sqlite:///{home}/ledger.db"
    made = Ledger.open(where, keys=home / "k", rows=source, clock=clock or Clock(), policy=Policy())
    OPEN.append(made)
    return made


def filled(ledger: Ledger, **options: Any) -> int:
    """A model, letters, and an approved request of the person with the rare values."""
    made = explainer(**{"promise": "retrained", **options})
    ledger.models.register(made, actor="admin")
    ledger.people.assign_rows({NAME: ["row-7"], "other": ["row-8"]}, actor="admin")
    ledger.letters.issue(asking(made.model, 4), valid_until=UNTIL, actor="officer")
    number = approved(ledger, NAME)
    ledger.deletions.carry_out(number, actor="dpo")
    return number


@pytest.mark.parametrize(
    ("database", "kind"), [("sqlite", "csv"), ("sqlite", "parquet"), ("postgresql", "folder")], indirect=["database"]
)
def test_a_deletion_waits_until_the_rows_are_gone_at_the_source(
    tmp_path: Path, database: Callable[[], str], kind: str
) -> None:
    clock, theirs = Clock(), tmp_path / "theirs"
    theirs.mkdir()
    source = FileRows(written(theirs, kind, table()), label="repaid", id="customer")
    ledger = ledger_over(source, tmp_path / "ours", database(), clock)
    number = filled(ledger)
    waiting = Worker(ledger).run_once()
    assert waiting is not None
    assert (waiting.state, waiting.step, waiting.attempts) == (JobState.WAITING, "reissue", 0)
    assert "1 of 1 that it still gives out" in waiting.error
    assert ledger.requests.get(number).state is RequestState.RECHECKED
    assert np.array_equal(ledger.models.explainer().model.theta, fitted_without(["row-7"]).theta)
    for _ in range(8):  # it may take the user days: this is no failure
        clock.jump(hours=20)
        again = Worker(ledger).run_once()
        assert again is not None
        assert again.state is JobState.WAITING
    left = table()[lambda t: t["customer"] != "row-7"]
    written(theirs, kind, left)
    clock.jump(minutes=2)
    done = Worker(ledger).run_once()
    assert done is not None
    assert (done.state, done.error) == (JobState.DONE, "")
    certificate = ledger.deletions.certificate(number)
    assert certificate.source is not None
    assert (certificate.source.rows, certificate.source.gone, certificate.source.masked) == (1, 1, 0)
    assert certificate.source.sha256 == source.look([]).sha256
    assert certificate.complete
    assert "versions_without_rows" in certificate.removed
    for language in ("en", "de"):
        text = certificate.to_text(language)
        assert source.name in text
        assert certificate.source.sha256 in text
    assert "source_copies" in certificate.beyond_reach
    assert "are not kept here" in certificate.to_text()
    assert Planted([NAME], PLANTED.values()).in_files(tmp_path) == []
    assert ledger.audit.verify().whole
    ledger.close()
    assert Planted([NAME], PLANTED.values()).in_files(tmp_path) == []
    # Who opens the ledger again has the same model, made from the rows that are left.
    later = ledger_over(source, tmp_path / "ours", str(ledger.core.database.engine.url), clock)
    assert np.array_equal(later.models.explainer().model.theta, fitted_without(["row-7"]).theta)


def test_of_masked_rows_no_certificate_says_that_they_are_erased(tmp_path: Path) -> None:
    clock, mask = Clock(), tmp_path / "mask.txt"
    source = FileRows(written(tmp_path, "csv", table()), label="repaid", id="customer", mask=mask)
    ledger = ledger_over(source, tmp_path / "ours", clock=clock)
    number = filled(ledger)
    waiting = Worker(ledger).run_once()
    assert waiting is not None
    assert waiting.state is JobState.WAITING
    mask.write_text("row-7\n")
    clock.jump(minutes=2)
    done = Worker(ledger).run_once()
    assert done is not None
    assert done.state is JobState.DONE
    certificate = ledger.deletions.certificate(number)
    assert certificate.source is not None
    assert (certificate.source.gone, certificate.source.masked, certificate.complete) == (0, 1, False)
    english, german = certificate.to_text(), certificate.to_text("de")
    assert english.splitlines()[0] == (
        "Certificate: removed from the model and from the ledger; NOT erased where the rows are stored"
    )
    assert "IS STILL STORED there, masked" in english
    assert "IST DORT NOCH GESPEICHERT" in german
    assert "no longer stored" not in english
    assert "Certificate of erasure" not in english
    assert Planted([NAME], PLANTED.values()).in_files(tmp_path / "ours") == []  # inside, nothing
    assert Planted([], PLANTED.values()).in_files(tmp_path) == ["rows.csv"]  # the search finds what is there


def test_nothing_of_the_rows_is_inside_even_unsealed(tmp_path: Path) -> None:
    source = FileRows(written(tmp_path, "parquet", table()), label="repaid", id="customer")
    for promise in ("first_order", "retrained", "simulated"):
        ledger = ledger_over(source, tmp_path / promise)
        ledger.models.register(explainer(promise=promise), actor="admin")
        with ledger.core.database.reading() as session:
            content = ledger.models._opened(session.get_one(ArtefactRow, 1))
        whole = State.from_bytes(content)
        assert not any(f"model/{name}" in whole.arrays for name in ROWS)
        looked = Planted([], PLANTED.values())
        assert not any(looked.within(array) for array in whole.arrays.values())
        assert ledger.models.current().rows_outside
    inside = Ledger.open(f"sqlite:///{tmp_path}/inside.db")
    OPEN.append(inside)
    inside.models.register(explainer(), actor="admin")
    with inside.core.database.reading() as session:
        content = inside.models._opened(session.get_one(ArtefactRow, 1))
    assert Planted([], PLANTED.values()).within(State.from_bytes(content).arrays["model/X"])  # the oracle finds it


def test_a_function_of_the_users_is_asked_and_believed_as_that(tmp_path: Path) -> None:
    clock, held = Clock(), table().set_index("customer")
    gone: set[str] = set()
    source = CalledRows(
        lambda ids: held.loc[[i for i in ids if i in held.index and i not in gone]], label="repaid", name="warehouse"
    )
    ledger = ledger_over(source, tmp_path, clock=clock)
    number = filled(ledger)
    Worker(ledger).run_once()
    gone.add("row-7")
    clock.jump(minutes=2)
    Worker(ledger).run_once()
    certificate = ledger.deletions.certificate(number)
    assert certificate.source is not None
    assert (certificate.source.source, certificate.source.gone, certificate.source.sha256) == ("warehouse", 1, "")
    assert "could only be asked" in certificate.to_text()


def test_rows_that_are_not_those_of_training_are_refused(tmp_path: Path) -> None:
    frame = table()
    path = written(tmp_path, "csv", frame)
    source = FileRows(path, label="repaid", id="customer")
    ledger = ledger_over(source, tmp_path / "ours")
    ledger.models.register(explainer(), actor="admin")
    ledger.close()
    with pytest.raises(RowSourceError, match="got none; open the ledger with it"):
        ledger_over(None, tmp_path / "ours").models.explainer()
    written(tmp_path, "csv", frame.assign(income=frame["income"] + 1.0))
    with pytest.raises(RowSourceError, match="checksum differs"):
        ledger_over(source, tmp_path / "ours").models.explainer()
    written(tmp_path, "csv", frame.iloc[1:])
    with pytest.raises(RowSourceError, match="got 119: some were removed or masked before"):
        ledger_over(source, tmp_path / "ours").models.explainer()
    path.unlink()
    with pytest.raises(Exception, match="An emptied folder is not taken"):
        source.look(["row-7"])


def test_what_cannot_be_kept_apart_from_its_rows_is_refused(tmp_path: Path) -> None:
    source = FileRows(written(tmp_path, "parquet", table()), label="repaid", id="customer")
    ledger = ledger_over(source, tmp_path / "ours")
    with pytest.raises(OptionError, match="an entry for each row"):
        ledger.models.register(explainer(promise="certified", k=1), actor="admin")
    other = FileRows(written(tmp_path, "csv", table().assign(repaid=1)), label="repaid", id="customer")
    with pytest.raises(RowSourceError, match="checksum differs"):
        ledger_over(other, tmp_path / "another").models.register(explainer(), actor="admin")


def test_a_text_in_place_of_a_number_is_another_row(tmp_path: Path) -> None:
    path = written(tmp_path, "csv", table())
    ledger = ledger_over(FileRows(path, label="repaid", id="customer"), tmp_path / "ledger")
    filled(ledger)
    ledger.close()
    written(tmp_path, "csv", table().astype({"income": object}).replace({"income": {PLANTED["income"]: NAME}}))
    again = ledger_over(FileRows(path, label="repaid", id="customer"), tmp_path / "ledger")
    with pytest.raises(RowSourceError, match="got others under the same ids") as caught:
        again.models.explainer()
    assert NAME not in str(caught.value)


def test_why_a_job_failed_quotes_nobody_and_goes_with_the_next_deletion(tmp_path: Path) -> None:
    frame, labels = rows()
    held, broken = frame.assign(repaid=labels), list[Exception]()

    def fetch(ids: Any) -> pd.DataFrame:
        for error in broken:
            raise error
        return held.loc[[i for i in ids if i in held.index]]

    clock = Clock()
    ledger = ledger_over(CalledRows(fetch, label="repaid", name="warehouse"), tmp_path / "ledger", clock=clock)
    filled(ledger)
    ledger.models.dropped([1])
    broken.append(DataError(f"Expected a number in 'income', got {NAME!r} of 73219.8125's; correct it."))
    failed = Worker(ledger).run_once()
    assert failed is not None
    assert failed.state is JobState.FAILED
    assert failed.error == "Expected a number in '...', got '...' of 73219.8125's; correct it."
    broken.clear()
    ledger.deletions.carry_out(1, actor="dpo")
    waits = Worker(ledger).run_once()
    assert waits is not None
    assert waits.state is JobState.WAITING
    held = held.drop(index="row-7")
    clock.jump(minutes=2)
    done = Worker(ledger).run_once()
    assert done is not None
    assert done.state is JobState.DONE, done.error
    assert "73219" not in str(ledger.jobs.find())
    assert "tried again to see why" in ledger.jobs.get(1).error
