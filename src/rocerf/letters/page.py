"""Letters as plain text and as a page to print; both are made of the same sections, so that they say the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from rocerf.html import Heading, Html, Paragraph, Part, Points, Section, page, tag
from rocerf.recourse.result import Status

if TYPE_CHECKING:
    from rocerf.letters.letter import Letter, LetterChange

#: Columns of plain text.
WIDTH = 80

#: How far values stand in, in plain text.
INDENT = "  "


@dataclass(frozen=True)
class Changes:
    """What to change, in a table under ``heads`` (what, now, change to)."""

    heads: tuple[str, str, str]
    changes: tuple[LetterChange, ...]

    def html(self) -> Html:
        """``<table>``."""
        head = tag("tr", *(tag("th", word, scope="col") for word in self.heads))
        rows = [
            tag(
                "tr",
                tag("th", change.label, scope="row"),
                tag("td", change.before_text),
                tag("td", change.after_text, kind="to"),
            )
            for change in self.changes
        ]
        return tag("table", tag("thead", head), tag("tbody", *rows))

    def lines(self) -> Iterator[str]:
        """Plain text."""
        _, now, change_to = self.heads
        width = max(len(now), len(change_to)) + 1
        for change in self.changes:
            yield f"{INDENT}{change.label}"
            yield f"{INDENT * 2}{f'{now}:'.ljust(width)} {change.before_text}"
            yield f"{INDENT * 2}{f'{change_to}:'.ljust(width)} {change.after_text}"


def sections(letter: Letter) -> tuple[Section, ...]:
    """What the letter says, in order."""
    say, answered = letter.say, letter.status is Status.ANSWERED
    said = [Paragraph(say(letter.status.code))]
    if not answered:
        accepted = letter.status is Status.ALREADY_ACCEPTED
        said.append(Paragraph(say("accepted_today_only" if accepted else "nothing_promised")))
    found = [Section("", tuple(said))]
    if letter.unreadable:
        found.append(Section("", (Paragraph(say("unreadable")), Points(letter.unreadable))))
    if answered:
        found.append(Section(say("changes_title"), tuple(_changes(letter))))
    if answered or letter.held or letter.held_unlisted:
        found.append(Section(say("held_title"), tuple(_held(letter))))
    if answered:
        found.append(Section(say("promise_title"), tuple(_promise(letter))))
        found.append(Section(say("validity_title"), (Paragraph(_validity(letter)),)))
    if letter.status is not Status.ALREADY_ACCEPTED or letter.refusal_reasons is not None:
        found.append(Section(say("reasons_title"), tuple(_reasons(letter))))
    closing = say("closing")
    if closing:
        found.append(Section("", (Paragraph(closing),)))
    return tuple(found)


def _changes(letter: Letter) -> Iterator[Part]:
    say, several = letter.say, len(letter.options) > 1
    heads = say("what"), say("now"), say("change_to")
    yield Paragraph(say("several_options", count=len(letter.options)) if several else say("one_option"))
    for number, option in enumerate(letter.options, start=1):
        if several:
            yield Heading(say("option", number=number))
        yield Changes(heads, option.changes)
    rounded = any(option.rounded for option in letter.options)
    yield Paragraph(f"{say('rounded')} {say('as_written')}" if rounded else say("as_written"))
    if letter.not_given:
        yield Paragraph(say("not_given"))
        yield Points(letter.not_given)


def _held(letter: Letter) -> Iterator[Part]:
    unlisted = letter.held_unlisted
    if letter.held or not unlisted:
        yield Paragraph(letter.say("held" if letter.held else "nothing_held"))
    if letter.held:
        yield Points(tuple(f"{detail.label}: {detail.text}" for detail in letter.held))
    if unlisted:
        yield Paragraph(letter.say("held_further" if letter.held else "held_unlisted", count=unlisted))


def _promise(letter: Letter) -> Iterator[Part]:
    """One sentence if all options carry the same; a promise may also say how each point fared."""
    say, promises = letter.say, [option.promise for option in letter.options]
    sentences = [promise.sentence for promise in promises]
    yield Paragraph(say("promise_opening"))
    if len(set(sentences)) == 1:
        yield Paragraph(say("promise", sentence=sentences[0]))
    else:
        each = [say("promises_by_option", number=n, sentence=s) for n, s in enumerate(sentences, start=1)]
        yield Paragraph(" ".join(each))
    assumptions = tuple(dict.fromkeys(text for promise in promises for text in promise.assumptions))
    if assumptions:
        yield Paragraph(say("assumptions"))
        yield Points(assumptions, kind="small")


def _validity(letter: Letter) -> str:
    say, until, version = letter.say, letter.valid_until, letter.model_version
    sentences = (
        say("no_date") if until is None else say("valid_until", date=letter.language.day(until)),
        say("model_version", version=version) if version else say("no_model_version"),
        say("ask_again_undated" if until is None else "ask_again"),
    )
    return " ".join(sentences)


def _reasons(letter: Letter) -> Iterator[Part]:
    say = letter.say
    if letter.refusal_reasons is not None:
        yield Paragraph(say("reasons_given"))
        yield Points(letter.refusal_reasons)
    else:
        yield Paragraph(say("reasons_separate"))
    if letter.options:
        yield Paragraph(say("changes_are_no_reasons"))


def _head(letter: Letter) -> tuple[str, str, str]:
    """Title, reference and date."""
    issued = letter.say("issued", date=letter.language.day(letter.issued))
    return letter.say("title"), letter.say("reference", person=letter.person), issued


def as_text(letter: Letter) -> str:
    """The letter as plain text."""
    letter = letter.printable()
    title, reference, issued = _head(letter)
    lines = [title, "=" * len(title), "", reference, issued]
    for section in sections(letter):
        lines += ["", section.title, "-" * len(section.title)] if section.title else [""]
        above: Part | None = None
        for part in section.parts:
            lines += [] if above is None or isinstance(above, Heading) or isinstance(part, Points) else [""]
            lines += _text_lines(part)
            above = part
    return "\n".join(lines) + "\n"


def _text_lines(part: Part) -> Iterator[str]:
    if isinstance(part, Changes):
        yield from part.lines()
    elif isinstance(part, Points):
        for text in part.texts:
            yield _filled(text, f"{INDENT}- ", f"{INDENT}  ")
    elif isinstance(part, Paragraph | Heading):
        yield _filled(part.text)


def _filled(text: str, first: str = "", further: str = "") -> str:
    wrapper = TextWrapper(WIDTH, first, further, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text)


#: How letters look, on a screen and on paper.
STYLE = """
body { font: 17px/1.5 Georgia, "Times New Roman", serif; color: #111; background: #fff; max-width: 42rem;
  margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.08rem; margin: 1.7rem 0 .35rem; }
h3 { font-size: 1rem; margin: 1.1rem 0 .3rem; }
p { margin: .45rem 0; } ul { margin: .4rem 0; padding-left: 1.3rem; }
.head { margin-bottom: 1.3rem; } .head p { margin: 0; color: #444; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid #bbb; }
thead th { font-weight: normal; color: #444; border-bottom: 1px solid #111; }
tbody th { font-weight: normal; width: 36%; }
td { width: 32%; } td.to { font-weight: bold; }
.small { font-size: .85rem; color: #444; }
@page { size: A4; margin: 22mm 22mm 20mm; }
@media print {
  body { font-size: 10.5pt; line-height: 1.4; max-width: none; margin: 0; padding: 0; }
  h2, h3 { break-after: avoid; } tr, li { break-inside: avoid; } p { orphans: 3; widows: 3; }
}
"""


def body_html(letter: Letter) -> Html:
    """What the letter says as HTML, to stand in a page of its own or in somebody else's; the same in both."""
    letter = letter.printable()
    title, reference, issued = _head(letter)
    head = tag("div", tag("p", reference), tag("p", issued), kind="head")
    return Html("\n".join([tag("h1", title), head, *(section.html() for section in sections(letter))]))


def as_html(letter: Letter) -> str:
    """The letter as one page that loads nothing; everything that came from data is escaped."""
    return page(letter.say("title"), [body_html(letter)], style=STYLE, language=letter.language.code)
