"""The documentation site: every page is in it, every link leads somewhere, every public name is described."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import rocerf
from page_browser import chromium, needs_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == PAGES


def test_every_public_name_has_its_place_in_the_reference() -> None:
    reference = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    named = set(re.findall(r"^::: rocerf\.(\w+)$", reference, flags=re.MULTILINE))
    # Errors are a room of the reference; the ledger and MLflow are imported by themselves.
    public = set(rocerf.__all__) - {"__version__", "RocerfError"}
    assert named - {"errors", "ledger", "mlflow"} == public
    for name in public:
        assert getattr(rocerf, name).__doc__, name


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link is an error."""
    pytest.importorskip("mkdocs", reason="the documentation tools are not installed")
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "src", "tools", "mkdocs.yml", "CHANGELOG.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=folder,
        env={"PATH": "", "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "out" / "site"


@pytest.mark.slow
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {page.removesuffix(".md") + ".html" for page in PAGES} <= built
    for path in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", path.read_text("utf-8"))
        assert not [address for address in loaded if "canonical" not in address], path.name


@pytest.mark.slow
def test_links_of_the_built_site_lead_to_files_and_headings_that_are_there(site: Path) -> None:
    pages = {path.resolve(): path.read_text("utf-8") for path in site.rglob("*.html") if "results" not in path.parts}
    names = {path: set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text)) for path, text in pages.items()}
    lost = []
    for path, text in pages.items():
        if path.name == "404.html":  # its links are those of the address it is shown at
            continue
        for target in re.findall(r"<(?:a|img|link|script)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"", text):
            if re.match(r"[a-z]+:|//", target):
                continue
            file, _, heading = unescape(target).partition("#")
            there = (path.parent / unquote(file)).resolve() if file else path
            there = there / "index.html" if there.is_dir() and heading else there
            if not there.exists() or (heading and there in names and unquote(heading) not in names[there]):
                lost.append(f"{path.name}: {target}")
    assert not [link for link in lost if not link.endswith("#__skip")], lost[:20]


@pytest.mark.slow
@pytest.mark.parametrize("room", ["", ".promises", ".baselines", ".evaluation", ".reproduction", ".ledger"])
def test_every_public_name_of_a_room_has_its_heading_in_the_reference(site: Path, room: str) -> None:
    """A function that bears the name of its own module is left out by the tool, unless it is named by itself."""
    reference = "\n".join(path.read_text("utf-8") for path in (site / "api").glob("*.html"))
    described = set(re.findall(r"<h\d id=\"rocerf[\w.]*\.(\w+)\"", reference))
    public = set(pytest.importorskip(f"rocerf{room}").__all__) - {"__version__"}
    assert not public - described


@pytest.mark.slow
def test_every_parameter_of_the_reference_is_described(site: Path) -> None:
    reference = "\n".join(path.read_text("utf-8") for path in (site / "api").glob("*.html"))
    given = re.findall(r"<b><code>(\w+)</code></b>(.*?)</li>", reference, flags=re.DOTALL)
    assert len(given) > 150
    assert not [name for name, text in given if not re.sub(r"<[^>]*>|\s", "", text.partition("–")[2])]


@pytest.mark.slow
def test_no_parameters_run_on_in_one_paragraph(site: Path) -> None:
    """That is what becomes of a list of them without its heading."""
    paragraphs = [
        (path.name, re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text)))
        for path in (site / "api").glob("*.html")
        for text in re.findall(r"<p>(.*?)</p>", path.read_text("utf-8"), flags=re.DOTALL)
    ]
    assert len(paragraphs) > 500
    assert not [pair for pair in paragraphs if len(re.findall(r"(?:^| )[a-z_]+(?:, [a-z_]+)? : ", pair[1])) > 1]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a plain server for the files of a folder, on this machine alone."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join(timeout=30)


def searched_for(page: Page, words: str) -> None:
    """Types into the page's search until it lists something.

    Its script reads the field at every key and once right after the focus: words that are put there without keys are
    not seen, but for the millisecond in between, and keys that come before the script runs are lost.
    """
    from playwright.sync_api import TimeoutError as NothingListed

    for _ in range(12):
        page.click("input.md-search__input")
        page.fill("input.md-search__input", "")
        page.keyboard.type(words)
        with suppress(NothingListed):
            page.wait_for_selector("a.md-search-result__link", timeout=10_000)
            return
    raise AssertionError(page.inner_text(".md-search__output"))


@pytest.mark.slow
@needs_chromium
def test_every_page_fits_a_phone_and_the_search_finds(site: Path) -> None:
    """In a real browser: no page is wider than a phone, no image is missing, nothing is asked of the network."""
    with served(site) as address, chromium() as browser:
        elsewhere: list[str] = []

        def opened(width: int, *, scripts: bool) -> Page:
            page = browser.new_page(viewport={"width": width, "height": 844}, java_script_enabled=scripts)
            page.on("request", lambda asked: None if asked.url.startswith(address) else elsewhere.append(asked.url))
            return page

        page = opened(390, scripts=False)  # the layout is the same, and scripts take most of the time
        for name in PAGES:
            page.goto(address + name.removesuffix(".md") + ".html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert not page.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).length"), name
        page = opened(1280, scripts=True)
        page.goto(address + "index.html")
        searched_for(page, "removal budget")
        found = page.eval_on_selector_all("a.md-search-result__link", "links => links.map(link => link.href)")
        assert any("glossary" in link for link in found), found
        page.goto(found[0])
        assert "removal" in page.inner_text("article").lower()
        assert not [url for url in elsewhere if not url.startswith(("data:", "blob:"))]
