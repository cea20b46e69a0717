"""The pages in Chromium: with scripts and without, by keyboard alone, on a phone, on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from page_browser import AXE, chromium, needs_axe, needs_chromium, serving, working
from rocerf.ledger.access import Role
from rocerf.service.pages.texts import page_language
from service_desk import Desk, desk_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.slow, needs_chromium]

PAGES = ("/", "/letters/1", "/requests", "/requests/1", "/models", "/trail")


def said(key: str, code: str = "en", **values: object) -> str:
    return page_language(code).say(f"pages.{key}", **values)


@dataclass
class Office:
    """A desk that can be visited, and what the browser complained about."""

    desk: Desk
    address: str
    browser: Browser
    complaints: list[str] = field(default_factory=list)

    def visit(self, role: Role | None, *, scripts: bool = True, **options: Any) -> Page:
        """A new visitor, signed in by the form."""
        context: BrowserContext = self.browser.new_context(
            base_url=self.address, java_script_enabled=scripts, locale="en-GB", **options
        )
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda asked: self._stays_here(asked.url))
        if role is not None:
            page.goto("/login")
            page.get_by_label(said("login.token")).fill(self.desk.secrets[role])
            page.get_by_role("button", name=said("login.button")).click()
            page.wait_for_url(f"{self.address}/")
        return page

    def _stays_here(self, url: str) -> None:
        if not url.startswith(self.address):
            self.complaints.append(f"asked elsewhere: {url}")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    desk = desk_in(tmp_path_factory.mktemp("ledger"), letters=4)
    desk.ledger.requests.receive("owner-3", actor="desk")
    desk.ledger.requests.verify_identity(1, actor="desk", how="document")
    desk.ledger.requests.preview(1, actor="dpo")
    with serving(desk.app) as address, working(desk.ledger), chromium() as browser:
        made = Office(desk, address, browser)
        yield made
        assert made.complaints == [], "no script or style may be refused, nothing fetched from elsewhere"
    desk.ledger.close()


def press(page: Page, key: str) -> None:
    page.get_by_role("button", name=said(f"acts.{key}"), exact=True).click()
    page.get_by_text(said(f"done.{key}")).wait_for()


@pytest.mark.parametrize(("scripts", "subject"), [(True, "owner-7"), (False, "owner-8")])
def test_a_deletion_from_sign_in_to_certificate(office: Office, scripts: bool, subject: str) -> None:
    page = office.visit(Role.PROTECTION, scripts=scripts)
    page.get_by_role("link", name="1", exact=True).last.click()
    page.get_by_role("article").get_by_text(str(office.desk.ledger.letters.document(1).person)).wait_for()
    page.get_by_role("link", name=said("menu.requests")).first.click()
    page.get_by_label(said("requests.subject")).fill(subject)
    page.get_by_role("button", name=said("requests.receive")).click()
    page.get_by_text(said("done.receive")).wait_for()
    page.get_by_label(said("asks.verify_evidence")).select_option("in_person")
    for key in ("verify", "preview", "approve", "carry_out"):
        press(page, key)
    certificate = page.get_by_role("link", name=said("requests.to_certificate"))
    if scripts:
        certificate.wait_for()  # the page looks again by itself
    else:
        for _ in range(100):
            if certificate.count():
                break
            page.get_by_role("link", name=said("requests.look_again")).or_(certificate).first.click(no_wait_after=False)
    certificate.click()
    page.get_by_role("heading", name="Certificate of erasure").wait_for()
    assert subject not in page.content()
    page.get_by_role("link", name=said("menu.trail")).click()
    url = page.url
    page.get_by_role("button", name=said("trail.verify")).click()
    page.locator("#verdict .good").wait_for()
    assert (page.url == url) == scripts, "with scripts only the verdict is fetched"
    page.context.close()


def test_by_keyboard_alone(office: Office) -> None:
    """From the address to a verified identity without a pointer: skip link, fields, selects and buttons in order."""
    page = office.visit(None)
    page.goto("/login")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(office.desk.secrets[Role.PROTECTION])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{office.address}/")
    walk(page, "A", said("menu.requests"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=said("requests.title"), exact=True).wait_for()
    walk(page, "INPUT")
    page.keyboard.type("owner-9")
    page.keyboard.press("Enter")
    page.get_by_text(said("done.receive")).wait_for()
    walk(page, "SELECT")
    page.keyboard.press("ArrowDown")
    walk(page, "BUTTON", said("acts.verify"))
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "where one is can be seen"
    page.keyboard.press("Enter")
    page.get_by_text(said("done.verify")).wait_for()
    page.context.close()


def walk(page: Page, tag: str, text: str = "") -> None:
    """Tab until an element of this kind, and with this text, has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        found = page.evaluate("[document.activeElement.tagName, document.activeElement.textContent.trim()]")
        if found[0] == tag and (not text or found[1] == text):
            return
    raise AssertionError(f"no {tag} {text!r} can be reached with the tab key")


def test_filtering_letters_swaps_the_list_alone(office: Office) -> None:
    page = office.visit(Role.OFFICER)
    page.evaluate("window.untouched = true")
    page.get_by_label(said("letters.budget"), exact=True).select_option("used")
    page.get_by_text(said("portfolio.none_of_these")).wait_for()
    assert page.evaluate("window.untouched")
    assert page.url.endswith("budget=used")
    page.context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_s_letter_is_found_and_replaced(office: Office, scripts: bool) -> None:
    page = office.visit(Role.OFFICER, scripts=scripts, viewport={"width": 390, "height": 844})
    person = str(office.desk.ledger.letters.document(2).person)
    page.get_by_label(said("letters.person"), exact=True).fill(person)
    page.get_by_role("button", name=said("portfolio.find_button")).click()
    page.get_by_role("heading", name=said("found.title")).wait_for()
    assert person not in page.url, "addresses are kept on their way"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    newest = page.get_by_role("rowheader").first.text_content()
    page.get_by_role("rowheader").first.get_by_role("link").click()
    page.get_by_role("button", name=said("acts.renew"), exact=True).click()
    page.get_by_text(said("done.renew")).wait_for()
    for _ in range(100):
        page.goto(f"/letters/{newest}")
        if page.get_by_text(said("letters.replaced_by")).count():
            break
        page.wait_for_timeout(100)
    page.locator("dd").get_by_role("link").last.click()
    page.get_by_text(said("letters.replaces")).wait_for()
    page.context.close()


@pytest.mark.parametrize("code", ["en", "de"])
def test_a_phone_needs_no_sideways_scrolling(office: Office, code: str) -> None:
    page = office.visit(Role.PROTECTION, viewport={"width": 390, "height": 844})
    page.goto(f"/language?to={code}&back=/")
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.lang") == code
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    page.context.close()


def test_of_a_letter_s_page_the_letter_alone_is_printed(office: Office) -> None:
    page = office.visit(Role.OFFICER)
    page.goto("/letters/1")
    page.emulate_media(media="print")
    assert page.locator("article.letter").is_visible()
    for hidden in ("header.site", "footer", "dl.facts", "#history", "form"):
        assert not page.locator(hidden).first.is_visible(), hidden
    page.goto("/letters/1/page")
    page.emulate_media(media="screen")
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("Georgia"), "its style is let through"
    page.context.close()


@needs_axe
@pytest.mark.parametrize("code", ["en", "de"])
def test_nothing_that_keeps_people_out(office: Office, code: str) -> None:
    page = office.visit(Role.PROTECTION)
    page.goto(f"/language?to={code}&back=/")
    for path in (*PAGES, "/nowhere", "found"):
        if path == "found":
            page.goto("/")
            page.locator("#person").fill(str(office.desk.ledger.letters.document(1).person))
            page.locator("#person").press("Enter")
            page.get_by_role("heading", name=said("found.title", code)).wait_for()
        else:
            page.goto(path)
        page.evaluate(Path(AXE).read_text("utf-8"))
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
        told = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found["violations"]]
        assert told == [], path
    page.evaluate("document.querySelector('main').innerHTML = '<input>'")
    assert "label" in page.evaluate("axe.run().then(found => found.violations.map(one => one.id))"), "it would be seen"
    office.complaints[:] = [line for line in office.complaints if "404" not in line]
    page.context.close()


def test_sign_out_and_what_is_left(office: Office) -> None:
    page = office.visit(Role.OFFICER)
    page.get_by_role("button", name=said("site.sign_out")).click()
    page.wait_for_url(re.compile("/login"))
    page.goto("/")
    page.get_by_text(said("login.first")).wait_for()
    page.context.close()
