"""Files and folders that are whole or as they were: when the disk is full, whatever their names, modes and links."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Recourses, Rocerf
from rocerf.errors import OptionError
from rocerf.storage import disk
from rocerf.storage.drafts import PART, abandoned, draft_beside, is_draft
from rocerf.storage.whole_file import FLUSHED_SINGLY, write_bytes, write_files, write_text
from rocerf.storage.whole_folder import read_folder, write_folder

CALLS = (
    *("create", "write", "flush", "flush_all", "flush_folder"),
    *("make_folder", "put_in_place", "rename_folder", "exchange"),
)
KNOWN = ("a.txt", "b.txt")


@contextmanager
def full_at(call: int, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The disk is full from this call on (from 0); what was called until then. Half of a write still comes through."""
    seen: list[str] = []

    def failing(name: str, original: Any) -> Any:
        def called(*given: Any) -> Any:
            seen.append(name)
            if len(seen) <= call:
                return original(*given)
            if name == "write":
                original(given[0], given[1][: len(given[1]) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return called

    with patch.context() as within:
        for name in CALLS:
            within.setattr(disk, name, failing(name, getattr(disk, name)))
        yield seen


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fill(text: str) -> Any:
    def filling(folder: Path) -> None:
        write_text(folder / "a.txt", text)
        write_text(folder / "b.txt", text)

    return filling


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- the disk is full -----------------------------------------------------------------------------------


def test_a_full_disk_at_every_call_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tried = tmp_path / "f.txt", 0
    write_text(path, "old")
    for call in range(100):
        with full_at(call, monkeypatch) as seen:
            try:
                write_text(path, "new" * 100)
            except OSError:
                tried += 1
                assert path.read_text() == ("new" * 100 if "put_in_place" in seen[:-1] else "old"), seen
                assert names(tmp_path) == ["f.txt"]
                path.write_text("old")
                continue
        break
    assert tried == 6  # create, write, flush, put in place, flush the folder (two calls)
    assert path.read_text() == "new" * 100


def test_a_full_disk_names_the_file_and_not_its_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with full_at(1, monkeypatch), pytest.raises(OSError, match=r"answers\.json") as told:
        write_text(tmp_path / "answers.json", "x")
    assert told.value.filename == str(tmp_path / "answers.json")


def test_several_files_are_all_on_the_disk_before_one_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{place}.txt" for place in range(4)]
    for path in paths:
        write_text(path, "old")
    for call in range(12):  # 3 calls for each draft
        with full_at(call, monkeypatch), pytest.raises(OSError, match="No space"):
            write_files((path, "new") for path in paths)
        assert [path.read_text() for path in paths] == ["old"] * 4
        assert len(names(tmp_path)) == 4
    write_files((path, "new") for path in paths)
    assert [path.read_text() for path in paths] == ["new"] * 4


@pytest.mark.slow
def test_a_full_disk_at_every_call_leaves_the_explainer_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = random_training_set(1, n=40, d=2)
    old = Rocerf(LogisticModel.fit(train), 1, promise="first_order")
    new = Rocerf(LogisticModel.fit(train.without(train.ids[:5])), 2, promise="first_order")
    path, ended = tmp_path / "explainer", 0
    for call in range(100):
        old.save(path)
        with full_at(call, monkeypatch) as seen:
            try:
                new.save(path)
                break
            except OSError:
                ended += 1
        found = Rocerf.load(path)
        swapped = "exchange" in seen[:-1]
        assert found.k == (2 if swapped else 1), (call, seen)
        assert found.model.train.checksum == (new if swapped else old).model.train.checksum
        assert [child.name for child in tmp_path.iterdir()] == ["explainer"]
    assert ended >= 15
    assert Rocerf.load(path).k == 2


def test_files_too_large_for_the_system_leave_the_old_ones(tmp_path: Path) -> None:
    """The system itself stops the writing in the middle, at several lengths."""
    resource = pytest.importorskip("resource")
    model = LogisticModel.fit(random_training_set(1, n=40, d=2))
    explainer = Rocerf(model, 1, promise="first_order")
    people = refused_people(model, 0, 5)
    answers = explainer.explain(people)
    explainer.save(tmp_path / "explainer")
    answers.to_json(tmp_path / "answers.json")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (0, 1, 100, 1000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            for write in (
                lambda: explainer.save(tmp_path / "explainer"),
                lambda: answers.to_json(tmp_path / "answers.json"),
            ):
                with pytest.raises(OSError, match="File too large"):
                    write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert Rocerf.load(tmp_path / "explainer").k == 1
        np.testing.assert_array_equal(Recourses.from_json(tmp_path / "answers.json").matrix, answers.matrix)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.json", "explainer"]


# --- files ------------------------------------------------------------------------------------------------


def test_private_files_are_their_owners_from_the_first_byte_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    write = disk.write

    def looking(handle: int, given: bytes) -> None:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))
        write(handle, given)

    monkeypatch.setattr(disk, "write", looking)
    before = os.umask(0)
    try:
        write_bytes(tmp_path / "private", b"1", private=True)
        write_bytes(tmp_path / "open", b"1")
    finally:
        os.umask(before)
    assert seen == [0o600, 0o666]
    assert (mode(tmp_path / "private"), mode(tmp_path / "open")) == (0o600, 0o666)
    (tmp_path / "open").chmod(0o640)
    write_bytes(tmp_path / "open", b"2")
    assert mode(tmp_path / "open") == 0o640  # as its owner had it
    write_bytes(tmp_path / "open", b"3", private=True)
    assert mode(tmp_path / "open") == 0o600


def test_links_are_followed_and_streams_written_to(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "there.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "there.txt").read_text() == "new"
    write_text("/dev/null", "new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()))
    listener.start()
    write_text(tmp_path / "pipe", "new")
    listener.join(10)
    assert heard == ["new"]


def test_a_folder_is_no_file_and_nothing_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "folder", "x")
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "none" / "f.txt", "x")
    assert names(tmp_path) == ["folder"]


def test_many_files_and_long_names(tmp_path: Path) -> None:
    count = FLUSHED_SINGLY + 20
    write_files((tmp_path / f"{place}.txt", str(place)) for place in range(count))
    assert all((tmp_path / f"{place}.txt").read_text() == str(place) for place in range(count))
    longest = "ü" * 127
    write_text(tmp_path / longest, "x")
    assert (tmp_path / longest).read_text() == "x"
    assert not any(map(is_draft, names(tmp_path)))


def test_drafts_of_the_dead_are_known_from_those_of_the_living(tmp_path: Path) -> None:
    target = tmp_path / "f.txt"
    own = draft_beside(target)
    own.write_text("being written")
    dead = target.with_name(own.name.replace(f"-{os.getpid()}-", "-4194305-"))  # beyond the largest process number
    dead.write_text("left behind")
    parent = target.with_name(own.name.replace(f"-{os.getpid()}-", f"-{os.getppid()}-"))
    parent.write_text("being written too")
    elsewhere = target.with_name(own.name.replace(own.name.split("-")[1], "0" * 8))
    elsewhere.write_text("on another machine")
    assert [abandoned(path) for path in (own, dead, parent, elsewhere)] == [False, True, False, False]
    write_text(target, "x")
    assert set(names(tmp_path)) == {"f.txt", own.name, parent.name, elsewhere.name}
    os.utime(elsewhere, (0, 0))
    assert abandoned(elsewhere)
    assert not abandoned(tmp_path / f"notes{PART}")


# --- folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_new_empty_or_replaced(exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exchange:
        monkeypatch.setattr(disk, "exchange", lambda one, other: False)
    target = tmp_path / "deep" / "folder"
    write_folder(target, fill("1"), known=KNOWN)
    write_folder(target, fill("2"), known=KNOWN)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    write_folder(tmp_path / "link", fill("3"), known=KNOWN)
    assert content(target) == {"a.txt": b"2", "b.txt": b"2"}
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "empty") == {"a.txt": b"3", "b.txt": b"3"}
    assert names(tmp_path) == sorted(["deep", "folder", "empty", "link", *KNOWN, *KNOWN])
    assert mode(target) == 0o700
    assert {mode(path) for path in target.iterdir()} == {0o600}
    assert read_folder(target, KNOWN) == {"a.txt": b"2", "b.txt": b"2"}


def test_files_of_others_are_never_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    (target / "a.txt").write_text("mine too")
    with pytest.raises(OptionError, match=r"holds nothing but a\.txt, b\.txt, got .*'notes\.txt' in it.*a new folder"):
        write_folder(target, fill("1"), known=KNOWN)
    assert content(target) == {"notes.txt": b"mine", "a.txt": b"mine too"}
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OptionError, match="got the file"):
        write_folder(tmp_path / "file", fill("1"), known=KNOWN)
    empty = tmp_path / "here"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(OptionError, match="the one we are in"):
        write_folder(".", fill("1"), known=KNOWN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "here"]


def test_a_file_that_came_in_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "folder"
    write_folder(target, fill("1"), known=KNOWN)
    exchange = disk.exchange

    def late(one: Path, other: Path) -> bool:
        (other / "notes.txt").write_text("mine")
        return exchange(one, other)

    monkeypatch.setattr(disk, "exchange", late)
    write_folder(target, fill("2"), known=KNOWN)
    assert content(target) == {"a.txt": b"2", "b.txt": b"2", "notes.txt": b"mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_fails_while_it_is_filled_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    write_folder(target, fill("1"), known=KNOWN)

    def failing(folder: Path) -> None:
        write_text(folder / "a.txt", "2")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(target, failing, known=KNOWN)
    assert content(target) == {"a.txt": b"1", "b.txt": b"1"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_cannot_be_replaced_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mounted(one: Path, other: Path) -> bool:
        raise OSError(errno.EBUSY, "Device or resource busy")

    target = tmp_path / "folder"
    write_folder(target, fill("1"), known=KNOWN)
    monkeypatch.setattr(disk, "exchange", mounted)
    with pytest.raises(OptionError, match="mounted or in use; name a folder in it"):
        write_folder(target, fill("2"), known=KNOWN)
    assert content(target) == {"a.txt": b"1", "b.txt": b"1"}


def test_reading_meets_one_moment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is replaced between the reading of its two files: both must be of the same writing."""
    target, turns = tmp_path / "folder", iter(range(3))
    write_folder(target, fill("old"), known=KNOWN)
    read = Path.read_bytes

    def replaced_meanwhile(path: Path) -> bytes:
        found = read(path)
        if path.name == "a.txt" and next(turns, None) is not None:
            write_folder(target, fill("new"), known=KNOWN)
        return found

    monkeypatch.setattr(Path, "read_bytes", replaced_meanwhile)
    assert read_folder(target, KNOWN) == {"a.txt": b"new", "b.txt": b"new"}
