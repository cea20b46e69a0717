"""One skeleton for every page: it loads nothing, and whatever is not marked as HTML is escaped.

A page is made of sections and a section of parts. They are plain data: whoever wants to know what a page says asks
them, not the markup. Any object with a method ``html`` can be a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

#: How reports look.
STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.3rem; margin-top: 2.6rem; } h3 { font-size: 1.05rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ddd; text-align: right; } td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #888; }
tr.group td { font-weight: 600; background: #f5f5f5; text-align: left; }
.lead { font-size: 1.1rem; } .note { background: #f5f3ec; border-left: 4px solid #E69F00; padding: .6rem 1rem; }
table.facts td, table.words td { white-space: normal; } table.words td:nth-child(5) { white-space: nowrap; }
table.facts td, table.words td:last-child { text-align: left; }
summary { cursor: pointer; margin: .6rem 0; } ul.notes { list-style: none; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; } figure { margin: 1rem 0; }
figcaption, .small, ul.said { color: #444; font-size: .9rem; } ul.said li { margin: .25rem 0; }
ul.answers { list-style: none; padding: 0; font-size: 1.05rem; }
ul.answers li { margin: .8rem 0; padding-left: .9rem; border-left: 4px solid #0072B2; }
span.in { color: #00664a; } span.out { color: #8a2b00; font-weight: 600; background: #fbeee6; padding: 0 .25rem; }
.panels { display: flex; flex-wrap: wrap; gap: .5rem; } .panels svg { flex: 1 1 21rem; min-width: 0; max-width: 31rem; }
table.dense { font-size: .84rem; } table.dense th, table.dense td { padding: .22rem .45rem; }
table.claims td { white-space: normal; text-align: left; vertical-align: top; } table.claims th { text-align: left; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .85rem; } code { font-size: .92em; }
@media (max-width: 40rem) { figure > svg { max-width: none; width: 44rem; } figure { overflow-x: auto; } }
@media print { body { margin: 0; } figure, tr { break-inside: avoid; } }
"""


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def joined(*content: str) -> Html:
    """Texts one after the other, each escaped unless it is HTML already.

    >>> joined(tag("b", "a < b"), " & c")
    '<b>a &lt; b</b> &amp; c'
    """
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in content))


def tag(name: str, *content: str, kind: str = "", **attributes: str) -> Html:
    """An element; ``kind`` is its class.

    >>> tag("td", "1 < 2", kind="to")
    '<td class="to">1 &lt; 2</td>'
    """
    given = {"class": kind, **attributes} if kind else attributes
    said = "".join(f' {key}="{escape(value)}"' for key, value in given.items())
    return Html(f"<{name}{said}>{joined(*content)}</{name}>")


class Part(Protocol):
    """What stands in a section."""

    def html(self) -> Html:
        """Its markup."""
        ...


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str
    kind: str = ""

    def html(self) -> Html:
        """``<p>``."""
        return tag("p", self.text, kind=self.kind)


@dataclass(frozen=True)
class Heading:
    """A title within a section."""

    text: str

    def html(self) -> Html:
        """``<h3>``."""
        return tag("h3", self.text)


@dataclass(frozen=True)
class Points:
    """A list."""

    texts: Sequence[str]
    kind: str = ""

    def html(self) -> Html:
        """``<ul>``."""
        return tag("ul", *(tag("li", text) for text in self.texts), kind=self.kind)


@dataclass(frozen=True)
class Table:
    """Rows of cells under a head (none if it is empty; rows of HTML if it is HTML).

    A row that is a single text is a title across all columns.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str] | str]
    kind: str = ""

    def html(self) -> Html:
        """``<table>`` in a box that scrolls sideways."""
        head = self.head if isinstance(self.head, Html) else tag("tr", *(tag("th", name) for name in self.head))
        lines = [
            tag("tr", tag("td", row, colspan=str(len(self.head))), kind="group")
            if isinstance(row, str)
            else tag("tr", *(tag("td", cell) for cell in row))
            for row in self.rows
        ]
        body = tag("tbody", *lines)
        return tag("div", tag("table", tag("thead", head) if self.head else "", body, kind=self.kind), kind="scroll")


@dataclass(frozen=True)
class Figure:
    """A drawing (SVG text) with its caption; ``name`` keeps its ids apart from those of others on the page."""

    name: str
    drawing: str
    caption: str

    def html(self) -> Html:
        """``<figure>``, with the caption as its label too."""
        drawing = re.sub(r"<metadata>.*?</metadata>", "", self.drawing, flags=re.DOTALL)
        drawing = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{self.name}-", drawing)
        label = re.sub(r"<[^>]*>", "", joined(self.caption)).replace('"', "&quot;")
        drawing = drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
        return tag("figure", Html(drawing), tag("figcaption", self.caption))


@dataclass(frozen=True)
class Details:
    """Parts that are unfolded when asked for."""

    summary: str
    parts: Sequence[Part]
    unfolded: bool = False

    def html(self) -> Html:
        """``<details>``."""
        more = {"open": "open"} if self.unfolded else {}
        return tag("details", tag("summary", self.summary), *(part.html() for part in self.parts), **more)


@dataclass(frozen=True)
class Section:
    """A title ("" for none) and what stands under it."""

    title: str
    parts: Sequence[Part]

    def html(self) -> Html:
        """``<section>``."""
        title = tag("h2", self.title) + "\n" if self.title else ""
        return Html(f"<section>{title}" + "\n".join(part.html() for part in self.parts) + "</section>")


def page(title: str, body: Iterable[Html], *, style: str = STYLE, language: str = "en") -> str:
    """A whole page that loads nothing."""
    parts = "\n".join(body)
    return f"""<!doctype html>
<html lang="{escape(language)}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style></head><body>
{parts}
</body></html>
"""


def report(title: str, heading: str, sections: Iterable[Section]) -> str:
    """A page of sections under one heading."""
    return page(title, [tag("h1", heading), *(section.html() for section in sections)])
