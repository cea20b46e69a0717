"""Models of pipelines in the ledger: kept with their pipeline, fitted anew without the rows, categories that vanish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import rocerf
from ledgers import OPEN, UNTIL, approved, opened
from pipelines import NUMBERS, TEXTS, applicants, classifier
from residue import Planted
from rocerf import Rocerf
from rocerf.ledger import CalledRows, JobState, Ledger, LetterState
from rocerf.ledger.worker import Worker


def table(rare: bool) -> tuple[pd.DataFrame, pd.Series]:
    """Applicants with gaps; with one more, where asked for, whose job nobody else has."""
    frame, y = applicants(160, missing=False)
    frame = frame.astype({"age": float})
    frame.loc[frame.index[::9], "income"] = np.nan
    if rare:
        row = frame.iloc[[0]].set_axis(["row-rare"], axis=0).assign(job="falconer")
        frame, y = pd.concat([frame, row]), pd.concat([y, pd.Series([1], index=["row-rare"])])
    return frame, y


def taken_over(rare: bool, gone: list[str] | None = None) -> Any:
    frame, y = table(rare)
    frame, y = frame.drop(index=gone or []), y.drop(index=gone or [])
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), TEXTS)
    )
    fitted = make_pipeline(prepared, classifier()).fit(frame, y)
    return rocerf.from_pipeline(fitted, frame, y, ids=frame.index)


def refused(model: Any, count: int = 12) -> pd.DataFrame:
    asking, _ = applicants(300, seed=9)
    asking = asking.astype({"age": float}).set_axis([f"person-{i}" for i in range(300)], axis=0)
    asking.loc[asking.index[::4], "income"] = np.nan
    return asking[model.predict(asking) == 0].iloc[:count]


def accepted_as_told(ledger: Ledger, model: Any, people: pd.DataFrame) -> list[int]:
    """Numbers of outstanding letters that the model refuses: each read as the person would, and handed in."""
    falling = []
    for letter in ledger.letters.find(outstanding=True, limit=1000):
        document = ledger.letters.document(letter.id)
        for option in document.options:
            person = people.loc[[document.person]].copy()
            for change in option.changes:
                person[change.feature] = change.after
            if not bool(model.predict(person)[0]):
                falling.append(letter.id)
    return sorted(set(falling))


@pytest.mark.slow
def test_a_pipeline_is_kept_fitted_anew_and_asked_by_the_letters_words(tmp_path: Path) -> None:
    model = taken_over(rare=True)
    people = refused(model)
    opened_first = opened(tmp_path)
    opened_first.models.register(Rocerf(model, 1, promise="first_order"), actor="admin")
    opened_first.letters.issue(people, valid_until=UNTIL, actor="officer")
    opened_first.close()
    ledger = opened(tmp_path)  # another process, on another day: everything it knows is in the ledger
    _, y = table(rare=True)
    gone = ["row-rare", *y.index[(y == 1).to_numpy()].tolist()[:9]]
    truth = taken_over(rare=True, gone=gone)
    before = accepted_as_told(ledger, truth, people)
    number = approved(ledger, "somebody", rows=gone)
    preview = ledger.requests.preview(number, actor="dpo")
    assert list(preview.broken) == before
    assert before
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert (job.state, job.error) == (JobState.DONE, "")
    new = ledger.models.explainer().model
    assert np.allclose(new.theta, truth.theta, atol=1e-12)
    assert "job=falconer" not in new.train.columns
    assert not any("falconer" in column for column in new.train.columns)
    assert [letter.id for letter in ledger.letters.find(state=LetterState.REISSUED)] == before
    assert accepted_as_told(ledger, truth, people) == []
    # A second deletion begins at points that were brought into the new columns.
    more = y.index[(y == 1).to_numpy()].tolist()[10:16]
    later = taken_over(rare=True, gone=[*gone, *more])
    expected = accepted_as_told(ledger, later, people)
    second = approved(ledger, "somebody else", rows=more)
    assert list(ledger.requests.preview(second, actor="dpo").broken) == expected


def binned(gone: list[str]) -> tuple[Any, Any]:
    """A scorecard of two columns, and rocerf's model of it; without these rows its bins are others."""
    rng = np.random.default_rng(0)
    rows = [f"row-{i}" for i in range(150)]
    months, income = rng.integers(4, 72, 150), rng.gamma(5.0, 400.0, 150).round()
    frame = pd.DataFrame({"months": months, "income": income}, index=rows)
    paid = (income / 1000 - months / 24 + rng.normal(size=150) > 0.3).astype(int)
    stays = ~frame.index.isin(gone)
    bins = KBinsDiscretizer(5, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    fitted = make_pipeline(bins, LogisticRegression()).fit(frame[stays], paid[stays])
    return fitted, rocerf.from_pipeline(fitted, frame[stays], paid[stays], ids=frame.index[stays])


def everything_told(document: Any, person: pd.DataFrame, edges: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows that follow a letter's words, at the ends of its ranges and beside edges inside; and its own point."""
    rows, point = [person], person
    for change in document.options[0].changes:
        text = change.after_text.replace(",", "")
        numbers = [float(word) for word in text.split() if word.isdigit()]
        low = -1e4 if "or less" in text else numbers[0]
        high = 1e4 if "at least" in text else numbers[-1]
        beside = [value for edge in edges[change.feature] for value in (np.floor(edge), np.ceil(edge))]
        values = [low, high, *(value for value in beside if low <= value <= high)]
        rows = [row.assign(**{change.feature: value}) for row in rows for value in values]
        point = point.assign(**{change.feature: change.after})
    return pd.concat(rows), point


def test_a_letter_that_names_a_range_holds_only_where_all_of_the_range_does(tmp_path: Path) -> None:
    """Bins are made anew: of "between 1557 and 2110" the number that the letter was made from may be accepted alone."""
    rng = np.random.default_rng(1)
    columns = {"months": rng.integers(4, 72, 60), "income": rng.gamma(5.0, 400.0, 60).round()}
    asking = pd.DataFrame(columns, index=[f"person-{i}" for i in range(60)])
    fitted, model = binned([])
    people, gone = asking[fitted.predict(asking) == 0], ["row-107", "row-89"]
    later, _ = binned(gone)
    edges = dict(zip(columns, later[0].bin_edges_, strict=True))
    ledger = opened(tmp_path)
    ledger.models.register(Rocerf(model, 2, promise="plain", cost="l1"), actor="admin")
    ledger.letters.issue(people, valid_until=UNTIL, actor="officer")
    everywhere, at_the_point = [], []
    for letter in ledger.letters.find(outstanding=True, limit=100):
        told = ledger.letters.document(letter.id)
        if told.options:
            rows, point = everything_told(told, people.loc[[told.person]], edges)
            everywhere += [letter.id] if (later.predict(rows) == 0).any() else []
            at_the_point += [letter.id] if later.predict(point)[0] == 0 else []
    assert set(at_the_point) < set(everywhere)
    number = approved(ledger, "somebody", rows=gone)
    assert list(ledger.requests.preview(number, actor="dpo").broken) == everywhere
    ledger.deletions.carry_out(number, actor="dpo")
    job = Worker(ledger).run_once()
    assert job is not None
    assert job.state is JobState.DONE
    held = {letter.id for letter in ledger.letters.find(state=LetterState.RECHECKED)}
    assert held
    assert held.isdisjoint(everywhere)


def test_a_pipelines_rows_stay_outside_in_their_own_columns(tmp_path: Path) -> None:
    frame, labels = table(True)
    held = frame.assign(repaid=labels)
    source = CalledRows(lambda ids: held.loc[[i for i in ids if i in held.index]], label="repaid", name="warehouse")
    model = taken_over(True)
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db", rows=source)
    OPEN.append(ledger)
    ledger.models.register(Rocerf(model, 1, promise="first_order"), actor="admin")
    loaded = ledger.models.explainer().model
    assert np.array_equal(loaded.theta, model.theta)
    assert np.array_equal(loaded.train.X, model.train.X)
    assert np.array_equal(loaded.forget(["row-rare"]).theta, taken_over(True, ["row-rare"]).theta)
    ledger.close()
    assert Planted(["falconer"], []).in_files(tmp_path) == []
