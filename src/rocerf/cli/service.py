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
    from rocerf.ledger import Ledger
    from rocerf.ledger.access import IssuedToken


class Broken(StrEnum):
    """What happens to letters that a deletion breaks."""

    REISSUE = "reissue"
    HONOUR = "honour"


Database = Annotated[
    str | None, typer.Option(help="sqlite:///file or postgresql://...; default: sqlite:///rocerf-ledger.db.")
]
Keys = Annotated[Path | None, typer.Option(help="The key file; for SQLite by default beside the database.")]
BrokenLetters = Annotated[Broken, typer.Option(help="Letters that a deletion breaks: reissue, or honour the old one.")]
Lead = Annotated[int, typer.Option(min=0, max=28, help="Days before the first deadline at which deletions begin.")]
DEFAULT_DATABASE = "sqlite:///rocerf-ledger.db"


def serve(
    demo: Annotated[bool, typer.Option("--demo", help="German Credit, in a folder that goes when it ends.")] = False,
    database: Database = None,
    keys: Keys = None,
    model: Annotated[Path | None, typer.Option(help="Folder of the explainer that is to judge (Rocerf.save).")] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8000,
    proxy: Annotated[str | None, typer.Option(help="Address of a proxy whose headers are believed.")] = None,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave jobs to rocerf worker.")] = False,
    four_eyes: Annotated[bool, typer.Option("--four-eyes", help="Two people for every deletion.")] = False,
    broken: BrokenLetters = Broken.REISSUE,
    lead: Lead = 7,
    resolver: Annotated[str | None, typer.Option(help="Identities to people: package.module:function.")] = None,
    admin_token: Annotated[bool, typer.Option("--admin-token", help="Another administrator's token.")] = False,
) -> None:
    """Run the service: letters, deletion requests, pages; prints its address and, at first, a token."""
    _check_extra()
    from rocerf.service.app import create_app
    from rocerf.service.logs import to_stream
    from rocerf.service.resolving import known_by_name, resolver_at
    from rocerf.service.server import access_of, first_tokens, has_model, working
    from rocerf.service.server import serve as answer

    if demo and model is not None:
        raise OptionError("Expected --demo or --model, got both; drop one.")
    resolving = known_by_name if resolver is None else resolver_at(resolver)
    with ExitStack() as open_things:
        if demo and database is None:
            database = f"sqlite:///{open_things.enter_context(tempfile.TemporaryDirectory())}/ledger.db"
        ledger = open_things.enter_context(_ledger(database, keys, broken, lead, four_eyes=four_eyes))
        if demo and not has_model(ledger):
            from rocerf.service.demo import fill

            say("Filling a ledger with German Credit ...")
            fill(ledger)
        if model is not None:
            _register(ledger, model)
        access = access_of(ledger)
        _show(first_tokens(access, every_role=demo, another=admin_token))
        app = create_app(ledger, access=access, resolver=resolving)
        to_stream()
        if not no_worker:
            open_things.enter_context(working(ledger))
        say(f"Listening at http://{host}:{port} (interrupt to end)")
        answer(app, host=host, port=port, proxy=proxy)


def worker(
    database: Database = None,
    keys: Keys = None,
    broken: BrokenLetters = Broken.REISSUE,
    lead: Lead = 7,
    once: Annotated[bool, typer.Option("--once", help="Do what waits, then end.")] = False,
) -> None:
    """Do the jobs of a service: deletions, renewals; any number of workers may run at once."""
    _check_extra()
    import threading

    from rocerf.ledger.worker import Worker

    with _ledger(database, keys, broken, lead) as ledger:
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
    database: str | None, keys: Path | None, broken: Broken, lead: int, *, four_eyes: bool = False
) -> Iterator[Ledger]:
    from rocerf.ledger import Ledger, Policy

    rule = "reissue" if broken is Broken.REISSUE else "honour"
    policy = Policy(broken=rule, lead=timedelta(days=lead), four_eyes=four_eyes)  # type: ignore[arg-type]
    with Ledger.open(database or DEFAULT_DATABASE, keys=keys, policy=policy) as ledger:
        yield ledger


def _register(ledger: Ledger, folder: Path) -> None:
    from rocerf.cli.models import load_explainer
    from rocerf.service.server import registered

    if registered(ledger, folder, load_explainer(folder, None)):
        say(f"Registered: {folder}. It holds all training rows, and no deletion reaches it: remove it when you can.")
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


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)
    app.command()(worker)
