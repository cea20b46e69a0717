"""What the report says of the run itself: when, where and with what it was made, and what is missing from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rocerf.html import Heading, Html, Paragraph, Part, Points, Table, tag
from rocerf.reproduction.tables import case_name, where

if TYPE_CHECKING:
    from rocerf.reproduction.tables import Curve, Results

#: Entries of the run's record that are shown elsewhere than in the list of facts.
ELSEWHERE = ("wall_seconds", "missing", "failed", "sessions", "versions", "jobs")

#: Entries of a session and the heads of their columns; what is not recorded is a dash.
SITTINGS = {
    "started": "begun (UTC)",
    "machine": "machine",
    "device": "device of networks",
    "workers": "processes",
    "threads": "threads of each",
    "wall_seconds": "wall time",
    "jobs_run": "jobs run",
    "commit": "commit",
}


def what_was_run(
    results: Results, curves: Sequence[Curve], sittings_text: str, elsewhere: Sequence[str] = ()
) -> Iterator[Part]:
    """The parts of the section; models that are ``elsewhere`` are not named as missing."""
    run, missing, failed = results.run, results.missing(elsewhere), results.run.get("failed") or {}
    yield Table([], [(name.replace("_", " "), _flat(value)) for name, value in facts(run, curves)], "facts")
    sessions = _sittings(run)
    if sessions:
        yield Heading("Sittings" if len(sessions) > 1 else "One sitting")
        if len(sessions) > 1:
            yield Paragraph(sittings_text)
        rows = [[str(place), *_sitting(part)] for place, part in enumerate(sessions, start=1)]
        yield Table(["", *SITTINGS.values()], rows, "words")
    yield from _part_of_the_people(results)
    if missing:
        yield Paragraph(Html("<b>Missing from this run</b>, and left out of what follows:"), "note")
        yield Points(missing, "said")
    else:
        yield Paragraph("Nothing is missing: every data set, model and method of a full run is here.")
    if isinstance(failed, dict) and failed:
        yield Paragraph(tag("b", "Failed:"))
        yield Points([f"{name}: {reason}" for name, reason in failed.items()], "said")
    if results.settings:
        yield Heading("Settings")
        yield Settings(results.settings)


class Settings(str):
    """The text of a settings file, as it is."""

    __slots__ = ()

    def html(self) -> Html:
        """``<pre>``."""
        return tag("pre", str(self))


def facts(run: dict[str, Any], curves: Sequence[Curve]) -> Iterator[tuple[str, Any]]:
    """Name and value of what the run's record says."""
    yield "wall time", _duration(run.get("wall_seconds"))
    yield "deletions at each α", max((curve.trials for curve in curves), default=0)
    jobs = run.get("jobs")
    if isinstance(jobs, dict):
        yield "jobs", f"{jobs.get('done')} of {jobs.get('planned')} done"
    yield from ((name, value) for name, value in run.items() if name not in ELSEWHERE)
    # Each set of versions once, with the sittings that had it: parts of a run may come from several machines.
    sets = [part.get("versions") for part in _sittings(run) or [run]]
    names = dict.fromkeys(name for found in sets if isinstance(found, dict) for name in found)
    grouped: dict[str, list[str]] = {}
    for place, found in enumerate(sets, start=1):
        known = found if isinstance(found, dict) else {}
        said = ", ".join(f"{name} {_flat(known.get(name, 'not recorded'))}" for name in names) or "not recorded"
        grouped.setdefault(said, []).append(str(place))
    for said, places in grouped.items():
        which = f" of sitting{'s' if len(places) > 1 else ''} {', '.join(places)}" if len(grouped) > 1 else ""
        yield f"versions{which}", said


def _sittings(run: dict[str, Any]) -> list[dict[str, Any]]:
    sessions = run.get("sessions")
    return [part for part in sessions if isinstance(part, dict)] if isinstance(sessions, list) else []


def _sitting(part: dict[str, Any]) -> list[str]:
    """The cells of one sitting."""
    shown = {"machine": "not recorded"} | part | {"wall_seconds": _duration(part.get("wall_seconds"))}
    shown["started"] = str(part.get("started") or "–")[:16].replace("T", " ")
    shown["device"] = ": ".join(str(part[name]) for name in ("device", "gpu") if part.get(name)) or "–"
    commit = part.get("commit")
    shown["commit"] = f"{str(commit)[:12]}{', changed since' if part.get('dirty') else ''}" if commit else "–"
    return [str(shown.get(name, "–")) for name in SITTINGS]


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
    return f"{text[:12]}…" if re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{40}", text) else text


def _part_of_the_people(results: Results) -> Iterator[Part]:
    """Where fewer people were explained than denied, that is said before any number is shown."""
    said = []
    for row in results.models.to_dict("records"):
        case = {name: row[name] for name in ("dataset", "model", "setting")}
        people = where(results.methods, **case)["people"]
        if len(people) and people.max() < row["denied"]:
            said.append(f"{case_name(**case)}: {people.max():,} of {row['denied']:,}")
    if said:
        who = "drawn at random" if str(results.run.get("asked", "")).startswith("drawn") else "the first of the file"
        yield Paragraph(f"Not all denied people were explained, but some, {who}: {'; '.join(said)}.")
