"""The page of a portfolio: sentences, tables and pictures of what :mod:`rocerf.evaluation.portfolio` found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocerf.drawing import canvas, svg_text
from rocerf.html import Figure, Html, Paragraph, Section, Table, joined, report, tag

if TYPE_CHECKING:
    from rocerf.evaluation.portfolio import GroupRow, Portfolio

BLUE, ORANGE = "#0072B2", "#E69F00"

#: Changes shown.
MOST_CHANGES = 12

#: What the picture of the groups shows, where deletions were tried and where not.
_GROUPS_PICTURE = {True: "Mean cost and survival by group.", False: "Mean cost by group."}


def portfolio_page(seen: Portfolio) -> str:
    """The whole page."""
    sections = [_summary(seen), _without(seen), _groups(seen), _changes(seen), _broken(seen)]
    heading = f"{seen.asking} refused people: what they are told, what it costs, what breaks it"
    return report("Portfolio", heading, [section for section in sections if section is not None])


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def portfolio_summary(seen: Portfolio) -> Html:
    """What stands at the head of the page, for notebooks; the groups as a table."""
    said = [tag("p", line) for line in _lines(seen)]
    groups = _groups(seen)
    return joined(*said, *([] if groups is None else [groups.parts[0].html()]))


def _lines(seen: Portfolio) -> list[str]:
    cost = "" if seen.cost is None else f" at a mean cost of {seen.cost:.2f}"
    tested = (
        f"{_share(seen.survived, seen.answered)} of these answers survived every deletion that was tried here: the "
        "worst found for each of them, and the worst found for the others. This was tested, not proven."
        if seen.tried
        else "No deletion was tried here, so nothing is said of what these answers survive."
    )
    return [
        f"{_share(seen.answered, seen.asking)} of the refused have a recourse{cost}, under the promise "
        f"“{seen.promise}” about {seen.k} of {seen.rows} training rows.",
        tested + (f" {seen.proven} are proven besides." if seen.proven else ""),
    ]


def _summary(seen: Portfolio) -> Section:
    parts = [Paragraph(line, "lead") for line in _lines(seen)]
    picture = [Figure("costs", _drawn_costs(seen.costs), "What answers cost: people by cost.")] if seen.costs else []
    return Section("", [*parts, *picture])


def _without(seen: Portfolio) -> Section | None:
    if not seen.without:
        return Section("Who has no recourse", [Paragraph("Everybody who was refused has one.")])
    rows = [(reason, str(count)) for reason, count in seen.without]
    return Section("Who has no recourse, and why", [Table(("reason", "people"), rows, "facts")])


def _groups(seen: Portfolio) -> Section | None:
    if not seen.groups:
        return None
    head = ("group", "refused", "with a recourse", "mean cost", "answers that survived")
    shown = len(head) if seen.tried else len(head) - 1
    rows: list[Sequence[str] | str] = []
    for name in dict.fromkeys(row.attribute for row in seen.groups):
        rows.append(name)
        rows += [
            (row.group, str(row.refused), _share(row.answered, row.refused), _number(row.cost),
             _share(row.survived, row.answered))[:shown]
            for row in seen.groups
            if row.attribute == name
        ]  # fmt: skip
    figure = Figure("groups", _drawn_groups(seen.groups, seen.tried), _GROUPS_PICTURE[seen.tried])
    return Section("By group", [Table(head[:shown], rows), figure])


def _changes(seen: Portfolio) -> Section | None:
    if not seen.changes:
        return None
    figure = Figure(
        "changes", _drawn_changes(seen.changes, seen.answered), "Attributes by how many answers change them."
    )
    return Section("What is asked for most often", [figure])


def _broken(seen: Portfolio) -> Section | None:
    if not seen.broken:
        return None
    rows, most = seen.broken[0]
    line = (
        f"The worst deletion found, of {rows} training {'row' if rows == 1 else 'rows'}, breaks "
        f"{_share(most, seen.answered)} of the letters. {len(seen.broken)} deletions were held against all of them, "
        "each really retrained; others may be worse."
    )
    harmful = [(str(count), str(broken)) for count, broken in seen.broken[:10] if broken]
    tables = [Table(("rows deleted", "letters broken"), harmful)] if harmful else []
    return Section("How many letters one deletion can break", [Paragraph(line), *tables])


def _drawn_costs(costs: Sequence[float]) -> str:
    with canvas(8.6, 2.6) as (figure, (axes,)):
        axes.hist(costs, bins=min(20, max(5, len(costs) // 3)), color=BLUE, edgecolor="white")
        axes.set_xlim(left=0)
        axes.set_xlabel("cost of the change")
        axes.set_ylabel("people")
        return svg_text(figure)


def _drawn_groups(groups: Sequence[GroupRow], tried: bool) -> str:
    labels = [f"{row.attribute}: {row.group}" for row in groups]
    places = range(len(groups))
    with canvas(9.6, 1.2 + 0.34 * len(groups), panels=2 if tried else 1) as (figure, (left, *right)):
        left.barh(places, [row.cost or 0.0 for row in groups], color=BLUE)
        left.set_xlabel("mean cost")
        shares = [100 * row.survived / row.answered if row.answered else 0.0 for row in groups]
        for axes in right:
            axes.barh(places, shares, color=ORANGE)
            axes.set_xlabel("answers that survived (%)")
            axes.set_xlim(0, 100)
        left.set_yticks(places, [label if len(label) < 60 else label[:57] + "…" for label in labels], fontsize=8)
        left.invert_yaxis()
        return svg_text(figure)


def _drawn_changes(changes: Sequence[tuple[str, int]], answered: int) -> str:
    shown = changes[:MOST_CHANGES]
    with canvas(8.6, 1.0 + 0.34 * len(shown)) as (figure, (axes,)):
        axes.barh(range(len(shown)), [100 * count / max(answered, 1) for _, count in shown], color=BLUE)
        axes.set_yticks(range(len(shown)), [label if len(label) < 60 else label[:57] + "…" for label, _ in shown])
        axes.invert_yaxis()
        axes.set_xlabel("answers that change it (%)")
        return svg_text(figure)
