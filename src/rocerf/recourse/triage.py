"""Who can be given a recourse at all, before any solver is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.data.schema import FeatureSchema
from rocerf.models.model import Refittable
from rocerf.promises.promise import Promise
from rocerf.recourse.asked import Asked
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.result import Status
from rocerf.words import Said


@dataclass(frozen=True, eq=False)
class Triage:
    """Who can be asked for at all; ``asking`` are the places of people the solver must see."""

    statuses: list[Status]
    reasons: list[str]
    asking: NDArray[np.intp]

    @classmethod
    def of(cls, asked: Asked, model: Refittable, schema: FeatureSchema | None, promise: Promise) -> Triage:
        """Sort people into those the solver must see and those answered by a reason."""
        matrix, problems = asked.matrix, asked.problems
        finite = np.asarray(np.isfinite(matrix).all(axis=1))
        safe = np.where(finite[:, None], matrix, 0.0)
        said = list(problems)
        if schema is not None:
            said = [known or own for known, own in zip(said, schema.problems(safe, asked.missing), strict=True)]
        usable = finite & np.array([not text for text in said], bool)
        accepted = np.zeros(len(matrix), bool)
        if usable.any():
            accepted[usable] = asked.judged(model, matrix[usable], np.flatnonzero(usable)) >= 0
        contradicted = usable & ~accepted & FeasibleSet.around(safe, schema, missing=asked.missing).empty
        impossible = promise.impossible()
        statuses = [Status.ANSWERED] * len(matrix)
        reasons = [""] * len(matrix)
        for i in range(len(matrix)):
            if problems[i] or (finite[i] and not usable[i]):
                statuses[i], reasons[i] = Status.INVALID_INPUT, Said.of("recourse.cannot_be_used", why=said[i])
            elif not finite[i]:
                bad = [c for c, ok in zip(model.train.columns, np.isfinite(matrix[i]), strict=True) if not ok]
                listed = f"{', '.join(bad[:5])}{', ...' if len(bad) > 5 else ''}"
                why = Said.of("recourse.not_finite", columns=listed)
                statuses[i], reasons[i] = Status.INVALID_INPUT, Said.of("recourse.cannot_be_used", why=why)
            elif accepted[i]:
                statuses[i], reasons[i] = Status.ALREADY_ACCEPTED, Status.ALREADY_ACCEPTED.sentence
            elif contradicted[i]:
                statuses[i], reasons[i] = Status.CONTRADICTION, Status.CONTRADICTION.sentence
            elif impossible is not None:
                statuses[i], reasons[i] = Status.PROMISE_IMPOSSIBLE, impossible
        asking = np.flatnonzero([status is Status.ANSWERED for status in statuses])
        return cls(statuses, reasons, asking)
