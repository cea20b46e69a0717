"""The files of letters: one for each person, whatever they are called; nobody adds a paragraph; linear time."""

from __future__ import annotations

import cProfile
import pstats
from dataclasses import replace
from datetime import date
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rocerf import Letter, LogisticModel, Recourses, Rocerf, Status, TrainingSet
from rocerf.cli.files import write_letters
from rocerf.letters.files import letter_file_names
from rocerf.letters.letter import Detail, LetterChange, LetterPromise, Option
from rocerf.storage import disk
from rocerf.visible import one_line, visible

ODD = [
    *("a/b", "a_b", "a b", "a\nb", "a:b", "a\\b", "..", ".", "", " ", "person", "x" * 300, "x" * 301, "漢" * 300),
    *("Ann", "ann", "ANN", "ß", "ss", "é", "e\u0301", "CON", "nul", "a.", "a", "a_b-c14cddc033f64b9d", "\ud800", "\0"),
]


def letters_to(people: list[Any]) -> list[Letter]:
    return [Letter(person, Status.ALREADY_ACCEPTED, issued=date(2026, 3, 1)) for person in people]


def test_everybody_has_a_file_of_their_own(tmp_path: Path) -> None:
    for kind in ("text", "html", "json"):
        folder = tmp_path / kind
        written = write_letters(letters_to(ODD), folder, kind)
        assert len({path.name.casefold() for path in written}) == len(ODD) == len(list(folder.iterdir()))
        for person, path in zip(ODD, written, strict=True):
            assert path.parent == folder
            assert len(path.name.encode()) <= 255
            if kind == "json":
                assert Letter.from_json(path).person == person
            else:
                assert f"Reference: {visible(person)}" in unescape(path.read_text("utf-8"))


def test_a_name_says_the_id_where_it_can() -> None:
    plain = ["A-17", "4", "person-11", "Müller", "a.b_c"]
    assert letter_file_names(plain, "txt") == [f"letter-{name}.txt" for name in plain]
    assert letter_file_names([4], "html") == ["letter-4.html"]


def test_a_name_is_the_same_whoever_else_is_written_to(tmp_path: Path) -> None:
    alone = {person: letter_file_names([person], "txt")[0] for person in ODD}
    together = dict(zip(ODD, letter_file_names(ODD, "txt"), strict=True))
    differing = {person for person in ODD if alone[person] != together[person]}
    assert differing <= {"Ann", "ann", "ANN", "ss", "a", "ß"}  # which some file systems cannot tell apart
    for person in ("a/b", "a_b", "a b"):  # one run each, into one folder
        write_letters(letters_to([person]), tmp_path, "text")
    assert len(list(tmp_path.iterdir())) == 3
    for person in ("Ann", "ann", "Ann"):
        write_letters(letters_to([person]), tmp_path, "text")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len({name.casefold() for name in names}) == len(names) == 5
    assert "letter-Ann.txt" in names
    again = letter_file_names(["Ann", "ann"], "txt", names)
    assert set(again) <= set(names)


def test_people_of_one_name_do_not_share_a_file(tmp_path: Path) -> None:
    written = write_letters(letters_to(["X", "X", "X", "X-2"]), tmp_path, "text")
    assert len(set(written)) == 4
    assert written[0].name == "letter-X.txt"


def test_a_disk_that_fills_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = disk.write, []

    def full(handle: int, content: bytes) -> None:
        calls.append(handle)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        real(handle, content)

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(ValueError, match=r"3 letters in .*No space left.* at letter-2\.txt; letters of an earlier run"):
        write_letters(letters_to([0, 1, 2]), tmp_path, "text")
    assert list(tmp_path.iterdir()) == []


# --- nobody writes a paragraph of their own -------------------------------------------------------

FORGED = "\n\nYou are accepted.\n=================\n\u2028\x1b[2J\x85\u202egnp.\r\n"


def forged_letter() -> Letter:
    change = LetterChange("a", f"label{FORGED}", 1, 2, f"1{FORGED}", f"2{FORGED}", FORGED)
    promise = LetterPromise("first_order", f"holds{FORGED}", 1, False, (f"assumed{FORGED}",))
    return Letter(
        f"A-17{FORGED}",
        Status.ANSWERED,
        options=(Option((change,), promise),),
        held=(Detail("b", f"held{FORGED}", 1, f"one{FORGED}", FORGED),),
        not_given=(f"not given{FORGED}",),
        unreadable=(f"unreadable{FORGED}",),
        issued=date(2026, 3, 1),
        model_version=f"v7{FORGED}",
        refusal_reasons=(f"reason{FORGED}",),
    )


def test_no_data_makes_a_line_of_its_own() -> None:
    letter = forged_letter()
    text, page = letter.to_text(), letter.to_html()
    for said in (text, page):
        assert not set(said) & set("\x1b\x85\u2028\u2029\u202e\r\t\0")
        assert "You are accepted." in " ".join(said.split())
    lines = text.split("\n")
    assert not any(line.strip().startswith(("You are accepted", "=====")) for line in lines[2:])
    assert "Reference: A-17\\n\\nYou are accepted.\\n=" in text
    assert "<p>Reference: A-17\\n\\nYou are accepted." in page
    short = replace(letter, person="A-17")
    assert len(lines) <= len(short.to_text().split("\n")) + 1
    assert Letter.from_json(letter.to_json()) == letter  # JSON keeps everything, and shows nothing
    assert not set(letter.to_json()) & set("\x1b\x85\u2028\u202e\r\t")


def test_half_characters_can_be_written(tmp_path: Path) -> None:
    letter = Letter("\ud800", Status.ALREADY_ACCEPTED, issued=date(2026, 3, 1))
    for kind in ("text", "html", "json"):
        (path,) = write_letters([letter], tmp_path, kind)
        assert "\\ud800" in path.read_text("utf-8")


def test_a_reason_of_several_lines_is_one_line() -> None:
    assert one_line("too much debt,\n  too little income\n") == "too much debt,   too little income"
    assert one_line(" \t\n") == ""
    plain = "Zoë 漢字 \N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL} \N{RIGHT-TO-LEFT MARK}שלום"
    assert visible(plain) == plain


# --- time -----------------------------------------------------------------------------------------


def people_looked_at(count: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[int, int]:
    """How many people whole lists of them were walked over for, and how many calls were made, to write so many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    model = LogisticModel.fit(TrainingSet(X, (X.sum(1) + rng.logistic(size=80) > 0).astype(int)))
    people = pd.DataFrame(
        X[:1].repeat(count, 0) - 5, columns=model.train.columns, index=[f"p{i}" for i in range(count)]
    )
    explainer = Rocerf(model, 1, promise="first_order")
    recourses = explainer.explain(people)
    assert recourses.answered.all()
    walked = 0
    with monkeypatch.context() as patch:
        for name in ("answered", "names"):
            whole = getattr(Recourses, name).fget

            def counted(self: Recourses, whole: Any = whole) -> Any:
                nonlocal walked
                walked += len(self)
                return whole(self)

            patch.setattr(Recourses, name, property(counted))
        profile = cProfile.Profile()
        profile.enable()
        reasons = {f"p{i}": ["x"] for i in range(count)}
        write_letters(explainer.letters(recourses, valid_until=None, refusal_reasons=reasons), folder, "json")
        profile.disable()
    return walked, pstats.Stats(profile).total_calls


@pytest.mark.slow
def test_the_work_grows_with_the_people_and_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few, many = 100, 400
    (walked, calls), (walked_more, calls_more) = (
        people_looked_at(count, monkeypatch, tmp_path / str(count)) for count in (few, many)
    )
    growth = many / few
    assert walked_more <= 1.3 * growth * walked  # twice as many people, twice the work: 16 where it is the square
    assert calls_more <= 1.3 * growth * calls
