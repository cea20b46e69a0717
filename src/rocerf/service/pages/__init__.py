"""The pages: what the ledger holds, for people with a browser. Server-rendered; scripts only spare a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI


def install(app: FastAPI) -> None:
    """Give an application the pages, and people their page for problems."""
    from rocerf.service.pages import acting, desk, front

    for room in (front, desk, acting):
        app.include_router(room.router)
    app.state.problem_page = front.problem_page
