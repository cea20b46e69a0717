"""The report of `rocerf reproduce`: the answer first, then the curves, the tables, the claims and what was run.

Sections are data (:mod:`rocerf.html`) and the page is their rendering; what it says whatever the run is in
``report.yaml``. Tables that are more than a list of cells are in :mod:`rocerf.reproduction.report_tables`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.html import Details, Figure, Heading, Html, Paragraph, Part, Points, Section, Table, joined, report, tag
from rocerf.reproduction.answers import HOLDS, answers
from rocerf.reproduction.claims import claims
from rocerf.reproduction.costs import cost_summary, outside_sentences
from rocerf.reproduction.curve_figures import draw_curves, panel_words, panels_of
from rocerf.reproduction.figures import write_figures
from rocerf.reproduction.findings import ABOUT_THE_PAPER, own_evidence
from rocerf.reproduction.frontier import Frontier, frontiers_of
from rocerf.reproduction.published import DATASETS, METHODS, MODELS, SETTINGS, shipped
from rocerf.reproduction.report_tables import (
    RIVALS,
    accuracy_rows,
    beaten_rows,
    claim_rows,
    cost_rows,
    measure_rows,
    sensitivity_rows,
    sweep_rows,
    validity_rows,
    worst_rows,
    write_tables,
)
from rocerf.reproduction.run_facts import what_was_run
from rocerf.reproduction.tables import Curve, Results, case_name, read_results, validity_curves_of
from rocerf.reproduction.words import accuracy_sentence, part_of, percent, theorem_sentences
from rocerf.storage.whole_file import write_text

if TYPE_CHECKING:
    import pandas as pd

TEXT = shipped("report.yaml")

#: The figure of a name with its caption.
Draw = Callable[[str], Part]


def write_report(folder: Path) -> Path:
    """Write tables, figures and ``report.html`` from the CSV files in a folder; returns where the page is."""
    results = read_results(Path(folder))
    tables = write_tables(results, Path(folder))
    figures = write_figures(results, Path(folder)) | panel_drawings(frontiers_of(results))
    target = Path(folder) / "report.html"
    write_text(target, paper_report(results, tables, figures))
    return target


def panel_drawings(frontiers: Sequence[Frontier]) -> dict[str, str]:
    """Each panel of the curves as a drawing of its own, by the name it has on the page."""
    return {
        panel_name(model, *panel): draw_curves(frontiers, model, [panel])
        for model in MODELS
        for panel in panels_of(frontiers, model)
    }


def panel_name(model: str, dataset: str, kind: str) -> str:
    """How a panel is called on the page."""
    return f"curves-{model}-{dataset}-{kind}"


def paper_report(results: Results, tables: dict[str, pd.DataFrame], figures: dict[str, str]) -> str:
    """The page as text."""
    heading = "Do counterfactuals survive deletion? ROCERF, reproduced"
    return report("rocerf: the paper, reproduced", heading, sections(results, tables, figures))


def sections(results: Results, tables: dict[str, pd.DataFrame], figures: dict[str, str]) -> list[Section]:
    """What the page shows, in order."""
    curves, frontiers = validity_curves_of(results), frontiers_of(results)
    draw = _drawn(figures, curves)
    parts = {
        "": _lead(results),
        "Validity against cost": _curves(frontiers, tables["beaten.csv"], figures),
        "Cost, beside the paper's": _costs(tables),
        "Accuracy": _accuracy(tables["accuracy.csv"]),
        "Validity as more rows are deleted at random": _validity(draw, curves, results),
        "The worst deletions": _worst_case(results),
        "The paper's claims, one by one": _claims(results, curves),
        "Sensitivity to k": _sensitivity(draw, results.sensitivity),
        "Theorems 4.1 and 4.2": _theorem(draw, results.theorem),
        "What we found about the paper's data and code": _findings(results),
        "Further measures": _measures(results),
        "What was run": what_was_run(results, curves, TEXT["sittings"]),
    }
    return [Section(title, tuple(found)) for title, found in parts.items()]


def _drawn(figures: dict[str, str], curves: Sequence[Curve]) -> Draw:
    counts = sorted({curve.trials for curve in curves})
    deletions = "–".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:])) or "0"
    words = {
        "trials": f"Each point is the mean over {deletions} deletions.",
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


def _coded(text: str) -> Html:
    """Text with `names` as code.

    >>> _coded("a < `b`")
    'a &lt; <code>b</code>'
    """
    return Html(re.sub(r"`([^`]*)`", r"<code>\1</code>", joined(text)))


def _lead(results: Results) -> Iterator[Part]:
    yield Paragraph(TEXT["lead"])
    found = [answer for answer in answers(results) if answer.measured]
    absent = [answer.question for answer in answers(results) if not answer.measured]
    shown = [joined(tag("b", f"{a.question}. "), _coded(a.verdict), " ", _coded(a.brief)) for a in found]
    yield Points(shown, "answers")
    if absent:
        yield Paragraph(f"Not measured, since this run has no curves for it: {'; '.join(absent)}.")
    yield Paragraph(Html(TEXT["holds"].format(holds=percent(HOLDS, 0))), "small")
    if found:
        every = [joined(tag("b", f"{a.question}. "), _coded(a.sentence)) for a in found]
        yield Details("All figures of these answers", [Points(every, "said")])
    size = results.run.get("preset")
    if size in ("quick", "cpu"):
        yield Paragraph(Html(TEXT[size]), "note")


@dataclass(frozen=True)
class Panels:
    """Drawings (name, SVG text, what it shows in words) side by side, or one below the other on a narrow screen."""

    drawings: Sequence[tuple[str, str, str]]
    caption: str

    def html(self) -> Html:
        """``<figure>`` with one drawing a panel."""
        shown = []
        for name, drawing, words in self.drawings:
            inner = Figure(name, drawing, words).html()
            shown.append(Html(re.sub(r"</?figure[^>]*>|<figcaption>.*?</figcaption>", "", inner, flags=re.DOTALL)))
        return tag("figure", tag("div", *shown, kind="panels"), tag("figcaption", self.caption))


def _curves(frontiers: Sequence[Frontier], beaten: pd.DataFrame, figures: dict[str, str]) -> Iterator[Part]:
    yield Paragraph(Html(TEXT["curves"]))
    for model, name in MODELS.items():
        panels = panels_of(frontiers, model)
        if not panels:
            yield Paragraph(f"No curves of the {name}: this run did not sweep it.", "note")
            continue
        yield Heading(name.capitalize())
        tried = [p for f in frontiers if (f.model, f.setting) == (model, "corrected") for p in f.tried]
        seeds, lines = max(p.seeds for p in tried), max(p.averaged for p in tried)
        names = {panel_name(model, *panel): panel_words(frontiers, model, *panel) for panel in panels}
        drawings = [(name, figures[name], words) for name, words in names.items() if name in figures]
        yield Panels(drawings, TEXT["captions"][f"curves_{model}"].format(seeds=seeds, lines=_lines(lines)))
        rows = sweep_rows(frontiers, model)
        head = ["", "knob", "mean L2 cost", "valid, random", "valid, picked", "answered"]
        yield Details(f"All numbers, {name}", [Table(head, rows)])
    if len(beaten):
        yield Heading("Who is as valid for less?")
        yield Paragraph(Html(TEXT["beaten"]))
        head = ["", *(METHODS[m] for m in RIVALS)]
        yield Table(head, beaten_rows(beaten))


def _lines(averaged: int) -> str:
    """What the lines of networks are drawn through."""
    return f"means over {averaged} seeds" if averaged > 1 else "the first seed"


def _costs(tables: dict[str, pd.DataFrame]) -> Iterator[Part]:
    yield Paragraph(TEXT["published"])
    yield Paragraph(Html(TEXT["cost"]))
    for norm, (model, name) in product(("l2", "l1"), MODELS.items()):
        table = tables[f"cost_{norm}_{model}.csv"]
        if not len(table):
            continue
        yield Heading(f"{norm.upper()} cost, {name}")
        if norm == "l1":
            yield Paragraph("L1 norms of the points found for L2, as in the paper.")
        yield Paragraph(tag("b", cost_summary(table, model, norm)))
        yield Table(["", "paper", "as published", "against the paper", "corrected"], cost_rows(table), "dense")
        outside = outside_sentences(table, model, norm)
        if outside:
            yield Details(f"The {len(outside)} outside, one by one", [_said(outside)], unfolded=norm == "l2")


def _accuracy(table: pd.DataFrame) -> Iterator[Part]:
    head = ["", "paper", "as published", "corrected", "denied, as published", "denied, corrected"]
    yield Table(head, accuracy_rows(table))
    yield Details("In test rows", [_said([accuracy_sentence(row) for row in table.to_dict("records")])])


def _validity(draw: Draw, curves: Sequence[Curve], results: Results) -> Iterator[Part]:
    yield draw("validity_lr")
    yield draw("validity_nn")
    none = results.methods[(results.methods["answered"] == 0) & (results.methods["seed"] == 0)].to_dict("records")
    absent = [f"{METHODS[row['method']]} ({case_name(row['dataset'], row['model'], row['setting'])})" for row in none]
    if absent:
        yield Paragraph(f"Without a curve, since nobody was answered: {', '.join(absent)}.")
    yield Paragraph("The paper's figures have no numbers; its curves cannot be compared by value.", "small")
    for model, name in MODELS.items():
        shown = [curve for curve in curves if curve.model == model]
        if shown:
            largest = percent(max(error for curve in shown for error in curve.errors))
            note = Paragraph(TEXT["validity_numbers"].format(largest=largest), "small")
            yield Details(f"All numbers, {name}", [Table(*validity_rows(shown)), note])


def _worst_case(results: Results) -> Iterator[Part]:
    if results.worst is None:
        yield Paragraph("No worst.csv: this run searched for no worst deletions.", "note")
        return
    yield Paragraph(TEXT["worst"])
    yield Table(
        ["", "k", "as published: survive", "mean L2 cost", "corrected: survive", "mean L2 cost"],
        worst_rows(results),
        "dense",
    )


def _claims(results: Results, curves: Sequence[Curve]) -> Iterator[Part]:
    yield Paragraph("As published, held against what the paper's text says; (here: …) is how we judge it.")
    yield Table(["the paper says", "here", "figures"], claim_rows(claims(results, curves)), "claims")


def _sensitivity(draw: Draw, table: pd.DataFrame | None) -> Iterator[Part]:
    yield draw("sensitivity")
    if table is not None:
        yield Table(["k", "mean L2 cost", "lowest average validity"], sensitivity_rows(table))


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


def _measures(results: Results) -> Iterator[Part]:
    yield Paragraph(TEXT["measures"])
    head = ["", "without recourse", "cost over plain", "columns changed", "distance to data", "time a person"]
    yield Details("The table", [Table(head, measure_rows(results))])
