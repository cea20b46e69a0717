"""Writes the README's table of measured figures from docs/results/*.json, so that no figure is typed by hand.

Usage: python tools/readme_figures.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"german": "German", "compas": "COMPAS", "adult": "Adult", "rare groups": "Adult, rare groups"}
HEAD = (
    "| table | people | k | promise | mean cost | accepted, 5 % deleted at random | survive the worst k rows found |\n"
    "|---|---|---|---|---|---|---|\n"
)


def figures() -> str:
    """The table as Markdown."""
    validity = json.loads((ROOT / "docs/results/validity.json").read_text("utf-8"))["measured"]
    survival = json.loads((ROOT / "docs/results/retrained.json").read_text("utf-8"))["measured"]["survival"]
    lines = []
    for key, name in NAMES.items():
        row = survival[key]
        for promise in ("plain", "first_order", "retrained"):
            worst = row[promise]
            random = "-"
            if key in validity:
                random = f"{validity[key][promise]['validity']['0.05'][0]:.1%}"
            shown = (name, f"{row['denied']:,}", str(row["k"])) if promise == "plain" else ("", "", "")
            label = "none (plain counterfactual)" if promise == "plain" else f"`{promise}`"
            cells = (*shown, label, f"{worst['mean_cost']:.3f}", random, f"{worst['survive']} of {worst['answered']}")
            lines.append("| " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Replace what stands between the markers."""
    readme = ROOT / "README.md"
    text = readme.read_text("utf-8")
    pattern = r"(<!-- figures:.*?-->\n).*?(<!-- /figures -->)"
    readme.write_text(re.sub(pattern, lambda m: m[1] + figures() + m[2], text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
