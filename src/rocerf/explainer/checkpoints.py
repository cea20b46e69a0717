"""A long run that can be taken up again: every round of it is written down as it is done.

A solver asks a promise, and what it is told decides all it does. So a run is resumed by telling the solver, in the same
order, what it was told before: up to there nothing is computed, and from there on it goes on as if nothing had
happened, to the same answers. Written down are the readings, one file each, and what the promise has learned. A
question that differs from the one written down (another version of the code, say) ends the telling: from there on
everything is computed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.models.identity import Identity
from rocerf.promises.promise import Hardening, Learning, PerPerson, Promise, Reading
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import Solution
from rocerf.storage.disk import make_folder
from rocerf.storage.state import State
from rocerf.types import Array, Progress

ROUND, LEARNED = "rocerf-round/1", "rocerf-learned/1"

#: What a solver asks a promise.
QUESTIONS = ("read", "read_near", "read_above", "remembered", "search_on")


class Checkpoint:
    """What a run was told so far, in a folder that is its owner's only: ids of training rows are in it.

    ``about`` says what the run is about; a folder about another one is refused.
    """

    def __init__(self, folder: str | PathLike[str], about: str) -> None:
        self._folder, self._about = Path(folder), about
        self.told, self.resumed = 0, 0
        self._replaying = self._path(0).exists()
        self._learned: State | None = None
        if self._replaying:
            self._learned = self._checked(State.read(self._folder / "learned.npz", LEARNED, "a checkpoint"))
        elif not self._folder.exists():
            make_folder(self._folder)

    def _path(self, number: int) -> Path:
        return self._folder / f"round-{number:05d}.npz"

    def _checked(self, state: State) -> State:
        if state.values["about"] != self._about:
            raise OptionError(
                f"Expected a checkpoint of the same model, people and options in {self._folder}, got one of another "
                "run; give another folder, or remove this one."
            )
        return state

    def of(self, promise: Promise) -> Promise:
        """The same promise, which writes down what it tells, or tells what was written down; it knows what it knew."""
        kind = type(promise)
        if self._learned is not None:
            promise.restore(self._learned.part("promise"))
        asked = {name: _asked(self, name, getattr(kind, name)) for name in QUESTIONS if hasattr(kind, name)}
        kept: Promise = object.__new__(type(kind.__name__, (kind,), asked))
        kept.__dict__ = promise.__dict__  # what one learns the other knows
        return kept

    def answer(self, promise: Any, name: str, ask: Callable[[], Reading], given: tuple[Any, ...]) -> Reading:
        """What is told to this question: from the folder, or computed and written down."""
        question, number = _question(name, given), self.told
        self.told += 1
        found = self._written(number, question)
        if found is not None:
            self.resumed += 1
            return _told(found, promise, given)
        self._replaying = False  # from here on everything is computed
        answer = ask()
        self._write(number, question, promise, answer, given)
        return answer

    def _written(self, number: int, question: str) -> State | None:
        path = self._path(number)
        if not self._replaying or not path.exists():
            return None
        found = self._checked(State.read(path, ROUND, "a checkpoint"))
        return found if found.values["question"] == question else None

    def _write(self, number: int, question: str, promise: Any, answer: Reading, given: tuple[Any, ...]) -> None:
        own = promise.state()
        plain = State(own.format, {}, own.arrays)
        # What was learned first: a round counts once its own file is there.
        State.joined(LEARNED, {"promise": plain}, {"about": self._about}).write(self._folder / "learned.npz")
        values = {"about": self._about, "question": question}
        State(ROUND, values, _arrays(answer, given)).write(self._path(number))


def _asked(checkpoint: Checkpoint, name: str, own: Any) -> Any:
    """The method of a promise, by way of the checkpoint unless it is asked by the promise itself."""

    def method(self: Any, *given: Any, **named: Any) -> Any:
        if self.__dict__.get("_answering"):
            return own(self, *given, **named)
        self.__dict__["_answering"] = True
        try:
            return checkpoint.answer(self, name, lambda: own(self, *given, **named), (*given, *named.values()))
        finally:
            self.__dict__["_answering"] = False

    return method


def _question(name: str, given: tuple[Any, ...]) -> str:
    digest = hashlib.sha256(name.encode())
    for value in given:
        digest.update(np.ascontiguousarray(value, np.float64).tobytes())
    return digest.hexdigest()


def _arrays(answer: Reading, given: tuple[Any, ...]) -> dict[str, NDArray[Any]]:
    """A reading as arrays; the rows feared are named where the promise holds, as only there a solver asks."""
    arrays: dict[str, NDArray[Any]] = {"values": answer.values, "slopes": answer.slopes}
    for name in ("margins", "retrainings"):
        if getattr(answer, name) is not None:
            arrays[name] = getattr(answer, name)
    target = next((value for value in given[1:] if np.ndim(value) == 0), None)
    holds = np.flatnonzero(answer.values >= target) if target is not None else np.empty(0, np.intp)
    named = [np.asarray(answer.worst_ids(int(place))) for place in holds]
    if named and all(ids.dtype != object for ids in named):
        arrays |= {"holds": holds, "ids": np.concatenate(named), "sizes": np.array([len(ids) for ids in named])}
    return arrays


def _told(found: State, promise: Any, given: tuple[Any, ...]) -> Reading:
    """A reading as it was written down."""
    arrays = found.arrays
    holds = arrays.get("holds", np.empty(0, np.intp))
    ids = np.split(arrays["ids"], np.cumsum(arrays["sizes"])[:-1]) if len(holds) else []
    named = dict(zip(holds.tolist(), ids, strict=True))
    if len(holds) and hasattr(promise, "was_searched"):
        promise.was_searched(given[0][holds])

    def worst_ids(place: int) -> NDArray[Any]:
        if place in named:
            return np.asarray(named[place])
        # Elsewhere they are asked for hardly ever: from what the promise has learned, or at that one point again.
        ask = promise.remembered if isinstance(promise, Learning) else promise.read
        found: NDArray[Any] = ask(given[0][[place]]).worst_ids(0)
        return found

    margins, retrainings = arrays.get("margins"), arrays.get("retrainings")
    return Reading(arrays["values"], arrays["slopes"], worst_ids, margins, retrainings)


def about_run(explainer: Any, X0: Array) -> str:
    """What tells this run from others: the model in full, the promise with its options, the margin, the people.

    Models may have the same rows and parameters today and still part ways when rows go (``C`` and ``gamma``, another
    threshold, another rule of retraining): what one was told says nothing about the other.
    """
    digest = hashlib.sha256()
    promise = explainer.promise
    model = Identity.of(explainer.model, promise.k)
    options = [str(getattr(promise, name, "")) for name in ("effort", "slack")]
    texts = [json.dumps(model.values, default=str, sort_keys=True), promise.name, repr(explainer.delta), *options]
    texts += [str(explainer.seed), explainer.cost.name, repr(explainer.max_changes)]
    texts += ["" if explainer.schema is None else json.dumps(explainer.schema.to_dict(), default=str)]
    for text in (*texts, *model.arrays):
        digest.update(text.encode() + b"\0")
    for values in (*model.arrays.values(), X0):
        digest.update(repr(np.shape(values)).encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def resumable(explainer: Any, folder: str | PathLike[str]) -> Callable[..., Solution]:
    """Finds points as the explainer does, by way of a checkpoint in this folder."""
    promise, runs = explainer.promise, count()
    if not promise.concave or isinstance(promise, PerPerson | Hardening):
        raise OptionError(
            f"Expected a promise with cuts (first_order, retrained, certified) for a checkpoint, got {promise.name!r}; "
            "leave the checkpoint out."
        )

    def find(problem: Master, progress: Progress | None = None) -> Solution:
        if next(runs):  # some people once more, after their points were confirmed: that is computed anew
            again: Solution = explainer.find_points(problem, progress)
            return again
        checkpoint = Checkpoint(folder, about_run(explainer, problem.X0))
        found: Solution = explainer.solve(checkpoint.of(promise), problem, explainer.delta, progress)
        return found

    return find
