"""What was found about the paper's data and code, stated with the evidence; this run adds its own numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rocerf.reproduction.costs import exchange_sentence
from rocerf.reproduction.figures import worst_case_points
from rocerf.reproduction.published import COSTS, DATASETS, EXCHANGED, METHODS, MODELS, SETTINGS, shipped
from rocerf.reproduction.tables import row_of, where
from rocerf.reproduction.words import listed, percent, survivors

if TYPE_CHECKING:
    from rocerf.reproduction.tables import Results

#: Title and evidence of each.
ABOUT_THE_PAPER: dict[str, str] = {
    title: text.replace("{exchange}", exchange_sentence()) for title, text in shipped("report.yaml")["findings"].items()
}


def own_evidence(results: Results) -> list[str]:
    """What this run adds to the findings."""
    said = []
    for model, name in MODELS.items():
        pair = [row_of(results.models, setting=key, dataset="german", model=model) for key in SETTINGS]
        if pair[0] and pair[1]:
            first, second = (percent(row["accuracy"]) for row in pair if row)
            said.append(f"German, {name}: accuracy {first} on the published labels, {second} on the true ones.")
    for row in where(worst_case_points(results), method="rocerf").to_dict("records"):
        said.append(
            f"{DATASETS[row['dataset']]}, logistic regression, {SETTINGS[row['setting']]}: {survivors(row)} points of "
            "the paper's method survive the worst deletion found."
        )
    return said + check_sentences(results)


def check_sentences(results: Results) -> list[str]:
    """What the run and the checks beside it say about the baselines as their authors run them."""
    rows = [] if results.checks is None else where(results.checks, check="roar_box").to_dict("records")
    shares = [f"{percent(row['share'])} on {DATASETS[row['dataset']]}" for row in rows if math.isfinite(row["share"])]
    said = (
        "Of ROAR's points, as its authors find them for logistic regression, this share is accepted by every model in "
        f"ROAR's own box (each parameter moved by up to 0.1): {listed(shares)}."
    )
    return [said] * bool(shares) + _compas_errors(results) + _exchange(results)


def _exchange(results: Results) -> list[str]:
    """Our network costs beside those that the paper prints under either name."""
    said = []
    for method in ("scfe", "cchvae"):
        rows = where(results.methods, setting="published", model="nn", method=method)
        ours, paper = dict(zip(rows["dataset"], rows["l1"], strict=True)), COSTS["l1"]["nn"][method]
        if set(EXCHANGED) <= set(ours):
            costs = " and ".join(f"{ours[name]:.2f} on {DATASETS[name]}" for name in EXCHANGED)
            printed = " and ".join(f"{paper[name].mean:.2f}" for name in EXCHANGED)
            said.append(f"{METHODS[method]} {costs}, and the paper prints {printed}")
    return [f"L1 cost of networks as published: {'; '.join(said)}."] if said else []


def _compas_errors(results: Results) -> list[str]:
    """The paper's standard errors on COMPAS are too small for the people that the model denies."""
    row = row_of(results.methods, setting="published", dataset="compas", model="lr", method="scfe")
    if row is None:
        return []
    paper = COSTS["l2"]["lr"]["scfe"]["compas"].standard_error
    needed = row["answered"] * (row["l2_se"] / paper) ** 2
    return [
        f"COMPAS, logistic regression: SCFE's cost has a standard error of {row['l2_se']:.3f} over the "
        f"{row['answered']:.0f} people whom the model denies; the paper's {paper:g} would take about {needed:,.0f} "
        "people with the same spread. With the training file and label of the authors' scripts 550 are denied, and the "
        "standard error is 0.022 (see the findings)."
    ]
