"""Pictures of what the adversary found, and how notebooks show it. No id of a training row is in any of them."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from rocerf.drawing import COLOURS, Picture, canvas
from rocerf.html import Html, Table, joined, tag
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.deletion.attacks import Attack, Attacks

#: Rows of a table in a notebook, and letters of a title on one line.
MOST_ROWS, WIDEST = 20, 72


def draw_attacks(attacks: Attacks) -> Picture:
    """Every point's score after the worst deletion found for it, from low to high."""
    kept = int((attacks.scores >= 0).sum())
    survive = "survive" if attacks.spreads is None else "are accepted, on average over retrained models, after"
    said = f"{kept} of {len(attacks)} points {survive} the worst deletion found for them."
    order = np.argsort(attacks.scores, kind="stable")
    spreads = None if attacks.spreads is None else attacks.spreads[order]
    return _drawn(attacks.scores[order], spreads, said)


def draw_attack(attack: Attack) -> Picture:
    """One point's score after the worst deletion found for it."""
    said = f"The point is {_word(attack.score)} after the worst deletion found: score {attack.score:.3f}."
    return _drawn(np.array([attack.score]), np.array([attack.spread]) if attack.spread else None, said)


def _drawn(scores: Array, spreads: Array | None, said: str) -> Picture:
    """Scores as triangles, upwards where accepted; where models differ, one standard deviation of them as a line."""
    finite = np.where(np.isfinite(scores), scores, np.nan)
    with canvas(6.4, 3.2) as (figure, (axes,)):
        if spreads is not None:
            axes.errorbar(range(len(scores)), finite, yerr=spreads, fmt="none", ecolor="0.6", elinewidth=1)
        for mask, name, marker in ((scores >= 0, "retrained", "^"), (scores < 0, "roar", "v")):
            axes.plot(np.flatnonzero(mask), finite[mask], marker, color=COLOURS[name], markersize=6)
        axes.axhline(0, color="0.3", linewidth=1)
        low, high = axes.get_ylim()
        room = 0.08 * (max(high, 0.0) - min(low, 0.0))  # the line at 0 is always seen, with room beside it
        axes.set_ylim(min(low, -room), max(high, room))
        axes.set_xlim(-0.6, len(scores) - 0.4)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("points, from the most harmed on" if len(scores) > 1 else "")
        if len(scores) == 1:
            axes.set_xticks([])
        axes.set_ylabel("score after the deletion")
        axes.set_title("accepted from 0 on; model retrained without the rows", loc="left", fontsize=10)
        figure.suptitle(fill(said.rstrip("."), WIDEST), fontsize=11, x=0.01, ha="left")
    return Picture(said, figure)


def attacks_html(attacks: Attacks) -> Html:
    """A line a point."""
    rows = [
        (str(place), f"{attack.score:.3f}", _word(attack.score), attack.found_by, str(attack.retrainings))
        for place, attack in zip(range(min(len(attacks), MOST_ROWS)), attacks, strict=False)
    ]
    more = len(attacks) - len(rows)
    head = ("point", "score after the deletion", "the point is", "found by", "models retrained")
    return joined(Table(head, rows).html(), tag("p", f"and {more} more points") if more > 0 else Html(""))


def attack_html(attack: Attack) -> Html:
    """What was found, without saying whose rows."""
    several = attack.models > 1
    rows = [
        ("the point is", _word(attack.score)),
        ("score after the deletion", f"{attack.score:.3f}" + (f" ± {attack.spread:.3f}" if several else "")),
        ("training rows deleted", str(len(attack.deleted_ids))),
        ("found by", attack.found_by),
        ("models retrained", str(attack.retrainings)),
    ]
    if several:
        rows.insert(2, (f"accepted by, of {attack.models} models", f"{attack.share:.0%}"))
    return joined(Table(("worst deletion found", ""), rows).html())


def _word(score: float) -> str:
    return "accepted" if score >= 0 else "refused"
