"""A process that writes the same files again and again, is killed at random moments, and tells what was then found.

``python writers.py FOLDER SECONDS KIND=TIMES ...`` prints a JSON object with an entry for each kind: ``save``,
``answers`` or ``letters`` (writers killed so many times), ``two`` (two writers at once, nobody killed) or ``between``
(killed between two renames); with ``/renames`` as on systems that cannot exchange two folders. Children are forked,
since starting Python takes longer than writing. Two states are written in turn; whatever is found must be one of them,
whole.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from problems import random_training_set, refused_people
from rocerf import LogisticModel, Recourses, Rocerf
from rocerf.cli.files import write_letters


class States:
    """Two explainers that differ in rows, k and proof, with their answers and letters."""

    def __init__(self) -> None:
        train = random_training_set(3, n=60, d=3)
        one, two = LogisticModel.fit(train), LogisticModel.fit(train.without(train.ids[:12]), C=0.5)
        self.people = refused_people(one, 0, 5)
        self.explainers = (Rocerf(one, 1, promise="certified"), Rocerf(two, 2, promise="certified"))
        self.answers = tuple(explainer.explain(self.people) for explainer in self.explainers)
        day = date(2026, 1, 2)
        self.letters = tuple(
            explainer.letters(found, valid_until=None, issued=day, model_version=str(explainer.k) * 4000)
            for explainer, found in zip(self.explainers, self.answers, strict=True)
        )
        self.texts = tuple([letter.to_text().rstrip("\n") for letter in letters] for letters in self.letters)

    def write(self, kind: str, folder: Path, turn: int) -> None:
        """One state over the other."""
        if kind == "save":
            self.explainers[turn % 2].save(folder / "explainer")
        elif kind == "answers":
            self.answers[turn % 2].to_json(folder / "answers.json")
        else:
            write_letters(self.letters[turn % 2], folder / "letters", "text")

    def wrong(self, kind: str, folder: Path) -> str | None:
        """What is found that is neither state."""
        look = {"save": self._wrong_explainer, "answers": self._wrong_answers, "letters": self._wrong_letters}[kind]
        try:
            return look(folder)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _wrong_explainer(self, folder: Path) -> str | None:
        found = Rocerf.load(folder / "explainer")
        for expected in self.explainers:
            if found.k == expected.k and found.model.train.checksum == expected.model.train.checksum:
                points = self.answers[self.explainers.index(expected)].matrix
                points = points[np.isfinite(points).all(axis=1)]
                same = np.array_equal(found.promise.bound(points), expected.promise.bound(points))
                return None if same else "another proof than the model's"
        return f"k={found.k} with the other model"

    def _wrong_answers(self, folder: Path) -> str | None:
        found = Recourses.from_json(folder / "answers.json")
        same = any(np.array_equal(found.matrix, answers.matrix, equal_nan=True) for answers in self.answers)
        return None if same else "other answers"

    def _wrong_letters(self, folder: Path) -> str | None:
        for place, path in enumerate(sorted((folder / "letters").glob("letter-*"))):
            if path.read_text("utf-8").rstrip("\n") not in (self.texts[0][place], self.texts[1][place]):
                return f"{path.name} is neither letter"
        return None


def forked(work: Callable[[], None]) -> int:
    """The process number of a child that does this work."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:  # the parent must see it
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)


def ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def left_behind(folder: Path) -> list[Path]:
    """Drafts in the folder or below it."""
    return [path for path in folder.rglob("*") if path.name.endswith((".rocerf-part", ".rocerf-aside"))]


def killed(states: States, kind: str, folder: Path, kills: int, seconds: float) -> dict[str, Any]:
    """Kill a writer so often; what was wrong afterwards, and how many kills left a draft."""
    chance, wrong, drafts, open_to_others = random.Random(0), [], 0, []
    states.write(kind, folder, 0)

    def work() -> None:
        turn = 0
        while True:
            states.write(kind, folder, turn := turn + 1)

    for _ in range(kills):
        before = len(left_behind(folder))
        pid = forked(work)
        time.sleep(0.002 + chance.random() * seconds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        drafts += len(left_behind(folder)) > before
        if kind == "save":
            open_to_others += [p.name for p in left_behind(folder) if stat.S_IMODE(p.stat().st_mode) & 0o077]
        told = states.wrong(kind, folder)
        if told is not None:
            wrong.append(told)
            shutil.rmtree(folder)
            folder.mkdir()
            states.write(kind, folder, 0)
    done = forked(lambda: states.write(kind, folder, 0))
    finished = ended_well(done)
    return {
        "kills": kills,
        "wrong": wrong,
        "drafts": drafts,
        "open": open_to_others,
        "finished": finished,
        "left": [path.name for path in left_behind(folder)],
    }


def two_at_once(states: States, folder: Path, rounds: int) -> dict[str, Any]:
    """Two writers of one folder, and a reader meanwhile."""
    states.write("save", folder, 0)

    def work(turn: int) -> Callable[[], None]:
        def again() -> None:
            for _ in range(rounds):
                states.write("save", folder, turn)

        return again

    waiting, wrong, reads, well = {forked(work(0)), forked(work(1))}, [], 0, []
    while waiting:
        told = states.wrong("save", folder)
        reads += 1
        if told is not None:
            wrong.append(told)
        for pid in list(waiting):
            ended, code = os.waitpid(pid, os.WNOHANG)
            if ended:
                waiting.discard(pid)
                well.append(os.waitstatus_to_exitcode(code) == 0)
    told = states.wrong("save", folder)
    return {
        "wrong": wrong + [told] * (told is not None),
        "well": well,
        "reads": reads,
        "left": len(left_behind(folder)),
    }


def killed_between_renames(states: States, folder: Path) -> dict[str, Any]:
    """The folder has been moved aside and the new one is not there yet."""
    from rocerf.storage import disk

    states.write("save", folder, 0)
    rename, calls = disk.rename_folder, []

    def dying(old: Path, new: Path) -> None:
        calls.append(old)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(old, new)

    def work() -> None:
        disk.rename_folder = dying
        states.write("save", folder, 1)

    os.waitpid(forked(work), 0)
    missing = not (folder / "explainer").exists()
    read = states.wrong("save", folder)
    os.waitpid(forked(work), 0)
    written = ended_well(forked(lambda: states.write("save", folder, 1)))
    return {
        "missing": missing,
        "wrong": [told for told in (read, states.wrong("save", folder)) if told is not None],
        "well": written,
        "left": len(left_behind(folder)),
    }


def told(states: States, kind: str, folder: Path, kills: int, seconds: float) -> dict[str, Any]:
    """One part of the work, in a folder of its own."""
    from rocerf.storage import disk

    exchange, name = disk.exchange, kind.removesuffix("/renames")
    if name != kind:
        disk.exchange = lambda one, other: False
    folder.mkdir(parents=True)
    try:
        if name == "two":
            return two_at_once(states, folder, kills)
        if name == "between":
            return killed_between_renames(states, folder)
        return killed(states, name, folder, kills, seconds)
    finally:
        disk.exchange = exchange


def main() -> None:
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    states = States()
    parts = [part.split("=") for part in sys.argv[3:]]
    sys.stdout.write(json.dumps({kind: told(states, kind, folder / kind, int(n), seconds) for kind, n in parts}))


if __name__ == "__main__":
    main()
