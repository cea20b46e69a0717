"""The command line: one thin command for each verb of the library.

Exit codes: 0 done (people without a recourse are a result, not a failure); 1 a mistake of ours; 2 bad
input, said in one sentence on standard error; 130 interrupted; 141 nobody reads on. Heavy imports happen inside the
commands, so that ``rocerf --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from rocerf.cli import deletions, explain, init, letters, portfolio, research, service
from rocerf.cli import options as opt
from rocerf.cli.examples import add
from rocerf.cli.outputs import Target, check_targets, write_each
from rocerf.cli.terminal import console, fail, print_json, say
from rocerf.cli.terminal import table as new_table
from rocerf.errors import RocerfError
from rocerf.progress import showing as progress_bar

app = typer.Typer(
    name="rocerf",
    help="Recourse that survives the right to be forgotten.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)

INTERRUPTED = 130
READER_GONE = 141


def main() -> None:
    """Run the command line; every error on purpose becomes one sentence and exit code 2."""
    _open_streams()
    _keep_output_ours()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk or a reader who left can still be distinguished
    except RocerfError as error:
        fail(str(error))
    except (BrokenPipeError, SystemExit) as ended:
        if isinstance(ended, SystemExit) and "_ROCERF_COMPLETE" in os.environ:  # a shell was told what to complete
            raise SystemExit(0) from None
        _leave_quietly()  # whoever reads has seen enough, as `head` does; typer exits for nothing else
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        try:
            sys.stdout.flush()
        except OSError:  # it was the output that could not be written
            _drop_output()
        fail(f"Expected files that can be read and written, got {error.strerror or error}{where}; check the path.")
    except (KeyboardInterrupt, typer.Abort):  # which of them depends on typer's version; newer ones return 130
        code = INTERRUPTED
    except Exception as error:
        if not hasattr(error, "exit_code"):  # not one of the command-line library's own: our mistake
            if os.environ.get("ROCERF_DEBUG"):
                raise
            said = f"internal error ({type(error).__name__}: {error})"
            fail(f"{said}; please run it again with ROCERF_DEBUG=1 and report what it prints.", 1)
        message = error.format_message() if hasattr(error, "format_message") else ""
        if message:
            fail(_with_help(message, getattr(error, "ctx", None)), int(error.exit_code))
        raise SystemExit(int(error.exit_code)) from None
    if code == INTERRUPTED:
        fail("interrupted.", INTERRUPTED)
    raise SystemExit(code if isinstance(code, int) else 0)


def _with_help(message: str, context: Any) -> str:
    """What the command-line library says of a call, and where its options stand."""
    said = message.replace("Value error, ", "").strip()  # its own word for a choice that there is not
    called = " ".join(["rocerf", *filter(None, [getattr(context, "info_name", None)])]) if context else "rocerf"
    where = "rocerf --help" if context is None or context.parent is None else f"{called} --help"
    return f"{said} See '{where}'." if said.endswith("?") else f"{said.rstrip('.')}; see '{where}'."


def _leave_quietly() -> NoReturn:
    """End as programs do whose reader is gone."""
    _drop_output()
    raise SystemExit(READER_GONE)


def _drop_output() -> None:
    """What is still to be written on standard output goes nowhere, instead of failing again as the program ends."""
    gone, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the end)
    for stream in (gone, sys.__stdout__):
        with suppress(AttributeError, OSError, ValueError):  # not a file of the system
            os.dup2(sys.stdout.fileno(), stream.fileno())  # type: ignore[union-attr]


def _open_streams() -> None:
    """Where a stream was closed by whoever started us, what goes there goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _keep_output_ours() -> None:
    """On standard output every byte is ours: what libraries written in C print there goes to standard error.

    HiGHS prints a line now and then, whatever it is told, and that line would lie in the midst of a JSON document.
    """
    stream = sys.__stdout__
    if stream is None or sys.stdout is not stream:  # nobody reads, or somebody in our place
        return
    try:
        ours = os.dup(stream.fileno())
        os.dup2(sys.stderr.fileno(), stream.fileno())
    except (OSError, ValueError):  # not a file of the system
        return
    sys.stdout = open(  # noqa: SIM115 (open until the end)
        ours, "w", encoding=stream.encoding, errors=stream.errors, buffering=1 if stream.line_buffering else -1
    )


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and end.")] = False,
    project: Annotated[
        Path | None, typer.Option(help="Folder of rocerf init: its settings.yaml stands for options not typed.")
    ] = None,
) -> None:
    """Recourse that survives the right to be forgotten."""
    if version:
        from rocerf.version import __version__

        say(f"rocerf {__version__}")
        raise typer.Exit
    if project is not None:
        from rocerf.cli.project import defaults_of

        context.default_map = defaults_of(project, {command.__name__: command for command in COMMANDS})


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the HTML report.")] = Path("out/demo.html"),
    trials: Annotated[int, typer.Option(min=1, help="Random deletions at each share.")] = 100,
    people: Annotated[int | None, typer.Option(min=1, help="Only the first so many of the refused.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random deletions.")] = 0,
    as_json: opt.Json = False,
) -> None:
    """German Credit: what each promise is worth under random and worst-case deletion, with true retraining."""
    from rocerf.evaluation.demo import run_demo
    from rocerf.evaluation.report import write_demo_report

    check_targets([Target("--out", out)])
    with progress_bar(quiet=as_json, shorter="fewer --trials or --people take less") as step:
        result = run_demo(trials=trials, seed=seed, people=people, progress=step)
    written = write_each([(out, partial(write_demo_report, result, out))])
    if as_json:
        print_json({**result.to_dict(), "report": str(out) if written.paths else None})
        written.complain()
        return
    title = (
        f"German Credit: {result.summary}. Still accepted after deleting rows "
        f"and retraining, in %: at random ({trials} times each share), and by the worst deletion found of at most k "
        "rows (people of all). The constant margin is as wide as the mean cost of the smaller retrained pays for"
    )
    random = [f"{v.fraction:.1%}" for v in result.methods[0].validity[1:]]
    table = new_table(title, ["promise", "cost", *random, "worst k"])
    for method in result.methods:
        shares = [f"{100 * v.mean:.1f}" for v in method.validity[1:]]
        worst = f"{method.survivors}/{len(method.audited)}"
        table.add_row(method.name, f"{method.mean_cost:.2f}", *shares, worst)
    console().print(table)
    written.complain()
    say(f"Report: {out}")


def datasets(as_json: opt.Json = False) -> None:
    """List the data sets that come with rocerf."""
    from dataclasses import asdict

    from rocerf.data.datasets import list_datasets

    known = list_datasets()
    if as_json:
        print_json([asdict(info) for info in known])
        return
    table = new_table("Data sets", ["name", "train rows", "test rows", "columns"])
    for info in known:
        table.add_row(info.name, *(str(size) for size in (info.rows_train, info.rows_test, info.columns)))
    console().print(table)
    for info in known:
        about = f"{info.name}: {info.title}. {info.availability} Licence: {info.licence}."
        console().print(about)


COMMANDS: tuple[Callable[..., None], ...] = (
    *(init.init, demo, datasets, explain.schema, explain.explain, letters.letter, portfolio.portfolio),
    *(deletions.attack, deletions.recheck, deletions.forget, research.reproduce, research.compare),
    *(service.serve, service.worker),
)
for _command in COMMANDS:
    add(app, _command)
