"""Writes the measured tables of README.md and of the docs from docs/results, so that no figure is typed.

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
        paper = paper_network_cost(key, "rocerf")
        said.append(f"{lowest:.1%} on {NAMES[key]} at a mean cost of {row['l2']:.2f} (the paper prints {paper})")
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
        f"{speed['passes_a_person']:.0f} gradient passes over the rows a person ({later_ms:.0f} ms). Proof: for every "
        f"deletion of at most {proven['k']} of Adult's rows the certified drop of the score is "
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


#: The methods shown for networks: how they are called, and what the paper calls them where it has them.
NETWORK_METHODS = {
    "scfe": ("none (SCFE)", "scfe"),
    "local_linear": ("`local_linear`", "rocerf"),
    "first_order (Algorithm 1)": ("`first_order`", ""),
    "simulated, fixed margin": ("`simulated`, one margin for all", ""),
    "simulated": ("`simulated`", ""),
}


def paper_network_cost(table: str, method: str) -> str:
    """The L2 cost that the paper prints for a network, or a dash."""
    from rocerf.reproduction.published import COSTS

    return f"{COSTS['l2']['nn'][method][table].mean:.2f}" if method else "-"


def networks_table() -> str:
    """Cost and validity of every method on networks that are really retrained, for docs/networks.md."""
    measured = record("networks")
    lines = [
        _row("table", "people", "promise", "mean cost", "the paper's cost", "valid, 0.5 % deleted", "2 %", "5 %"),
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in ("german", "compas", "adult"):
        for method, (label, theirs) in NETWORK_METHODS.items():
            row = measured[key]["methods"][method]
            shown = (NAMES[key], str(measured[key]["people"])) if method == "scfe" else ("", "")
            shares = [f"{row['validity'][share][0]:.1%}" for share in ("0.005", "0.02", "0.05")]
            cost = f"{row['l2']:.3f}"
            lines.append(_row(*shown, label, cost, paper_network_cost(key, theirs), *shares))
    return "\n".join([*lines, "", _network_speed(), "", *_picked_rows()]) + "\n"


#: The methods shown under picked deletions.
PICKED_METHODS = {
    "scfe": "none (SCFE)",
    "roar": "ROAR",
    "cchvae": "C-CHVAE",
    "rocerf": "`local_linear` (the paper's)",
    "first_order": "`first_order`",
    "simulated": "`simulated`",
    "retrained": "`retrained`",
}


def _picked_rows() -> list[str]:
    """Cost and share accepted of every method where rows are picked to harm each point."""
    measured = record("picked_networks")
    lines = [
        _row("table", "promise", "people", "mean cost", "random rows", "picked by the model", "by others", "thorough"),
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in ("german", "compas", "adult"):
        for method, label in PICKED_METHODS.items():
            row = measured[key]["methods"].get(method)
            if row is None:
                continue
            shown = NAMES[key] if method == "scfe" or (key == "adult" and method == "roar") else ""
            others = min(row[judge]["accepted"] for judge in ("outsider_1", "outsider_2") if judge in row)
            thorough = f"{row['thorough']['accepted']:.1%}" if "thorough" in row else "-"
            figures = (f"{row['l2']:.3f}", f"{row['random']:.1%}", f"{row['itself']['accepted']:.1%}")
            lines.append(_row(shown, label, str(row["answered"]), *figures, f"{others:.1%}", thorough))
    return lines


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
        f"All row effects of {curvature['parameters']:,} parameters and {curvature['rows']:,} rows in "
        f"{curvature['ours']['whole']:.0f} s on one core: {curvature['curvlinops']['dense_ratio']:.0f} times faster "
        f"than curvlinops' dense route, {curvature['plain_loop']['ratio']:.1f} times faster than a plain loop over the "
        "rows."
    )


def reproduction_tables() -> str:
    """What the paper's full run measured, for docs/reproduction.md: the words are those of its report."""
    from rocerf.reproduction import costs as paper_costs
    from rocerf.reproduction import findings as paper_findings
    from rocerf.reproduction import words
    from rocerf.reproduction.tables import pareto_table, read_results, validity_curves_of

    results = read_results(ROOT / REPRODUCTION)
    curves, pareto = validity_curves_of(results), pareto_table(results)
    verdict, _ = words.pareto_sentences(pareto)
    assert results.theorem is not None
    parts = [
        "## What was run",
        _sessions(results.run),
        "## Cost, as published",
        "Mean L2 cost ± standard error over the people who were answered; **bold**: farther from the paper's than "
        "twice both standard errors combined.",
        _cost_table(results),
        *(f"{name.capitalize()}: {paper_costs.cost_summary(_costs(results, m), m)}" for m, name in MODELS.items()),
        "What bears on the differences; that it explains all of them is not claimed:",
        _bullets(f"**{key}** {text}" for key, text in paper_costs.reasons_of(results).items()),
        *_not_enough(paper_costs.unexplained_sentences(results)),
        "## Validity, rows deleted at random",
        "Shares are of all denied people, as in the paper; whoever got no answer has no valid one.",
        _figure("validity_lr", "Logistic regression: average validity by share of deleted rows"),
        _figure("validity_nn", "Networks: average validity by share of deleted rows"),
        _bullets(words.validity_sentences(curves, results.methods)),
        "## The corrected setting: cost and validity",
        "Validity is the lowest mean over the shares of rows deleted at random, of all denied people (in brackets: of "
        'those who were answered, where not all were); "survive" is about the worst deletion '
        "of k rows that our search found (logistic regression only). A method beats ours if it is at least as good in "
        "validity and cost and better in one.",
        _pareto(pareto),
        f"**{verdict}**",
        _figure("worst_case", "Survival of the worst deletion found against cost"),
        _bullets(words.price_sentences(pareto)),
        "## Sensitivity to k, and the theorems",
        _figure("sensitivity", "Validity of the paper's method for several k"),
        _figure("theorem", "Extra cost against k/n, and the bounds of Theorems 4.1 and 4.2"),
        _bullets(words.theorem_sentences(results.theorem)),
        "## Findings about the paper's data and code",
        _bullets(f"**{title}** {text}" for title, text in paper_findings.ABOUT_THE_PAPER.items()),
        "From this run:",
        _bullets(paper_findings.check_sentences(results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _not_enough(sentences: list[str]) -> list[str]:
    return (
        ["Where what was measured does not carry as far as the paper's value:", _bullets(sentences)]
        if sentences
        else []
    )


#: The folder of the recorded run, and how its models and data sets are called on the page.
REPRODUCTION = "docs/results/reproduction"
MODELS = {"lr": "logistic regression", "nn": "networks"}


def _costs(results: Any, model: str) -> Any:
    from rocerf.reproduction.tables import cost_table

    return cost_table(results, "l2", model)


def _cost_table(results: Any) -> str:
    from rocerf.reproduction.words import as_printed, with_error

    lines = [
        _row("table", "method", "paper, logistic", "here", "paper, network", "here"),
        "|---|---|---|---|---|---|",
    ]
    tables = {
        model: {(row["dataset"], row["method"]): row for row in _costs(results, model).to_dict("records")}
        for model in MODELS
    }
    for (dataset, method), logistic in tables["lr"].items():
        cells = []
        for row in (logistic, tables["nn"].get((dataset, method))):
            if row is None or not row["published_verdict"]:
                break
            ours = with_error(row["published"], row["published_se"])
            part = row["published_answered"] < row["published_people"]
            answered = f" ({row['published_answered']:,.0f} of {row['published_people']:,.0f})" if part else ""
            ours = ours if row["published_verdict"] == "within" else f"**{ours}**"
            cells += [as_printed(row["paper"], row["paper_se"]), ours + answered]
        if cells:
            lines.append(_row(NAMES[dataset], METHODS[method], *cells))
    return "\n".join(lines)


METHODS = {
    "scfe": "SCFE",
    "cchvae": "C-CHVAE",
    "roar": "ROAR",
    "rocerf": "ROCERF, the paper's",
    "first_order": "`first_order`, all parameters",
    "retrained": "**`retrained`**",
    "simulated": "**`simulated`**",
}


def _pareto(table: Any) -> str:
    from rocerf.reproduction.words import percent, with_error

    lines = [
        _row("table", "model", "method", "validity", "mean L2 cost", "survive the worst", "beats ours"),
        "|---|---|---|---|---|---|---|",
    ]
    for row in table.to_dict("records"):
        judged = {"ours": "ours", "first order": row["dominates_ours"], "baseline": row["dominates_ours"]}[row["role"]]
        validity = percent(row["worst_validity"], 2)
        if row["answered"] < row["people"]:
            own = percent(row["worst_validity_answered"], 2)
            validity += f" ({own} of {row['answered']:,.0f} of {row['people']:,.0f})"
        cells = (validity, with_error(row["l2"], row["l2_se"]))
        survive = percent(row["worst_case_validity"], 0)
        lines.append(_row(NAMES[row["dataset"]], MODELS[row["model"]], METHODS[row["method"]], *cells, survive, judged))
    return "\n".join(lines)


def _sessions(run: Any) -> str:
    head = _row("machine", "networks on", "processes", "wall time", "jobs", "torch", "what")
    lines = [head, "|---|---|---|---|---|---|---|"]
    for part in run["sessions"]:
        seconds = part["wall_seconds"]
        wall = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
        torch = part.get("versions", {}).get("torch", "not recorded")
        note = part.get("note", "")
        cells = (part["machine"], part["device"], str(part["workers"]), wall, str(part["jobs_run"]), torch, note)
        lines.append(_row(*cells))
    return "\n".join(lines)


def _figure(name: str, words: str) -> str:
    return f"![{words}]({REPRODUCTION.removeprefix('docs/')}/{name}.svg)"


def _bullets(sentences: Any) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def raw_columns_table() -> str:
    """The benchmarks on raw columns: rules and retraining, and DiCE on the same task."""
    found = record("actionable")
    lines = [
        _row("raw table, cost", "people", "k", "answered", "survive the worst k found, preprocessing frozen / refitted")
        + " mean cost | without rules | one person, in plain solves |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        table, cost = name.split()
        survive = " / ".join(f"{row[rule]:.0%} of {row['audited']}" for rule in ("frozen", "refitted"))
        people = f"{row['people']:,}" + ("" if row["people"] == row["denied"] else f" of {row['denied']:,}")
        answered = row["statuses"].get("answered", 0)
        cells = (f"{table.capitalize()}, `{cost}`", people, str(row["k"]), str(answered), survive)
        costs = (f"{row['mean_cost']:.3f}", f"{row['mean_cost_unconstrained']:.3f}", f"{row['ratio']:.0f}")
        lines.append(_row(*cells, *costs))
    lines += ["", *_beside_dice()]
    return "\n".join(lines) + "\n"


def _beside_dice() -> Any:
    found = record("dice")
    yield _row("German, 20 attributes", "answered", "rules broken", "accepted today", "after the worst 0.5 %")[:-1] + (
        "| L1 cost | features changed | s a person |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, row in found.items():
        shares = (f"{row['accepted_today']:.0%}", f"{row['accepted_after_the_worst_deletion']:.0%}")
        numbers = (f"{row['mean_cost_l1']:.2f}", f"{row['features_changed']:.1f}", f"{row['seconds_a_person']:.2f}")
        answered = f"{row['answered']} of {row['people']}"
        yield _row(name, answered, str(row["broken_rules"]), *shares, *numbers)


#: What the tasks of benchmarks/own_fits.py are called in the table.
OWN_FITS = {
    "german standardised": "German, raw columns, standardised",
    "german MinMaxScaler": "German, raw columns, `MinMaxScaler`",
    "german C=1e6": "German, raw columns, standardised, `C=1e6`",
    "german raw numbers": "German, raw columns, numbers not scaled",
    "german": "German, prepared, `from_sklearn`",
    "compas": "COMPAS, prepared, `from_sklearn`",
    "adult": "Adult, prepared, `from_sklearn`",
}


def own_fits_table() -> str:
    """Answers that the user's own refit refuses, with and without an allowance for its error."""
    found = record("own_fits")
    lines = [
        _row(
            "fitted by scikit-learn",
            "people",
            "k",
            "largest error",
            "refused, `exact`",
            "refused, `own`",
            "cost, `exact`",
        )
        + " cost, `own` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (name for name in OWN_FITS if name in found):
        row = found[name]
        refused = [f"{row[rule]['refused']} / {row[rule]['refused_whole']}" for rule in ("exact", "own")]
        more = row["own"]["mean_cost"] / row["exact"]["mean_cost"] - 1
        costs = (f"{row['exact']['mean_cost']:.3f}", f"{row['own']['mean_cost']:.3f} (+{more:.1%})")
        cells = (OWN_FITS[name], str(row["people"]), str(row["k"]), f"{row['largest_error']:.2g}")
        lines.append(_row(*cells, *refused, *costs))
    return "\n".join(lines) + "\n"


#: The documents with a table between ``<!-- figures: ... -->`` and ``<!-- /figures -->``.
def registries_table() -> str:
    """What the package registers, for docs/extending.md: names, and one line about each where there is one."""
    from rocerf.baselines.registry import BASELINES
    from rocerf.data.datasets import list_datasets
    from rocerf.passes import RUNNERS
    from rocerf.promises.registry import PROMISES
    from rocerf.recourse.costs.registry import COSTS
    from rocerf.recourse.solvers.solving import SOLVERS
    from rocerf.words import known_languages

    rows = [
        ("promises", [f"`{promise.name}` ({promise.summary})" for promise in PROMISES.values()]),
        ("costs", [f"`{name}`" for name in COSTS]),
        ("solvers", [f"`{solver.name}` ({solver.summary})" for solver in SOLVERS.values()]),
        ("baselines", [f"`{name}`" for name in BASELINES]),
        ("languages", [f"`{code}`" for code in known_languages()]),
        ("runners", [f"`{name}`" for name in RUNNERS]),
        ("data sets", [f"`{info.name}`" for info in list_datasets()]),
    ]
    lines = ["| registry | names |", "|---|---|", *(f"| {what} | {', '.join(names)} |" for what, names in rows)]
    return "\n".join(lines) + "\n"


TABLES = {
    "README.md": promises_table,
    "docs/extending.md": registries_table,
    "docs/promises.md": own_fits_table,
    "docs/schemas.md": raw_columns_table,
    "docs/certificate.md": reach_table,
    "docs/networks.md": networks_table,
    "docs/reproduction.md": reproduction_tables,
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
