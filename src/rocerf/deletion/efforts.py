"""How hard the adversary looks: what its searches may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rocerf.models.options import one_of


@dataclass(frozen=True)
class GroupEffort:
    """How hard to look where a deletion has no single outcome, as for networks (:mod:`rocerf.deletion.group_attack`).

    ``others`` models of other starts propose sets, each set tried is retrained from ``starts`` fresh starts, ``rounds``
    times again at models retrained without the worst set, and the worst one found from ``confirming`` further starts,
    which report it. Where all sets are at most ``brute_force``, all are tried. Where training again always gives the
    same model and there are at most ``each_row`` rows, every row is deleted alone.
    """

    searches: tuple[str, ...]
    others: int = 3
    starts: int = 4
    rounds: int = 0
    confirming: int = 8
    brute_force: int = 0
    each_row: int = 1000


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    A walk takes at most ``rounds`` steps and gives up after ``patience`` steps in a row that did not lower the
    score. Adaptive greedy takes at most ``growth`` steps. Kicks end for a point after ``kicks`` in a row that
    changed nothing, or ``most_kicks``. ``beam`` is the number of sets that grow side by side where rows times
    parameters times deletions are at most ``beam_size``, or on small problems; exchanges are tried from the best
    ``beam_ends`` of them too. ``swaps`` is the number of swap rounds, each trying ``swap_width``^2 exchanges a set
    (all of them on small problems, none elsewhere if 0), ``brute_force`` the number of sets up to which all are
    tried. ``again`` is how many further searches in a row, each from fresh starts, a point must withstand before
    the promise ``retrained`` is given. A walk ends where the set it turns to has all but a share ``near`` of its
    rows in common with the present one, or with the worst one found from other starts: what is left to find there
    is a few parts in ten thousand of the drop (0: every walk goes to its end). ``groups`` is for models whose
    retraining has no single outcome.
    """

    name: str
    searches: tuple[str, ...]
    rounds: int = 8
    patience: int = 2
    random_starts: int = 0
    growth: int = 0
    relaxation_steps: int = 10
    kicks: int = 0
    most_kicks: int = 0
    beam: int = 0
    beam_size: int = 0
    beam_ends: int = 0
    group_starts: int = 0
    swaps: int = 0
    swap_width: int = 4
    brute_force: int = 0
    again: int = 0
    near: float = 0.0
    groups: GroupEffort = GroupEffort(("proposals", "other starts", "relinearised"), rounds=1)
    on_small_tables: Effort | None = None

    def on(self, rows: int, columns: int = 1) -> Effort:
        """The effort for a table of this size: where passes are cheap, the same time buys more searches."""
        small = rows <= SMALL_TABLE and rows * columns <= SMALL_TABLE_ENTRIES
        return self.on_small_tables if self.on_small_tables is not None and small else self


#: Up to this many rows, and entries, a table is small.
SMALL_TABLE, SMALL_TABLE_ENTRIES = 10_000, 3_000_000

_ALL = ("relinearise", "greedy", "adaptive", "groups", "relaxation", "random", "swap", "brute force")

_THOROUGH = Effort(
    "thorough",
    _ALL,
    rounds=14,
    patience=6,
    group_starts=4,
    random_starts=3,
    growth=12,
    relaxation_steps=12,
    kicks=10,
    most_kicks=60,
    beam=32,
    swaps=6,
    swap_width=5,
    brute_force=20_000,
    again=2,
    groups=GroupEffort(
        ("proposals", "other starts", "relinearised", "regression"),
        others=6,
        starts=6,
        rounds=2,
        confirming=20,
        brute_force=500,
        each_row=3000,
    ),
)

EFFORTS = {
    "quick": Effort(
        "quick",
        ("relinearise",),
        rounds=6,
        patience=1,
        groups=GroupEffort(("first proposal",), others=0, starts=3, confirming=0, each_row=150),
    ),
    "normal": Effort(
        "normal",
        ("relinearise", "greedy", "groups", "swap"),
        rounds=10,
        patience=1,
        group_starts=2,
        beam=6,
        swaps=2,
        swap_width=0,
        brute_force=500,
        near=0.02,
        on_small_tables=Effort(
            "normal",
            ("relinearise", "greedy", "groups", "swap", "brute force"),
            rounds=10,
            patience=2,
            group_starts=3,
            kicks=6,
            most_kicks=24,
            beam=24,
            beam_size=1_500_000,
            beam_ends=4,
            swaps=4,
            swap_width=3,
            brute_force=500,
        ),
    ),
    "thorough": replace(
        _THOROUGH, on_small_tables=replace(_THOROUGH, growth=100, beam=40, beam_size=5_000_000, beam_ends=6)
    ),
}


def checked_effort(effort: str) -> str:
    """The name of an effort, or an error that lists them."""
    return str(one_of(effort, "effort", EFFORTS))
