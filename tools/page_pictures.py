"""Pictures of the pages: those of docs/guides, or every page in both languages and widths.

    python tools/page_pictures.py                 # writes docs/guides/*.png; needs chromium and the extra dev
    python tools/page_pictures.py --every FOLDER  # every page, to be looked at

The ledger is the demonstration's: German Credit, its letters and requests, at a fixed time. Ids of tokens are random.
"""

from __future__ import annotations

import argparse
import io
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.ledger import Ledger
from rocerf.ledger.access import Role
from rocerf.ledger.worker import Worker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GUIDES = Path(__file__).resolve().parents[1] / "docs" / "guides"
NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
#: A picture in the docs weighs no more.
MOST_BYTES = 150_000
COLOURS = 64
WIDE, NARROW = (1280, 900), (390, 844)
PAGES = {
    "portfolio": "/",
    "letter": "/letters/1",
    "requests": "/requests",
    "request": "/requests/3",
    "done": "/requests/1",
    "certificate": "/requests/1/certificate",
    "models": "/models",
    "trail": "/trail",
    "nowhere": "/nowhere",
}


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="every page, language and width, into this folder")
    chosen = parser.parse_args().every
    with (
        tempfile.TemporaryDirectory() as folder,
        _demonstration(Path(folder)) as (address, tokens),
        _browser() as shown,
    ):
        if chosen is None:
            _guides(shown, address, tokens)
        else:
            chosen.mkdir(parents=True, exist_ok=True)
            _every(shown, address, tokens, chosen)


@contextmanager
def _demonstration(folder: Path) -> Iterator[tuple[str, dict[Role, str]]]:
    """A service over the demonstration's ledger in which one request was carried out; its address and tokens."""
    from rocerf.service.app import create_app
    from rocerf.service.demo import fill
    from rocerf.service.server import access_of

    with Ledger.open(f"sqlite:///{folder}/ledger.db", clock=lambda: NOW) as ledger:
        fill(ledger)
        requests = ledger.requests
        requests.verify_identity(1, actor="demo", how="document")
        requests.preview(1, actor="demo")
        requests.approve(1, actor="demo")
        ledger.deletions.carry_out(1, actor="demo")
        Worker(ledger).run_once()
        requests.preview(3, actor="demo")
        access = access_of(ledger)
        names = {Role.OFFICER: "Ms Ulm", Role.PROTECTION: "Mr Wald", Role.AUDITOR: "Ms Roth", Role.ADMIN: "Mr Feld"}
        tokens = {role: access.issue(name, role).secret for role, name in names.items()}
        with _serving(create_app(ledger, access=access)) as address:
            yield address, tokens


@contextmanager
def _serving(app: Any) -> Iterator[str]:
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=30)


@contextmanager
def _browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        shown = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield shown
        shown.close()


def _signed_in(shown: Browser, address: str, secret: str, size: tuple[int, int], code: str) -> Page:
    page = shown.new_context(base_url=address, viewport={"width": size[0], "height": size[1]}).new_page()
    page.goto(f"/language?to={code}&back=/login")
    page.fill("#token", secret)
    page.press("#token", "Enter")
    page.wait_for_url(f"{address}/")
    return page


def _every(shown: Browser, address: str, tokens: dict[Role, str], folder: Path) -> None:
    for code in ("en", "de"):
        for size in (WIDE, NARROW):
            page = _signed_in(shown, address, tokens[Role.PROTECTION], size, code)
            for name, path in PAGES.items():
                page.goto(path)
                page.screenshot(path=folder / f"{name}-{code}-{size[0]}.png", full_page=True)
            page.goto("/trail")
            page.click("main form button")
            page.wait_for_selector("#verdict .say")
            page.screenshot(path=folder / f"verdict-{code}-{size[0]}.png")
            page.goto("/letters/1")
            page.emulate_media(media="print")
            page.screenshot(path=folder / f"print-{code}-{size[0]}.png", full_page=True)
            page.context.close()
            if size == WIDE:
                _other_roles(shown, address, tokens, code, folder)


def _other_roles(shown: Browser, address: str, tokens: dict[Role, str], code: str, folder: Path) -> None:
    """What an auditor and an officer see instead."""
    for role, path in ((Role.AUDITOR, "/"), (Role.AUDITOR, "/letters/1"), (Role.OFFICER, "/letters/2")):
        page = _signed_in(shown, address, tokens[role], WIDE, code)
        page.goto(path)
        page.screenshot(path=folder / f"{role.value}{path.replace('/', '-')}-{code}.png", full_page=True)
        page.context.close()
    page = shown.new_context(base_url=address, viewport={"width": WIDE[0], "height": WIDE[1]}, locale=code).new_page()
    page.goto("/login")
    page.screenshot(path=folder / f"login-{code}.png")
    page.context.close()


def _guides(shown: Browser, address: str, tokens: dict[Role, str]) -> None:
    pictures: dict[str, tuple[Role, str, tuple[int, int], str, Callable[[Page], object] | None]] = {
        "portfolio": (Role.OFFICER, "/", (1100, 1000), "en", None),
        "letter": (Role.OFFICER, "/letters/1", (1100, 900), "en", None),
        "request": (Role.PROTECTION, "/requests/3", (1100, 1100), "en", None),
        "certificate": (Role.PROTECTION, "/requests/1/certificate", (1100, 900), "en", None),
        "phone": (Role.PROTECTION, "/requests/3", (390, 760), "de", None),
        "trail": (Role.AUDITOR, "/trail", (1100, 800), "en", _verified),
        "models": (Role.AUDITOR, "/models", (1100, 480), "en", None),
    }
    for name, (role, path, size, code, before) in pictures.items():
        page = _signed_in(shown, address, tokens[role], size, code)
        page.goto(path)
        if before is not None:
            before(page)
        written = _small(page.screenshot())
        if len(written) > MOST_BYTES:
            raise SystemExit(f"{name}.png has {len(written)} bytes; show less of the page")
        (GUIDES / f"{name}.png").write_bytes(written)
        print(f"{name}.png: {len(written)} bytes")
        page.context.close()


def _verified(page: Page) -> None:
    page.click("main form button")
    page.wait_for_selector("#verdict .say")


def _small(picture: bytes) -> bytes:
    """The picture with few colours."""
    from PIL import Image

    held = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        held, "png", optimize=True
    )
    return held.getvalue()


if __name__ == "__main__":
    main()
