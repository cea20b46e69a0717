"""A small service to ask in-process, over a small ledger, with one token for each role."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

import ledgers
from rocerf.ledger import Ledger
from rocerf.ledger.access import Access, Role
from rocerf.service.app import ServiceSettings, create_app


class Seconds:
    """A clock in seconds that goes when it is told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    app: FastAPI
    ledger: Ledger
    access: Access
    secrets: dict[Role, str]

    def client(self, role: Role | None = None, **options: Any) -> TestClient:
        headers = {} if role is None else {"Authorization": f"Bearer {self.secrets[role]}"}
        return TestClient(self.app, headers=headers, follow_redirects=False, **options)

    def browser(self, role: Role, **options: Any) -> TestClient:
        client = self.client(**options)
        assert client.post("/login", data={"token": self.secrets[role]}).status_code == 303
        return client


def memory_access(clock: Seconds) -> Access:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    access = Access(engine, clock=clock)
    access.create_tables()
    return access


def desk_in(
    folder: Path, *, letters: int = 0, policy: dict[str, Any] | None = None, url: str | None = None, **settings: Any
) -> Desk:
    """A service over a new ledger: an empty one, or one with a model and so many letters."""
    ledger = ledgers.opened(folder, url=url, **(policy or {}))
    if letters:
        ledgers.filled(ledger, letters)
    app = create_app(ledger, settings=ServiceSettings(**settings))
    access: Access = app.state.access
    return Desk(app, ledger, access, {role: access.issue(role.value, role).secret for role in Role})


def bare_desk(**settings: Any) -> Desk:
    """A service over an empty ledger in a folder of its own, which goes when the tests end."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return desk_in(Path(folder), **settings)
