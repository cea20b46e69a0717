"""The demonstration's report: one self-contained HTML page."""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path

from rocerf.evaluation.demo import MOST_DELETIONS, Demo, Method
from rocerf.evaluation.plots import draw_costs, draw_survival
from rocerf.recourse.result import Recourse
from rocerf.storage.whole_file import write_text
from rocerf.version import __version__

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }}
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
    write_text(target, demo_report(demo))
    return target


def demo_report(demo: Demo) -> str:
    """The page as text."""
    plain, first, kept = demo.method("plain"), demo.method("first_order 0.5%"), demo.method("retrained 0.5%")
    random = plain.validity[1]
    body = [
        "<h1>Recourse that survives deleted training rows: German Credit</h1>",
        f'<p class="lead">A model trained on {len(demo.dataset.train)} past credits decides about new applicants: '
        f"{demo.told}. Each is told what to change to be accepted. Then other people ask to be "
        f"forgotten: rows are deleted and the model is retrained. After {random.fraction:.1%} random deletions "
        f"<b>{random.mean:.0%}</b> of the plain counterfactuals are still accepted. The paper's constraint holds "
        f"<b>{first.validity[1].mean:.0%}</b> of its points under random deletions, but "
        f"<b>{first.survivors} of {len(first.audited)}</b> survive the worst {first.audited_k} deletions found. Of the "
        f"points that carry the promise <i>retrained</i>, <b>{kept.survivors} of {len(kept.audited)}</b> do.</p>",
        "<h2>Still accepted after retraining</h2>",
        f"<figure>{draw_survival(demo.methods, MOST_DELETIONS)}<figcaption><b>Left:</b> rows leave at random; every "
        f"point is the mean over {demo.trials} exactly retrained models, bars show two standard errors. A plain "
        "counterfactual sits on the decision boundary, so that any retraining is a coin toss. <b>Right:</b> an "
        "adversary chooses the rows that hurt each point most, and the model is retrained without them. "
        f"After one such deletion {plain.share_after(1):.0%} of the plain points are left. After {first.audited_k}, "
        f"the number they were made for, {first.share_after(first.audited_k):.0%} of the first-order points are, and "
        f"{kept.share_after(first.audited_k):.0%} of those with the promise <i>retrained</i>.</figcaption></figure>",
        "<h2>What robustness costs</h2>",
        f"<figure>{draw_costs(demo.methods)}<figcaption>Length of the change each refused person is asked for. "
        "Box: middle half of the people, line: median, diamond: mean.</figcaption></figure>",
        _table(demo),
        *_example(demo),
        *_promises(demo),
        f'<p class="small">rocerf {__version__}, seed {demo.seed}, model accuracy on new applicants '
        f"{demo.accuracy:.1%}, training data SHA-256 {demo.dataset.train.checksum[:16]}…. "
        f"Data: {escape(demo.dataset.source)} ({escape(demo.dataset.licence)}). Made by <code>rocerf demo</code>.</p>",
    ]
    return _PAGE.format(title="rocerf: German Credit", body="\n".join(body))


def _promises(demo: Demo) -> list[str]:
    said = {method.recourses.settings.promise: method.recourses.settings for method in reversed(demo.methods)}
    items = [
        f"<li><b>{escape(name)}</b> (k = {settings.k}): a recourse with this promise {escape(settings.sentence)}.</li>"
        if name != "plain"
        else f"<li><b>plain</b>: {escape(settings.sentence)}.</li>"
        for name, settings in reversed(said.items())
    ]
    return [
        "<h2>What each promise says</h2>",
        f"<ul>{''.join(items)}</ul>",
        *_abstention(demo),
        "<p>The comparison uses the paper's setting: every column may change, categories included, and 0/1 columns "
        "may take values in between. The example above holds categories fixed, so that it reads as a person would "
        "read it.</p>",
    ]


def _abstention(demo: Demo) -> list[str]:
    if not demo.abstention:
        return []
    return [
        f'<p class="note"><b>Where nothing is proven, nothing is claimed.</b> Asked for {demo.methods[1].audited_k} '
        f"deletions on this small table, the certificate abstains: {escape(demo.abstention)}.</p>"
    ]


def _table(demo: Demo) -> str:
    fractions = [v.fraction for v in demo.methods[0].validity[1:]]
    head = "".join(f"<th>{fraction:.1%}</th>" for fraction in fractions)
    rows = "".join(_row(method) for method in demo.methods)
    return (
        '<h2>The numbers</h2><table><thead><tr><th rowspan="2">promise</th><th rowspan="2">mean cost</th>'
        f'<th colspan="{len(fractions)}">still accepted, rows deleted at random</th>'
        '<th rowspan="2">survive the worst<br>deletion found</th></tr>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f'<p class="small">Standard errors over the {demo.trials} retrainings are at most '
        f"{max(v.standard_error for m in demo.methods for v in m.validity):.1%}. Worst deletion: of at most k rows for "
        f"a promise about k, of at most {demo.methods[0].audited_k} for the plain counterfactual; thorough search with "
        "another seed than the solver's.</p>"
    )


def _row(method: Method) -> str:
    cells = "".join(f"<td>{v.mean:.1%}</td>" for v in method.validity[1:])
    return (
        f"<tr><td>{escape(method.name)}</td><td>{method.mean_cost:.2f}</td>{cells}"
        f"<td>{method.survivors} of {len(method.audited)} (k = {method.audited_k})</td></tr>"
    )


def _example(demo: Demo) -> list[str]:
    example = demo.example
    if example is None:
        return [
            "<h2>One person</h2><p>Where only amounts and durations may change, nobody of those shown can be answered: "
            "each gets the reason why not.</p>"
        ]
    return [
        f"<h2>One person: refused applicant number {example.number}</h2>",
        "<p>Only amounts and durations may change; everything else is held fixed, and values stay within what the "
        f"training data show. {example.answered} of {demo.denied} refused people can be answered under these rules; "
        "the others get the reason why not.</p>",
        "<table><thead><tr><th>what</th><th>today</th><th>plain counterfactual</th>"
        f"<th>{escape(demo.method('retrained 0.5%').name)}</th></tr></thead><tbody>"
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
