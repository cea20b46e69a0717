"""Does it work? Three answers, each a verdict and a sentence, worked out from the curves in whichever way they fall.

Random deletions, worst deletions, networks. Nothing here knows the outcome: which words are said follows from who keeps
how many answers valid at what cost, and the tests turn the tables round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rocerf.reproduction.frontier import SHARE, Frontier, find, frontiers_of
from rocerf.reproduction.published import DATASETS, METHODS, TABLES, VARIANT_OF
from rocerf.reproduction.sweeps import own_value
from rocerf.reproduction.tables import validity_curves_of, where
from rocerf.reproduction.words import listed, percent, signed

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.reproduction.tables import Results

#: From this share of valid answers on a method is said to work.
HOLDS = 0.95

#: How methods are called in a sentence.
CALLED = {"rocerf": "ROCERF with a larger k", "margin": "a constant margin"}
CALLED |= {name: f"`{name}`" for name in ("first_order", "simulated")}

#: What `retrained` is held against under picked rows.
RIVALS = ("margin", "roar", "cchvae", "scfe", "rocerf", "first_order", "simulated")

#: A verdict about fewer people on some table says so at once.
FEW = 10

NOT_MEASURED = "Not measured: this run has no curves for it."


class Answer(NamedTuple):
    """A question, the verdict in a few words, its figures in brief, and the sentence with all of them."""

    question: str
    verdict: str
    sentence: str
    brief: str = ""

    @property
    def measured(self) -> bool:
        """Whether the run has figures for it."""
        return self.verdict != NOT_MEASURED


def answers(results: Results) -> list[Answer]:
    """The three answers, in the order of the page."""
    frontiers = [f for f in frontiers_of(results) if f.setting == "corrected"]
    share = f"{100 * SHARE:g}\N{NO-BREAK SPACE}% of the rows deleted"
    random, worst = random_answer(frontiers, most_deleted(results)), worst_answer(frontiers, authors_points(results))
    found = [
        (f"{share} at random, logistic regression", "lr", random, random_brief(frontiers)),
        (f"The worst {share}, logistic regression", "lr", worst, worst_brief(frontiers)),
        ("Networks", "nn", network_answer(frontiers), network_brief(frontiers)),
    ]
    return [
        Answer(words + few(frontiers, model), verdict, f"{said}{asked(frontiers, model)}" if said else "", brief)
        for words, model, (verdict, said), brief in found
    ]


def few(frontiers: Sequence[Frontier], model: str) -> str:
    """That a verdict rests on few people, which goes before it; nothing where there are enough, or none."""
    own = [f.own for f in frontiers if (f.model, f.method) == (model, "rocerf") and f.own]
    least = min((point.people // point.averaged for point in own), default=FEW)
    seeds = min((point.seeds for point in own), default=1)
    more = f" and {seeds} seeds" if seeds > 1 else ""
    return f" (a pilot: only {least} people a table{more})" if least < FEW else ""


def asked(frontiers: Sequence[Frontier], model: str) -> str:
    """How many people are behind the shares of ROCERF, table by table: a sentence, or nothing."""
    own = {f.dataset: f.own for f in frontiers if (f.model, f.method) == (model, "rocerf") and f.own}
    each = [f"{own[name].people // own[name].averaged:,} ({_short(name)})" for name in TABLES if name in own]
    return f" People asked for the curves: {listed(each)}." if each else ""


def most_deleted(results: Results) -> str:
    """ROCERF and the constant margin of the tables after the largest random deletions; empty if not both measured."""
    curves = {
        (c.method, c.dataset): c
        for c in validity_curves_of(results)
        if (c.setting, c.model) == ("corrected", "lr") and c.alphas[-1] > SHARE
    }
    both = [name for name in TABLES if all((method, name) in curves for method in ("rocerf", "margin"))]
    if not both:
        return ""
    size = max(curves["rocerf", name].alphas[-1] for name in both)
    shares = {key: percent(curve.means_all[-1]) for key, curve in curves.items()}
    each = [f"{shares['rocerf', name]} and {shares['margin', name]} ({_short(name)})" for name in both]
    two = f"ROCERF and a constant margin of {own_value('margin', 'lr', SHARE):g}"
    return f"after {100 * size:g}\N{NO-BREAK SPACE}% at random {two} keep {listed(each)}"


def shares_of(frontiers: Sequence[Frontier], model: str, method: str, kind: str) -> dict[str, float]:
    """What a method keeps valid at its own knob, by table, over all seeds; only where it was measured."""
    found = {f.dataset: f.own.over_seeds(kind) for f in frontiers if (f.model, f.method) == (model, method) and f.own}
    return {name: found[name] for name in TABLES if math.isfinite(found.get(name, math.nan))}


def extra_costs(frontiers: Sequence[Frontier], model: str, other: str, target: str, kind: str) -> dict[str, float]:
    """What another method's cheapest setting that keeps as many valid costs more than the target, as a share.

    Negative where it costs less, infinite where no setting keeps as many.
    """
    found = {}
    for dataset in TABLES:
        case = {"dataset": dataset, "model": model}
        ours, theirs = (find([*frontiers], **case, method=method) for method in (target, other))
        if not (ours and theirs and ours.own) or not math.isfinite(ours.own.share(kind)):
            continue
        if math.isfinite(theirs.best(kind)):
            point = theirs.cheapest(kind, ours.own.share(kind))
            found[dataset] = point.l2 / ours.own.l2 - 1 if point else math.inf
    return found


def random_answer(frontiers: Sequence[Frontier], more_deleted: str = "") -> tuple[str, str]:
    """ROCERF under random deletions, and whether a constant margin does the same for less where ROCERF works."""
    shares = shares_of(frontiers, "lr", "rocerf", "random")
    if not shares:
        return NOT_MEASURED, ""
    extra = extra_costs(frontiers, "lr", "margin", "rocerf", "random")
    most = extra_costs(frontiers, "lr", "margin", "rocerf", "random_most")
    verdict = works("ROCERF", shares)
    verdict += _but({name: more for name, more in extra.items() if shares[name] >= HOLDS}, len(shares))
    verdict += _later([name for name, more in extra.items() if more < 0], most)
    first = f"{kept('ROCERF', shares)} after 0.5\N{NO-BREAK SPACE}% of the rows were deleted at random"
    simple = "a plain counterfactual with the same score margin for everybody, which knows nothing of deletions,"
    larger = compared("after the largest deletions such a margin", most)
    parts = [first, compared(simple, extra) or "a constant margin was not measured", larger, more_deleted]
    return f"{verdict}.", "; ".join(filter(None, parts)) + "."


def _but(extra: Mapping[str, float], tables: int) -> str:
    """What a constant margin costs more, by table where ROCERF works, of so many tables in all."""
    less = [name for name, more in extra.items() if more < 0]
    if not extra:
        return ""
    if not less:
        none = all(more == math.inf for more in extra.values())
        return ", and no constant margin tried does" if none else ", and a constant margin costs as much or more"
    where_less = "" if len(less) == tables else f" on {_tables(less)}"
    return f", but a constant margin does as well for less{where_less}"


def _later(less: Sequence[str], most: Mapping[str, float]) -> str:
    """Where a margin that is cheaper after few deletions no longer is after the largest ones that were tried."""
    still = [name for name in less if most.get(name, -1.0) < 0]
    if len(still) == len(less):
        return ""
    return f" (after the largest deletions tried {'only on ' + _tables(still) if still else 'nowhere'})"


def works(name: str, shares: Mapping[str, float]) -> str:
    """Yes, no, or where.

    >>> works("ROCERF", {"german": 0.99, "adult": 0.2})
    'ROCERF works on German, not on Adult'
    """
    good = [table for table, share in shares.items() if share >= HOLDS]
    bad = [table for table in shares if table not in good]
    if not bad:
        return f"{name} works"
    return f"{name} works on {_tables(good)}, not on {_tables(bad)}" if good else f"{name} does not work"


def all_work(methods: Mapping[str, Mapping[str, float]]) -> str:
    """The same of several methods by name, those of one fate together.

    >>> all_work({"A": {"german": 0.99}, "B": {"german": 0.2}, "C": {"german": 1.0}})
    'A and C work; B does not work'
    """
    fates: dict[str, list[str]] = {}
    for name, shares in methods.items():
        if shares:
            fates.setdefault(works("", shares).strip(), []).append(name)
    several = {"works": "work", "does not work": "do not work"}

    def told(fate: str, names: list[str]) -> str:
        if len(names) > 1:
            fate = several.get(fate, fate.replace("works on", "work on", 1))
        return f"{listed(names)} {fate}"

    return "; ".join(told(fate, names) for fate, names in fates.items())


def kept(name: str, shares: Mapping[str, float]) -> str:
    """How many answers a method keeps valid, table by table."""
    each = listed([f"{percent(share)} ({_short(table)})" for table, share in shares.items()])
    return f"{name} keeps {each} of its answers valid"


def compared(name: str, extra: Mapping[str, float]) -> str:
    """Where another method is as valid for less, where for more, and where never; empty if nothing was measured."""
    parts = []
    for words, chosen in (
        ("for less on", {table: more for table, more in extra.items() if more < 0}),
        ("for as much or more on", {t: more for t, more in extra.items() if 0 <= more < math.inf}),
        ("at no setting tried on", {table: more for table, more in extra.items() if more == math.inf}),
    ):
        if chosen:
            each = [f"{_short(t)} ({signed(more)})" if more < math.inf else _short(t) for t, more in chosen.items()]
            parts.append(f"{words} {listed(each)}")
    return f"{name} keeps as many {listed(parts)}" if parts else ""


def authors_points(results: Results) -> str:
    """How many of ROCERF's points as its authors find them survive, table by table; empty if not measured.

    Their search is one draw of many: where it was drawn several times, the least and the most.
    """
    if results.worst is None:
        return ""
    rows = where(results.worst, setting="published", model="lr", method="rocerf")
    known = rows[rows["validity"].notna()]
    return listed([f"{survived(group)} ({_short(t)})" for t in TABLES if len(group := where(known, dataset=t))])


def survived(draws: pd.DataFrame) -> str:
    """Counts where every draw has as many people, else shares."""
    people, shares = sorted(set(draws["people"])), draws["validity"]
    if len(people) > 1:
        return ends(dict(enumerate(shares)))
    counts = [f"{count:.0f}" for count in sorted({round(share * people[0]) for share in shares})]
    return f"{' to '.join(dict.fromkeys((counts[0], counts[-1])))} of {people[0]:.0f}"


def worst_answer(frontiers: Sequence[Frontier], authors: str = "") -> tuple[str, str]:
    """Who survives rows picked against each point, and what the same costs otherwise."""
    papers, ours = (shares_of(frontiers, "lr", method, "picked") for method in ("rocerf", "retrained"))
    if not papers and not ours:
        return NOT_MEASURED, ""
    verdict = all_work({"ROCERF": papers, "`retrained`": ours}) + _rivals(frontiers, "lr", ours)
    parts = []
    if papers:
        theirs = f" (of the points that the authors' own search finds, on their data: {authors})" if authors else ""
        parts.append(f"{kept('ROCERF', papers)} when the worst 0.5\N{NO-BREAK SPACE}% found are deleted{theirs}")
    if ours:
        more = _premium(frontiers, "lr", "retrained", "rocerf")
        parts.append(kept("`retrained`", ours) + (f" at {more} the cost of ROCERF" if more else ""))
    others = [compared(CALLED[m], extra_costs(frontiers, "lr", m, "retrained", "picked")) for m in ("margin", "rocerf")]
    return f"{verdict}.", "; ".join([*parts, *filter(None, others)]) + "."


def _rivals(frontiers: Sequence[Frontier], model: str, ours: Mapping[str, float]) -> str:
    """Which other methods keep as many as `retrained` for less somewhere; that none does is said too."""
    if not ours or min(ours.values()) < HOLDS:
        return ""
    extra = {m: extra_costs(frontiers, model, m, "retrained", "picked") for m in RIVALS}
    extra = {method: found for method, found in extra.items() if found}
    less = {m: [table for table, more in found.items() if more < 0] for m, found in extra.items()}
    said = [f"{CALLED.get(m, METHODS[m])} on {_tables(tables)}" for m, tables in less.items() if tables]
    if said:
        own = [f.own for f in frontiers if (f.model, f.method) == (model, "retrained") and f.own]
        of_some = any(point.averaged < point.seeds for point in own)  # every setting was tried with these alone
        return f"; as much for less{', in the first seed' if of_some else ''}: {listed(said)}"
    return ", and nothing else tried does as much for less" if extra else ""


def _premium(frontiers: Sequence[Frontier], model: str, ours: str, other: str) -> str:
    """What our method costs over another, both at their own knob, as factors from least to most."""
    factors = []
    for dataset in TABLES:
        pair = [find([*frontiers], dataset=dataset, model=model, method=method) for method in (ours, other)]
        costs = [f.own.l2 for f in pair if f and f.own and math.isfinite(f.own.l2)]
        factors += [costs[0] / costs[1]] if len(costs) == 2 else []
    ends = list(dict.fromkeys(f"{factor:.2f}" for factor in (min(factors), max(factors)))) if factors else []
    return f"{' to '.join(ends)} times" if ends else ""


def network_answer(frontiers: Sequence[Frontier]) -> tuple[str, str]:
    """Networks: random deletions with new starts, then picked rows."""
    random = {m: shares_of(frontiers, "nn", m, "random") for m in ("rocerf", "simulated", "retrained")}
    picked = {m: shares_of(frontiers, "nn", m, "picked") for m in ("rocerf", "simulated", "retrained")}
    if not any(random.values()) and not any(picked.values()):
        return NOT_MEASURED, ""
    names = {"rocerf": "ROCERF", "simulated": "`simulated`", "retrained": "`retrained`"}
    first, second = (all_work({names[m]: shares for m, shares in found.items()}) for found in (random, picked))
    verdict = ". ".join(
        [f"Rows deleted at random: {first}"] * bool(first)
        + [f"Picked rows: {second}{_rivals(frontiers, 'nn', picked['retrained'])}"] * bool(second)
    )
    parts = []
    for kind, words, shares in (
        ("random", "after random deletions and a new start", random),
        ("picked", "without rows that another network picked against each answer", picked),
    ):
        known = [f"{names[m]} {ends(found)}{_seeds(frontiers, m, kind)}" for m, found in shares.items() if found]
        parts += [f"{words} stay valid, by table: {', '.join(known)}"] * bool(known)
        target = "simulated" if kind == "random" else "retrained"
        extra = extra_costs(frontiers, "nn", "margin", target, kind)
        parts += [f"{compared('a constant margin', extra)}, against {names[target]}"] * bool(extra)
    said = "; ".join(parts)
    return f"{verdict}.", f"{said[:1].upper()}{said[1:]}."


def _seeds(frontiers: Sequence[Frontier], method: str, kind: str) -> str:
    """The range over tables and seeds of a network's share, in brackets; empty where there is one seed."""
    own = [f.own for f in frontiers if (f.model, f.method) == ("nn", method) and f.dataset in TABLES and f.own]
    ranges = [getattr(point, f"{kind}_range") for point in own if point.seeds > 1]
    if not ranges:
        return ""
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return f" (over seeds {percent(low)} to {percent(high)})" if low < high else " (in every seed)"


def random_brief(frontiers: Sequence[Frontier]) -> str:
    """ROCERF's share under random deletions and what a constant margin costs for as many, over the tables."""
    shares = shares_of(frontiers, "lr", "rocerf", "random")
    said = f"ROCERF keeps {ends(shares)} of its answers valid{_each(shares)}" if shares else ""
    return _sentence(said, _margins(frontiers, "lr", "rocerf", "random"))


def worst_brief(frontiers: Sequence[Frontier]) -> str:
    """The same of ROCERF and `retrained` under the worst deletions."""
    papers, ours = (shares_of(frontiers, "lr", method, "picked") for method in ("rocerf", "retrained"))
    both = [f"{name} keeps {ends(found)}" for name, found in (("ROCERF", papers), ("`retrained`", ours)) if found]
    more = _premium(frontiers, "lr", "retrained", "rocerf") if papers and ours else ""
    said = f"{listed(both)} of its answers valid{_each(papers, ours)}" if both else ""
    return _sentence(said, f"`retrained` costs {more} as much" if more else "")


def network_brief(frontiers: Sequence[Frontier]) -> str:
    """Shares by table of ROCERF and of ours, rows deleted at random and picked."""
    names = {"rocerf": "ROCERF", "simulated": "`simulated`", "retrained": "`retrained`"}
    parts = []
    for kind, words in (("random", "at random"), ("picked", "picked")):
        shares = {name: shares_of(frontiers, "nn", method, kind) for method, name in names.items()}
        known = [f"{name} {ends(found)}" for name, found in shares.items() if found]
        parts += [f"{words} {', '.join(known)}"] * bool(known)
    return _sentence(f"Answers kept, by table, rows deleted {'; '.join(parts)}" if parts else "", "")


def _sentence(*parts: str) -> str:
    return "; ".join(filter(None, parts)) + "." if any(parts) else ""


def _each(*shares: Mapping[str, float]) -> str:
    """That a share is that of every table, where it is."""
    known = [found for found in shares if found]
    if all(len(found) == 1 for found in known):
        return ""
    return " on each table" if all(len(set(found.values())) == 1 for found in known) else ", by table"


def _margins(frontiers: Sequence[Frontier], model: str, target: str, kind: str) -> str:
    """What the cheapest constant margin that keeps as many costs, from the least to the most over the tables."""
    extra = extra_costs(frontiers, model, "margin", target, kind)
    known = sorted(more for more in extra.values() if more < math.inf)
    if not known:
        return "no constant margin tried keeps as many" if extra else ""
    near, far = sorted((known[0], known[-1]), key=abs)
    if near * far > 0:
        sizes = " to ".join(dict.fromkeys(signed(abs(more))[1:] for more in (near, far)))
        costs = f"{sizes} {'less' if far < 0 else 'more'} than ROCERF"
    else:
        costs = f"{signed(known[0])} to {signed(known[-1])} against ROCERF"
    some = "" if len(known) == len(extra) else f" on {len(known)} of {len(extra)} tables"
    return f"a constant margin that keeps as many costs {costs}{some}"


def ends(shares: Mapping[Any, float]) -> str:
    """The least and the most of some shares."""
    low, high = percent(min(shares.values())), percent(max(shares.values()))
    return low if low == high else f"{low} to {high}"


def _short(dataset: str) -> str:
    return DATASETS[VARIANT_OF.get(dataset, dataset)].removesuffix(" Credit")


def _tables(names: Sequence[str]) -> str:
    return listed([_short(name) for name in names])
