"""Writes the measured tables of README.md and docs/certificate.md from docs/results/*.json, so that no figure is typed.

Usage: python tools/recorded_figures.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"german": "German", "compas": "COMPAS", "adult": "Adult", "rare groups": "Adult, rare groups"}


def record(name: str) -> Any:
    """What a recorded run measured."""
    return json.loads((ROOT / "docs/results" / f"{name}.json").read_text("utf-8"))["measured"]


def promises_table() -> str:
    """Cost and survival of each promise, for the README."""
    validity, survival = record("validity"), record("retrained")["survival"]
    lines = [
        _row(
            "table",
            "people",
            "k",
            "promise",
            "mean cost",
            "accepted, 5 % deleted at random",
            "survive the worst k found",
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for key, name in NAMES.items():
        row = survival[key]
        for promise in ("plain", "first_order", "retrained"):
            worst = row[promise]
            random = f"{validity[key][promise]['validity']['0.05'][0]:.1%}" if key in validity else "-"
            shown = (name, f"{row['denied']:,}", str(row["k"])) if promise == "plain" else ("", "", "")
            label = "none (plain counterfactual)" if promise == "plain" else f"`{promise}`"
            survive = f"{worst['survive']} of {worst['answered']}"
            lines.append(_row(*shown, label, f"{worst['mean_cost']:.3f}", random, survive))
    return "\n".join([*lines, "", _speed_and_reach()]) + "\n"


def _speed_and_reach() -> str:
    call, speed = record("first_order")["call"], record("retrained")["speed"]
    proven = next(r for r in record("certificate")["rows"] if (r["table"], r["k"], r["C"]) == ("adult", 181, 1.0))
    first_ms, later_ms = call["milliseconds_a_person"], speed["milliseconds_a_person"]
    return (
        f"Time: all {call['people']:,} denied people of Adult get `first_order` in one call, {call['floors']:.1f} "
        f"times the floor of the arithmetic ({first_ms:.2f} ms a person on two cores); `retrained` takes "
        f"{speed['passes_a_person']:.0f} gradient passes over the rows a person "
        f"({later_ms:.0f} ms). "
        f"Proof: for every deletion of at most {proven['k']} of Adult's rows the certified drop of the score is "
        f"{proven['ratio']['median']:.2f} times the worst one found (median)."
    )


def reach_table() -> str:
    """How far the proof reaches, for docs/certificate.md."""
    lines = [
        "| table | k | C | version | certified / found drop: median (min..max) | seconds | peak MB | asking, ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record("certificate")["rows"]:
        cost = (f"{row['seconds']:.1f}", f"{row['peak_megabytes']:.0f}")
        head = (NAMES[row["table"]], str(row["k"]), f"{row['C']:g}")
        if row["closed"]:
            ratio = row["ratio"]
            shown = f"{ratio['median']:.3f} ({ratio['min']:.3f}..{ratio['max']:.3f})"
            lines.append(_row(*head, row["version"], shown, *cost, f"{row['milliseconds_a_person']:.1f}"))
        else:
            lines.append(_row(*head, "abstains", row["reason"], *cost, "-"))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


#: The documents with a table between ``<!-- figures: ... -->`` and ``<!-- /figures -->``.
TABLES = {"README.md": promises_table, "docs/certificate.md": reach_table}
MARKED = re.compile(r"(<!-- figures:.*?-->\n)(.*?)(<!-- /figures -->)", flags=re.DOTALL)


def main() -> None:
    """Replace what stands between the markers."""
    for name, table in TABLES.items():
        text = (ROOT / name).read_text("utf-8")
        made = MARKED.sub(lambda m, table=table: m[1] + table() + m[3], text)  # type: ignore[misc]
        (ROOT / name).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
