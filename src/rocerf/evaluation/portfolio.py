"""All refused people at once: who has no recourse and why, what groups pay, which changes are asked for, what breaks.

Survival is what was seen: points are attacked by an adversary with a seed of its own, and the worst sets of rows that
it finds for anybody are then held against everybody's points, each really retrained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.audit.recheck import check_same_model, check_same_promise
from rocerf.data.attribute import Attribute
from rocerf.data.feature import Direction
from rocerf.deletion.adversary import Adversary
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.progress import Telling
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array, Mask, Places

if TYPE_CHECKING:
    from rocerf.drawing import Picture

#: Bands that numbers are cut into, groups of people shown where nobody names any, and sets held against everybody.
BANDS, MOST_GROUPS, MOST_SETS = 4, 4, 20

#: Sets the adversary's seed apart from those of promises.
STREAM = 0xF0110


@dataclass(frozen=True)
class GroupRow:
    """One group of people: how many are refused, answered, what they pay on average, how many points survived."""

    attribute: str
    group: str
    refused: int
    answered: int
    cost: float | None
    survived: int


@dataclass(frozen=True)
class Portfolio:
    """What :func:`portfolio` found. ``broken`` counts, for each deletion tried, the answers that it breaks.

    ``without`` are the reasons of people without an answer, with how many have each; ``changes`` the attributes that
    answers change, with how many do.
    """

    promise: str
    k: int
    rows: int
    people: int
    asking: int
    answered: int
    cost: float | None
    survived: int
    without: tuple[tuple[str, int], ...]
    groups: tuple[GroupRow, ...]
    changes: tuple[tuple[str, int], ...]
    broken: tuple[tuple[int, int], ...]  # rows deleted, answers broken; the worst first
    costs: tuple[float, ...]
    proven: int

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f" at a mean cost of {self.cost:.3g}"
        tried = f"{self.survived} survived what was tried" if self.tried else "no deletion was tried"
        return (
            f"Portfolio({self.answered} of {self.asking} refused people answered{cost}, {tried}; {self.promise}, "
            f"k={self.k} of {self.rows} rows)"
        )

    @property
    def tried(self) -> bool:
        """Whether deletions were tried at all: a promise about none (``plain``) has nothing to survive."""
        return self.k > 0 and self.answered > 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def to_html(self) -> str:
        """One page with pictures that loads nothing."""
        from rocerf.evaluation.portfolio_page import portfolio_page

        return portfolio_page(self)

    def plot(self) -> Picture:
        """How many are refused, answered and keep their answer; beside it what groups pay."""
        from rocerf.evaluation.plots import draw_portfolio

        return draw_portfolio(self)

    def _repr_html_(self) -> str:
        from rocerf.evaluation.portfolio_page import portfolio_summary

        return portfolio_summary(self)

    def write(self, path: str | PathLike[str]) -> None:
        """The page as a file."""
        from rocerf.storage.whole_file import write_text

        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, self.to_html())


def portfolio(
    explainer: Rocerf,
    people: Any,
    *,
    groups: Sequence[str] | None = None,
    effort: str = "quick",
    seed: int = 0,
    progress: Telling = None,
) -> Portfolio:
    """The whole of some people's answers.

    Parameters
    ----------
    explainer : Rocerf
        Who answers, and under which promise.
    people : array or DataFrame (P, d), or Recourses
        Who is to be answered, or what :meth:`Rocerf.explain` of this explainer gave for them.
    groups : names of attributes, optional
        Whose groups are compared; numbers are cut into four bands. By default the attributes that nobody can change
        and that the schema does not mark as private, at most four of them.
    effort : "quick", "normal" or "thorough"
        How hard the adversary looks whose deletions the points are held against.
    seed : int
        Of that adversary.
    progress : bool or function of (done, total)
        True shows how far it is.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> denied = data.test.X[model.predict(data.test.X) == 0][:6]
    >>> seen = portfolio(rocerf.Rocerf(model, 4, schema=data.schema), denied, groups=["age"])
    >>> seen.asking, len(seen.groups) > 0, seen.survived <= seen.answered
    (6, True, True)
    """
    if isinstance(people, Recourses):
        check_same_model(explainer.model, people)
        check_same_promise(explainer.settings(), people)
        recourses = people
    else:
        recourses = explainer.explain(people, progress=progress)
    chosen = _attributes(recourses, groups)
    accepted = np.array([status is Status.ALREADY_ACCEPTED for status in recourses.statuses], bool)
    found = np.flatnonzero(recourses.answered)
    points = np.asarray(recourses.matrix)[found]
    survived, broken = _attacked(explainer, points, effort, seed, progress)
    lasting = np.zeros(len(recourses), bool)
    lasting[found] = survived
    without = Counter(
        str(recourses.reasons[place]) for place in np.flatnonzero(~accepted) if not recourses.answered[place]
    )
    changes = Counter(change.label for place in found for change in recourses[int(place)].changes)
    costs = np.asarray(recourses.costs)[found]
    return Portfolio(
        explainer.promise.name,
        explainer.k,
        len(explainer.model.train),
        len(recourses),
        int((~accepted).sum()),
        len(found),
        float(costs.mean()) if len(found) else None,
        int(survived.sum()),
        tuple(without.most_common()),
        tuple(row for attribute in chosen for row in _rows(recourses, attribute, ~accepted, lasting)),
        tuple(changes.most_common()),
        broken,
        tuple(float(cost) for cost in costs),
        int(recourses.certified.sum()),
    )


def _attributes(recourses: Recourses, names: Sequence[str] | None) -> list[Attribute]:
    """The attributes meant by names; without names, those that nobody can change and that may be printed."""
    known = {attribute.name: attribute for attribute in recourses.schema.attributes}
    if names is None:
        features = recourses.schema.column_features
        fixed = [a for a in known.values() if all(features[j].direction is Direction.FIXED for j in a.places)]
        return [attribute for attribute in fixed if not attribute.private][:MOST_GROUPS]
    strange = [name for name in names if name not in known]
    if strange:
        raise OptionError(
            f"Expected groups by attributes of the schema, got {strange[0]!r}; known: {', '.join(list(known)[:20])}."
        )
    return [known[name] for name in names]


def _rows(recourses: Recourses, attribute: Attribute, asking: Mask, lasting: Mask) -> list[GroupRow]:
    label = _groups_of(np.asarray(recourses.people)[:, list(attribute.places)], attribute)
    rows = []
    for group in dict.fromkeys(sorted(set(label), key=_order(label))):
        own = (np.array(label) == group) & asking
        answered = own & recourses.answered
        if own.any():
            cost = float(np.asarray(recourses.costs)[answered].mean()) if answered.any() else None
            shown = group.partition("|")[2]
            counts = int(own.sum()), int(answered.sum())
            rows.append(GroupRow(attribute.label, shown, *counts, cost, int((lasting & own).sum())))
    return rows


def _order(label: list[str]) -> Any:
    return lambda group: (group.partition("|")[0], group)


def _groups_of(values: Array, attribute: Attribute) -> list[str]:
    """A group for each person's values (P, places): a category, or a band of numbers; with its order before a bar."""
    if attribute.categories is not None:
        words = attribute.words or tuple(map(str, attribute.categories))
        return [f"{row.argmax():03d}|{words[row.argmax()]}" if row.any() else "999|other" for row in values]
    numbers = values[:, 0]
    known = np.unique(numbers[np.isfinite(numbers)])
    if len(known) <= BANDS:
        place = {value: f"{number:03d}|{value:g}" for number, value in enumerate(known)}
        return [place.get(value, "999|missing") for value in numbers]
    edges = np.unique(np.quantile(numbers[np.isfinite(numbers)], np.linspace(0, 1, BANDS + 1)[1:-1]).round())
    band = np.searchsorted(edges, numbers, side="right")
    names = [f"below {edges[0]:g}", *(f"{a:g} to below {b:g}" for a, b in pairwise(edges))]
    names.append(f"{edges[-1]:g} or more")
    return [f"{b:03d}|{names[b]}" if np.isfinite(v) else "999|missing" for b, v in zip(band, numbers, strict=True)]


def _attacked(
    explainer: Rocerf, points: Array, effort: str, seed: int, progress: Telling
) -> tuple[Mask, tuple[tuple[int, int], ...]]:
    """Whether each point survived the worst deletions found for anybody, and how many points each of these breaks."""
    model = explainer.model
    if not len(points) or not explainer.k:
        return np.ones(len(points), bool), ()
    own = int(np.random.SeedSequence([seed, STREAM]).generate_state(1)[0])
    attacks = Adversary(model, explainer.k, effort=effort, seed=own).attack_all(points, progress=progress)
    survived = np.asarray(attacks.scores >= 0)
    sets: dict[bytes, Places] = {}
    for place in np.argsort(attacks.scores, kind="stable"):
        rows = np.asarray(attacks.deleted_rows[int(place)])
        if len(rows):
            sets.setdefault(rows.tobytes(), rows)
    worst = list(sets.values())[:MOST_SETS]
    if not worst:
        return survived, ()
    scores = model.refitted([model.train.ids[rows] for rows in worst], seed=own).scores(points)
    survived &= (scores >= 0).all(axis=0)
    broken = sorted(((len(rows), int((row < 0).sum())) for rows, row in zip(worst, scores, strict=True)), key=_worst)
    return survived, tuple(broken)


def _worst(found: tuple[int, int]) -> tuple[int, int]:
    return -found[1], found[0]
