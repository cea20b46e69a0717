"""What a deletion request does to the letters already sent: retrain without the rows, look at every point."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import DataError, ModelError, OptionError
from rocerf.models.model import ExactModel, Refittable
from rocerf.models.sklearn.own_refit import RetrainingRule, as_retrained_by
from rocerf.recourse.result import Recourses, Settings, finite_or_none
from rocerf.types import Array
from rocerf.words import Said


@dataclass(frozen=True)
class PreprocessingDifference:
    """What it matters at the recommended points whether a pipeline's preprocessing is fitted again after the deletion.

    ``rule`` is how the model in question does it; ``largest`` is the largest difference in score, ``decisions`` counts
    the points that one of the two retrained models accepts and the other refuses.
    """

    rule: str
    largest: float
    decisions: int

    @classmethod
    def between(
        cls, model: ExactModel, later: ExactModel, ids: NDArray[Any], X: Array
    ) -> PreprocessingDifference | None:
        """Of a model of a pipeline, the same retrained by its own rule, and points (P, d); None if it has no other."""
        other = model.with_preprocessing("frozen" if model.preprocessing == "refitted" else "refitted")
        try:
            one, two = later.score(X), (other.without(ids) if len(ids) else other).score(X)
        except ModelError:  # preprocessing that is not meant to be, or cannot be, fitted again on these rows
            return None
        largest = float(np.abs(one - two).max(initial=0.0))
        return cls(str(model.preprocessing), largest, int(((one >= 0) != (two >= 0)).sum()))

    @property
    def sentence(self) -> Said:
        """What it comes to."""
        other = Said.of("audit.frozen" if self.rule == "refitted" else "audit.refitted")
        counted = Said.of("audit.decisions", k=self.decisions) if self.decisions else Said.of("audit.no_decision")
        return Said.of("audit.preprocessing", other=other, largest=self.largest, decisions=counted)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, eq=False)
class Recheck:
    """Scores of the recommended points before and after a real deletion, shape (P,); NaN where nobody answered.

    It is the answers' points that are looked at: letters round their numbers, and may state ranges. ``holds`` is true
    where the retrained model still accepts the point. ``options`` tells, where people were given several, which one
    each row is about, from 1. ``preprocessing`` compares the two ways in which a pipeline can be retrained, for a model
    that came from one; ``bins_kept`` marks one with bins or curves, of which only the way that keeps them is looked at.
    ``retrained_by`` says who retrained, if that was not rocerf.
    """

    before: Array
    after: Array
    answered: NDArray[np.bool_]
    deleted: int
    k: int
    promise: str
    names: tuple[Any, ...]
    preprocessing: PreprocessingDifference | None = None
    options: tuple[int, ...] | None = None
    retrained_by: str | None = None
    bins_kept: bool = False

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Answers that still hold, shape (P,)."""
        return self.answered & (np.nan_to_num(self.after, nan=-np.inf) >= 0)

    @property
    def broken(self) -> NDArray[np.intp]:
        """Places of answers that no longer hold."""
        return np.flatnonzero(self.answered & ~self.holds)

    @property
    def within_promise(self) -> bool:
        """Whether so many deletions are covered by the promise that was given."""
        return self.deleted <= self.k

    @property
    def sentence(self) -> Said:
        """The figures in a sentence."""
        return Said.of(
            "audit.recheck",
            held=int(self.holds.sum()),
            total=int(self.answered.sum()),
            what=Said.of("audit.letters" if self.options is None else "audit.options_in_letters"),
            deleted=self.deleted,
            by="" if self.retrained_by is None else Said.of("audit.by", who=self.retrained_by),
            covered=Said.of("audit.within" if self.within_promise else "audit.beyond"),
            promise=self.promise,
            k=self.k,
            remark=self._remark,
        )

    @property
    def _remark(self) -> str:
        """What is to be said of the preprocessing besides."""
        if self.preprocessing is not None:
            return Said.of("audit.remark", what=self.preprocessing.sentence)
        return Said.of("audit.remark", what=Said.of("audit.kept")) if self.bins_kept else ""

    def __str__(self) -> str:
        return self.sentence

    def records(self) -> list[dict[str, Any]]:
        """One record for each person: whether the answer holds (None: none was given), scores before and after."""
        holds = self.holds
        return [
            {
                "person": self.names[place],
                **({} if self.options is None else {"option": self.options[place]}),
                "holds": bool(holds[place]) if self.answered[place] else None,
                "score_before": finite_or_none(self.before[place]),
                "score_after": finite_or_none(self.after[place]),
            }
            for place in range(len(self.before))
        ]

    def to_json(self) -> str:
        """The figures as JSON; no ids of training rows."""
        summary = {"deleted": self.deleted, "k": self.k, "promise": self.promise, "within_promise": self.within_promise}
        if self.preprocessing is not None:
            summary["preprocessing"] = asdict(self.preprocessing)
        return json.dumps({**summary, "summary": str(self), "people": self.records()}, default=str)


def recheck(
    model: Refittable,
    recourses: Recourses | Sequence[Recourses],
    deleted_ids: Iterable[Any],
    *,
    promised: Settings | None = None,
    refit: RetrainingRule | None = None,
) -> Recheck:
    """Retrain the model without these rows and see which recourses still hold.

    Several batches are options for the same people, as :meth:`rocerf.Rocerf.alternatives` gives them. ``promised`` are
    the settings that they must have been made with, where these are known; else their own say what was promised. A
    model taken over from scikit-learn is retrained by the user's own estimator (``refit="own"``) or exactly ("exact"),
    by default as its rule says.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> letters = rocerf.Rocerf(model, k=4, promise="first_order").explain(data.test.X[:40])
    >>> print(recheck(model, letters, data.train.ids[:2]))
    13 of 13 answers still hold after deleting 2 rows and retraining (within the promise 'first_order' about 4)
    """
    batches = batches_of(recourses, "several batches of them")
    settings = batches[0].settings if promised is None else promised
    for batch in batches:
        check_same_model(model, batch)
        check_same_promise(settings, batch)
    rows = model.train.positions(deleted_ids)
    later = model.without(model.train.ids[rows]) if len(rows) else model
    answered, matrix = (np.concatenate([getattr(b, name) for b in batches]) for name in ("answered", "matrix"))
    before, after = np.full(len(answered), np.nan), np.full(len(answered), np.nan)
    before[answered] = model.score(matrix[answered])
    own = as_retrained_by(model, refit).own_refit if len(rows) else None
    after[answered] = (later.score if own is None else own.without(rows).scores)(matrix[answered])
    difference = None
    if isinstance(model, ExactModel) and model.parts is not None and model.parts.recipe is not None:
        assert isinstance(later, ExactModel)
        difference = PreprocessingDifference.between(model, later, model.train.ids[rows], matrix[answered])
    names = tuple(name for batch in batches for name in batch.names)
    places = tuple(place for place, batch in enumerate(batches, start=1) for _ in range(len(batch)))
    options, by = places if len(batches) > 1 else None, None if own is None else Said.of("audit.own_estimator")
    kept = isinstance(model, ExactModel) and model.lift is not None
    about = len(rows), settings.k, settings.promise, names, difference, options, by, kept
    return Recheck(before, after, answered, *about)


def batches_of(recourses: Recourses | Sequence[Recourses], several: str) -> tuple[Recourses, ...]:
    """Recourses as batches, ``several`` in words; whatever else was handed over is refused."""
    batches = tuple(recourses) if isinstance(recourses, Sequence) else (recourses,)
    if not batches or not all(isinstance(batch, Recourses) for batch in batches):
        got = ", ".join(type(batch).__name__ for batch in batches) or "none"
        raise OptionError(
            f"Expected recourses, or {several} (as Rocerf.alternatives gives), got {got}; pass what explain returned."
        )
    return batches


def check_same_promise(settings: Settings, recourses: Recourses) -> None:
    """Refuse recourses that were given another promise than the one they are said to be about."""
    for name in ("promise", "k"):
        expected, got = getattr(settings, name), getattr(recourses.settings, name)
        if got != expected:
            raise DataError(
                f"Expected recourses made with {name} {expected!r}, got some made with {got!r}; use the explainer that "
                "made them (Rocerf.save keeps it), and options of one call of alternatives."
            )


def check_same_model(model: Refittable, recourses: Recourses) -> None:
    """Refuse recourses that were made with other rows, other columns or another model."""
    settings = recourses.settings
    if settings.data_checksum != model.train.checksum:
        raise DataError(
            "Expected recourses made with this model's training rows, got recourses made with other rows (their "
            f"checksum begins with {settings.data_checksum[:8]}, the model's with {model.train.checksum[:8]}); "
            "use the rows they were made with, columns in the same order."
        )
    answered = recourses.answered
    if recourses.scores is None or not answered.any():
        return
    gap = float(np.abs(model.score(recourses.matrix[answered]) - recourses.scores[answered]).max())
    if not gap <= 1e-5:
        raise DataError(
            f"Expected the model the recourses were made with, got one that scores their points differently by up to "
            f"{gap:.2g}; use the same model, penalty and threshold."
        )
