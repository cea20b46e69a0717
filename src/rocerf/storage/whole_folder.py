"""A folder of files written in one step: the old one or the new one, never a mixture, whatever happens meanwhile.

Everything goes into a draft beside it, for its owner only, and is flushed to the disk. Then draft and folder swap
names: in one step where the system can exchange two folders (Linux), else by two renames, and whoever comes between
them, or finds what a killed writer left there, waits or puts the folder back. What was there is then removed, and only
what is ours of it; if that fails it is said, because training rows may be left in it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from rocerf.errors import NotRemovedError, OptionError
from rocerf.storage import disk
from rocerf.storage.drafts import ASIDE, PART, abandoned, done, draft_beside, drafts_of, is_draft, removable
from rocerf.storage.locks import clearing_up, writing_in

#: Another writer may come between looking and swapping; so often it is tried again.
TRIES = 200

#: Seconds to wait for a writer between its two renames, and between two looks; looks at nothing until nothing is there.
WAIT, LOOK, MISSES = 2.0, 0.01, 5

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)

#: Which of the known files found in a folder, given with their content, are of one writing of ours.
Ours = Callable[[Mapping[str, bytes]], Collection[str]]


def write_folder(
    path: str | PathLike[str], fill: Callable[[Path], None], *, known: Collection[str], ours: Ours = list
) -> None:
    """Let ``fill`` write files into a folder that then takes the place of ``path`` in one step.

    ``known`` are the names of files that such a folder has; ``ours`` says which of those it finds are ours, by what is
    in them. A folder that holds anything else is not replaced. Of several writers at once the last one wins. If what
    was replaced cannot be removed, that is an error, though the new folder is in place.
    """
    kind, target = _Kind(known, ours), Path(os.path.realpath(path))
    put_back(target)
    kind.check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with writing_in(target.parent):
        left = _written(target, fill, kind)
    with clearing_up(target.parent) as alone:
        for draft in (*drafts_of(target, PART), *drafts_of(target, ASIDE)):
            if draft not in {path.parent for path, _ in left} and removable(draft, alone):
                left += _cleared(draft, kind.others(draft), target)
    if left:
        raise NotRemovedError(
            f"Expected to remove what {target} held before, got {left[0][1]}; the new one is in place, but old files, "
            f"maybe with training rows, are still in {' and '.join(sorted({str(path.parent) for path, _ in left}))}: "
            "see whether any of it is yours, and delete it."
        )


def read_folder(path: str | PathLike[str], known: Collection[str]) -> dict[str, bytes]:
    """The files of a folder that have these names, all of one moment, though somebody replace it meanwhile."""
    target, missed = Path(os.path.realpath(path)), 0
    for _ in range(TRIES):
        put_back(target)
        try:
            before = _moment(target)
            found = {name: (target / name).read_bytes() for name in known if (target / name).exists()}
            if before == _moment(target):
                return found
        except FileNotFoundError:  # it is not there, or a writer has just moved it
            missed += not os.path.lexists(target)
            if missed == MISSES:
                raise
        time.sleep(LOOK)
    raise OSError(errno.EBUSY, "The folder was replaced again and again while it was read", os.fspath(path))


def put_back(target: Path) -> None:
    """Where a folder is missing because a writer was killed between two renames, give it back its name."""
    deadline = time.monotonic() + WAIT
    while not os.path.lexists(target):
        asides = drafts_of(target, ASIDE)
        if not asides:
            return
        with clearing_up(target.parent) as alone:
            left = [aside for aside in asides if abandoned(aside)] if alone is not False else []
            if left:
                try:
                    disk.rename_folder(left[0], target)
                except FileNotFoundError:  # somebody else did
                    continue
                return
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK)


@dataclass(frozen=True)
class _Kind:
    """What folders of one kind hold: files of known names, and which of those that are found are ours."""

    known: Collection[str]
    ours: Ours

    def others(self, folder: Path) -> list[str]:
        """Names of what such a folder does not have."""
        return sorted(name for name in os.listdir(folder) if name not in self.known and not is_draft(name))

    def strangers(self, folder: Path) -> list[str]:
        """Names of all that is not ours: others, and files of known names that no writing of ours put there."""
        for _ in range(TRIES):
            before = _moment(folder)
            names = [name for name in self.known if os.path.lexists(folder / name)]
            own = self.ours({name: (folder / name).read_bytes() for name in names if (folder / name).is_file()})
            found = [*self.others(folder), *(name for name in names if name not in own)]
            if before == _moment(folder):  # all of one folder, and not of two that swapped names meanwhile
                break
        return found

    def check_replaceable(self, target: Path) -> None:
        """Refuse a folder with anything in it that is not ours."""
        try:
            strangers = self.strangers(target) if os.listdir(target) else []
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise OptionError(f"Expected a folder to write to, got the file {target}; name another.") from None
        if strangers:
            odd = ", which was not written there together with such others" if strangers[0] in self.known else ""
            raise OptionError(
                f"Expected a folder that is new, empty, or holds nothing but {', '.join(sorted(self.known))}, got "
                f"{target} with {strangers[0]!r} in it{odd}: it is replaced as a whole, and nothing of yours may be "
                "lost; name a new folder."
            )
        if Path.cwd() == target:
            raise _irreplaceable(f"the one we are in, {target}")


def check_replaceable(path: str | PathLike[str], known: Collection[str], ours: Ours = list) -> None:
    """Refuse a folder that :func:`write_folder` would not replace; to be asked before long work, too."""
    _Kind(known, ours).check_replaceable(Path(os.path.realpath(path)))


def _irreplaceable(got: str) -> OptionError:
    return OptionError(f"Expected a folder that can be replaced as a whole, got {got}; name a folder in it.")


#: What could not be removed, and why.
_Left = list[tuple[Path, str]]


def _written(target: Path, fill: Callable[[Path], None], kind: _Kind) -> _Left:
    """Write the folder and put it in its place; what is left of the one that was there."""
    draft, made = draft_beside(target), 0
    left: _Left = []
    try:
        disk.make_folder(draft)
        made = draft.stat().st_ino
        fill(draft)
        _settle(draft)
        _swap(draft, target, kind, left)
        disk.flush_folder(target.parent)
    finally:
        came_to_nothing = _is(draft, made)
        left += _cleared(draft, kind.others(draft), target) if came_to_nothing else _replaced(draft, target, kind)
        done(draft)
    return left


def _is(folder: Path, inode: int) -> bool:
    try:
        return folder.stat().st_ino == inode
    except OSError:
        return False


def _replaced(folder: Path, target: Path, kind: _Kind) -> _Left:
    """Remove a folder that was replaced; what came into it in the last moment and is not ours goes where it was."""
    try:
        return _cleared(folder, kind.strangers(folder), target)
    except FileNotFoundError:  # it has a name of its own again, or somebody removed it
        return []
    except OSError as error:
        return [(folder / "*", str(error))]


def _free(home: Path, name: str) -> Path:
    """A name there that nothing has: its own, or with ``.before`` behind it."""
    while os.path.lexists(home / name):
        name += ".before"
    return home / name


def _cleared(folder: Path, strangers: Collection[str], home: Path) -> _Left:
    """Remove a folder with all that is in it but strangers, which go home; what could not be, and why."""
    left: _Left = []
    for name in os.listdir(folder):
        try:
            if name not in strangers:
                disk.remove(folder / name)
            else:
                disk.rename_folder(folder / name, _free(home, name))
        except FileNotFoundError:  # somebody else removed it
            continue
        except OSError as error:
            left.append((folder / name, str(error)))
    if not left:
        try:
            disk.remove_empty(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            left.append((folder / "*", str(error)))
    return left


def _settle(draft: Path) -> None:
    """All files are their owner's only, and on the disk."""
    for name in os.listdir(draft):
        path = draft / name
        if stat.S_IMODE(path.stat().st_mode) != 0o600:
            path.chmod(0o600)
        handle = os.open(path, os.O_RDONLY)
        try:
            disk.flush(handle)
        finally:
            os.close(handle)
    disk.flush_folder(draft)


def _swap(draft: Path, target: Path, kind: _Kind, left: _Left) -> None:
    """Draft and folder swap names; what is left of a folder that was moved aside is added to ``left``."""
    try:
        for _ in range(TRIES):
            if _swapped(draft, target, kind, left):
                return
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise _irreplaceable(f"{target}, which is mounted or in use") from error
    raise OSError(errno.EBUSY, "Others write this folder again and again", os.fspath(target))


def _swapped(draft: Path, target: Path, kind: _Kind, left: _Left) -> bool:
    """One attempt; False where somebody else came between."""
    if not os.path.lexists(target):
        return _renamed(draft, target)
    kind.check_replaceable(target)
    try:
        return disk.exchange(draft, target) or _moved_aside(draft, target, kind, left)
    except FileNotFoundError:
        if not os.path.lexists(draft):  # it is ours that is gone
            raise
        return False


def _moved_aside(draft: Path, target: Path, kind: _Kind, left: _Left) -> bool:
    """The swap by two renames; whatever stops us between them, the old folder gets its name back."""
    aside = draft_beside(target, ASIDE)
    try:
        disk.rename_folder(target, aside)
        swapped = _renamed(draft, target)
    finally:
        if not os.path.lexists(target):
            with suppress(OSError):  # what stopped us is raised; whoever looks next puts it back
                disk.rename_folder(aside, target)
        done(aside)
        left += _replaced(aside, target, kind)
    return swapped


def _renamed(draft: Path, target: Path) -> bool:
    try:
        disk.rename_folder(draft, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _moment(target: Path) -> tuple[int, ...]:
    """What changes when another folder gets this name."""
    now = target.stat()
    return now.st_dev, now.st_ino, now.st_ctime_ns, now.st_mtime_ns
