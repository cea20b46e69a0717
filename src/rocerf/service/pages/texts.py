"""What the pages say: two files a language beside this one (sentences, and names of things).

They are said by the same :class:`rocerf.words.Language` as letters.

Sentences of letters and promises stay in ``rocerf/words``: a page that shows one asks for it there, so that no sentence
towards people stands in two places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from rocerf.data.documents import yaml_document
from rocerf.errors import OptionError
from rocerf.words import Language, language_named
from rocerf.words.language import Sentence, sentences_by_key

#: Before the keys of pages, so that they never meet those of letters.
PREFIX = "pages."


@cache
def page_languages() -> tuple[str, ...]:
    """Codes of the languages that pages can be read in, English first.

    >>> page_languages()
    ('en', 'de')
    """
    found = (file.name.partition(".")[0] for file in files(__package__).iterdir() if file.name.endswith(".yaml"))
    return ("en", *sorted(set(found) - {"en"}))


@cache
def own_sentences(code: str) -> Mapping[str, Sentence]:
    """The sentences of pages in one language, by dotted key without the prefix."""
    parts = (
        yaml_document((files(__package__) / name).read_text("utf-8")) for name in (f"{code}.yaml", f"{code}.names.yaml")
    )
    return sentences_by_key({name: part for document in parts for name, part in document.items()})


@cache
def page_language(code: str) -> Language:
    """The language of letters with the sentences of pages beside them.

    One that does not say what English says is refused.

    >>> page_language("de").say("pages.portfolio.title")
    'Bestand'
    """
    own, english = own_sentences(code), own_sentences("en")
    unlike = sorted(set(own) ^ set(english))
    if unlike:
        raise OptionError(f"Expected the sentences of en.yaml in {code}.yaml, got others ({unlike[0]!r}); write them.")
    letters = language_named(code)
    return replace(letters, sentences={**letters.sentences, **{PREFIX + key: text for key, text in own.items()}})


def asked_language(cookie: str | None, accepted: str) -> str:
    """The language somebody reads: the one they chose, else the first that their browser accepts, else English.

    >>> asked_language(None, "fr-CH, de-AT;q=0.9, en;q=0.5"), asked_language("en", "de"), asked_language("xx", "")
    ('de', 'en', 'en')
    """
    if cookie in page_languages():
        return str(cookie)
    ranked = []
    for place, entry in enumerate(accepted.split(",")):
        tag, _, quality = entry.strip().partition(";q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        ranked.append((-weight, place, tag.split("-")[0].lower()))
    return next((tag for weight, _, tag in sorted(ranked) if weight < 0 and tag in page_languages()), "en")


def speaker(language: Language) -> Callable[..., str]:
    """The function by which templates say a sentence of pages.

    >>> speaker(page_language("en"))("portfolio.title")
    'Portfolio'
    """

    def say(key: str, /, **values: Any) -> str:
        return language.say(PREFIX + key, **values)

    return say
