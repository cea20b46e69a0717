"""Every page as markup: complete in both languages, escaped, nothing inline, readable by those who do not see it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from string import Formatter
from typing import Any

import pytest

from page_examples import NASTY, letter, pages, reader
from rocerf.letters.page import as_html, body_html
from rocerf.service.pages import static
from rocerf.service.pages.rendering import FACT_CODES, PLACES, Notice, render
from rocerf.service.pages.texts import asked_language, own_sentences, page_language, page_languages

TEMPLATES = sorted(pages())
VOID = {"meta", "link", "input", "br", "img", "hr"}
#: htmx 2.0.11, as the npm package has it.
HTMX_SHA256 = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"


class Tree(HTMLParser):
    """Elements in order with their attributes, and whether they are closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def drawn(template: str, code: str = "en", role: str = "data-protection-officer", person: str | None = "A-17") -> str:
    who = None if template == "login.html" else reader(role)
    return render(template, code, reader=who, **pages(code, person)[template])


# --- words ----------------------------------------------------------------------------------------


def names_in(sentence: Any) -> set[tuple[str, str]]:
    texts = [sentence] if isinstance(sentence, str) else [text for form, text in sentence.items() if form != "of"]
    return {(name, form or "") for text in texts for _, name, form, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("code", page_languages())
def test_no_sentence_is_missing_in_any_language(code: str) -> None:
    own, english = own_sentences(code), own_sentences("en")
    assert set(own) == set(english)
    for key, sentence in english.items():
        assert names_in(own[key]) == names_in(sentence), key
        assert own[key], key


def test_every_key_that_is_written_out_is_known_and_every_sentence_is_used() -> None:
    folder = files("rocerf.service.pages")
    sources = [*(folder / "templates").iterdir(), *(file for file in folder.iterdir() if file.name.endswith(".py"))]
    source = "\n".join(file.read_text("utf-8") for file in sources)
    known = set(own_sentences("en"))
    whole = set(re.findall(r"""(?<!_)say\(["'](?:pages\.)?([a-z_.]+)["'][,)]""", source))
    whole |= set(re.findall(r"""say_in\(code, ["']([a-z_.]+)["']\)""", source))
    begun = set(re.findall(r"""say\(f?\(?["'](?:pages\.)?([a-z_]+\.)["'{]""", source))
    begun |= {f"{kind}." for kind in re.findall(r"""_named\(language, "([a-z]+)\"""", source)}
    begun |= {f"{kind}." for kind in re.findall(r"""state\("([a-z_]+)\"""", source)}
    begun |= {f"{kind}." for kind in FACT_CODES.values()}
    assert whole - known == set()
    assert len(whole) > 100
    unused = {key for key in known - whole if not key.startswith(tuple(begun))}
    assert unused == set()


def test_the_language_is_chosen_by_switch_then_by_browser() -> None:
    assert asked_language("de", "en") == "de"
    assert asked_language(None, "de;q=0.3, en;q=0.8") == "en"
    assert asked_language(None, "fr, de;q=0") == "en"
    assert asked_language(None, "de;q=oops") == "en"


@pytest.mark.parametrize("template", TEMPLATES)
def test_german_pages_are_german(template: str) -> None:
    german, english = drawn(template, "de"), drawn(template)
    assert '<html lang="de">' in german
    assert page_language("de").say("pages.site.skip") in german
    assert german != english
    for key in ("letters.state", "requests.what_is_due", "portfolio.lead", "models.lead", "trail.lead"):
        assert page_language("en").say(f"pages.{key}") not in re.sub("<[^>]*>", "\n", german).split("\n")


# --- markup ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", page_languages())
@pytest.mark.parametrize("template", TEMPLATES)
def test_markup_is_sound(template: str, code: str) -> None:
    tree = Tree(drawn(template, code))
    assert (tree.faults, tree.open) == ([], [])
    ids = Counter(str(a["id"]) for _, a in tree.found if "id" in a)
    assert max(ids.values()) == 1
    for name in ("for", "aria-labelledby", "aria-describedby"):
        assert {str(a[name]) for _, a in tree.found if name in a} <= set(ids)


@pytest.mark.parametrize("template", TEMPLATES)
def test_who_does_not_see_or_point_can_read_and_use_it(template: str) -> None:
    text = drawn(template)
    tree = Tree(text)
    assert [len(tree.all(tag)) for tag in ("main", "header", "footer", "title")] == [1, 1, 1, 1]
    assert len(tree.all("h1")) == (2 if template == "letter.html" else 1)  # the letter has its own
    assert tree.all("a")[0] == {"class": "skip", "href": "#content"}
    assert text.count("<table class=") == text.count("<caption>")  # the one in a letter is introduced by a sentence
    assert all(a.get("scope") in ("col", "row") for a in tree.all("th"))
    labelled = {a.get("for") for a in tree.all("label")}
    fields = [a for tag in ("input", "select", "textarea") for a in tree.all(tag) if a.get("type") != "hidden"]
    assert {a.get("id") for a in fields} == labelled
    assert not any(int(a.get("tabindex") or 0) > 0 for _, a in tree.found)
    levels = [int(tag[1]) for tag, _ in tree.found if re.fullmatch("h[1-6]", tag)]
    assert all(below <= above + 1 for above, below in zip([0, *levels], levels, strict=False))


@pytest.mark.parametrize("template", TEMPLATES)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(template: str) -> None:
    tree = Tree(drawn(template))
    assert tree.all("style") == []
    for tag, attributes in tree.found:
        assert not [name for name in attributes if name == "style" or name.startswith(("on", "hx-on"))], tag
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            assert re.match("[/#](?!/)", str(attributes.get(name, "/"))), (tag, attributes)
    assert [a["src"] for a in tree.all("script")] == [static.address("htmx.min.js")]
    settings = next(a["content"] for a in tree.all("meta") if a.get("name") == "htmx-config")
    wanted = {"includeIndicatorStyles": False, "allowEval": False, "selfRequestsOnly": True, "allowScriptTags": False}
    assert json.loads(str(settings)).items() >= wanted.items()
    for form in tree.all("form"):
        assert form.get("method") in ("get", "post")
        assert form.get("action")


@pytest.mark.parametrize("template", TEMPLATES)
def test_forms_that_change_something_carry_the_session_s_token(template: str) -> None:
    text = drawn(template)
    for form in re.findall(r'<form[^>]*method="post".*?</form>', text, flags=re.DOTALL):
        assert template == "login.html" or f'name="csrf_token" value="{"c" * 64}"' in form


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_came_from_data_is_escaped(template: str) -> None:
    text = render(
        template, "en", reader=reader(), notice=Notice("bad", NASTY), back=f"/{NASTY}", **pages("en", NASTY)[template]
    )
    assert NASTY not in text
    assert "&lt;script&gt;" in text


def test_a_body_that_letters_did_not_make_is_escaped() -> None:
    values = pages()["letter.html"]
    told = type(values["view"])(**{**vars(values["view"]), "body": NASTY})
    assert NASTY not in render("letter.html", "en", reader=reader(), view=told)


# --- letters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", page_languages())
def test_the_letter_on_the_page_is_the_letter(code: str) -> None:
    """Not one like it: the same markup, which the page for printing has too."""
    body = body_html(letter(code))
    assert body in drawn("letter.html", code)
    assert body in as_html(letter(code))


# --- who sees no person ---------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["auditor", "admin"])
@pytest.mark.parametrize("template", sorted(set(TEMPLATES) - {"login.html"}))
def test_whoever_sees_no_person_has_no_column_for_one(template: str, role: str) -> None:
    text = drawn(template, role=role, person=None)
    assert page_language("en").say("pages.letters.person") not in re.findall(r"<th[^>]*>([^<]*)", text)
    assert page_language("en").say("pages.requests.subject") not in re.findall(r"<(?:th|dt)[^>]*>([^<]*)", text)


# --- files ----------------------------------------------------------------------------------------


def test_htmx_is_the_published_file_and_its_licence_is_there() -> None:
    assert hashlib.sha256(static.contents("htmx.min.js")).hexdigest() == HTMX_SHA256
    notice = static.contents("NOTICE.md").decode()
    assert "htmx 2.0.11" in notice
    assert "Zero-Clause BSD" in notice


def test_the_style_loads_nothing() -> None:
    style = static.contents("style.css").decode()
    assert "url(" not in style
    assert "@import" not in style


def test_every_place_begins_at_the_root() -> None:
    assert all(place.startswith("/") and not place.startswith("//") for place in PLACES.values())


def luminance(colour: str) -> float:
    digits = colour * 2 if len(colour) == 3 else colour
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_of_text_stand_out_from_their_ground() -> None:
    style = static.contents("style.css").decode()
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]{3,6})", style))
    pairs = [(text, ground) for text in ("ink", "soft", "link") for ground in ("ground", "paper")]
    pairs += [(tone, f"{tone}-ground") for tone in ("warn", "bad", "good")] + [("act", "paper"), ("bad", "paper")]
    for text, ground in pairs:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert contrast(colours["focus"], colours["ground"]) >= 3
    assert contrast("000", "fff") == pytest.approx(21)
