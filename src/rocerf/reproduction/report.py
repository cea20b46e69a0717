"""The report of `rocerf reproduce`: tables and figures, the paper's values beside ours, on one self-contained page.

Sections are data (:mod:`rocerf.html`) and the page is their rendering; what it says whatever the run is in
``report.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.html import Details, Figure, Heading, Html, Paragraph, Part, Points, Section, Table, joined, report, tag
from rocerf.reproduction.costs import cost_sentence, cost_summary, german_epochs_sentence, reasons_of
from rocerf.reproduction.figures import worst_case_points, write_figures
from rocerf.reproduction.findings import ABOUT_THE_PAPER, own_evidence
from rocerf.reproduction.published import DATASETS, METHODS, MODELS, SETTINGS, shipped
from rocerf.reproduction.run_facts import what_was_run
from rocerf.reproduction.tables import (
    Curve,
    Results,
    Row,
    case_name,
    read_results,
    row_of,
    validity_curves_of,
    where,
    write_tables,
)
from rocerf.reproduction.words import (
    accuracy_sentence,
    as_printed,
    pareto_sentences,
    part_of,
    percent,
    price_sentences,
    theorem_sentences,
    validity_sentences,
    with_error,
    worst_case_sentences,
)
from rocerf.storage.whole_file import write_text

if TYPE_CHECKING:
    import pandas as pd

TEXT = shipped("report.yaml")

#: Rows of a table, some of them titles across it.
Rows = list[Sequence[str] | str]
#: The figure of a name with its caption.
Draw = Callable[[str], Part]


def write_report(folder: Path) -> Path:
    """Write tables, figures and ``report.html`` from the CSV files in a folder; returns where the page is."""
    results = read_results(Path(folder))
    tables = write_tables(results, Path(folder))
    figures = write_figures(results, Path(folder))
    target = Path(folder) / "report.html"
    write_text(target, paper_report(results, tables, figures))
    return target


def paper_report(results: Results, tables: dict[str, pd.DataFrame], figures: dict[str, str]) -> str:
    """The page as text."""
    heading = "Counterfactuals that survive deletion: the paper, reproduced"
    return report("rocerf: the paper, reproduced", heading, sections(results, tables, figures))


def sections(results: Results, tables: dict[str, pd.DataFrame], figures: dict[str, str]) -> list[Section]:
    """What the page shows, in order."""
    curves, pareto = validity_curves_of(results), tables["pareto.csv"]
    draw = _drawn(figures, results, curves)
    parts = {
        "": _lead(results, pareto),
        "What was run": what_was_run(results, curves, TEXT["sittings"]),
        "Accuracy": _accuracy(tables["accuracy.csv"], results),
        "Cost": _costs(tables, results),
        "Validity when rows are deleted at random": _validity(draw, curves, results),
        "Sensitivity to k": _sensitivity(draw, results.sensitivity),
        "Validity under the worst deletion found": _worst_case(draw, results, pareto),
        "Is any baseline better in both validity and cost?": _pareto(pareto),
        "Further measures": _measures(results),
        "Check of Theorems 4.1 and 4.2": _theorem(draw, results.theorem),
        "What we found about the paper's data and code": _findings(results),
    }
    return [Section(title, tuple(found)) for title, found in parts.items()]


def _drawn(figures: dict[str, str], results: Results, curves: Sequence[Curve]) -> Draw:
    counts = sorted({curve.trials for curve in curves})
    deletions = "–".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:])) or "0"
    points = worst_case_points(results)
    words = {
        "trials": f"Each point is the mean over {deletions} deletions.",
        "setting": f"{SETTINGS[points['setting'].iloc[0]]} setting" if len(points) else "",
        **{model: _not_all_answered(curves, model) for model in MODELS},
    }

    def draw(name: str) -> Part:
        file = f"{name}.svg"
        if file not in figures:
            return Paragraph(f"No figure {file}: this run has no results for it.", "note")
        return Figure(name, figures[file], TEXT["captions"][name].format(**words))

    return draw


def _not_all_answered(curves: Sequence[Curve], model: str) -> str:
    """Methods that left people without an answer, with their numbers."""
    some = [
        f"{METHODS[c.method]} {part_of(c.answered, c.people)} ({DATASETS[c.dataset]}, {SETTINGS[c.setting]})"
        for c in curves
        if c.model == model and c.answered < c.people
    ]
    return f"Not everybody was answered by {'; '.join(some)}." if some else "Every method answered everybody."


def _said(sentences: Sequence[str]) -> Points:
    return Points(sentences, "said")


def _grouped(table: pd.DataFrame, names: dict[str, str], key: str, cells: Callable[[Row], list[str]]) -> Rows:
    """Rows of a table under a title for each value of a column."""
    rows: Rows = []
    for value, group in table.groupby(key, sort=False):
        rows += [names[value], *(cells(row) for row in group.to_dict("records"))]
    return rows


def _lead(results: Results, pareto: pd.DataFrame) -> Iterator[Part]:
    yield Paragraph(joined(Html(TEXT["lead"]), " ", pareto_sentences(pareto)[0]), "lead")
    if results.run.get("preset") == "quick":
        yield Paragraph(Html(TEXT["quick"]), "note")


def _accuracy(table: pd.DataFrame, results: Results) -> Iterator[Part]:
    def cells(row: Row) -> list[str]:
        counts = [f"{row[f'{key}_denied']:,.0f}" if math.isfinite(row[key]) else "–" for key in SETTINGS]
        return [DATASETS[row["dataset"]], percent(row["paper"]), *(percent(row[key]) for key in SETTINGS), *counts]

    head = ["", "paper", "as published", "corrected", "denied, as published", "denied, corrected"]
    yield Table(head, _grouped(table, MODELS, "model", cells))
    yield _said([accuracy_sentence(row) for row in table.to_dict("records")])
    # Said where it was done: the one network that is not trained as long as the paper's.
    row = row_of(results.models, setting="published", dataset="german", model="nn")
    epochs = (row or {}).get("epochs", math.nan)
    if isinstance(epochs, int | float) and epochs > 100:
        denied = german_epochs_sentence(results.checks)
        yield Paragraph(TEXT["german_network"].format(epochs=epochs, denied=denied), "note")


def _costs(tables: dict[str, pd.DataFrame], results: Results) -> Iterator[Part]:
    def cells(row: Row) -> list[str]:
        ours = [with_error(row[key], row[f"{key}_se"]) for key in SETTINGS]
        return [METHODS[row["method"]], as_printed(row["paper"], row["paper_se"]), *ours, _gap(row)]

    yield Paragraph(Html(TEXT["cost"]))
    yield Points([joined(tag("b", key), f" {text}") for key, text in reasons_of(results).items()], "said notes")
    for norm, (model, name) in product(("l2", "l1"), MODELS.items()):
        table = tables[f"cost_{norm}_{model}.csv"]
        yield Heading(f"{norm.upper()} cost, {name}")
        if norm == "l1":
            yield Paragraph("L1 norms of the points found for L2, as in the paper.")
        head = ["", "paper", "as published", "corrected", "as published − paper"]
        yield Table(head, _grouped(table, DATASETS, "dataset", cells))
        yield Paragraph(cost_summary(table, model, norm))
        sentences = [cost_sentence(row, model, norm, results.checks) for row in table.to_dict("records")]
        yield Details("Each of them", [_said(sentences)], unfolded=norm == "l2")


def _gap(row: Row) -> str:
    sides = {"within": "within the spread", "higher": "above the spread", "lower": "below the spread"}
    if row["published_verdict"] not in sides:
        return "–"
    gap = f"{row['published'] - row['paper']:+.2f}".replace("-", "−")
    return f"{gap}, {sides[row['published_verdict']]}"


def _validity(draw: Draw, curves: Sequence[Curve], results: Results) -> Iterator[Part]:
    yield draw("validity_lr")
    yield draw("validity_nn")
    absent = [
        f"{METHODS[row['method']]} ({case_name(row['dataset'], row['model'], row['setting'])})"
        for row in results.methods[results.methods["answered"] == 0].to_dict("records")
    ]
    if absent:
        yield Paragraph(f"Without a curve, since nobody was answered: {', '.join(absent)}.")
    yield _said(validity_sentences(curves, results.methods))
    yield Paragraph("The paper's figures have no numbers; its other curves cannot be compared by value.", "small")
    for model, name in MODELS.items():
        shown = [curve for curve in curves if curve.model == model]
        if shown:
            largest = percent(max(error for curve in shown for error in curve.errors))
            note = Paragraph(TEXT["validity_numbers"].format(largest=largest), "small")
            yield Details(f"All numbers, {name}", [_validity_table(shown), note])


def _validity_table(curves: Sequence[Curve]) -> Table:
    alphas = sorted({alpha for curve in curves for alpha in curve.alphas})
    rows: Rows = []
    for (setting, dataset), group in groupby(curves, lambda curve: (curve.setting, curve.dataset)):
        rows.append(f"{DATASETS[dataset]}, {SETTINGS[setting]}")
        for curve in group:
            own, everybody = (
                [percent(by_alpha.get(alpha, math.nan)) for alpha in alphas]
                for means in (curve.means, curve.means_all)
                for by_alpha in [dict(zip(curve.alphas, means, strict=True))]
            )
            rows.append([METHODS[curve.method], part_of(curve.answered, curve.people), *everybody])
            if curve.answered < curve.people:
                rows.append(["of those answered", "", *own])
    return Table(["", "answered", *(f"α = {100 * alpha:g} %" for alpha in alphas)], rows)


def _sensitivity(draw: Draw, table: pd.DataFrame | None) -> Iterator[Part]:
    yield draw("sensitivity")
    if table is None:
        return
    held = table[table["alpha"] <= table["k_share"]]["validity"]
    if len(held):
        full, lowest = int((held >= 1).sum()), percent(float(held.min()), 2)
        yield Paragraph(TEXT["sensitivity"].format(full=full, cases=len(held), lowest=lowest))
    rows: Rows = []
    for dataset, part in table.groupby("dataset", sort=False):
        rows.append(DATASETS[dataset])
        for share, group in part.groupby("k_share"):
            size = f"{100 * share:g} % ({group['k'].iloc[0]:,.0f} rows)"
            rows.append([size, f"{group['l2'].iloc[0]:.2f}", percent(float(group["validity"].min()))])
    yield Table(["k", "mean L2 cost", "lowest average validity"], rows)


def _worst_case(draw: Draw, results: Results, pareto: pd.DataFrame) -> Iterator[Part]:
    yield draw("worst_case")
    points, compared = worst_case_points(results), price_sentences(pareto)
    if len(points):
        yield Paragraph("The comparison that the paper did not make. Points that survive, of those searched:")
        yield _said(worst_case_sentences(points))
    if compared:
        yield Paragraph("The paper's constraint and retraining in the loop, side by side:")
        yield _said(compared)


def _pareto(table: pd.DataFrame) -> Iterator[Part]:
    def cells(row: Row) -> list[str]:
        judged = "ours" if row["role"] == "ours" else row["dominates_ours"] or "not judged"
        validity, cost = percent(row["worst_validity"], 2), with_error(row["l2"], row["l2_se"])
        answered, survive = part_of(row["answered"], row["people"]), percent(row["worst_case_validity"], 0)
        return [METHODS[row["method"]], validity, cost, answered, survive, judged]

    verdict, sentences = pareto_sentences(table)
    yield Paragraph(Html(TEXT["pareto"]))
    yield Paragraph(tag("b", verdict))
    if len(table):
        keyed = table.assign(case=table["dataset"] + " " + table["model"])
        names = {f"{d} {m}": f"{DATASETS[d]}, {MODELS[m]}" for d in DATASETS for m in MODELS}
        head = ["", "validity at the worst α", "mean L2 cost", "answered"]
        head += ["survive the worst found", "better than ours in both"]
        yield Table(head, _grouped(keyed, names, "case", cells))
    yield _said(sentences)


def _measures(results: Results) -> Iterator[Part]:
    rows: Rows = []
    for setting, dataset, model in product(SETTINGS, DATASETS, MODELS):
        found = where(results.methods, setting=setting, dataset=dataset, model=model).to_dict("records")
        known = [row for method in METHODS for row in found if row["method"] == method]
        if known:
            rows.append(case_name(dataset, model, setting))
            rows += [[METHODS[row["method"]], *_measure_cells(row)] for row in known]
    yield Paragraph(TEXT["measures"])
    head = ["", "without recourse", "cost over plain", "columns changed", "distance to data", "time a person"]
    yield Table(head, rows)


def _measure_cells(row: Row) -> list[str]:
    without = 1 - row["answered"] / row["people"] if row["people"] else math.nan
    numbers = {"cost_over_plain": ".2f", "changed": ".1f", "distance_to_data": ".2f"}
    shown = [f"{row[name]:{form}}" if math.isfinite(row[name]) else "–" for name, form in numbers.items()]
    return [percent(without), *shown, _seconds(float(row["seconds_per_person"]) if row["people"] else math.nan)]


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.1f} s" if value >= 1 else f"{1000 * value:.2g} ms" if value < 0.0995 else f"{1000 * value:.0f} ms"


def _theorem(draw: Draw, table: pd.DataFrame | None) -> Iterator[Part]:
    yield draw("theorem")
    if table is not None:
        yield _said(theorem_sentences(table))
        yield Paragraph(TEXT["theorem"])


def _findings(results: Results) -> Iterator[Part]:
    yield Paragraph("Stated with the evidence, so that it can be checked.")
    yield Points([joined(tag("b", title), f" {text}") for title, text in ABOUT_THE_PAPER.items()])
    own = own_evidence(results)
    if own:
        yield Paragraph("From this run:")
        yield _said(own)
