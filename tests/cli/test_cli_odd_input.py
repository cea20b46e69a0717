"""The command line among clumsy and hostile users: what is lost, obeyed, overwritten or believed by mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rocerf.cli.files
import rocerf.cli.tables
from command_line import Run
from rocerf import Letter, Recourses, Rocerf
from rocerf.cli.terminal import console, fail, print_document, print_text, say

EVIL = ["[red]x[/red]", ":smile:", "\x1b[31mred", "a\nb", "=1+1", "a/b", "a_b", "y" * 300]


@pytest.fixture
def run(run: Any, tmp_path: Path) -> Any:
    """Run the command line in a folder with 90 training rows and eight people of odd names."""
    rng = np.random.default_rng(5)
    raw = rng.normal(size=(90, 2)) * [900.0, 40.0] + [2500.0, 100.0]
    score = (raw - raw.mean(0)) / raw.std(0) @ [1.5, -1.0]
    rows = pd.DataFrame(raw.round(2), columns=["income", "debt"], index=[f"t{i}" for i in range(90)])
    labels = np.where(score + rng.logistic(size=90) > 0, "yes", "no")
    rows.assign(granted=labels).to_csv(tmp_path / "train.csv", index_label="row_id")
    people = rows[score < -0.5].head(len(EVIL)).set_axis(EVIL)
    people.to_csv(tmp_path / "people.csv", index_label="who")
    (tmp_path / "deleted.txt").write_text("t1\n", "utf-8")
    return run


MODEL = ["--train", "train.csv", "--label", "granted", "--favourable", "yes", "--train-id-column", "row_id"]
EXPLAIN = ["explain", *MODEL, "--people", "people.csv", "--id-column", "who", "--k", 2, "--promise", "first_order"]
RECHECK = ["recheck", *MODEL, "--recourses", "a.json", "--deleted", "deleted.txt"]
LETTER = ["letter", "--answers", "a.json", "--explainer", "exp"]


def assert_refused(result: Run, *words: str) -> None:
    """Exit code 2 and one sentence of ours on standard error."""
    assert result.code == 2
    assert result.err.startswith("rocerf: Expected")
    assert result.err.count("\n") == 1
    assert "internal error" not in result.err
    for word in words:
        assert word in result.err


# --- what is written, and what must not be --------------------------------------------------------


def test_answers_survive_an_explainer_that_cannot_be_saved(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Rocerf, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Rocerf, "save", full)
    failed = run(*EXPLAIN, "--out", "a.json", "--save-explainer", "exp")
    assert_refused(failed, "written: a.json; not written: exp (No space left on device)")
    assert "Written: a.json" in failed.out
    assert Recourses.from_json("a.json").answered.any()
    failed = run(*EXPLAIN, "--json", "--save-explainer", "exp")
    assert_refused(failed, "nothing was written; not written: exp")
    assert Recourses.from_json(failed.out).answered.any()


def test_an_output_that_fails_takes_no_other_with_it(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rocerf.cli.files.write_recourses

    def full(recourses: Recourses, path: Path, **options: Any) -> None:
        if path.name == "a.json":
            raise OSError(28, "No space left on device", str(path))
        real(recourses, path, **options)

    monkeypatch.setattr(rocerf.cli.files, "write_recourses", full)
    failed = run(*EXPLAIN, "--alternatives", 2, "--out", "a.json", "--save-explainer", "exp")
    assert_refused(failed, "written: a-2.json, exp; not written: a.json")
    assert Rocerf.load("exp").k == 2


@pytest.mark.parametrize("command", ["attack", "recheck"])
def test_figures_are_printed_though_they_cannot_be_written(
    run: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert run(*EXPLAIN, "--out", "a.json").code == 0

    def full(records: Any, path: Path, **_: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(rocerf.cli.tables, "write_records", full)
    attack = ["attack", *MODEL, "--points", "a.json", "--k", 1, "--effort", "quick"]
    failed = run(*(attack if command == "attack" else RECHECK), "--json", "--out", "r.json")
    assert_refused(failed, "nothing was written; not written: r.json")
    assert json.loads(failed.out)["k"] >= 1


TARGETS = {
    "its own input": (["--out", "people.csv"], "would overwrite people.csv"),
    "a link to its input": (["--out", "link.csv"], "would overwrite train.csv"),
    "a folder": (["--out", "folder.json"], "a file as --out"),
    "under a file": (["--out", "people.csv/a.json"], "is a file"),
    "no name": (["--out", ".json"], "ending in .csv, .json or .parquet"),
    "an explainer in a file": (["--out", "a.json", "--save-explainer", "people.csv"], "a folder as --save-explainer"),
    "one inside the other": (["--out", "exp/a.json", "--save-explainer", "exp"], "a place of its own"),
    "the explainer over its rows": (["--save-explainer", "."], "would overwrite train.csv"),
    "an alternative over its input": (
        ["--alternatives", 2, "--out", "people-2.json", "--prices", "people-2-2.json"],
        "",
    ),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_are_checked_before_the_work(run: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    Path("folder.json").mkdir()
    Path("people-2-2.json").write_text("income: 1\ndebt: 1\n", "utf-8")
    os.link("train.csv", "link.csv")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}

    def work(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the long work was begun")

    monkeypatch.setattr(Rocerf, "explain", work)
    monkeypatch.setattr(Rocerf, "alternatives", work)
    options, words = TARGETS[kind]
    assert_refused(run(*EXPLAIN, *options), words)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused_at_once(run: Any, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    assert_refused(run(*EXPLAIN, "--out", "closed/a.json"), "no permission")


def test_answers_are_not_overwritten_by_what_is_said_of_them(run: Any) -> None:
    assert run(*EXPLAIN, "--out", "a.json", "--save-explainer", "exp").code == 0
    before = Path("a.json").read_bytes()
    assert_refused(run(*RECHECK, "--out", "a.json"), "would overwrite a.json")
    attack = ["attack", *MODEL, "--points", "a.json", "--k", 1, "--effort", "quick"]
    assert_refused(run(*attack, "--out", "a.json"), "would overwrite a.json")
    assert_refused(run(*LETTER, "--out", "exp/letters"), "apart from the explainer's folder")
    assert_refused(run(*LETTER, "--out", "a.json"), "a folder as --out")
    assert Path("a.json").read_bytes() == before


# --- ids that would steer a terminal, a spreadsheet or a letter -----------------------------------


def test_ids_are_printed_as_they_are(run: Any) -> None:
    code, out, err = run(*EXPLAIN)
    assert (code, err) == (0, "")
    for shown in ("person [red]x[/red]:", "person :smile::", r"person \x1b[31mred:", r"person a\nb:"):
        assert shown in out
    assert "\x1b" not in out
    code, out, _ = run(*EXPLAIN, "--out", "[red]/a[b].json")
    assert "Written: [red]/a[b].json" in out
    refused = run(*EXPLAIN, "--immutable", "\x1b[31m[bold]\u2028")
    assert_refused(refused, "[bold]")
    assert not set(refused.err) & set("\x1b\u2028")


def test_letters_to_people_of_odd_names(run: Any, tmp_path: Path) -> None:
    assert run(*EXPLAIN, "--out", "a.json", "--save-explainer", "exp").code == 0
    assert run(*LETTER, "--out", "letters", "--format", "json").code == 0
    written = [Letter.from_json(path).person for path in Path("letters").iterdir()]
    assert sorted(map(str, written)) == sorted(EVIL)
    for person in ("a/b", "a_b"):  # one by one they do not overwrite each other either
        assert run(*LETTER, "--out", "letters", "--format", "json", "--person", person).code == 0
    assert len(list(Path("letters").iterdir())) == len(EVIL)
    said = run(*LETTER, "--person", "a\nb").out
    assert "Reference: a\\nb\n" in said


def test_a_schema_prints_one_line_for_a_feature(run: Any) -> None:
    table = pd.read_csv("train.csv").rename(columns={"income": "in\ncome\x1b[31m"})
    table.to_csv("odd.csv", index=False)
    code, out, _ = run("schema", "--train", "odd.csv", "--label", "granted", "--train-id-column", "row_id")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert r"in\ncome\x1b[31m" in out


def test_a_schema_without_features_is_not_no_schema(run: Any) -> None:
    Path("empty.yaml").write_text("format: rocerf-schema/1\nfeatures: []\n", "utf-8")
    assert_refused(run(*EXPLAIN, "--schema", "empty.yaml"), "schema")


# --- files in other clothes -----------------------------------------------------------------------


def test_files_with_a_mark_or_in_another_encoding(run: Any) -> None:
    assert run(*EXPLAIN, "--out", "a.json").code == 0
    assert run(*RECHECK).code == 0
    for name in ("people.csv", "train.csv", "a.json", "deleted.txt"):
        Path(name).write_bytes(b"\xef\xbb\xbf" + Path(name).read_bytes())
    assert run(*EXPLAIN).code == 0
    assert run(*RECHECK).code == 0
    Path("deleted.txt").write_bytes("t1\n".encode("utf-16"))
    assert_refused(run(*RECHECK), "UTF-8 in deleted.txt")
    Path("deleted.txt").write_bytes(b"t\xe91\n")
    assert_refused(run(*RECHECK), "UTF-8 in deleted.txt")
    Path("deleted.txt").write_bytes(b"t1\r\nt2\r\n")
    assert "after deleting 2 rows" in run(*RECHECK).out


EDITS: dict[str, Any] = {
    "k is a text": lambda d: d["settings"].update(k="3"),
    "k is endless": lambda d: d["settings"].update(k=float("inf")),
    "a checksum of another kind": lambda d: d["settings"].update(data_checksum=5),
    "a sentence of another kind": lambda d: d["settings"].update(sentence={"x": 1}),
    "assumptions of another kind": lambda d: d["settings"].update(assumptions=[{}]),
    "people without names": lambda d: d.update(index=[[1]] * len(d["people"])),
    "an answer with holes": lambda d: d["people"][0].update(person=[None, None]),
    "a number beyond all": lambda d: d["people"][0].update(point=[10**400, 1]),
    "too many retrainings": lambda d: d["people"][0].update(retrainings=10**30),
}


@pytest.mark.parametrize("kind", EDITS)
def test_answers_of_the_wrong_kind_are_refused(run: Any, kind: str) -> None:
    assert run(*EXPLAIN, "--out", "a.json").code == 0
    document = json.loads(Path("a.json").read_text("utf-8"))
    EDITS[kind](document)
    Path("a.json").write_text(json.dumps(document), "utf-8")
    assert_refused(run(*RECHECK), "recourses written by Recourses.to_json")


# --- streams --------------------------------------------------------------------------------------


def started(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "rocerf.cli", *arguments], stderr=subprocess.PIPE, **options)


@pytest.mark.slow
def test_a_reader_who_leaves_is_no_mistake() -> None:
    process = started("datasets", "--json", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate()
    assert (process.returncode, said) == (141, b"")


@pytest.mark.slow
def test_without_standard_output_the_work_is_done_all_the_same() -> None:
    command = f"'{sys.executable}' -m rocerf.cli datasets --json >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk here that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        process = started("datasets", "--json", stdout=full)
        _, said = process.communicate()
    assert process.returncode == 2
    assert said.decode().splitlines() == [
        "rocerf: Expected files that can be read and written, got No space left on device; check the path."
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="the C library there is found by another name")
def test_what_a_library_prints_does_not_get_into_the_json() -> None:
    # As HiGHS does: by C's own printf, which is flushed when the program ends, and at once.
    code = (
        "import ctypes, os, sys; import rocerf.data.datasets as d; known = d.list_datasets;"
        "d.list_datasets = lambda: (os.write(1, b'at once '), ctypes.CDLL(None).printf(b'at the end '), known())[2];"
        "sys.argv = ['rocerf', 'datasets', '--json']; from rocerf.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert b"at once" in done.stderr
    assert b"at the end" in done.stderr


def test_a_terminal_that_lacks_a_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = TextIOWrapper(BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    say("person tü漢 [red] :smile: \x1b[31m")
    print_text("Zoë\n")
    console().print("é")
    print_document('{"a": "é"}')
    stream.flush()
    lines = stream.buffer.getvalue().decode("utf-8").splitlines()  # type: ignore[attr-defined]
    assert lines == [r"person t\xfc\u6f22 [red] :smile: \x1b[31m", r"Zo\xeb", r"\xe9", '{"a": "é"}']


def test_an_error_is_one_line_that_nothing_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fail("Expected x,\n got \x1b[31m\u2028y\x9b.")
    assert capsys.readouterr().err == "rocerf: Expected x,  got \\x1b[31m y\\x9b.\n"
