"""The demonstration's report: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from rocerf.evaluation.demo import MOST_DELETIONS, Demo
from rocerf.evaluation.plots import draw_costs, draw_survival
from rocerf.html import Figure, Html, Paragraph, Part, Points, Section, Table, joined, report, tag
from rocerf.storage.whole_file import write_text
from rocerf.version import __version__


def write_demo_report(demo: Demo, path: str | PathLike[str]) -> Path:
    """Write the report of a demonstration and return where it is."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, demo_report(demo))
    return target


def demo_report(demo: Demo) -> str:
    """The page as text."""
    heading = "Recourse that survives deleted training rows: German Credit"
    return report("rocerf: German Credit", heading, demo_sections(demo))


def demo_sections(demo: Demo) -> list[Section]:
    """What the page shows, in order."""
    example = "One person" + ("" if demo.example is None else f": refused applicant number {demo.example.number}")
    parts = {
        "": _lead(demo),
        "Still accepted after retraining": _survival(demo),
        "What robustness costs": _costs(demo),
        "The numbers": _numbers(demo),
        example: _example(demo),
        "What each promise says": _promises(demo),
    }
    return [Section(title, tuple(found)) for title, found in parts.items()]


def _lead(demo: Demo) -> Iterator[Part]:
    plain, first, kept = demo.method("plain"), demo.method("first_order 0.5%"), demo.method("retrained 0.5%")
    random, rival = plain.validity[1], demo.method("margin")
    yield Paragraph(
        Html(
            f"A model trained on {len(demo.dataset.train)} past credits decides about new applicants: {demo.summary}. "
            "Each is shown what to change to be accepted. Then other people ask to be forgotten: rows are deleted and "
            f"the model is retrained. After {random.fraction:.1%} random deletions <b>{random.mean:.0%}</b> of the "
            "plain counterfactuals are still accepted. The paper's constraint holds "
            f"<b>{first.validity[1].mean:.0%}</b> of its points under random deletions, but <b>{first.survivors} of "
            f"{len(first.audited)}</b> survive the worst {first.audited_k} deletions found. Of the points that carry "
            f"the promise <i>retrained</i>, <b>{kept.survivors} of {len(kept.audited)}</b> do; of points a constant "
            f"margin above the boundary, for the same mean cost, <b>{rival.survivors} of {len(rival.audited)}</b>."
        ),
        "lead",
    )


def _survival(demo: Demo) -> Iterator[Part]:
    plain, first, kept = demo.method("plain"), demo.method("first_order 0.5%"), demo.method("retrained 0.5%")
    caption = Html(
        f"<b>Left:</b> rows leave at random; every point is the mean over {demo.trials} exactly retrained models, bars "
        "show two standard errors. A plain counterfactual sits on the decision boundary, so that any retraining is a "
        "coin toss. <b>Right:</b> an adversary chooses the rows that hurt each point most, and the model is retrained "
        f"without them. After one such deletion {plain.share_after(1):.0%} of the plain points are left. After "
        f"{first.audited_k}, the number they were made for, {first.share_after(first.audited_k):.0%} of the "
        f"first-order points are, and {kept.share_after(first.audited_k):.0%} of those with the promise "
        "<i>retrained</i>."
    )
    rival = demo.method("margin")
    caption = joined(
        caption,
        f" The simplest rival, one margin above the boundary for everybody at the mean cost of {kept.name}, keeps "
        f"{rival.validity[1].mean:.0%} after {rival.validity[1].fraction:.1%} of the rows left at random, and "
        f"{rival.share_after(kept.audited_k):.0%} after the worst {kept.audited_k}.",
    )
    yield Figure("survival", draw_survival(demo.methods, MOST_DELETIONS), caption)


def _costs(demo: Demo) -> Iterator[Part]:
    caption = "Length of the change each refused person is asked for. Box: middle half of the people, line: median, "
    yield Figure("costs", draw_costs(demo.methods), f"{caption}diamond: mean.")


def _numbers(demo: Demo) -> Iterator[Part]:
    """A row a method; the head has two lines, the shares of deleted rows under one title."""
    shares = [f"{validity.fraction:.1%}" for validity in demo.methods[0].validity[1:]]
    above = [
        tag("th", "promise", rowspan="2"),
        tag("th", "mean cost", rowspan="2"),
        tag("th", "still accepted, rows deleted at random", colspan=str(len(shares))),
        tag("th", Html("survive the worst<br>deletion found"), rowspan="2"),
    ]
    rows = []
    for method in demo.methods:
        survive = f"{method.survivors} of {len(method.audited)} (k = {method.audited_k})"
        accepted = [f"{validity.mean:.1%}" for validity in method.validity[1:]]
        rows.append([method.name, f"{method.mean_cost:.2f}", *accepted, survive])
    yield Table(joined(tag("tr", *above), tag("tr", *(tag("th", share) for share in shares))), rows)
    largest = max(validity.standard_error for method in demo.methods for validity in method.validity)
    yield Paragraph(
        f"Standard errors over the {demo.trials} retrainings are at most {largest:.1%}. Worst deletion: of at most k "
        f"rows for a promise about k, of at most {demo.methods[0].audited_k} where there is none; thorough "
        "search with another seed than the solver's.",
        "small",
    )


def _example(demo: Demo) -> Iterator[Part]:
    example = demo.example
    if example is None:
        yield Paragraph(
            "Where only amounts and durations may change, nobody of those shown can be answered: each gets the reason "
            "why not."
        )
        return
    yield Paragraph(
        "Only amounts and durations may change; everything else is held fixed, and values stay within what the "
        f"training data show. {example.answered} of {demo.denied} refused people can be answered under these rules; "
        "the others get the reason why not."
    )
    both = (example.plain, example.robust)
    after = [{change.feature: change.after for change in found.changes} for found in both]
    rows = []
    for name, change in {change.feature: change for found in both for change in found.changes}.items():
        values = [change.before, *(found.get(name, change.before) for found in after)]
        rows.append([change.label, *(_amount(value, change.unit) for value in values)])
    yield Table(["what", "today", "plain counterfactual", demo.method("retrained 0.5%").name], rows)


def _amount(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == round(value) else 1
    return f"{value:,.{digits}f} {unit}".strip()


def _promises(demo: Demo) -> Iterator[Part]:
    settings = {method.name: method.recourses.settings for method in reversed(demo.methods)}
    said = {found.promise if found.k else name: found for name, found in settings.items()}
    yield Points(
        [
            joined(tag("b", name), f" (k = {found.k}): a recourse with this promise {found.sentence}.")
            if found.k
            else joined(tag("b", name), f": {found.sentence}.")
            for name, found in reversed(said.items())
        ]
    )
    if demo.abstention:
        asked = f" Asked for {demo.methods[0].audited_k} deletions on this small table, the certificate abstains: "
        title = tag("b", "Where nothing is proven, nothing is claimed.")
        yield Paragraph(joined(title, f"{asked}{demo.abstention}."), "note")
    yield Paragraph(
        "The comparison uses the paper's setting: every column may change, categories included, and 0/1 columns may "
        "take values in between. The example above holds categories fixed, so that it reads as a person would read it."
    )
    made = (
        f"rocerf {__version__}, seed {demo.seed}, model accuracy on new applicants {demo.accuracy:.1%}, training data "
        f"SHA-256 {demo.dataset.train.checksum[:16]}…. Data: {demo.dataset.source} ({demo.dataset.licence}). Made by "
    )
    yield Paragraph(joined(made, tag("code", "rocerf demo"), "."), "small")
