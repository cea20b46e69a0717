"""How :mod:`benchmarks.same_answers` notes what a version of rocerf answers: figures and words, by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import rocerf

#: Members of a letter's JSON that hold words; all others are figures.
LETTER_WORDS = {"label", "text", "from_text", "to_text", "unit", "message", "sentence", "assumptions", "language"}


@dataclass
class Notes:
    """What the cases found, by the name of the case and of what was asked.

    ``figures`` must agree to rounding (numbers) or exactly (codes, ids); ``words`` exactly. Explainers are saved in
    ``folder``; ``others`` is the folder where another version saved its own, or the same.
    """

    folder: Path
    others: Path
    case: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    words: dict[str, Any] = field(default_factory=dict)

    def figure(self, what: str, value: Any) -> None:
        """Note numbers or codes in any nesting."""
        self.figures[f"{self.case}/{what}"] = plain(value)

    def word(self, what: str, value: Any) -> None:
        """Note a text, or texts."""
        self.words[f"{self.case}/{what}"] = value if isinstance(value, str) else [str(text) for text in value]

    def recourses(self, what: str, found: rocerf.Recourses) -> None:
        """Note everything that a batch of answers says."""
        for name in ("matrix", "costs", "margins", "gaps", "scores", "retrainings", "worst_ids", "certified"):
            self.figure(f"{what}/{name}", getattr(found, name))
        self.figure(f"{what}/statuses", [status.code for status in found.statuses])
        self.figure(f"{what}/points", np.asarray(found.points, dtype=object))
        settings = found.settings
        for name in ("k", "training_rows", "delta", "proven", "max_changes", "seed", "data_checksum"):
            self.figure(f"{what}/settings/{name}", getattr(settings, name))
        if found.held_out is not None:
            held = found.held_out
            self.figure(f"{what}/held_out", [held.accepted, held.by_model, held.drawn, held.lower_bound])
            self.word(f"{what}/held_out", str(held))
        self.figure(f"{what}/changes", [[(c.feature, c.before, c.after) for c in one.changes] for one in found])
        self.word(f"{what}/changes", [str(change) for one in found for change in one.changes])
        self.word(f"{what}/reasons", found.reasons)
        self.word(f"{what}/promises", [one.promise for one in found])
        self.word(f"{what}/certificates", [one.certificate.reason for one in found])
        self.word(f"{what}/settings", [settings.method, settings.promise, settings.cost, settings.solver])
        self.word(f"{what}/searches", settings.searches)
        self.word(f"{what}/sentence", settings.sentence)
        self.word(f"{what}/assumptions", settings.assumptions)

    def letters(self, what: str, letters: Iterable[rocerf.Letter]) -> None:
        """Note letters: the figures of their JSON, its words, and the texts that people read."""
        letters = tuple(letters)
        figures, words = zip(*(parted(json.loads(letter.to_json())) for letter in letters), strict=True)
        self.figure(f"{what}/json", figures)
        self.word(f"{what}/json", [json.dumps(one) for one in words])
        self.word(f"{what}/text", [letter.to_text() for letter in letters])
        self.word(f"{what}/html", [letter.to_html() for letter in letters])

    def attacks(self, what: str, model: Any, k: int, points: Any, **options: Any) -> Any:
        """Note the worst deletions that the adversary finds for some points, and return them."""
        attacks = rocerf.Adversary(model, k, **options).attack(points)
        self.figure(f"{what}/scores", attacks.scores)
        self.figure(f"{what}/deleted_ids", attacks.deleted_ids)
        self.figure(f"{what}/retrainings", attacks.retrainings)
        self.word(f"{what}/found_by", [*attacks.found_by, *attacks.searches])
        return attacks

    def recheck(self, what: str, explainer: rocerf.Rocerf, found: Any, ids: Any) -> None:
        """Note what a deletion does to answers already given."""
        checked = explainer.recheck(found, ids)
        self.figure(what, [checked.before, checked.after, checked.holds, checked.deleted])
        self.word(what, str(checked))

    def certificate(self, what: str, proof: rocerf.promises.Certified, points: Any) -> None:
        """Note what is proven about some points."""
        self.figure(f"{what}/bounds", proof.bound(points))
        self.figure(f"{what}/closed", proof.certificate.closed)
        self.word(f"{what}/reason", [proof.certificate.reason, str(proof.impossible())])

    def budget(self, what: str, explainer: rocerf.Rocerf, points: Any, most: int) -> None:
        """Note how many deletions some points survive."""
        budget = explainer.removal_budget(points, most=most)
        self.figure(what, [budget.certified, budget.found, budget.tried, budget.proofs])
        self.word(what, str(budget))

    def reloaded(self, what: str, explainer: rocerf.Rocerf, people: Any) -> None:
        """Save the explainer; note what it answers when it is read again, and what the one that others saved does."""
        name = f"{self.case}, {what}".replace(" ", "-")
        explainer.save(self.folder / name)
        self.recourses(f"{what}/reloaded", rocerf.Rocerf.load(self.folder / name).explain(people))
        self.recourses(f"{what}/saved before", rocerf.Rocerf.load(self.others / name).explain(people))


def plain(value: Any) -> Any:
    """Lists, texts, numbers and None, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def parted(document: Any) -> tuple[Any, Any]:
    """The figures and the words of a letter's JSON, each in the shape of the whole."""
    if isinstance(document, list):
        pairs = [parted(item) for item in document]
        return [figure for figure, _ in pairs], [word for _, word in pairs]
    if not isinstance(document, dict):
        return document, None
    figures = [[key, parted(value)[0]] for key, value in document.items() if key not in LETTER_WORDS]
    words = {key: value if key in LETTER_WORDS else parted(value)[1] for key, value in document.items()}
    return figures, words
