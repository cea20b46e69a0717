"""The demonstration's report: one self-contained HTML page."""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path

from rocerf.evaluation.demo import Demo, Method
from rocerf.evaluation.plots import draw_costs, draw_validity
from rocerf.recourse.result import Recourse
from rocerf.version import __version__

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; }} h2 {{ font-size: 1.2rem; margin-top: 2.2rem; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .4rem .6rem; border-bottom: 1px solid #ddd; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
thead th {{ border-bottom: 2px solid #888; }}
.lead {{ font-size: 1.1rem; }} .note {{ background: #f5f3ec; border-left: 4px solid #E69F00; padding: .6rem 1rem; }}
svg {{ max-width: 100%; height: auto; }} figure {{ margin: 1rem 0; }}
figcaption, .small {{ color: #555; font-size: .9rem; }}
@media print {{ body {{ margin: 0; }} }}
</style></head><body>
{body}
</body></html>
"""


def write_demo_report(demo: Demo, path: str | PathLike[str]) -> Path:
    """Write the report of a demonstration and return where it is."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(demo_report(demo), encoding="utf-8")
    return target


def demo_report(demo: Demo) -> str:
    """The page as text."""
    plain, robust = demo.methods[0], demo.methods[1]
    last = plain.validity[1]
    body = [
        "<h1>Recourse that survives deleted training rows: German Credit</h1>",
        f'<p class="lead">A model trained on {len(demo.dataset.train)} past credits refuses {demo.denied} of '
        f"{demo.applicants} new applicants. Each is told what to change to be accepted. Then other people ask to be "
        f"forgotten: {last.fraction:.1%} of the training rows are deleted at random and the model is retrained, "
        f"{demo.trials} times. Of the plain counterfactuals <b>{last.mean:.0%}</b> are still accepted, "
        f"of ROCERF's <b>{robust.validity[1].mean:.1%}</b>.</p>",
        "<h2>Still accepted after retraining</h2>",
        f"<figure>{draw_validity(demo.methods)}<figcaption>Every point is the mean over {demo.trials} exactly "
        "retrained models; bars show two standard errors. A plain counterfactual sits on the decision boundary, "
        "so that any retraining is a coin toss.</figcaption></figure>",
        "<h2>What robustness costs</h2>",
        f"<figure>{draw_costs(demo.methods)}<figcaption>Length of the change each refused person is asked for. "
        "Box: middle half of the people, line: median, diamond: mean.</figcaption></figure>",
        _table(demo),
        *_example(demo),
        "<h2>How to read this</h2>",
        f'<p class="note"><b>What is promised.</b> A recourse of ROCERF with k = {robust.recourses.settings.k} '
        f"{escape(robust.recourses.settings.sentence)}. The figures above are for <i>random</i> deletions, "
        "which are much milder than the worst ones.</p>",
        "<p>The comparison uses the paper's setting: every column may change, categories included, and 0/1 columns "
        "may take values in between. The example holds categories fixed, so that it reads as a person would "
        "read it.</p>",
        f'<p class="small">rocerf {__version__}, seed {demo.seed}, model accuracy on new applicants '
        f"{demo.accuracy:.1%}, training data SHA-256 {demo.dataset.train.checksum[:16]}…. "
        f"Data: {escape(demo.dataset.source)} ({escape(demo.dataset.licence)}). Made by <code>rocerf demo</code>.</p>",
    ]
    return _PAGE.format(title="rocerf: German Credit", body="\n".join(body))


def _table(demo: Demo) -> str:
    fractions = [v.fraction for v in demo.methods[0].validity[1:]]
    head = "".join(f"<th>{fraction:.1%} deleted</th>" for fraction in fractions)
    rows = "".join(_row(method) for method in demo.methods)
    return (
        "<h2>The numbers</h2><table><thead><tr><th>method</th><th>k</th><th>mean cost</th>"
        f"{head}</tr></thead><tbody>{rows}</tbody></table>"
        '<p class="small">Share of recourses still accepted, with its standard error over the retrainings.</p>'
    )


def _row(method: Method) -> str:
    cells = "".join(f"<td>{v.mean:.1%} ± {v.standard_error:.1%}</td>" for v in method.validity[1:])
    return (
        f"<tr><td>{escape(method.name)}</td><td>{method.recourses.settings.k}</td>"
        f"<td>{method.mean_cost:.2f}</td>{cells}</tr>"
    )


def _example(demo: Demo) -> list[str]:
    example = demo.example
    return [
        f"<h2>One person: refused applicant number {example.number}</h2>",
        "<p>Only amounts and durations may change; everything else is held fixed, and values stay within what the "
        f"training data show. {example.answered} of {demo.denied} refused people can be answered under these rules; "
        "the others get the reason why not.</p>",
        "<table><thead><tr><th>what</th><th>today</th><th>plain counterfactual</th><th>ROCERF</th></tr></thead><tbody>"
        + "".join(_change_rows(example.plain, example.robust))
        + "</tbody></table>",
    ]


def _change_rows(plain: Recourse, robust: Recourse) -> list[str]:
    changes = {change.feature: change for change in (*plain.changes, *robust.changes)}
    after = [{change.feature: change.after for change in found.changes} for found in (plain, robust)]
    return [
        f"<tr><td>{escape(change.label)}</td><td>{_amount(change.before, change.unit)}</td>"
        + "".join(f"<td>{_amount(values.get(name, change.before), change.unit)}</td>" for values in after)
        + "</tr>"
        for name, change in changes.items()
    ]


def _amount(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == round(value) else 1
    return f"{value:,.{digits}f} {escape(unit)}".strip()
