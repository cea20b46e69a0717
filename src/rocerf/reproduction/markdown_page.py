"""The report of a run as Markdown, for docs/reproduction.md and the README: the same words, from the same tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rocerf.html import Paragraph, Points, Table
from rocerf.reproduction.answers import HOLDS, Answer, answers
from rocerf.reproduction.claims import Claim, claims
from rocerf.reproduction.costs import cost_summary, outside_sentences
from rocerf.reproduction.findings import ABOUT_THE_PAPER, own_evidence
from rocerf.reproduction.frontier import beaten_table, frontiers_of
from rocerf.reproduction.published import METHODS, MODELS, SETTINGS, shipped
from rocerf.reproduction.report_tables import (
    RIVALS,
    Rows,
    accuracy_rows,
    beaten_rows,
    claim_rows,
    cost_rows,
    worst_rows,
)
from rocerf.reproduction.run_facts import what_was_run
from rocerf.reproduction.tables import accuracy_table, cost_table, validity_curves_of
from rocerf.reproduction.words import listed, percent, theorem_sentences

if TYPE_CHECKING:
    from rocerf.reproduction.tables import Results

TEXT = shipped("report.yaml")

#: The part of the claims that is about networks.
NETWORKS = "Networks"

#: A run and the folder of its figures, for each model.
Runs = Mapping[str, tuple["Results", str]]


def answers_text(results: Results, networks: Results | None = None) -> str:
    """The three answers as a list, in brief; the one about networks from their own run where they have one."""
    return f"{_bullets(f'**{a.question}. {a.verdict}** {a.brief}'.strip() for a in _answers(results, networks))}\n"


def _answers(results: Results, networks: Results | None) -> list[Answer]:
    return answers(results) if networks is None else [*answers(results)[:-1], answers(networks)[-1]]


def page(results: Results, figures: str, networks: Results | None = None, networks_figures: str = "") -> str:
    """Everything between the page's markers; ``figures`` is where its drawings lie, seen from the page.

    ``networks`` is a run of networks alone, where the other has none.
    """
    of: Runs = {"lr": (results, figures), "nn": (networks, networks_figures) if networks else (results, figures)}
    every = (f"**{a.question}.** {a.sentence}" for a in _answers(results, networks) if a.sentence)
    parts = [
        answers_text(results, networks).strip(),
        _plain(TEXT["holds"].format(holds=percent(HOLDS, 0))),
        "All figures of these answers:",
        _bullets(every),
        *_curves(results, figures),
        *([] if networks is None else _networks(networks, networks_figures)),
        *_costs(of),
        "## Accuracy",
        _table(["", "paper", "as published", "corrected", "denied", "denied, corrected"], _accuracy(results)),
        "## Validity as more rows are deleted at random",
        "Shares are of all denied people, as in the paper; whoever got no answer has no valid one.",
        *(
            _figure(of[model][1], f"validity_{model}", f"{name}: average validity by share of deleted rows")
            for model, name in (("lr", "Logistic regression"), ("nn", "Networks"))
            if (of[model][0].models["model"] == model).any()
        ),
        *_worst(results),
        "## The paper's claims, one by one",
        _table(["the paper says", "here", "figures"], claim_rows(_claims(results, networks))),
        *_theory(results, figures),
        "## What we found about the paper's data and code",
        _bullets(f"**{title}** {text}" for title, text in ABOUT_THE_PAPER.items()),
        "From these runs:" if networks else "From this run:",
        _bullets(dict.fromkeys(said for run in (results, networks) if run for said in own_evidence(run))),
        "## What was run",
        *_run(results, networks),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _claims(results: Results, networks: Results | None) -> list[Claim]:
    """Those of networks from their own run where they have one, in the place that they have on the page."""
    found = claims(results, validity_curves_of(results))
    if networks is None:
        return found
    theirs = [claim for claim in claims(networks, validity_curves_of(networks)) if claim.part == NETWORKS]
    first = next((place for place, claim in enumerate(found) if claim.part == NETWORKS), len(found))
    rest = [claim for claim in found if claim.part != NETWORKS]
    return [*rest[:first], *theirs, *rest[first:]]


def _curves(results: Results, figures: str) -> Iterable[str]:
    yield "## Validity against cost"
    yield _plain(TEXT["curves"])
    frontiers = frontiers_of(results)
    for model, name in MODELS.items():
        if any(f.model == model for f in frontiers):
            words = f"Validity against cost, {name}: rows deleted at random on the left, picked on the right"
            yield _figure(figures, f"curves_{model}", words)
    beaten = beaten_table(results)
    if len(beaten):
        yield "### Who is as valid for less?"
        yield _plain(TEXT["beaten"])
        yield _table(["target", *(METHODS[m] for m in RIVALS)], beaten_rows(beaten))


def _networks(results: Results, figures: str) -> Iterable[str]:
    """What a run of networks alone has to show, with where it was made."""
    yield "## Networks, in a run of their own"
    yield f"[Its report]({figures}/report.html). {networks_sentence(results)}"
    yield from list(_curves(results, figures))[2:]
    yield _table(["", "paper", "as published", "corrected", "denied", "denied, corrected"], _accuracy(results))
    yield from list(_worst(results))[1:]
    yield from _run(results, results)


def networks_sentence(results: Results) -> str:
    """How large a run of networks alone was: where, which settings, how many seeds and people; all from its tables."""
    methods, sweeps, jobs = results.methods, results.sweeps, results.run.get("jobs", {})
    first = methods[methods["seed"] == 0].groupby("dataset")["people"].max()
    seeds = methods.groupby(["setting", "dataset"])["seed"].nunique()
    curve = sweeps[sweeps["seed"] == 0].groupby("dataset")["people"].max() if sweeps is not None else first
    where = dict.fromkeys(str(part.get("gpu") or "the CPU") for part in results.run.get("sessions", []))
    done, planned = jobs.get("done"), jobs.get("planned")
    return str(TEXT["networks"]).format(
        device=listed(list(where)) or "a machine that was not recorded",
        settings=listed([words for key, words in SETTINGS.items() if key in set(methods["setting"])]),
        seeds=f"{_ends(seeds)} seeds" if seeds.max() > 1 else "one seed",
        people=f"{_ends(first)} people",
        curve=f"{_ends(curve)} people",
        deletions=max((c.trials for c in validity_curves_of(results)), default=0),
        done=f" {done:,} of {planned:,} jobs were done." if done != planned else "",
    )


def _ends(values: Iterable[float]) -> str:
    """``4``, or ``4 to 10``."""
    known = sorted(values)
    return " to ".join(dict.fromkeys(f"{value:.0f}" for value in (known[0], known[-1])))


def _costs(of: Runs) -> Iterable[str]:
    yield "## Cost, beside the paper's"
    yield _plain(TEXT["published"])
    yield _plain(TEXT["cost"])
    for model, name in MODELS.items():
        results = of[model][0]
        table = cost_table(results, "l2", model)
        if not len(table):
            continue
        yield f"### L2 cost, {name}"
        yield f"**{cost_summary(table, model)}**"
        shown = table[table["published_verdict"] != ""]
        yield _table(["", "paper", "as published", "against the paper", "corrected"], cost_rows(shown))
        outside = outside_sentences(table, model, "l2")
        yield _bullets(outside)
        yield f"In L1 norm: {cost_summary(cost_table(results, 'l1', model), model, 'l1')}"


def _accuracy(results: Results) -> Rows:
    return accuracy_rows(accuracy_table(results))


def _worst(results: Results) -> Iterable[str]:
    yield "## The worst deletions"
    if results.worst is None:
        yield "Not measured in this run."
        return
    yield _plain(TEXT["worst"])
    yield _table(["", "k", "as published", "cost", "corrected", "cost"], worst_rows(results))


def _theory(results: Results, figures: str) -> Iterable[str]:
    yield "## Sensitivity to k, and the theorems"
    if results.sensitivity is not None:
        yield _figure(figures, "sensitivity", "Validity of the paper's method for several k")
    if results.theorem is not None:
        yield _figure(figures, "theorem", "Extra cost against k/n, and the bounds of Theorems 4.1 and 4.2")
        yield _bullets(theorem_sentences(results.theorem))


def _run(results: Results, networks: Results | None) -> Iterable[str]:
    """The report's tables of facts and sittings, and what is missing, without the models of the other run."""
    elsewhere = [model for model in MODELS if networks and model not in set(results.models["model"])]
    for part in what_was_run(results, validity_curves_of(results), TEXT["sittings"], elsewhere):
        if isinstance(part, Table):
            yield _table(part.head or ["", ""], list(part.rows))
        elif isinstance(part, Points):
            yield _bullets(part.texts)
        elif isinstance(part, Paragraph):
            yield _plain(part.text)


def _plain(text: str) -> str:
    """Text of the report without its markup, code and bold as in Markdown.

    >>> _plain("<b>a</b> <code>b</code>")
    '**a** `b`'
    """
    return re.sub(r"</?b>", "**", re.sub(r"</?code>", "`", text))


def _table(head: Sequence[str], rows: Rows) -> str:
    """A Markdown table; titles across it become a bold first cell."""
    lines = [_row(*head), "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"**{row}**", *[""] * (len(head) - 1)] if isinstance(row, str) else [_cell(cell) for cell in row]
        lines.append(_row(*cells))
    return "\n".join(lines)


def _cell(cell: str) -> str:
    bold = '<span class="out">' in cell or "<b>" in cell
    text = re.sub(r"<[^>]*>", "", cell)
    return f"**{text}**" if bold else text


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _figure(folder: str, name: str, words: str) -> str:
    return f"![{words}]({folder}/{name}.svg)"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
