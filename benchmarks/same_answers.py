"""Does this version of rocerf answer as an earlier one did? Recourses, proofs, attacks, letters on the three tables.

``python -m benchmarks.same_answers --before REVISION`` asks the cases of :mod:`benchmarks.answer_cases` twice, each
time in a process of its own: with the sources of that revision, and with the present ones, which also read the
explainers that the earlier ones saved. Numbers must agree to 1e-9 (``|a - b| <= 1e-9 (1 + |a|)``), those in words too;
codes, ids and the words themselves exactly. A point of the same cost, or worst rows with the same margin, are a *tie*:
several optima are equally good, and rounding decides which is found. Ties are counted and shown, figures and words have
columns of their own; ``--figures-only`` leaves the words out. Any other difference ends it with status 1, and so does a
case that fails, unless a table is missing (COMPAS is found as by ``make bench``).

``--collect FILE`` asks the present version alone, ``--compare BEFORE AFTER`` compares two such files, ``--only
PATTERN`` takes the cases whose name contains it. All cases take about four minutes a version on two quiet cores.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMPAS = ROOT.parent / "shared" / "data" / "openxai"

#: Largest difference of two numbers that count as equal: relative to 1 + their size, so absolute near 0.
TOLERANCE = 1e-9

#: What may differ where each person's cost is the same, and where each person's margin is.
OF_A_POINT = ("matrix", "points", "changes", "margins", "scores", "gaps", "worst_ids")
OF_A_MARGIN = ("worst_ids",)

#: A number in a text.
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")

#: Figure under which the error of a case that failed is noted, and the one error that is no failure.
FAILED = "failed"
NO_TABLE = "DatasetUnavailableError"

#: Characters shown of what differs.
SHOWN = 300


@dataclass(frozen=True)
class Row:
    """How the answers to one case compare: names compared, the largest difference of a number, what differs."""

    case: str
    figures: int
    words: int
    largest: float
    different_figures: Mapping[str, str] = field(default_factory=dict)
    different_words: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    ties: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the case could not be asked for another reason than a missing table."""
        return bool(self.failure) and not self.failure.startswith(NO_TABLE)

    def same(self, figures_only: bool = False) -> bool:
        """Whether nothing differs and the case did not fail."""
        words = not self.different_words or figures_only
        return not self.failed and not self.different_figures and words


def difference(before: Any, after: Any) -> float:
    """The largest difference of two nested lists of numbers and texts; infinite where shapes, texts or gaps differ.

    >>> difference([1.0, "a", float("nan")], [1.0, "a", float("nan")])
    0.0
    >>> difference([1.0, 2.0], [1.0]), difference("a", "b"), difference(1.0, float("nan"))
    (inf, inf, inf)
    """
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return math.inf
        return max((difference(one, two) for one, two in zip(before, after, strict=True)), default=0.0)
    if isinstance(before, str) and isinstance(after, str):
        return _difference_of_texts(before, after)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after))
    if not numbers or isinstance(before, int) is not isinstance(after, int):
        return 0.0 if type(before) is type(after) and before == after else math.inf
    if before == after or (math.isnan(before) and math.isnan(after)):
        return 0.0
    gap = abs(before - after) / (1.0 + abs(before))
    return gap if math.isfinite(gap) else math.inf


def _difference_of_texts(before: str, after: str) -> float:
    """That of the numbers in two texts; infinite where anything else differs."""
    if before == after:
        return 0.0
    one, two = NUMBER.split(before), NUMBER.split(after)
    if len(one) != len(two) or one[::2] != two[::2]:
        return math.inf
    return max(difference(float(a), float(b)) for a, b in zip(one[1::2], two[1::2], strict=True))


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    """One row for each case of two collections, as :func:`collect` writes them."""
    names = [*before["figures"], *before["words"], *after["figures"], *after["words"]]
    cases = dict.fromkeys(name.partition("/")[0] for name in names)
    return [_row(case, before, after) for case in cases]


def _row(case: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Row:
    figures = dict(_pairs(case, before["figures"], after["figures"]))
    words = dict(_pairs(case, before["words"], after["words"]))
    gaps = {name: difference(*pair) for name, pair in figures.items()}
    of_words = {name: difference(*pair) for name, pair in words.items()}
    ties = {name for name in (*gaps, *of_words) if _tied(name, gaps)}
    found = [
        {name: f"{gap:.2g}: {_shown(*said[name])}" for name, gap in of.items() if gap > TOLERANCE}
        for of, said in ((gaps, figures), (of_words, words))
    ]
    real = [{name: text for name, text in of.items() if name not in ties} for of in found]
    equal = [gap for name, gap in gaps.items() if name not in ties]
    failure = str(after["figures"].get(f"{case}/{FAILED}", ""))
    tied = {name: text for of in found for name, text in of.items() if name in ties}
    return Row(case, len(figures), len(words), max(equal, default=0.0), real[0], real[1], failure, tied)


def _tied(name: str, gaps: Mapping[str, float]) -> bool:
    """Whether a name may differ because what decides is the same: costs for points, margins for worst rows."""
    group, _, kind = name.rpartition("/")
    same = {what: gaps.get(f"{group}/{what}", math.inf) <= TOLERANCE for what in ("costs", "margins")}
    return (kind in OF_A_POINT and same["costs"]) or (kind in OF_A_MARGIN and same["margins"])


def _pairs(case: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """What both collections say by each name of a case; "missing" where one says nothing."""
    for name in dict.fromkeys([*before, *after]):
        if name.partition("/")[0] == case:
            yield name, (before.get(name, "missing"), after.get(name, "missing"))


def _shown(before: Any, after: Any) -> str:
    """The innermost place where two values first differ."""
    while isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        gaps = [difference(*pair) for pair in zip(before, after, strict=True)]
        if not any(gap > TOLERANCE for gap in gaps):
            break
        place = gaps.index(max(gaps))
        before, after = before[place], after[place]
    if isinstance(before, str) and isinstance(after, str):
        pairs = enumerate(zip(before, after, strict=False))
        start = max(0, next((place for place, (one, two) in pairs if one != two), 0) - 40)
        before, after = before[start:], after[start:]
    return f"{json.dumps(before)[:SHOWN]} -> {json.dumps(after)[:SHOWN]}"


def show(rows: Sequence[Row], figures_only: bool) -> bool:
    """Print the table, then what differs; whether all is the same."""
    print(f"{'case':36}{'figures':>8}{'largest difference':>20}{'':3}{'figures':10}{'words':>6}   words")
    for row in rows:
        if row.failure:
            print(f"{row.case:36}{'FAILED' if row.failed else 'left out'}: {row.failure[:SHOWN]}")
            continue
        figures, words = ("DIFFERENT" if found else "equal" for found in (row.different_figures, row.different_words))
        ties = f" ({len(row.ties)} ties)" if row.ties else ""
        print(f"{row.case:36}{row.figures:>8}{row.largest:>20.2g}{'':3}{figures:10}{row.words:>6}   {words}{ties}")
    for row in rows:
        for kind, found in (("figures", row.different_figures), ("words", row.different_words), ("a tie", row.ties)):
            for name, said in found.items() if kind != "words" or not figures_only else ():
                print(f"\n{kind} of {name}\n  {said}")
    differing = [row.case for row in rows if not row.same(figures_only)]
    print(f"\n{len(rows) - len(differing)} of {len(rows)} cases are the same" + (" (figures)" if figures_only else ""))
    return not differing


def collect(target: Path, only: str, folder: Path, others: Path) -> None:
    """Ask the cases with the rocerf that is imported here; explainers go to ``folder``, others' are in ``others``."""
    from benchmarks.answer_cases import CASES
    from benchmarks.answer_notes import Notes

    notes = Notes(folder, others)
    for name, ask in CASES.items():
        if only not in name:
            continue
        notes.case, start = name, time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits that stop early are part of what is asked
                ask(notes)
        except Exception as error:  # what fails must be seen beside everything else
            notes.figure(FAILED, f"{type(error).__name__}: {error}")
        failure = notes.figures.get(f"{name}/{FAILED}", "")
        print(f"{name:36}{time.perf_counter() - start:7.1f} s  {failure}", file=sys.stderr, flush=True)
        target.write_text(json.dumps({"figures": notes.figures, "words": notes.words}), encoding="utf-8")


def asked(source: Path, target: Path, options: argparse.Namespace, others: Path) -> dict[str, Any]:
    """The collection of the version in a source folder, made by a process that imports that one."""
    here = {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if COMPAS.is_dir() and "ROCERF_COMPAS" not in os.environ:
        here["ROCERF_COMPAS"] = str(COMPAS)
    environment = {**os.environ, **here}
    where = [sys.executable, "-c", "import rocerf; print(rocerf.__file__)"]
    found = subprocess.run(where, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(found).is_relative_to(source):
        raise SystemExit(f"Expected to import rocerf from {source}, got {found}; look for another one on the path.")
    command = [sys.executable, "-m", "benchmarks.same_answers", "--collect", str(target), "--only", options.only]
    command += ["--explainers", str(target.with_suffix("")), "--read", str(others)]
    print(f"rocerf from {source}", file=sys.stderr, flush=True)
    subprocess.run(command, env=environment, cwd=ROOT, check=True)
    return read(target)


def sources_of(revision: str, folder: Path) -> Path:
    """The folder ``src`` of a revision, unpacked; the repository and its work trees stay as they are."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, "src"]
    packed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def read(path: Path) -> dict[str, Any]:
    """A collection that :func:`collect` wrote."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def main() -> int:
    """Collect, compare, or both; 1 if anything differs."""
    parser = argparse.ArgumentParser(description="Compare the answers of two versions of rocerf.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", metavar="REVISION", help="compare the present sources with those of this revision")
    what.add_argument("--collect", type=Path, metavar="FILE", help="write the answers of the present version")
    what.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="compare two such files")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only cases whose name contains this")
    parser.add_argument("--figures-only", action="store_true", help="leave differences of words out")
    parser.add_argument("--explainers", type=Path, help="with --collect: a folder to leave saved explainers in")
    parser.add_argument("--read", type=Path, help="with --collect: a folder in which another version left its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.collect:
            explainers = options.explainers or folder
            explainers.mkdir(parents=True, exist_ok=True)
            collect(options.collect, options.only, explainers, options.read or explainers)
            return 0
        if options.compare:
            before, after = (read(path) for path in options.compare)
        else:
            saved = folder / "before"
            before = asked(sources_of(options.before, folder / "earlier"), folder / "before.json", options, saved)
            after = asked(ROOT / "src", folder / "after.json", options, saved)
        return 0 if show(compare(before, after), options.figures_only) else 1


if __name__ == "__main__":
    sys.exit(main())
