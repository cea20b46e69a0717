"""A small service to ask in-process, with one token for each role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from rocerf.ledger.access import Access, Role
from rocerf.service.app import ServiceSettings, create_app


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    app: FastAPI
    access: Access
    clock: Clock
    secrets: dict[Role, str]

    def client(self, role: Role | None = None, **options: Any) -> TestClient:
        headers = {} if role is None else {"Authorization": f"Bearer {self.secrets[role]}"}
        return TestClient(self.app, headers=headers, follow_redirects=False, raise_server_exceptions=True, **options)

    def browser(self, role: Role, **options: Any) -> TestClient:
        client = self.client(**options)
        assert client.post("/login", data={"token": self.secrets[role]}).status_code == 303
        return client


def memory_access(clock: Clock) -> Access:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    access = Access(engine, clock=clock)
    access.create_tables()
    return access


def bare_desk(**settings: Any) -> Desk:
    """A service without a ledger: who may come in."""
    clock = Clock()
    access = memory_access(clock)
    secrets = {role: access.issue(role.value, role).secret for role in Role}
    return Desk(create_app(None, access=access, settings=ServiceSettings(**settings)), access, clock, secrets)
