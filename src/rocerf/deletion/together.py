"""What rows do together: sets that grow side by side, and exchanges rated without the row that goes.

What a row's deletion does depends on the rows that are gone already, most of all where few rows hold a model up. So the
rows that might join a set are rated at the model retrained without that very set, by the one-row formula, which is a
Newton step; and one set alone is not enough, as the worst set need not hold the worst single row.
"""

from __future__ import annotations

import numpy as np

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.passes import chunks
from rocerf.types import Array, Places

#: Harms held at a time, and by how many rows a set is looked at for exchanges.
MOST_HARMS, MOST_LEAVING = 4_000_000, 12

#: Models are retrained up to this decrement before rows are rated at them.
CLOSE = 1e-3

#: A set with the score that it should bring about.
Rated = tuple[float, Places]


def rated(
    models: BatchedNewton,
    directions: Array,
    sets: list[Places],
    barred: list[Places],
    guesses: Array,
    width: int,
    k: int,
) -> list[list[Rated]]:
    """Each set with each of the ``width`` rows that would lower its score most, none of them barred, best first.

    ``directions`` (m, p) belong to the m sets, as do ``guesses`` (m, p) of the models without them.
    """
    grown: list[list[Rated]] = []
    for part in chunks(len(sets), max(1, MOST_HARMS // len(models.X))):
        present, toward = Deletions.of(sets[part], k), directions[part]
        looked, thetas, look, astray = models.nearly(guesses[part], present, CLOSE)
        if len(astray):  # one Newton step of the full model led away: such a set changes much, and is given care
            thetas[astray] = models.converge(np.tile(models.theta, (len(astray), 1)), present[astray])
            for seen, anew in zip(look, models.look(thetas[astray], present[astray]), strict=True):
                seen[astray] = anew
            looked[astray] = thetas[astray]
        harms = models.harms(look, looked, present, toward, leverage=True)
        scores = np.einsum("ij,ij->i", toward, thetas)
        for place, (chosen, kept_out) in enumerate(zip(sets[part], barred[part], strict=True)):
            joining = harms.tempting(place, kept_out, width)
            lowered = scores[place] + harms.at(place, joining)
            own = zip(lowered, joining, strict=True)
            grown.append([(float(score), np.append(chosen, row)) for score, row in own if np.isfinite(score)])
    return grown


def side_by_side(models: BatchedNewton, directions: Array, k: int, beam: int) -> list[list[Places]]:
    """For each point (M, p) the ``beam`` sets of k rows that are left when sets grow by a row at a time."""
    frontiers: list[list[Places]] = [[np.empty(0, np.intp)] for _ in directions]
    for size in range(k):
        owners = np.repeat(np.arange(len(directions)), [len(sets) for sets in frontiers])
        sets = [chosen for own in frontiers for chosen in own]
        guesses = models.first_guess(Deletions.of(sets, max(size, 1)))
        grown: list[dict[bytes, Rated]] = [{} for _ in directions]
        for owner, options in zip(owners, rated(models, directions[owners], sets, sets, guesses, beam, k), strict=True):
            for score, chosen in options:
                key = np.sort(chosen).tobytes()
                if key not in grown[owner] or score < grown[owner][key][0]:
                    grown[owner][key] = score, chosen
        best = [sorted(own.values(), key=lambda one: one[0])[:beam] for own in grown]
        frontiers = [[chosen for _, chosen in own] or frontiers[place] for place, own in enumerate(best)]
    return frontiers


def exchanges(
    models: BatchedNewton, directions: Array, sets: list[Places], leaving: list[Places], k: int, tried: int
) -> list[list[Places]]:
    """For each point (M, p) the at most ``tried`` most promising sets that differ by one row from the one it has.

    ``leaving`` are the rows of each set that may go; a set of less than k rows may also grow.
    """
    rests, barred, owners = [], [], []
    for place, (chosen, rows) in enumerate(zip(sets, leaving, strict=True)):
        own = [np.setdiff1d(chosen, [row]) for row in rows] + ([chosen] if len(chosen) < k else [])
        rests += own
        barred += [chosen] * len(own)
        owners += [place] * len(own)
    options: list[list[Rated]] = [[] for _ in sets]
    if rests:
        guesses = models.first_guess(Deletions.of(rests, k))
        width = max(2, tried // MOST_LEAVING + 1)
        grown = rated(models, directions[owners], rests, barred, guesses, width, k)
        for owner, found in zip(owners, grown, strict=True):
            options[owner] += found
    return [[chosen for _, chosen in sorted(own, key=lambda one: one[0])[:tried]] for own in options]
