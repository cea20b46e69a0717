"""The measured part of docs/scale.md, from the records of benchmarks/out_of_core.py and benchmarks/growth.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

STEPS = {
    "from_parquet": "`from_parquet`",
    "fit": "`LogisticModel.fit`",
    "without": "`without` 7 rows",
    "recheck": "`recheck` after them",
    "first_order": "`first_order`, 100 people",
}

#: The cluster that the last section is about: rows, cores, people, seconds of the scheduler for a task (assumed).
ROWS, CORES, PEOPLE, A_TASK = 1e9, 800, 100, 1e-3
TASKS_A_CORE = 4

#: Pieces whose absence is said.
WANTED = (
    *(f"steps {10**power}" for power in (5, 6, 7)),
    *("retrained 1000000", "overhead 1000000", "dask 10000000", "equal"),
    *("1000000x20", "5000x500", "3000x2000"),
)

#: Floors that a pass on two Dask workers may take at 10^7 rows.
DASK_FLOORS = 2


#: Answers of `retrained` that an attack afterwards did not break.
SURVIVE = "survive an attack afterwards"


def scale_page(disk: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    """Growth, passes, overhead and equality as recorded, and what follows for a cluster."""
    parts = [_growth(disk), _retrained(disk), _in_memory(held), _overhead(disk), _equal(disk), _versions(disk, held)]
    return "\n\n".join([*(part for part in parts if part), _on_paper(disk)]) + "\n"


def _of(record: Mapping[str, Any], what: str) -> list[Any]:
    """The pieces of this kind, by their rows."""
    found = [piece for name, piece in record.items() if name.split()[0] == what]
    return sorted(found, key=lambda piece: piece.get("rows", 0))


def _power(rows: float) -> str:
    digits = f"{rows:.0e}".split("e")
    return f"10^{int(digits[1])}" if digits[0] == "1" else f"{rows:,.0f}"


def _growth(disk: Mapping[str, Any]) -> str:
    sizes = _of(disk, "steps")
    heads = [f"{_power(row['rows'])} rows (floor {row['floor_seconds']:.3g} s)" for row in sizes]
    lines = [_row("step", *heads), _row(*["---"] * (1 + len(sizes)))]
    for step, called in STEPS.items():
        cells = [
            f"{row[step]['seconds']:.3g} s, {row[step]['floors']:.1f} floors, {row[step]['mib']:.0f} MiB"
            for row in sizes
        ]
        lines.append(_row(called, *cells))
    ks = " and ".join(f"{row['first_order']['k']:,}" for row in sizes)
    lines += ["", f"k is {ks}. {_grown(sizes)}"]
    return "\n".join(lines)


def _grown(sizes: list[Any]) -> str:
    """By how much time grew between the two largest sizes."""
    if len(sizes) < 2:
        return ""
    small, large = sizes[-2:]
    times = large["rows"] / small["rows"]
    said = [f"{STEPS[step]} {large[step]['seconds'] / small[step]['seconds']:.1f}" for step in STEPS]
    most = max(large[step]["mib"] for step in STEPS)
    return (
        f"From {_power(small['rows'])} to {_power(large['rows'])} rows, {times:.0f} times as many, time grew by "
        f"these "
        f"factors: {', '.join(said)}; the floor itself by {large['floor_seconds'] / small['floor_seconds']:.1f}. The "
        f"largest memory at {_power(large['rows'])} rows was {most:.0f} MiB."
    )


def _retrained(disk: Mapping[str, Any]) -> str:
    said = [
        f"`retrained` for {row['people']} people at {_power(row['rows'])} rows and k = {row['k']:,}: "
        f"{row['seconds']:.0f} s, "
        f"{row['floors']:.0f} floors, {row['mib']:.0f} MiB; {row['passes']} passes over the rows, each for "
        f"those still "
        f"open, {row['passes_a_person']:.0f} for each person, {_nanoseconds(row):.0f} nanoseconds for each row "
        f"and person "
        f"of a pass. {row['answered']} were answered."
        for row in _of(disk, "retrained")
        if row["passes"]
    ]
    return "\n".join(said)


def _nanoseconds(row: Any) -> float:
    return float(1e9 * row["seconds"] / (row["rows"] * row["people"] * row["passes_a_person"]))


def _in_memory(held: Mapping[str, Any]) -> str:
    if not held:
        return ""
    lines = [
        "In memory (`python -m benchmarks.growth`, normal and 0/1 columns), 20 people with `retrained`, 1,000 with "
        "`first_order`:",
        "",
        _row(
            *(
                "rows x columns",
                "k",
                "`first_order`",
                "`retrained`",
                "limit",
                "one retraining in a batch / alone",
                SURVIVE,
            )
        ),
        _row(*["---"] * 7),
    ]
    for row in sorted(held.values(), key=lambda row: (row["columns"], row["rows"])):
        limit = "" if row["limit_seconds"] is None else f"{row['limit_seconds']:.0f} s"
        seconds = (f"{row['first_order_seconds']:.1f} s", f"{row['retrained_seconds']:.1f} s", limit)
        shape = f"{row['rows']:,} x {row['columns']:,}"
        survive = f"{row['survive']} of {row['attacked']}"
        lines.append(_row(shape, str(row["k"]), *seconds, f"{row['batch_over_alone']:.2f}", survive))
    return "\n".join(lines)


def _overhead(disk: Mapping[str, Any]) -> str:
    said = [
        f"A gradient and a Hessian over {_power(row['rows'])} rows: plain NumPy {row['numpy']:.3g} s, one chunk "
        f"after "
        f"another {row['serial']:.3g}, threads {row['threads']:.3g}, that is {row['threads_over_numpy']:.2f} "
        f"times NumPy."
        for row in _of(disk, "overhead")
    ]
    said += [
        f"Two Dask worker processes at {_power(row['rows'])} rows, the worst 0.5 % of the rows of 100 people, "
        f"seconds of all "
        f"processes: start {row['start_seconds']:.1f} s; the first pass, in which they decode their row groups, "
        f"{row['first_pass_seconds']:.1f} s ({row['first_pass_floors']:.1f} floors); a further one "
        f"{row['pass_seconds']:.1f} s ({row['pass_floors']:.1f} floors{_less_idle(row)}), where threads in one process "
        f"take {row['same_pass_in_threads_seconds']:.1f} s.{_against_limit(row)} On one machine Dask brings nothing "
        "but overhead."
        for row in _of(disk, "dask")
    ]
    return "\n\n".join(said)


def _less_idle(row: Mapping[str, Any]) -> str:
    """What of a pass the idle cluster would have taken in the same time, where that was measured."""
    if "idle_share" not in row:
        return ""
    return (
        f"; {row['pass_floors_less_idle']:.1f} without what scheduler and workers take while nobody asks them, "
        f"{row['idle_share']:.2f} s a second of the clock, of which a pass lasted {row['pass_wall_seconds']:.0f} on a "
        "machine with other work"
    )


def _against_limit(row: Mapping[str, Any]) -> str:
    """Whether the limit for Dask was kept, at the size that it is about."""
    if row["rows"] < 10**7:
        return ""
    kept = "kept" if row["pass_floors"] <= DASK_FLOORS else "**missed**"
    return f" The limit that we set ourselves, {DASK_FLOORS} floors a pass, was {kept}."


def _equal(disk: Mapping[str, Any]) -> str:
    found = {name: row for name, row in disk.get("equal", {}).items() if isinstance(row, dict)}
    if not found:
        return ""
    said = [
        f"{name.capitalize()} ({row['rows']:,} rows, {row['people']} people) {row['largest']:.1g}"
        for name, row in found.items()
    ]
    return (
        "Written in 1, 7 and 40 files, in series, in threads and on two Dask worker processes, with `first_order` and "
        "`retrained` at k = 0.5 %, the recourses differ from those of the same rows in memory by at most this, in "
        f"standard deviations of the column: {', '.join(said)}."
    )


def _versions(disk: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    """How many versions of the code were measured, what of which, and what was not."""
    pieces = {_called(name): piece for record in (disk, held) for name, piece in record.items()}
    codes: dict[str, list[str]] = {}
    for name, piece in pieces.items():
        codes.setdefault(piece["code_sha256"][:8], []).append(name)
    if len(codes) == 1:
        said = [f"All of these figures are of one version of the code (`{next(iter(codes))}`)."]
    else:
        of = "; ".join(f"`{code}` {', '.join(sorted(names))}" for code, names in codes.items())
        said = [f"These figures are of {len(codes)} versions of the code: {of}."]
    missing = [called for called in map(_called, WANTED) if called not in pieces]
    said += [f"**Not measured** with any of them: {', '.join(missing)}."] if missing else []
    said += ["**Not measured** at all: `retrained` at 10^7 rows, and a cluster of several machines."]
    return " ".join(said)


def _called(name: str) -> str:
    """A piece of a record in words."""
    what, _, rows = name.partition(" ")
    if rows:
        return f"{what} at {_power(int(rows))} rows"
    return " x ".join(f"{int(number):,}" for number in what.split("x")) if what[0].isdigit() else what


def _on_paper(disk: Mapping[str, Any]) -> str:
    """What follows from the measured constants; only multiplied, never run."""
    return "\n".join(["## On paper: 10^9 rows on 100 machines", "", *_paper_lines(disk)])


def _paper_lines(disk: Mapping[str, Any]) -> Iterator[str]:
    reading, attack = _of(disk, "steps")[-1], next(iter(_of(disk, "retrained")), None)
    k, tasks = int(ROWS * 0.005), CORES * TASKS_A_CORE
    yield f"From the constants above, for 20 columns, {PEOPLE} people, k = 0.5 %, {CORES} cores; nobody has run it."
    yield ""
    decode = reading["from_parquet"]["seconds"] / reading["rows"]
    first = reading["first_order"]["seconds"] / reading["rows"]
    yield (
        f"- **Time.** Decoding the files takes {1e6 * decode:.2g} microseconds a row, "
        f"{decode * ROWS / CORES:.2g} s on all cores; "
        f"`first_order` {1e6 * first:.2g} microseconds a row for all people, {first * ROWS / CORES:.0f} s if "
        f"all of it were shared "
        "out, which the merging of worst rows is not."
    )
    if attack is not None:
        arithmetic = _nanoseconds(attack) * 1e-9 * ROWS * PEOPLE * attack["passes_a_person"] / CORES
        waiting = attack["passes"] * tasks * A_TASK
        yield (
            f"  `retrained` is {arithmetic:.0f} s of arithmetic ({attack['passes_a_person']:.0f} passes a person at "
            f"{_nanoseconds(attack):.0f} ns a row), and {attack['passes']} rounds of {tasks:,} tasks: at a "
            f"millisecond of the "
            f"scheduler a task (assumed, not measured) {waiting / 60:.0f} minutes. **The scheduler bends "
            f"first**: larger "
            "chunks and fewer tasks a thread are the remedy."
        )
    groups, way, files = ROWS / 50_000, 52, 100  # a pickled table of 200 row groups has 10 kB
    table = groups * way + files * 1000
    yield (
        f"- **Network.** A pass sends each worker its parameters (34 kB) and the way to the table, about {way} "
        f"bytes a row group and a kilobyte a file: {table / 1e6:.1f} MB for {groups:,.0f} row groups in {files} files, "
        f"{table * 100 / 1e6:.0f} MB to 100 machines. Gradients come back as 17 kB a merge."
    )
    kept, entry = 1.5 * k, 13
    yield (
        f"- **Worst rows.** k is {k:,}: about 1.5 k values, row numbers and owners of {entry} bytes come back "
        f"in a pass, "
        f"{kept * entry / 1e6:.0f} MB for each person, and are in the memory of the process that asks, where "
        f"they are sorted "
        f"at 24 bytes each. **This bends next**: k as a share of the rows is what grows, not the rows. With k = "
        f"1,000 it is "
        f"{1500 * entry / 1e3:.0f} kB."
    )
    yield (
        f"- **This process** has a working copy of all rows on its disk ({ROWS * 22 * 8 / 1e9:.0f} GB), from "
        f"which deleted rows are looked up."
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
