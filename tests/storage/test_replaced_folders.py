"""What was in a folder before: only what is ours is removed, that is made sure of, and whoever lives is left alone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rocerf.errors import NotRemovedError, OptionError
from rocerf.storage import disk
from rocerf.storage.drafts import OLD, PART, draft_beside, drafts_of, remove_abandoned_files
from rocerf.storage.locks import clearing_up, writing_in
from rocerf.storage.whole_file import write_text
from rocerf.storage.whole_folder import read_folder, write_folder

KNOWN = ("a.txt", "b.txt")
CALLS = ("create", "write", "flush", "flush_folder", "make_folder", "put_in_place", "rename_folder", "exchange")


def fill(text: str) -> Any:
    def filling(folder: Path) -> None:
        write_text(folder / "a.txt", text)
        write_text(folder / "b.txt", text)

    return filling


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def written(target: Path, text: str) -> None:
    write_folder(target, fill(text), known=KNOWN)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    written(tmp_path / "folder", "1")
    return tmp_path / "folder"


@pytest.fixture(params=[True, False], ids=["exchange", "two renames"])
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(disk, "exchange", lambda one, other: False)
    return bool(request.param)


# --- removed, or told -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("exchange")
def test_what_cannot_be_removed_is_told_with_its_place(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))

    with monkeypatch.context() as protected:
        protected.setattr(disk, "remove", refused, raising=False)
        protected.setattr(Path, "unlink", lambda path, **_: refused(path))
        with pytest.raises(NotRemovedError, match=r"Permission denied.*new one is in place.*delete it") as told:
            written(target, "2")
    assert content(target) == {"a.txt": b"2", "b.txt": b"2"}
    (left,) = [path for path in target.parent.iterdir() if path != target]
    assert str(left) in str(told.value)
    assert content(left) == {"a.txt": b"1", "b.txt": b"1"}
    written(target, "3")  # the next one removes it
    assert [path.name for path in target.parent.iterdir()] == ["folder"]


@pytest.mark.usefixtures("exchange")
def test_what_came_in_the_last_moment_goes_back(target: Path) -> None:
    def late(folder: Path) -> None:
        fill("2")(folder)
        (target / "notes.txt").write_text("mine")

    with pytest.raises(OptionError, match=r"'notes\.txt' in it"):  # before it is too late
        write_folder(target, late, known=KNOWN)
    (target / "notes.txt").unlink()

    turns = iter([["a.txt", "b.txt"], ["a.txt", "b.txt"], ["a.txt"]])  # the last look is at what was replaced
    write_folder(target, fill("3"), known=KNOWN, ours=lambda found: next(turns))
    assert content(target) == {"a.txt": b"3", "b.txt": b"3", "b.txt.before": b"1"}
    assert [path.name for path in target.parent.iterdir()] == ["folder"]


def test_a_file_is_ours_by_what_is_in_it(target: Path) -> None:
    with pytest.raises(OptionError, match=r"'a\.txt' in it, which was not written there together with such others"):
        write_folder(target, fill("2"), known=KNOWN, ours=lambda found: [n for n in found if found[n] == b"2"])
    assert content(target) == {"a.txt": b"1", "b.txt": b"1"}


# --- interrupted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interrupt_at_every_call_stays_one_and_leaves_one_folder(
    after: bool, exchange: bool, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = {name: getattr(disk, name) for name in CALLS}
    for at in range(100):
        seen: list[str] = []

        def called(name: str, *given: Any, at: int = at, seen: list[str] = seen) -> Any:
            place = len(seen)
            seen.append(name)
            if place == at and not after:
                raise KeyboardInterrupt
            result = real[name](*given)
            if place == at:
                raise KeyboardInterrupt
            return result

        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(disk, name, lambda *given, name=name: called(name, *given))
            try:
                written(target, "2")
                break
            except KeyboardInterrupt:
                pass
        began = time.monotonic()
        assert set(read_folder(target, KNOWN).values()) in ({b"1"}, {b"2"}), (at, seen)
        assert time.monotonic() - began < 1.0, "nobody waits for a writer that is gone"
        written(target, "1")
        assert [path.name for path in target.parent.iterdir()] == ["folder"], (at, seen)
    assert at >= (15 if exchange else 16)
    assert content(target) == {"a.txt": b"2", "b.txt": b"2"}


# --- the living -------------------------------------------------------------------------------------------

OTHER_NUMBERS = """
import os, sys, time
from pathlib import Path
import rocerf.storage.drafts as drafts
from rocerf.storage import disk
from rocerf.storage.whole_folder import write_folder
from rocerf.storage.whole_file import write_text
target = Path(sys.argv[1])
os.getpid = lambda: 4194305  # as of another container: nobody has this number here
exchange = disk.exchange
def slow(one, other):
    (target.parent / "go").touch()
    while not (target.parent / "done").exists():
        time.sleep(0.01)
    return exchange(one, other)
disk.exchange = slow
write_folder(target, lambda folder: write_text(folder / "a.txt", "theirs"), known=("a.txt", "b.txt"))
"""


def test_a_writer_whose_number_nobody_has_here_is_left_alone(target: Path) -> None:
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(place).resolve()) for place in sys.path)}
    other = subprocess.Popen([sys.executable, "-c", OTHER_NUMBERS, str(target)], env=here)
    try:
        for _ in range(3000):
            if (target.parent / "go").exists() or other.poll() is not None:
                break
            time.sleep(0.01)
        written(target, "2")
        assert len(drafts_of(target, PART)) == 1
        (target.parent / "done").touch()
        assert other.wait(60) == 0
    finally:
        other.kill()
        other.wait()
    assert content(target) == {"a.txt": b"theirs"}
    assert drafts_of(target, PART) == []


def test_without_locks_drafts_go_by_age(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = draft_beside(target)
    dead = target.with_name(own.name.replace(f"-{os.getpid()}-", "-4194305-"))
    dead.mkdir()
    fcntl = pytest.importorskip("fcntl")

    def unknown(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unknown)
    written(target, "2")
    assert dead.exists()
    os.utime(dead, (time.time() - OLD - 60,) * 2)
    written(target, "3")
    assert not dead.exists()


def test_locks_say_who_is_writing(tmp_path: Path) -> None:
    with writing_in(tmp_path), writing_in(tmp_path), clearing_up(tmp_path) as alone:
        assert alone is False
    with clearing_up(tmp_path) as alone, clearing_up(tmp_path) as another:
        assert (alone, another) == (True, False)
    with clearing_up(tmp_path / "none") as alone:
        assert alone is None


def test_drafts_of_files_stay_while_anybody_writes_there(tmp_path: Path) -> None:
    own = draft_beside(tmp_path / "f.txt")
    dead = own.with_name(own.name.replace(f"-{os.getpid()}-", "-4194305-"))
    dead.write_text("of nobody here")
    with writing_in(tmp_path):
        remove_abandoned_files(tmp_path)
        assert dead.exists()
    remove_abandoned_files(tmp_path)
    assert not dead.exists()


def test_a_draft_that_is_gone_is_not_taken_for_the_target(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def gone(one: Path, other: Path) -> bool:
        tries.append(one)
        for name in KNOWN:
            (one / name).unlink(missing_ok=True)
        if one.exists():
            one.rmdir()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(one))

    monkeypatch.setattr(disk, "exchange", gone)
    with pytest.raises(FileNotFoundError):
        written(target, "2")
    assert len(tries) == 1
    assert content(target) == {"a.txt": b"1", "b.txt": b"1"}
