"""The skeleton of every page: what came from data is escaped, everywhere, and what was HTML is not escaped again."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from rocerf.html import Details, Figure, Heading, Html, Paragraph, Part, Points, Section, Table, joined, report, tag

NASTY = "<script>&'\""


class Texts(HTMLParser):
    """Tags that are open, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.said = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.said += data


PARTS: list[Part] = [
    Paragraph(NASTY, "note"),
    Heading(NASTY),
    Points([NASTY], "said"),
    Table([NASTY], [NASTY]),
    Table([NASTY], [[NASTY]], "words"),
    Figure("one", "<svg ><g/></svg>", NASTY),
    Details(NASTY, [Paragraph(NASTY)], unfolded=True),
    Section(NASTY, [Paragraph(NASTY)]),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_whatever_is_not_html_is_escaped(part: Part) -> None:
    found = Texts(part.html())
    assert "script" not in found.tags
    assert found.said.count(NASTY) == part.html().count("&lt;script&gt;") - part.html().count("aria-label")


def test_html_stays_and_may_be_mixed_with_text() -> None:
    assert Paragraph(joined(tag("b", "1 < 2"), " & more")).html() == "<p><b>1 &lt; 2</b> &amp; more</p>"
    assert Table(Html("<tr><th>a</th></tr>"), [["<b>"]]).html().count("<th>") == 1
    assert "<thead>" not in Table([], [["a", "b"]]).html()


def test_ids_of_two_figures_are_kept_apart() -> None:
    drawing = '<svg ><metadata>made by</metadata><path id="p"/><use href="#p" clip="url(#p)"/></svg>'
    both = Figure("one", drawing, 'a "quoted" <i>').html() + Figure("two", drawing, Html("<b>b</b>")).html()
    assert re.findall(r'id="(\S+)"', both) == ["one-p", "two-p"]
    assert both.count('href="#one-p"') == both.count("url(#two-p)") == 1
    assert 'aria-label="a &quot;quoted&quot; &lt;i&gt;"' in both
    assert 'aria-label="b"' in both
    assert "made by" not in both


def test_a_page_is_whole() -> None:
    text = report("title & more", "heading", [Section("one", [Paragraph("a")]), Section("", [Paragraph("b")])])
    assert text.startswith('<!doctype html>\n<html lang="en">')
    assert text.endswith("</body></html>\n")
    assert "<title>title &amp; more</title>" in text
    assert [tag for tag in Texts(text).tags if tag.startswith("h")] == ["html", "head", "h1", "h2"]
