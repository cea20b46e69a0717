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
    return "\n".join([*lines, "", _speed_and_reach(), "", _networks()]) + "\n"


def _networks() -> str:
    measured = record("networks")
    said = []
    for key in ("compas", "adult"):
        row = measured[key]["methods"]["simulated"]
        lowest = min(share for share, _ in row["validity"].values())
        paper = PAPER_NETWORK_COSTS[key]["local_linear"]
        said.append(f"{lowest:.1%} on {NAMES[key]} at a mean cost of {row['l2']:.2f} (the paper's method: {paper:.2f})")
    return (
        "Networks ([docs/networks.md](docs/networks.md)), really retrained from new starts after 0.5 to 5 % of the "
        f"rows went: `simulated` points are accepted by at least {' and '.join(said)}."
    )


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


#: The methods shown for networks: how they are called, and the paper's own L2 cost where it has one.
NETWORK_METHODS = {
    "scfe": "none (SCFE)",
    "local_linear": "`local_linear`",
    "first_order (Algorithm 1)": "`first_order`",
    "simulated, fixed margin": "`simulated`, one margin for all",
    "simulated": "`simulated`",
}
PAPER_NETWORK_COSTS = {
    "german": {"scfe": 1.18, "local_linear": 2.76},
    "compas": {"scfe": 0.97, "local_linear": 3.07},
    "adult": {"scfe": 1.00, "local_linear": 4.06},
}


def networks_table() -> str:
    """Cost and validity of every method on networks that are really retrained, for docs/networks.md."""
    measured = record("networks")
    lines = [
        _row("table", "people", "promise", "mean cost", "the paper's cost", "valid, 0.5 % deleted", "2 %", "5 %"),
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in ("german", "compas", "adult"):
        for method, label in NETWORK_METHODS.items():
            row = measured[key]["methods"][method]
            shown = (NAMES[key], str(measured[key]["people"])) if method == "scfe" else ("", "")
            paper = PAPER_NETWORK_COSTS[key].get(method)
            shares = [f"{row['validity'][share][0]:.1%}" for share in ("0.005", "0.02", "0.05")]
            cost = f"{row['l2']:.3f}"
            lines.append(_row(*shown, label, cost, "-" if paper is None else f"{paper:.2f}", *shares))
    return "\n".join([*lines, "", _network_speed()]) + "\n"


def _network_speed() -> str:
    gpu, cpu = record("network_speed_cuda"), record("network_speed_cpu")
    together, curvature = gpu["retraining"], record("curvature_cpu")
    on_gpu, on_cpu = gpu["first_order"], cpu["first_order"]
    return (
        f"Time: {together['networks']} networks of Adult, {together['epochs']} epochs, in "
        f"{together['seconds_together']:.0f} s on one {gpu['device']}, {together['ratio']:.0f} times faster than one "
        f"by one there ({cpu['retraining']['ratio']:.0f} times on one CPU core). `first_order` with all "
        f"{on_gpu['parameters']:,} parameters on Adult, seconds a person: by Algorithm 1 "
        f"{on_gpu['seconds_a_person_penalty']:.2f} on the GPU ({on_gpu['people']} people) and "
        f"{on_cpu['seconds_a_person_penalty']:.2f} on one CPU core ({on_cpu['people']} people), by repeated "
        f"linearisation {on_gpu['seconds_a_person_sequential']:.3f} and {on_cpu['seconds_a_person_sequential']:.2f}. "
        "All row effects of "
        f"{curvature['parameters']:,} parameters and {curvature['rows']:,} rows in "
        f"{curvature['ours']['whole']:.0f} s on one core: "
        f"{curvature['curvlinops']['dense_ratio']:.0f} times faster than curvlinops' dense route, "
        f"{curvature['plain_loop']['ratio']:.1f} times faster than a plain loop over the rows."
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


#: The documents with a table between ``<!-- figures: ... -->`` and ``<!-- /figures -->``.
TABLES = {
    "README.md": promises_table,
    "docs/certificate.md": reach_table,
    "docs/networks.md": networks_table,
}
MARKED = re.compile(r"(<!-- figures:.*?-->\n)(.*?)(<!-- /figures -->)", flags=re.DOTALL)


def main() -> None:
    """Replace what stands between the markers."""
    for name, table in TABLES.items():
        text = (ROOT / name).read_text("utf-8")
        made = MARKED.sub(lambda m, table=table: m[1] + table() + m[3], text)  # type: ignore[misc]
        (ROOT / name).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
