"""The commands that run the service: a server, and workers beside it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocerf.cli.terminal import say
from rocerf.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from rocerf.ledger import Ledger, RowSource
    from rocerf.ledger.access import IssuedToken


class Broken(StrEnum):
    """What happens to letters that a deletion breaks."""

    REISSUE = "reissue"
    HONOUR = "honour"
    REPLACE = "replace"


Database = Annotated[
    str | None, typer.Option(help="sqlite:///file or postgresql://...; default: sqlite:///rocerf-ledger.db.")
]
Keys = Annotated[Path | None, typer.Option(help="The key file; for SQLite by default beside the database.")]
BrokenLetters = Annotated[
    Broken,
    typer.Option(help="Letters that a deletion breaks: reissue (within their budget: honour), honour or replace all."),
]
Rows = Annotated[
    Path | None, typer.Option(help="Training rows that stay with you: a CSV or Parquet file, or a folder of them.")
]
RowsLabel = Annotated[str | None, typer.Option(help="With --rows: its label column.")]
RowsId = Annotated[str | None, typer.Option(help="With --rows: its column of row ids.")]
RowsWeight = Annotated[str | None, typer.Option(help="With --rows: its column of sample weights.")]
RowsMask = Annotated[Path | None, typer.Option(help="With --rows: a text file of row ids that must not be used.")]
Lead = Annotated[int, typer.Option(min=0, max=28, help="Days before the first deadline at which deletions begin.")]
Zone = Annotated[str, typer.Option(help="Time zone in whose days deadlines are counted, such as Europe/Berlin.")]
DEFAULT_DATABASE = "sqlite:///rocerf-ledger.db"


def serve(
    demo: Annotated[bool, typer.Option("--demo", help="German Credit, in a folder that goes when it ends.")] = False,
    database: Database = None,
    keys: Keys = None,
    model: Annotated[Path | None, typer.Option(help="Folder of the explainer that is to judge (Rocerf.save).")] = None,
    hand_over: Annotated[
        bool, typer.Option("--hand-over", help="The folder of --model is the ledger's: the next deletion removes it.")
    ] = False,
    reused_ids: Annotated[
        bool, typer.Option("--reused-ids", help="Rows of --model with ids of erased rows are other rows.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8000,
    proxy: Annotated[str | None, typer.Option(help="Address of a proxy whose headers are believed.")] = None,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave jobs to rocerf worker.")] = False,
    four_eyes: Annotated[bool, typer.Option("--four-eyes", help="Two people for every deletion.")] = False,
    broken: BrokenLetters = Broken.REISSUE,
    lead: Lead = 7,
    zone: Zone = "UTC",
    rows: Rows = None,
    rows_label: RowsLabel = None,
    rows_id: RowsId = None,
    rows_weight: RowsWeight = None,
    rows_mask: RowsMask = None,
    resolver: Annotated[str | None, typer.Option(help="Identities to people: package.module:function.")] = None,
    admin_token: Annotated[bool, typer.Option("--admin-token", help="Another administrator's token.")] = False,
) -> None:
    """Run the service: letters, deletion requests, pages; prints its address and, at first, a token."""
    _check_extra()
    from rocerf.service.app import create_app
    from rocerf.service.logs import others_to, to_stream
    from rocerf.service.resolving import known_by_name, resolver_at
    from rocerf.service.server import access_of, address_of, first_tokens, has_model, listen, working
    from rocerf.service.server import serve as answer

    if demo and model is not None:
        raise OptionError("Expected --demo or --model, got both; drop one.")
    resolving = known_by_name if resolver is None else resolver_at(resolver)
    with ExitStack() as open_things:
        listening = open_things.enter_context(listen(host, port))
        if demo and database is None:
            database = f"sqlite:///{open_things.enter_context(tempfile.TemporaryDirectory())}/ledger.db"
        source = _rows(rows, rows_label, rows_id, rows_weight, rows_mask)
        ledger = open_things.enter_context(
            _ledger(database, keys, broken, lead, four_eyes=four_eyes, zone=zone, rows=source)
        )
        if demo and not has_model(ledger):
            from rocerf.service.demo import fill

            say("Filling a ledger with German Credit ...")
            fill(ledger)
        if model is not None:
            _register(ledger, model, hand_over=hand_over, reused_ids=reused_ids)
        access = access_of(ledger)
        _show(first_tokens(access, every_role=demo, another=admin_token))
        app = create_app(ledger, access=access, resolver=resolving)
        others_to(to_stream())
        if not no_worker:
            open_things.enter_context(working(ledger))  # another process: readers do not wait for it
        say(f"Listening at {address_of(listening)} (interrupt to end)")
        answer(app, listening=listening, proxy=proxy)


def worker(
    database: Database = None,
    keys: Keys = None,
    broken: BrokenLetters = Broken.REISSUE,
    lead: Lead = 7,
    zone: Zone = "UTC",
    rows: Rows = None,
    rows_label: RowsLabel = None,
    rows_id: RowsId = None,
    rows_weight: RowsWeight = None,
    rows_mask: RowsMask = None,
    once: Annotated[bool, typer.Option("--once", help="Do what waits, then end.")] = False,
) -> None:
    """Do the jobs of a service: deletions, renewals; any number of workers may run at once."""
    _check_extra()
    import threading

    from rocerf.ledger.worker import Worker

    source = _rows(rows, rows_label, rows_id, rows_weight, rows_mask)
    with _ledger(database, keys, broken, lead, zone=zone, rows=source) as ledger:
        mine = Worker(ledger)
        if once:
            done = 0
            while mine.run_once() is not None:
                done += 1
            say(f"Done: {done} {'job' if done == 1 else 'jobs'}")
            return
        say("Working (interrupt to end)")
        mine.run(threading.Event())


@contextmanager
def _ledger(
    database: str | None,
    keys: Path | None,
    broken: Broken,
    lead: int,
    *,
    four_eyes: bool = False,
    zone: str = "UTC",
    rows: RowSource | None = None,
) -> Iterator[Ledger]:
    from rocerf.ledger import Ledger, Policy

    policy = Policy(broken=broken.value, lead=timedelta(days=lead), four_eyes=four_eyes, zone=zone)
    with Ledger.open(database or DEFAULT_DATABASE, keys=keys, policy=policy, rows=rows) as ledger:
        yield ledger


def _rows(
    path: Path | None, label: str | None, id_column: str | None, weight: str | None, mask: Path | None
) -> RowSource | None:
    """Where training rows stay with the user, if they do."""
    from rocerf.ledger import FileRows

    if path is None:
        if any(given is not None for given in (label, id_column, weight, mask)):
            raise OptionError("Expected --rows with --rows-label and the like, got them without; name the rows.")
        return None
    if label is None:
        raise OptionError("Expected --rows-label with --rows, got none; name the column of the label.")
    return FileRows(path, label=label, id=id_column, weight=weight, mask=mask)


def _register(ledger: Ledger, folder: Path, *, hand_over: bool, reused_ids: bool) -> None:
    from rocerf.cli.models import load_explainer
    from rocerf.service.server import has_model, registered

    if hand_over and not folder.exists() and has_model(ledger):
        say(f"Handed over before, and removed since: {folder}")
        return
    explainer = load_explainer(folder, None)
    if registered(ledger, folder, explainer, hand_over=hand_over, reused_ids=reused_ids):
        left = "the next deletion removes it" if hand_over else "no deletion reaches it: remove it when you can"
        say(f"Registered: {folder}. It holds all training rows, and {left}.")
        if ledger.models.current().rows_outside:
            say("Of the training rows the ledger keeps the ids alone; the rows stay where --rows says.")
    else:
        say(f"Already registered: {folder}")


def _show(issued: tuple[IssuedToken, ...]) -> None:
    """Tokens, once: they are kept nowhere."""
    for one in issued:
        say(f"Token ({one.token.role.value}), shown once: {one.secret}")


def _check_extra() -> None:
    """Say what to install, before anything is begun."""
    for name in ("fastapi", "uvicorn", "sqlalchemy", "alembic", "cryptography", "python_multipart", "jinja2"):
        try:
            __import__(name)
        except ImportError:
            raise MissingExtraError(name, "service", "rocerf serve") from None
