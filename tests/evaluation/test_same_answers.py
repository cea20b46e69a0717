"""Two versions' answers compared: what is equal, and every way in which it is not."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.answer_cases import CASES
from benchmarks.answer_notes import Notes, parted
from benchmarks.same_answers import compare, main, show

NAN = float("nan")


def collection() -> dict[str, Any]:
    return {
        "figures": {"one/costs": [1.0, NAN, 2.5e8], "one/statuses": ["answered", "gave_up"], "two/ids": [[3, 4], None]},
        "words": {"one/sentence": "accepted after every deletion", "two/reasons": ["", "no change"]},
    }


def test_equal_collections_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    rows = compare(collection(), collection())
    assert [(row.case, row.figures, row.words, row.largest) for row in rows] == [("one", 2, 1, 0.0), ("two", 1, 1, 0.0)]
    assert show(rows, figures_only=False)
    assert "2 of 2 cases are the same" in capsys.readouterr().out


def test_rounding_is_no_difference() -> None:
    other = collection()
    other["figures"]["one/costs"] = [1.0 + 1e-10, NAN, 2.5e8 + 0.01]
    row, _ = compare(collection(), other)
    assert row.same()
    assert 0 < row.largest < 1e-9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("one/costs", [1.0 + 1e-6, NAN, 2.5e8]),
        ("one/costs", [1.0, 2.0, 2.5e8]),
        ("one/costs", [1.0, NAN, float("inf")]),
        ("one/costs", [1.0, NAN]),
        ("one/statuses", ["answered", "unreachable"]),
        ("two/ids", [[4, 3], None]),
        ("two/ids", [[3, 4], []]),
        ("two/ids", [[3, 4.0], None]),
    ],
)
def test_figures_that_differ_are_found(name: str, value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    other = collection()
    other["figures"][name] = value
    for pair in ((collection(), other), (other, collection())):
        rows = compare(*pair)
        assert [list(row.different_figures) for row in rows if not row.same(figures_only=True)] == [[name]]
        assert not show(rows, figures_only=True)
        assert f"figures of {name}" in capsys.readouterr().out


def test_a_number_off_by_a_millionth_is_told_with_its_size() -> None:
    other = collection()
    other["figures"]["one/costs"] = [1.0 + 1e-6, NAN, 2.5e8]
    row, _ = compare(collection(), other)
    assert row.largest == pytest.approx(5e-7)
    assert "1.0 -> 1.000001" in row.different_figures["one/costs"]


def test_words_that_differ_are_no_difference_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    other = collection()
    other["words"]["one/sentence"] = "accepted after any deletion"
    rows = compare(collection(), other)
    assert not show(rows, figures_only=False)
    assert "words of one/sentence" in capsys.readouterr().out
    assert show(rows, figures_only=True)
    assert "words of" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["figures", "words"])
def test_a_missing_name_is_a_difference(kind: str) -> None:
    for name in collection()[kind]:
        less = collection()
        del less[kind][name]
        for pair in ((collection(), less), (less, collection())):
            assert sum(not row.same() for row in compare(*pair)) == 1


def test_a_missing_case_is_a_difference() -> None:
    less = {kind: {k: v for k, v in found.items() if k.startswith("one")} for kind, found in collection().items()}
    assert [row.same() for row in compare(collection(), less)] == [True, False]


def test_a_case_that_fails_in_both_is_not_the_same() -> None:
    failed = {"figures": {"one/failed": "ValueError: no"}, "words": {}}
    assert not compare(failed, copy.deepcopy(failed))[0].same(figures_only=True)
    left_out = {"figures": {"one/failed": "DatasetUnavailableError: COMPAS"}, "words": {}}
    assert compare(left_out, copy.deepcopy(left_out))[0].same()
    assert not compare(collection(), left_out)[0].same()


def test_letters_are_parted_into_figures_and_words() -> None:
    letter = {"status": "answered", "message": "yes", "options": [{"to": 3, "to_text": "3 months"}]}
    other = {"status": "answered", "message": "ja", "options": [{"to": 3, "to_text": "3 Monate"}]}
    assert parted(letter)[0] == parted(other)[0]
    assert parted(letter)[1] != parted(other)[1]
    assert parted({**letter, "options": []})[0] != parted(letter)[0]


def test_collecting_and_comparing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(notes: Notes) -> None:
        notes.figure("costs", np.array([1.0, NAN]))
        notes.word("sentence", "accepted")

    def fail(notes: Notes) -> None:
        raise ValueError("no")

    monkeypatch.setattr("benchmarks.answer_cases.CASES", {"asked": ask, "asked twice": ask, "failing": fail})

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["same_answers", *arguments])
        return main()

    one, two, all_ = (str(tmp_path / name) for name in ("one.json", "two.json", "all.json"))
    assert [run("--collect", path, "--only", "asked") for path in (one, two)] == [0, 0]
    assert run("--compare", one, two) == 0
    document = json.loads(Path(two).read_text("utf-8"))
    assert document["figures"]["asked twice/costs"][0] == 1.0
    document["figures"]["asked twice/costs"][0] += 1e-6
    Path(two).write_text(json.dumps(document), "utf-8")
    assert run("--compare", one, two) == 1
    run("--collect", all_)
    assert json.loads(Path(all_).read_text("utf-8"))["figures"]["failing/failed"] == "ValueError: no"
    assert run("--compare", all_, all_) == 1


def test_names_of_cases_can_be_told_apart() -> None:
    assert not [name for name in CASES if "/" in name]
    assert {word for name in CASES for word in name.split()} >= {"german", "compas", "adult"}
