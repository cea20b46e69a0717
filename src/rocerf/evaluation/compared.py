"""A comparison as a table: what terminals and notebooks show of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rocerf.html import Html, Table, joined, tag

if TYPE_CHECKING:
    from rocerf.evaluation.compare import Comparison

#: 80 columns hold it unbroken.
COLUMNS = ("method", "answered", "L2", "L1", "random", "of all", "worst", "s")


def caption(found: Comparison) -> str:
    """What the columns mean."""
    return (
        f"{found.people} refused people. % still accepted when {found.k} of {found.training_rows} rows are deleted: "
        f"at random ({found.trials} times, ± standard error; of those answered, and of all), and by the worst deletion "
        "found (of those answered); L2, L1: mean costs; s: seconds a person"
    )


def lines(found: Comparison) -> list[Sequence[str]]:
    """A line for each method that could be run, in the order of COLUMNS."""
    return [_line(row) for row in found.rows if not row["failure"]]


def _line(row: dict[str, Any]) -> Sequence[str]:
    shares = [row[name] for name in ("validity", "validity_all", "worst_case_validity")]
    shown = ["" if share is None else f"{100 * share:.1f}" for share in shares]
    shown[0] += "" if row["validity_se"] is None else f" ± {100 * row['validity_se']:.1f}"
    costs = [f"{row['l2']:.3g}", f"{row['l1']:.3g}"] if row["answered"] else ["", ""]
    return row["method"], f"{row['answered']}/{row['people']}", *costs, *shown, f"{row['seconds_per_person']:.2g}"


def comparison_html(found: Comparison) -> Html:
    """The table as a notebook shows it, with what could not be run below."""
    failed = [tag("p", f"{row['method']}: {row['failure']}") for row in found.rows if row["failure"]]
    return joined(tag("p", caption(found)), Table(COLUMNS, lines(found)).html(), *failed)
