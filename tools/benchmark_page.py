"""The page of benchmarks: every recorded table with the command that measures it and where it was measured."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Part(NamedTuple):
    """A table: its title, what is measured, the command, its records, and the page that explains it."""

    title: str
    about: str
    command: str
    records: tuple[str, ...]
    explained: str
    table: str


PARTS = (
    Part(
        "What promises cost and what they survive",
        "Logistic regression, the paper's setting: train scaler, C = 1, k = 0.5 % of the rows, L2 cost in "
        "standard deviations. Random: 100 deletions, each exactly retrained. Worst: a thorough adversary with "
        "another seed than the solver's.",
        "make validity && python -m benchmarks.retrained && python -m benchmarks.retrained --rivals && "
        "python -m benchmarks.first_order",
        ("validity", "retrained", "rivals", "first_order"),
        "promises.md",
        "README.md",
    ),
    Part(
        "How hard the search looks",
        "`retrained` answers found with either effort, attacked by two thorough adversaries of other seeds.",
        "python -m benchmarks.retrained --searched-on",
        ("searched_on",),
        "promises.md",
        "searched on",
    ),
    Part(
        "The search against adaptive greedy",
        "Breiman's Waveform, no penalty: the drop of a point's score by true retraining, ours beside the better "
        "of adaptive greedy's two versions.",
        "python -m benchmarks.yardsticks",
        ("yardsticks",),
        "promises.md",
        "yardsticks",
    ),
    Part(
        "The search against a beam of other code",
        "Answers with `retrained`, people of small tables where few rows hold a model up, attacked by a search that "
        "shares no code with the package: sets that grow side by side at retrained models, then exchanges. "
        "*Better* counts people for whom one of the two found a worse set than the other.",
        "python -m benchmarks.own_beam",
        ("own_beam",),
        "promises.md",
        "own beam",
    ),
    Part(
        "Your own refits",
        "Answers refused by scikit-learn's own fit without the worst rows that were found, of the classifier "
        "alone / of the whole pipeline; with (`own`) and without (`exact`) an allowance for its error.",
        "python -m benchmarks.own_fits",
        ("own_fits",),
        "promises.md",
        "docs/promises.md",
    ),
    Part(
        "Scorecards",
        "Bins and weights of evidence by optbinning, `retrained` with the schema's rules and L1 cost; answers refused "
        "by the user's own fit without the worst rows that were found: on the bins as they were, which the promise is "
        "about, and with bins made anew, which it is not.",
        "python -m benchmarks.scorecards",
        ("scorecards",),
        "models.md",
        "scorecards",
    ),
    Part(
        "Raw columns with rules, and DiCE on the same task",
        "Pipelines over raw columns with the schema's rules; then the same task given to DiCE.",
        "python -m benchmarks.actionable && python -m benchmarks.dice",
        ("actionable", "dice"),
        "schemas.md",
        "docs/schemas.md",
    ),
    Part(
        "How far the proof reaches",
        "The certified drop of the score over the worst drop that was found: 1 would be a proof without any slack.",
        "python -m benchmarks.certificate",
        ("certificate",),
        "certificate.md",
        "docs/certificate.md",
    ),
    Part(
        "Networks and boosted trees",
        "Really retrained from new starts: random deletions, rows picked to harm each point, and boosted trees "
        "under picked rows. Few people were asked on Adult's trees.",
        "make networks && make picked && make trees",
        ("networks", "picked_networks", "trees", "network_speed_cpu", "network_speed_cuda", "curvature_cpu"),
        "networks.md",
        "docs/networks.md",
    ),
    Part(
        "A deletion in the ledger",
        "A shared and busy machine: the processor's seconds say more than the clock's.",
        "python -m benchmarks.ledger",
        ("ledger",),
        "ledger.md",
        "docs/ledger.md",
    ),
)


def benchmarks(tables: Mapping[str, Callable[[], str]]) -> str:
    """The page's parts, with the tables that other pages show too."""
    own: dict[str, Callable[[], str]] = {
        "searched on": searched_on,
        "yardsticks": yardsticks,
        "own beam": own_beam,
        "scorecards": scorecards,
    }
    return "\n".join(_part(part, {**tables, **own}[part.table]()) for part in PARTS)


def _part(part: Part, table: str) -> str:
    table = re.sub(r"\[docs/([\w-]+)\.md\]\(docs/", r"[\1](", table)  # as the README has it
    head = f"## {part.title}\n\n{part.about} Explained in [{part.explained.removesuffix('.md')}]({part.explained}).\n"
    made = "\n".join(f"- [{name}.json](results/{name}.json): {_provenance(name)}" for name in part.records)
    details = f'??? info "Measured by"\n\n    `{part.command}`\n\n' + "\n".join(f"    {x}" for x in made.splitlines())
    return f"{head}\n{table}\n{details}\n"


def _record(name: str) -> Any:
    return json.loads((ROOT / "docs/results" / f"{name}.json").read_text("utf-8"))


def _provenance(name: str) -> str:
    record = _record(name)
    versions, machine = record["versions"], record["machine"]
    said = [f"rocerf {versions['rocerf']}, Python {versions['python']}, NumPy {versions['numpy']}"]
    said.append(f"seed {record['seed']}, {machine['cpus']} processors")
    device = record["measured"].get("device") if isinstance(record["measured"], dict) else None
    return "; ".join([*said, *([str(device)] if device else [])])


def searched_on() -> str:
    """Answers of both efforts under two thorough adversaries."""
    lines = [
        "| table | effort | answered | mean cost | survive the two adversaries | lowest score | processor s a person |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in _record("searched_on")["measured"].items():
        if name == "audit_seeds":
            continue
        for effort in ("normal", "thorough"):
            found = row[effort]
            survive = " and ".join(f"{count} of {found['answered']}" for count in found["survive"])
            cells = (name, effort, f"{found['answered']} of {row['denied']}", f"{found['mean_cost']:.3f}", survive)
            numbers = (f"{found['lowest_score']:.4f}", f"{found['processor_seconds_a_person']:.2f}")
            lines.append("| " + " | ".join((*cells, *numbers)) + " |")
    return "\n".join(lines) + "\n"


def yardsticks() -> str:
    """The adversary's drops beside those of adaptive greedy."""
    waveform = _record("yardsticks")["measured"]["waveform"]
    lines = [
        "| k | mean drop, adaptive greedy | normal: at least that | mean drop | thorough: at least that | mean drop |",
        "|---|---|---|---|---|---|",
    ]
    for row in waveform["by_k"]:
        cells = [str(row["k"]), f"{row['greedy_mean_drop']:.4f}"]
        for effort in ("normal", "thorough"):
            found = row[effort]
            cells += [f"{found['at_least_greedy']} of {row['points']}", f"{found['mean_drop']:.4f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def own_beam() -> str:
    """How many answers fell to a search of other code, for each table and penalty, over all numbers of deletions."""
    rows = _record("own_beam")["measured"]["rows"]
    asked = " and ".join(
        [", ".join(str(k) for k in sorted({row["k"] for row in rows})[:-1]), str(max(r["k"] for r in rows))]
    )
    lines = [
        f"| table | rows x columns | C | answers, k = {asked} | fell | better: ours | the other | s a person |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, C in dict.fromkeys((row["table"], row["C"]) for row in rows):
        own = [row for row in rows if (row["table"], row["C"]) == (name, C)]
        total = {
            key: sum(row[key] for row in own) for key in ("answered", "fell", "beam_found_less", "adversary_found_less")
        }
        seconds = sum(row["processor_seconds_a_person"] for row in own) / len(own)
        size = f"{own[0]['rows']:,} x {own[0]['columns']}"
        cells = (name, size, f"{C:g}", *(str(count) for count in total.values()), f"{seconds:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def scorecards() -> str:
    """How many people have an answer, and how many answers the user's own refits refuse."""
    lines = [
        "| table | people | k | answered | largest error of the own fit | refused, bins as they were | bins made anew "
        "| mean cost | processor s a person |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in _record("scorecards")["measured"].items():
        own = row["own"]
        reasons = [f"{n} {why.lower().replace('_', ' ')}" for why, n in row["statuses"].items() if why != "ANSWERED"]
        answered = f"{own['answered']}" + (f" ({', '.join(reasons)})" if reasons else "")
        cells = (name.partition(" ")[0].capitalize(), str(row["people"]), str(row["k"]), answered)
        refused = (f"{row['largest_error']:.2g}", str(own["refused"]), str(own["refused_whole"]))
        numbers = (f"{own['mean_cost']:.3f}", f"{own['cpu_seconds'] / row['people']:.2f}")
        lines.append("| " + " | ".join((*cells, *refused, *numbers)) + " |")
    return "\n".join(lines) + "\n"
