"""What was found about the paper's data and code, stated with the evidence; this run adds its own numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rocerf.reproduction.costs import exchange_sentence
from rocerf.reproduction.published import COSTS, DATASETS, EXCHANGED, METHODS, MODELS, PAPER, SETTINGS, TABLES, shipped
from rocerf.reproduction.tables import over_seeds, row_of, where
from rocerf.reproduction.words import listed, percent

if TYPE_CHECKING:
    from rocerf.reproduction.tables import Results

#: Title and evidence of each.
ABOUT_THE_PAPER: dict[str, str] = {
    title: text.replace("{exchange}", exchange_sentence()) for title, text in shipped("report.yaml")["findings"].items()
}


def own_evidence(results: Results) -> list[str]:
    """What this run adds to the findings, each with its figures."""
    parts = (_labels, _people_behind_errors, _k_cut_off, _search_above_optimum, _exchange, _german_network)
    return [sentence for part in parts for sentence in part(results)]


def _labels(results: Results) -> list[str]:
    said = []
    for model, name in MODELS.items():
        pair = [
            over_seeds(results.models, ("accuracy",), setting=key, dataset="german", model=model) for key in SETTINGS
        ]
        if pair[0] and pair[1]:
            first, second = (percent(row["accuracy"]) for row in pair if row)
            said.append(f"German, {name}: accuracy {first} on the published labels, {second} on the true ones.")
    return said


#: Cells whose printed standard error tells how many people are behind it, with what it is about.
ERRORS = (("lr", "compas"), ("lr", "compas-risk"), ("nn", "german"), ("nn", "adult"))


def _people_behind_errors(results: Results) -> list[str]:
    """How many people a standard error of the paper's takes with the spread that SCFE's costs have here."""
    said = []
    for model, dataset in ERRORS:
        row = row_of(results.methods, setting="published", dataset=dataset, model=model, method="scfe", seed=0)
        if row is None or not row["answered"] > 1:
            continue
        paper = COSTS["l2"][model]["scfe"][dataset.removesuffix("-risk")].standard_error
        needed = row["answered"] * (row["l2_se"] / paper) ** 2
        said.append(
            f"{DATASETS[dataset]}, {MODELS[model]}: SCFE's cost has a standard error of {row['l2_se']:.3f} over "
            f"{row['answered']:,.0f} people here; with the same spread the paper's {paper:g} takes about {needed:,.0f}."
        )
    return said


def _k_cut_off(results: Results) -> list[str]:
    """What k was in either setting."""
    found = {}
    for setting in SETTINGS:
        rows = where(results.methods, setting=setting, model="lr", method="rocerf", seed=0)
        found[setting] = [f"{row['k']:.0f} on {DATASETS[row['dataset']]}" for row in rows.to_dict("records")]
    said = [f"{listed(ks)} {SETTINGS[setting]}" for setting, ks in found.items() if ks]
    return [f"k in this run: {'; '.join(said)}."] if said else []


def _search_above_optimum(results: Results) -> list[str]:
    """How far the authors' search ends above the optimum of the paper's constraint."""
    said = []
    for dataset in TABLES:
        pair = [
            row_of(results.methods, setting="published", dataset=dataset, model="lr", method=method, seed=0)
            for method in ("rocerf", "rocerf_exact")
        ]
        costs = [row["l2"] for row in pair if row and math.isfinite(row["l2"])]
        if len(costs) == 2:
            said.append(f"{costs[0] / costs[1]:.2f} times on {DATASETS[dataset]}")
    return [f"ROCERF by the authors' search costs {listed(said)} what the exact solver's points cost."] if said else []


def _exchange(results: Results) -> list[str]:
    """Our network costs beside those that the paper prints under either name."""
    said = []
    for method in ("scfe", "cchvae"):
        paper = COSTS["l1"]["nn"][method]
        rows = {
            name: over_seeds(results.methods, ("l1",), setting="published", model="nn", method=method, dataset=name)
            for name in EXCHANGED
        }
        costs = [f"{row['l1']:.2f} on {DATASETS[name]}" for name, row in rows.items() if row and row["l1"] > 0]
        if len(costs) == len(EXCHANGED):
            printed = " and ".join(f"{paper[name].mean:.2f}" for name in EXCHANGED)
            said.append(f"{METHODS[method]} {' and '.join(costs)}, and the paper prints {printed}")
    return [f"L1 cost of networks as published: {'; '.join(said)}."] if said else []


def _german_network(results: Results) -> list[str]:
    """How many people German's network denies here, where it is not trained as long as the paper's."""
    row = over_seeds(results.models, ("denied",), setting="published", dataset="german", model="nn")
    epochs = (row or {}).get("epochs", math.nan)
    if row is None or not isinstance(epochs, int | float) or not epochs > 100:
        return []
    low, high = (f"{row[f'denied_{end}']:.0f}" for end in ("low", "high"))
    denied = low if low == high else f"{low} to {high} (by seed)"
    return [
        f"German as published, network: trained for {epochs:.0f} epochs, not the paper's 100, it denies {denied} "
        f"of {row['test_rows']:.0f} test people; the paper's denied {PAPER['german_network_denied']}. After 100 epochs "
        "too few are denied to compare."
    ]
