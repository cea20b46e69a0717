"""The report of `rocerf reproduce`: tables and figures, the paper's values beside ours, on one self-contained page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.reproduction.costs import cost_sentence, cost_summary, german_epochs_sentence, reasons_of
from rocerf.reproduction.figures import worst_case_points, write_figures
from rocerf.reproduction.findings import FINDINGS, check_sentences
from rocerf.reproduction.published import DATASETS, METHODS, MODELS, OURS, SETTINGS
from rocerf.reproduction.tables import Curve, Results, read_results, row_of, validity_curves_of, write_tables
from rocerf.reproduction.words import (
    accuracy_sentence,
    as_printed,
    pareto_sentences,
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

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>rocerf: the paper, reproduced</title>
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; }} h2 {{ font-size: 1.3rem; margin-top: 2.6rem; }}
h3 {{ font-size: 1.05rem; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }}
th, td {{ padding: .3rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }} td {{ white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }} thead th {{ border-bottom: 2px solid #888; }}
tr.group td {{ font-weight: 600; background: #f5f5f5; text-align: left; }}
.lead {{ font-size: 1.1rem; }} .note {{ background: #f5f3ec; border-left: 4px solid #E69F00; padding: .6rem 1rem; }}
table.facts td, table.words td {{ white-space: normal; }} table.words td:nth-child(5) {{ white-space: nowrap; }}
table.facts td, table.words td:last-child {{ text-align: left; }}
summary {{ cursor: pointer; margin: .6rem 0; }} ul.notes {{ list-style: none; }}
.scroll {{ overflow-x: auto; }} svg {{ max-width: 100%; height: auto; }} figure {{ margin: 1rem 0; }}
figcaption, .small, ul.said {{ color: #444; font-size: .9rem; }} ul.said li {{ margin: .25rem 0; }}
pre {{ background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .85rem; }} code {{ font-size: .92em; }}
@media print {{ body {{ margin: 0; }} figure, tr {{ break-inside: avoid; }} }}
</style></head><body>
{body}
</body></html>
"""

_CAPTIONS = {
    "validity_lr.svg": "Logistic regression: share of all denied people whose recourse the retrained model accepts "
    "after a share α of the training rows was deleted at random; whoever got no answer counts as not valid. {lr} "
    "{trials} Bars show two standard errors over the deletions. The α are evenly spaced, not to scale; methods are "
    "drawn side by side at each.",
    "validity_nn.svg": "Neural networks, trained afresh for each deletion, so that α = 0 is a new start without any "
    "deletion (in the paper it is the original network). Share of all denied people; whoever got no answer counts as "
    "not valid. {nn} {trials} Bars show two standard errors. Dashed with hollow circles: the paper's constraint with "
    "all parameters of the network; plain blue: the paper's own local linear variant.",
    "sensitivity.svg": "The paper's method on logistic regression (as published) for several k; larger k in darker "
    "purple, side by side at each α. Bars show two standard errors. The vertical axis does not begin at 0.",
    "worst_case.svg": "Logistic regression, {setting}: share of recourses that survive the worst deletion of at most "
    "k rows that our search found, each model really retrained, against the mean cost. Bars: 95 % interval for the "
    "share (Clopper and Pearson), two standard errors for the cost. Up and to the left is better. The search may miss "
    "a worse deletion, so a share is an upper limit, not a proof.",
    "theorem.svg": "Extra cost of the paper's method over the plain counterfactual against k/n on growing parts of "
    "Adult, mean penalty, margin 0; dashed and dotted: the bounds of the theorems with every constant computed from "
    "the data.",
}


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
    curves = validity_curves_of(results)
    show = _Figures(figures, results, curves)
    body = [
        "<h1>Counterfactuals that survive deletion: the paper, reproduced</h1>",
        *_lead(results, tables["pareto.csv"]),
        *_what_was_run(results, curves),
        *_accuracy(tables["accuracy.csv"], results),
        *_costs(tables, results),
        *_validity(show, curves, results),
        *_sensitivity(show, results),
        *_worst_case(show, results, tables["pareto.csv"]),
        *_pareto(tables["pareto.csv"]),
        *_measures(results),
        *_theorem(show, results),
        *_findings(results),
    ]
    return _PAGE.format(body="\n".join(body))


class _Figures:
    """Figures as parts of the page, ids made unique, each with its caption."""

    def __init__(self, figures: dict[str, str], results: Results, curves: Sequence[Curve]) -> None:
        counts = sorted({curve.trials for curve in curves})
        deletions = "–".join(str(count) for count in {counts[0]: 0, counts[-1]: 0}) if counts else "0"
        points = worst_case_points(results)
        self._figures = figures
        self._words = {
            "trials": f"Each point is the mean over {deletions} deletions.",
            "setting": f"{SETTINGS[points['setting'].iloc[0]]} setting" if len(points) else "",
            **{model: _not_all_answered(curves, model) for model in MODELS},
        }

    def __call__(self, name: str) -> list[str]:
        if name not in self._figures:
            return [f'<p class="note">No figure {escape(name)}: this run has no results for it.</p>']
        caption = _CAPTIONS[name].format(**self._words)
        stem = name.removesuffix(".svg")
        text = re.sub(r"<metadata>.*?</metadata>", "", self._figures[name], flags=re.DOTALL)
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{stem}-", text)
        text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
        return [f"<figure>{text}<figcaption>{escape(caption)}</figcaption></figure>"]


def _not_all_answered(curves: Sequence[Curve], model: str) -> str:
    """Methods that left people without an answer, with their numbers."""
    some = [curve for curve in curves if curve.model == model and curve.answered < curve.people]
    told = [
        f"{METHODS[c.method]} {c.answered:,} of {c.people:,} ({DATASETS[c.dataset]}, {SETTINGS[c.setting]})"
        for c in some
    ]
    return f"Not everybody was answered by {'; '.join(told)}." if told else "Every method answered everybody."


def _table(head: Sequence[str], rows: Iterable[Sequence[str] | str]) -> str:
    """Cells are escaped here; a single text is a heading across the table."""
    lines = [
        f'<tr class="group"><td colspan="{len(head)}">{escape(row)}</td></tr>'
        if isinstance(row, str)
        else f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in rows
    ]
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _said(sentences: Iterable[str]) -> str:
    return f'<ul class="said">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'


def _grouped(table: pd.DataFrame, key: str, names: dict[str, str], cells: Any) -> list[Sequence[str] | str]:
    """Rows of a table under a heading for each value of a column."""
    rows: list[Sequence[str] | str] = []
    for value, group in table.groupby(key, sort=False):
        rows += [names[value], *(cells(row) for row in group.to_dict("records"))]
    return rows


def _lead(results: Results, pareto: pd.DataFrame) -> list[str]:
    said = [
        '<p class="lead">Every table and figure of the paper, its value beside ours. <b>As published</b> follows the '
        "paper's data and code: scrambled German labels, test people scaled by their own file, C = 100, networks "
        "without shuffling, the authors' options for the baselines. <b>Corrected</b> has the true labels, the training "
        "file's scaler, C = 1 and corrected baselines. There <code>retrained</code> (logistic regression) and "
        "<code>simulated</code> (networks) are methods of this package that the paper does not have. "
        f"{escape(pareto_sentences(pareto)[0])}</p>"
    ]
    if results.run.get("preset") == "quick":
        said.append(
            '<p class="note"><b>A quick run.</b> Fewer people, deletions and epochs than the paper has. It shows that '
            "everything works; differences from the paper can come from its size alone.</p>"
        )
    return said


def _what_was_run(results: Results, curves: Sequence[Curve]) -> list[str]:
    missing = results.missing()
    failed = results.run.get("failed") or {}
    rows = [(name.replace("_", " "), _flat(value)) for name, value in _facts(results.run, curves)]
    parts = ["<h2>What was run</h2>", _facts_table(rows), *_sessions(results.run), *_part_of_the_people(results)]
    if missing:
        parts += ['<p class="note"><b>Missing from this run</b>, and left out of what follows:</p>', _said(missing)]
    else:
        parts.append("<p>Nothing is missing: every data set, model and method of a full run is here.</p>")
    if isinstance(failed, dict) and failed:
        parts += ["<p><b>Failed:</b></p>", _said(f"{name}: {reason}" for name, reason in failed.items())]
    if results.settings:
        parts.append(f"<h3>Settings</h3><pre>{escape(results.settings)}</pre>")
    return parts


def _facts(run: dict[str, Any], curves: Sequence[Curve]) -> Iterable[tuple[str, Any]]:
    seconds = run.get("wall_seconds")
    yield "wall time", _duration(seconds)
    yield "deletions at each α", max((curve.trials for curve in curves), default=0)
    told = ("wall_seconds", "missing", "failed", "sessions", "versions")
    yield from ((name, value) for name, value in run.items() if name not in told)
    yield from _versions(run)


def _versions(run: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """Each set of versions once, with the sittings that had it: parts of a run may come from several machines."""
    sessions = _sittings(run)
    sets = [part.get("versions") for part in sessions] if sessions else [run.get("versions")]
    names = dict.fromkeys(name for found in sets if isinstance(found, dict) for name in found)
    grouped: dict[str, list[int]] = {}
    for place, found in enumerate(sets, start=1):
        known = found if isinstance(found, dict) else {}
        said = ", ".join(f"{name} {_flat(known.get(name, 'not recorded'))}" for name in names) or "not recorded"
        grouped.setdefault(said, []).append(place)
    for said, places in grouped.items():
        which = f" of sitting{'s' if len(places) > 1 else ''} {', '.join(map(str, places))}" if len(grouped) > 1 else ""
        yield f"versions{which}", said


def _sittings(run: dict[str, Any]) -> list[dict[str, Any]]:
    sessions = run.get("sessions")
    return [part for part in sessions if isinstance(part, dict)] if isinstance(sessions, list) else []


def _sessions(run: dict[str, Any]) -> list[str]:
    """The sittings of a run that was continued, or whose parts were made on several machines."""
    sessions = _sittings(run)
    if len(sessions) < 2:
        return []
    rows = [
        [
            str(place),
            str(part.get("machine", "not recorded")),
            str(part.get("device", "–")),
            str(part.get("workers", "–")),
            _duration(part.get("wall_seconds")),
            str(part.get("jobs_run", "–")),
            str(part.get("note", "")),
        ]
        for place, part in enumerate(sessions, start=1)
    ]
    head = ["", "machine", "device of networks", "processes", "wall time", "jobs run", ""]
    return [
        "<h3>Sittings</h3>",
        "<p>Each took over what was finished and did more. The wall time above is their sum; some went on at the same "
        "time.</p>",
        _table(head, rows).replace("<table>", '<table class="words">', 1),
    ]


def _facts_table(rows: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<div class="scroll"><table class="facts"><tbody>{lines}</tbody></table></div>'


def _duration(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return "not recorded"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(_flat(part) for part in value)
    text = str(value)
    return f"{text[:12]}…" if re.fullmatch(r"[0-9a-f]{64}", text) else text


def _part_of_the_people(results: Results) -> list[str]:
    """Where fewer people were explained than denied, that is said before any number is shown."""
    said = []
    for row in results.models.to_dict("records"):
        where = {name: row[name] for name in ("setting", "dataset", "model")}
        cases = results.methods
        for name, value in where.items():
            cases = cases[cases[name] == value]
        if len(cases) and cases["people"].max() < row["denied"]:
            names = f"{DATASETS[row['dataset']]}, {MODELS[row['model']]}, {SETTINGS[row['setting']]}"
            said.append(f"{names}: {cases['people'].max():,} of {row['denied']:,}")
    return [f"<p>Not all denied people were explained: {escape('; '.join(said))}.</p>"] if said else []


def _accuracy(table: pd.DataFrame, results: Results) -> list[str]:
    def cells(row: dict[str, Any]) -> list[str]:
        counts = [f"{row[f'{key}_denied']:,.0f}" if math.isfinite(row[key]) else "–" for key in SETTINGS]
        return [DATASETS[row["dataset"]], percent(row["paper"]), *(percent(row[key]) for key in SETTINGS), *counts]

    head = ["", "paper", "as published", "corrected", "denied, as published", "denied, corrected"]
    return [
        "<h2>Accuracy</h2>",
        _table(head, _grouped(table, "model", MODELS, cells)),
        _said(accuracy_sentence(row) for row in table.to_dict("records")),
        *_german_network(results),
    ]


def _german_network(results: Results) -> list[str]:
    """Said where it was done: the one network that is not trained as long as the paper's."""
    row = row_of(results.models, setting="published", dataset="german", model="nn")
    epochs = (row or {}).get("epochs", math.nan)
    if not (isinstance(epochs, int | float) and epochs > 100):
        return []
    said = (
        f"On German as published the network is trained for {epochs:.0f} epochs instead of the paper's 100, and so is "
        f"every retrained one; with so few denied as after 100 nothing could be compared. "
        f"{german_epochs_sentence(results.checks)}"
    )
    return [f'<p class="note">{escape(said)}</p>']


def _costs(tables: dict[str, pd.DataFrame], results: Results) -> list[str]:
    def cells(row: dict[str, Any]) -> list[str]:
        ours = [with_error(row[key], row[f"{key}_se"]) for key in SETTINGS]
        return [METHODS[row["method"]], as_printed(row["paper"], row["paper_se"]), *ours, _gap(row)]

    notes = "".join(f"<li><b>{key}</b> {escape(text)}</li>" for key, text in reasons_of(results).items())
    parts = [
        "<h2>Cost</h2>",
        "<p>Mean ± standard error over the people who were answered, in training standard deviations. A difference is "
        "<b>within the spread</b> if it is at most twice the two standard errors combined. The corrected setting "
        "differs from the paper's on purpose. Where our published setting differs, a letter names what was measured "
        "and bears on it; that it explains all of a difference is not claimed, and where it was measured to carry less "
        "far than the paper's value, the difference is called not explained. ROCERF is our solver on the paper's "
        "constraint in both settings.</p>",
        f'<ul class="said notes">{notes}</ul>',
    ]
    for norm in ("l2", "l1"):
        for model in MODELS:
            table = tables[f"cost_{norm}_{model}.csv"]
            parts.append(f"<h3>{norm.upper()} cost, {MODELS[model]}</h3>")
            if norm == "l1":
                parts.append("<p>L1 norms of the points found for L2, as in the paper.</p>")
            head = ["", "paper", "as published", "corrected", "as published − paper"]
            parts.append(_table(head, _grouped(table, "dataset", DATASETS, cells)))
            parts.append(f"<p>{escape(cost_summary(table, model, norm))}</p>")
            sentences = _said(cost_sentence(row, model, norm, results.checks) for row in table.to_dict("records"))
            parts.append(
                f"<details{' open' if norm == 'l2' else ''}><summary>Each of them</summary>{sentences}</details>"
            )
    return parts


def _gap(row: dict[str, Any]) -> str:
    if row["published_verdict"] in ("", "unknown"):
        return "–"
    words = {"within": "within the spread", "higher": "above the spread", "lower": "below the spread"}
    gap = f"{row['published'] - row['paper']:+.2f}".replace("-", "−")
    return f"{gap}, {words[row['published_verdict']]}"


def _validity(show: _Figures, curves: Sequence[Curve], results: Results) -> list[str]:
    silent = results.methods[results.methods["answered"] == 0].to_dict("records")
    absent = [
        f"{METHODS[r['method']]} ({DATASETS[r['dataset']]}, {MODELS[r['model']]}, {SETTINGS[r['setting']]})"
        for r in silent
    ]
    return [
        "<h2>Validity when rows are deleted at random</h2>",
        *show("validity_lr.svg"),
        *show("validity_nn.svg"),
        *([f"<p>Without a curve, since nobody was answered: {escape(', '.join(absent))}.</p>"] if absent else []),
        _said(validity_sentences(curves, results.methods)),
        '<p class="small">The paper\'s figures have no numbers; its other curves cannot be compared by value.</p>',
        *(_validity_table(curves, model) for model in MODELS if any(c.model == model for c in curves)),
    ]


def _validity_table(curves: Sequence[Curve], model: str) -> str:
    shown = [curve for curve in curves if curve.model == model]
    alphas = sorted({alpha for curve in shown for alpha in curve.alphas})
    rows: list[Sequence[str] | str] = []
    last = ("", "")
    for curve in shown:
        if (curve.setting, curve.dataset) != last:
            last = (curve.setting, curve.dataset)
            rows.append(f"{DATASETS[curve.dataset]}, {SETTINGS[curve.setting]}")

        def cells(means: Sequence[float], of: Curve = curve) -> list[str]:
            by_alpha = dict(zip(of.alphas, means, strict=True))
            return [percent(by_alpha.get(alpha, math.nan)) for alpha in alphas]

        answered = f"{curve.answered:,} of {curve.people:,}"
        rows.append([METHODS[curve.method], answered, *cells(curve.means_all)])
        if curve.answered < curve.people:
            rows.append(["of those answered", "", *cells(curve.means)])
    largest = max(error for curve in shown for error in curve.errors)
    table = _table(["", "answered", *(f"α = {100 * alpha:g} %" for alpha in alphas)], rows)
    return (
        f"<details><summary>All numbers, {MODELS[model]}</summary>{table}"
        '<p class="small">Of all denied people; where not all were answered, also of those who were. Standard errors '
        f"are at most {percent(largest)}.</p></details>"
    )


def _sensitivity(show: _Figures, results: Results) -> list[str]:
    parts = ["<h2>Sensitivity to k</h2>", *show("sensitivity.svg")]
    if results.sensitivity is None:
        return parts
    rows: list[Sequence[str] | str] = []
    for dataset, part in results.sensitivity.groupby("dataset", sort=False):
        rows.append(DATASETS[dataset])
        for share, group in part.groupby("k_share"):
            size = f"{100 * share:g} % ({group['k'].iloc[0]:,.0f} rows)"
            rows.append([size, f"{group['l2'].iloc[0]:.2f}", percent(float(group["validity"].min()))])
    held = results.sensitivity[results.sensitivity["alpha"] <= results.sensitivity["k_share"]]["validity"]
    full = int((held >= 1).sum())
    said = (
        "The paper says that validity is 100 % wherever no more than k rows are deleted. Here that is so in "
        f"{full} of {len(held)} such cases; the lowest is {percent(float(held.min()), 2)}."
    )
    table = _table(["k", "mean L2 cost", "lowest average validity"], rows)
    return [*parts, f"<p>{escape(said)}</p>" if len(held) else "", table]


def _worst_case(show: _Figures, results: Results, pareto: pd.DataFrame) -> list[str]:
    points = worst_case_points(results)
    parts = ["<h2>Validity under the worst deletion found</h2>", *show("worst_case.svg")]
    if len(points):
        parts += [
            "<p>The comparison that the paper did not make. Points that survive, of those searched:</p>",
            _said(worst_case_sentences(points)),
        ]
    compared = price_sentences(pareto)
    if compared:
        parts += ["<p>The paper's constraint and retraining in the loop, side by side:</p>", _said(compared)]
    return parts


def _pareto(table: pd.DataFrame) -> list[str]:
    def cells(row: dict[str, Any]) -> list[str]:
        ours = row["role"] == "ours"
        verdict = "ours" if ours else {"yes": "yes", "no": "no"}.get(row["dominates_ours"], "not judged")
        validity, cost = percent(row["worst_validity"], 2), with_error(row["l2"], row["l2_se"])
        answered = f"{row['answered']:,.0f} of {row['people']:,.0f}"
        return [METHODS[row["method"]], validity, cost, answered, percent(row["worst_case_validity"], 0), verdict]

    verdict, sentences = pareto_sentences(table)
    keyed = table.assign(case=table["dataset"] + " " + table["model"])
    names = {f"{d} {m}": f"{DATASETS[d]}, {MODELS[m]}" for d in DATASETS for m in MODELS}
    head = [
        "",
        "validity at the worst α",
        "mean L2 cost",
        "answered",
        "survive the worst found",
        "better than ours in both",
    ]
    ours = f"<code>{OURS['lr']}</code> for logistic regression and <code>{OURS['nn']}</code> for networks"
    return [
        "<h2>Is any baseline better in both validity and cost?</h2>",
        f"<p>Corrected setting. Ours is {ours}. A method counts as better if it is at least as good in both and better "
        "in one. Validity is the lowest mean over the α, under random deletions, of all denied people: whoever got no "
        "answer counts as not valid. Costs and the worst deletions are about the answered.</p>",
        f"<p><b>{escape(verdict)}</b></p>",
        _table(head, _grouped(keyed, "case", names, cells)) if len(table) else "",
        _said(sentences),
    ]


def _measures(results: Results) -> list[str]:
    rows: list[Sequence[str] | str] = []
    for setting in SETTINGS:
        for dataset in DATASETS:
            for model in MODELS:
                found = [
                    (name, row_of(results.methods, setting=setting, dataset=dataset, model=model, method=name))
                    for name in METHODS
                ]
                some = [[METHODS[name], *_measure_cells(row)] for name, row in found if row is not None]
                rows += [f"{DATASETS[dataset]}, {MODELS[model]}, {SETTINGS[setting]}", *some] if some else []
    head = ["", "without recourse", "cost over plain", "columns changed", "distance to data", "time a person"]
    return [
        "<h2>Further measures</h2>",
        "<p>Share of people who got no recourse; mean L2 cost over that of the nearest accepted point; mean number of "
        "columns changed; mean distance to the nearest training row (standard deviations); time on the machine that "
        "did the work, beside the other processes there.</p>",
        _table(head, rows),
    ]


def _measure_cells(row: dict[str, Any]) -> list[str]:
    without = 1 - row["answered"] / row["people"] if row["people"] else math.nan
    numbers = {"cost_over_plain": ".2f", "changed": ".1f", "distance_to_data": ".2f"}
    shown = [f"{row[name]:{form}}" if math.isfinite(row[name]) else "–" for name, form in numbers.items()]
    seconds = float(row["seconds_per_person"]) if row["people"] else math.nan
    return [percent(without), *shown, _seconds(seconds)]


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.1f} s" if value >= 1 else f"{1000 * value:.2g} ms" if value < 0.0995 else f"{1000 * value:.0f} ms"


def _theorem(show: _Figures, results: Results) -> list[str]:
    parts = ["<h2>Check of Theorems 4.1 and 4.2</h2>", *show("theorem.svg")]
    if results.theorem is None:
        return parts
    return [
        *parts,
        _said(theorem_sentences(results.theorem)),
        "<p>The extra cost is the mean cost of the paper's constraint with margin 0, minus that of the plain "
        "counterfactual. The bound is the one the proof gives once its constants are written out: for k deletions the "
        "estimated score falls at x by at most (k/n) C |x|, with C = n max |H⁻¹g| over the rows, and moving t along "
        "the slope w wins t |w| while |x| grows by at most t. Theorem 4.2 takes C = max |g| |(H/n)⁻¹| instead, which "
        "is larger. Both speak of the first-order estimate with margin 0, not of validity after retraining. A check "
        "on one table is no proof, and none is claimed.</p>",
    ]


def _findings(results: Results) -> list[str]:
    said = [f"<li><b>{escape(title)}</b> {escape(text)}</li>" for title, text in FINDINGS]
    own = _own_evidence(results)
    return [
        "<h2>What we found about the paper's data and code</h2>",
        "<p>Stated with the evidence, so that it can be checked.</p>",
        f"<ul>{''.join(said)}</ul>",
        *(["<p>From this run:</p>", _said(own)] if own else []),
    ]


def _own_evidence(results: Results) -> list[str]:
    """What this run adds to the findings."""
    said = []
    for model in MODELS:
        pair = [row_of(results.models, setting=key, dataset="german", model=model) for key in SETTINGS]
        if pair[0] and pair[1]:
            first, second = percent(pair[0]["accuracy"]), percent(pair[1]["accuracy"])
            said.append(
                f"German, {MODELS[model]}: accuracy {first} on the published labels, {second} on the true ones."
            )
    points = worst_case_points(results)
    for row in points[points["method"] == "rocerf"].to_dict("records"):
        count = round(row["worst_case_validity"] * row["worst_case_people"])
        said.append(
            f"{DATASETS[row['dataset']]}, logistic regression, {SETTINGS[row['setting']]}: {count} of "
            f"{row['worst_case_people']:.0f} points of the paper's method survive the worst deletion found."
        )
    return said + check_sentences(results)
