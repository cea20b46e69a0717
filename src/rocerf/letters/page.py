"""Letters as plain text and as a page to print; both are made of the same sections, so that they say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import TYPE_CHECKING

from rocerf.recourse.result import Status

if TYPE_CHECKING:
    from rocerf.letters.letter import Letter, LetterChange

#: Columns of plain text.
WIDTH = 80

#: How far values stand in, in plain text.
INDENT = "  "


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class Points:
    """A list; ``small`` for small print."""

    texts: tuple[str, ...]
    small: bool = False


@dataclass(frozen=True)
class Changes:
    """What to change, under a heading if there are several options."""

    heading: str
    changes: tuple[LetterChange, ...]


@dataclass(frozen=True)
class Section:
    """A title, "" for the first, and what stands under it."""

    title: str
    parts: tuple[Paragraph | Points | Changes, ...]


def sections(letter: Letter) -> tuple[Section, ...]:
    """What the letter says, in order."""
    words = letter.words
    answered = letter.status is Status.ANSWERED
    said = [Paragraph(words.status(letter.status))]
    if not answered:
        accepted = letter.status is Status.ALREADY_ACCEPTED
        said.append(Paragraph(words.accepted_today_only if accepted else words.nothing_promised))
    found = [Section("", tuple(said))]
    if letter.unreadable:
        found.append(Section("", (Paragraph(words.unreadable), Points(letter.unreadable))))
    if answered:
        found.append(Section(words.changes_title, tuple(_changes(letter))))
    if answered or letter.held:
        found.append(Section(words.held_title, tuple(_held(letter))))
    if answered:
        found.append(Section(words.promise_title, tuple(_promise(letter))))
        found.append(Section(words.validity_title, (Paragraph(_validity(letter)),)))
    if letter.status is not Status.ALREADY_ACCEPTED or letter.refusal_reasons is not None:
        found.append(Section(words.reasons_title, tuple(_reasons(letter))))
    if words.closing:
        found.append(Section("", (Paragraph(words.closing),)))
    return tuple(found)


def _changes(letter: Letter) -> Iterator[Paragraph | Changes | Points]:
    words, several = letter.words, len(letter.options) > 1
    yield Paragraph(words.several_options.format(count=len(letter.options)) if several else words.one_option)
    for number, option in enumerate(letter.options, start=1):
        yield Changes(words.option.format(number=number) if several else "", option.changes)
    rounded = any(option.rounded for option in letter.options)
    yield Paragraph(f"{words.rounded} {words.as_written}" if rounded else words.as_written)
    if letter.not_given:
        yield Paragraph(words.not_given)
        yield Points(letter.not_given)


def _held(letter: Letter) -> Iterator[Paragraph | Points]:
    yield Paragraph(letter.words.held if letter.held else letter.words.nothing_held)
    if letter.held:
        yield Points(tuple(f"{detail.label}: {detail.text}" for detail in letter.held))


def _promise(letter: Letter) -> Iterator[Paragraph | Points]:
    """One sentence if all options carry the same; a promise may also say how each point fared."""
    words, promises = letter.words, [option.promise for option in letter.options]
    sentences = [promise.sentence for promise in promises]
    yield Paragraph(words.promise_opening)
    if len(set(sentences)) == 1:
        yield Paragraph(words.promise.format(sentence=sentences[0]))
    else:
        each = [words.promises_by_option.format(number=n, sentence=s) for n, s in enumerate(sentences, start=1)]
        yield Paragraph(" ".join(each))
    assumptions = tuple(dict.fromkeys(text for promise in promises for text in promise.assumptions))
    if assumptions:
        yield Paragraph(words.assumptions)
        yield Points(assumptions, small=True)


def _validity(letter: Letter) -> str:
    words = letter.words
    until = (
        words.no_date if letter.valid_until is None else words.valid_until.format(date=words.day(letter.valid_until))
    )
    version = (
        words.model_version.format(version=letter.model_version) if letter.model_version else words.no_model_version
    )
    again = words.ask_again_undated if letter.valid_until is None else words.ask_again
    return " ".join((until, version, again))


def _reasons(letter: Letter) -> Iterator[Paragraph | Points]:
    words = letter.words
    if letter.refusal_reasons is not None:
        yield Paragraph(words.reasons_given)
        yield Points(letter.refusal_reasons)
    else:
        yield Paragraph(words.reasons_separate)
    if letter.options:
        yield Paragraph(words.changes_are_no_reasons)


def as_text(letter: Letter) -> str:
    """The letter as plain text."""
    letter, words = letter.printable(), letter.words
    head = [words.title, "=" * len(words.title), "", words.reference.format(person=letter.person)]
    lines = [*head, words.issued.format(date=words.day(letter.issued))]
    for section in sections(letter):
        lines += ["", section.title, "-" * len(section.title)] if section.title else [""]
        for place, part in enumerate(section.parts):
            lines += [""] if place and not isinstance(part, Points) else []
            lines += _text_lines(part, words.now, words.change_to)
    return "\n".join(lines) + "\n"


def _text_lines(part: Paragraph | Points | Changes, now: str, change_to: str) -> list[str]:
    if isinstance(part, Paragraph):
        return [_filled(part.text)]
    if isinstance(part, Points):
        first, further = f"{INDENT}- ", f"{INDENT}  "
        return [_filled(text, first, further) for text in part.texts]
    lines = [part.heading] if part.heading else []
    width = max(len(now), len(change_to)) + 1
    for change in part.changes:
        lines.append(f"{INDENT}{change.label}")
        lines.append(f"{INDENT * 2}{f'{now}:'.ljust(width)} {change.before_text}")
        lines.append(f"{INDENT * 2}{f'{change_to}:'.ljust(width)} {change.after_text}")
    return lines


def _filled(text: str, first: str = "", further: str = "") -> str:
    return fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


_PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 17px/1.5 Georgia, "Times New Roman", serif; color: #111; background: #fff; max-width: 42rem;
  margin: 2.5rem auto; padding: 0 1.25rem; }}
h1 {{ font-size: 1.45rem; line-height: 1.25; margin: 0 0 .75rem; }}
h2 {{ font-size: 1.08rem; margin: 1.7rem 0 .35rem; }}
h3 {{ font-size: 1rem; margin: 1.1rem 0 .3rem; }}
p {{ margin: .45rem 0; }} ul {{ margin: .4rem 0; padding-left: 1.3rem; }}
.head {{ margin-bottom: 1.3rem; }} .head p {{ margin: 0; color: #444; }}
table {{ border-collapse: collapse; width: 100%; margin: .6rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid #bbb; }}
thead th {{ font-weight: normal; color: #444; border-bottom: 1px solid #111; }}
tbody th {{ font-weight: normal; width: 36%; }}
td {{ width: 32%; }} td.to {{ font-weight: bold; }}
.small {{ font-size: .85rem; color: #444; }}
@page {{ size: A4; margin: 22mm 22mm 20mm; }}
@media print {{
  body {{ font-size: 10.5pt; line-height: 1.4; max-width: none; margin: 0; padding: 0; }}
  h2, h3 {{ break-after: avoid; }} tr, li {{ break-inside: avoid; }} p {{ orphans: 3; widows: 3; }}
}}
</style></head><body>
<h1>{title}</h1>
<div class="head"><p>{reference}</p><p>{issued}</p></div>
{body}
</body></html>
"""


def as_html(letter: Letter) -> str:
    """The letter as one page that loads nothing; everything that came from data is escaped."""
    letter, words = letter.printable(), letter.words
    return _PAGE.format(
        language=escape(words.language),
        title=escape(words.title),
        reference=escape(words.reference.format(person=letter.person)),
        issued=escape(words.issued.format(date=words.day(letter.issued))),
        body="\n".join(
            _html_section(section, (words.what, words.now, words.change_to)) for section in sections(letter)
        ),
    )


def _html_section(section: Section, heads: Sequence[str]) -> str:
    title = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    return f"<section>{title}" + "\n".join(_html_part(part, heads) for part in section.parts) + "</section>"


def _html_part(part: Paragraph | Points | Changes, heads: Sequence[str]) -> str:
    if isinstance(part, Paragraph):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Points):
        items = "".join(f"<li>{escape(text)}</li>" for text in part.texts)
        return f'<ul class="small">{items}</ul>' if part.small else f"<ul>{items}</ul>"
    heading = f"<h3>{escape(part.heading)}</h3>\n" if part.heading else ""
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in heads)
    rows = "".join(
        f'<tr><th scope="row">{escape(change.label)}</th><td>{escape(change.before_text)}</td>'
        f'<td class="to">{escape(change.after_text)}</td></tr>'
        for change in part.changes
    )
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
