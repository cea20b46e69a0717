"""The guides of the roles: their links lead somewhere, their pictures are there and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocerf.ledger.access import Role
from rocerf.service.pages.texts import own_sentences

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGES = sorted(GUIDES.glob("*.md"))
PICTURES = sorted(GUIDES.glob("*.png"))


def test_every_role_has_a_guide() -> None:
    names = {"administrator" if role is Role.ADMIN else role.value for role in Role}
    assert names <= {page.stem for page in PAGES}  # others have guides, too


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    assert links
    for link in links:
        assert (page.parent / link).is_file(), link


def test_pictures_are_small_described_and_used() -> None:
    shown = dict(
        found[::-1] for page in PAGES for found in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8"))
    )
    assert {picture.name for picture in PICTURES} == set(shown)
    assert all(len(words) > 10 for words in shown.values()), "whoever does not see it is told what it shows"
    assert all(picture.stat().st_size < 150_000 for picture in PICTURES)


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("officer", ("letters.to_print", "acts.withdraw", "letters.replaced_by", "menu.requests")),
        ("data-protection-officer", ("acts.preview", "acts.carry_out", "acts.extend", "requests.look_again")),
        ("auditor", ("trail.verify", "events.letters_rechecked", "events.broken_letters_settled", "menu.models")),
        ("administrator", ("problem.mistake", "problem.too_often")),
    ],
)
def test_buttons_are_called_as_on_the_pages(page: str, keys: tuple[str, ...]) -> None:
    text = (GUIDES / f"{page}.md").read_text("utf-8")
    for key in keys:
        assert str(own_sentences("en")[key]) in text, key
