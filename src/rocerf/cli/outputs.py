"""What a command writes: refused before the long work where it cannot be written, and named exactly when it was not.

One output that fails takes no other with it: every one is tried, the result is printed, and the last word is a
sentence about what was written and what was not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocerf.errors import FileFormatError, NotRemovedError, OptionError, RocerfError


@dataclass(frozen=True)
class Target:
    """A file that an option asks for, or a folder that is written as a whole."""

    option: str
    path: Path
    folder: bool = False


def check_targets(targets: Sequence[Target], sources: Iterable[Path | None] = ()) -> None:
    """Refuse what could not be written, and what would overwrite an input or another output, before any work."""
    for target in targets:
        _check_writable(target)
    for place, target in enumerate(targets):
        for other in targets[:place]:
            if touches(target, other.path) or touches(other, target.path):
                raise OptionError(
                    f"Expected a place of its own for each output, got {target.path} for {target.option} and "
                    f"{other.path} for {other.option}; choose another path for one of them."
                )
        for source in sources:
            if source is not None and touches(target, source):
                raise OptionError(
                    f"Expected {target.option} apart from what is read, got {target.path}, which would overwrite "
                    f"{source}; choose another path."
                )


def touches(target: Target, path: Path) -> bool:
    """Whether writing the target touches the path: the same file, or a file inside the folder."""
    ours, other = Path(os.path.realpath(target.path)), Path(os.path.realpath(path))
    return ours == other or (target.folder and ours in other.parents) or _same_file(ours, other)


def _same_file(one: Path, two: Path) -> bool:
    return one.exists() and two.exists() and one.samefile(two)


def _check_writable(target: Target) -> None:
    path = target.path
    if path.exists():
        if path.is_dir() != target.folder:
            wanted, got = ("a folder", "a file") if target.folder else ("a file", "a folder")
            raise FileFormatError(f"Expected {wanted} as {target.option}, got {path}, which is {got}; choose another.")
        where = path
    else:
        where = next(folder for folder in Path(os.path.abspath(path)).parents if folder.exists())
        if not where.is_dir():
            raise FileFormatError(
                f"Expected a path for {target.option} that can be made, got {path}, but {where} is a file; "
                "choose another."
            )
    if not os.access(where, os.W_OK):
        raise FileFormatError(
            f"Expected to be allowed to write {target.option} {path}, got no permission at {where}; choose another "
            "path, or have it opened."
        )


@dataclass(frozen=True)
class Written:
    """What was written, what was not and why, and what is left of old files that were replaced."""

    paths: tuple[Path, ...]
    failures: tuple[tuple[Path, str], ...]
    left: tuple[str, ...] = ()

    def complain(self) -> None:
        """Raise if anything is missing; called when everything else has been said."""
        if not self.failures:
            if self.left:
                raise NotRemovedError(" ".join(self.left))
            return
        reasons = "; ".join(f"not written: {path} ({reason})" for path, reason in self.failures)
        done = f"written: {', '.join(map(str, self.paths))}" if self.paths else "nothing was written"
        raise FileFormatError(
            f"Expected to write all that was asked for, got an error; {done}; {reasons}; check the path and "
            f"the room on the disk, and run it again.{''.join(f' {what}' for what in self.left)}"
        )


def write_each(steps: Iterable[tuple[Path, Callable[[], object]]]) -> Written:
    """Take every step, each writing one path, whatever happens to the others."""
    paths: list[Path] = []
    failures: list[tuple[Path, str]] = []
    left: list[str] = []
    for path, write in steps:
        try:
            write()
        except NotRemovedError as error:  # it is written, all the same
            paths.append(path)
            left.append(str(error))
        except OSError as error:
            failures.append((path, error.strerror or str(error)))
        except RocerfError as error:
            failures.append((path, str(error).rstrip(".")))
        else:
            paths.append(path)
    return Written(tuple(paths), tuple(failures), tuple(left))
