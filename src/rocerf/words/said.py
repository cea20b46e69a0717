"""A sentence that knows its key and its numbers, so that it can be said again in another language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from rocerf.errors import OptionError
from rocerf.words.language import Language, language_named


class Said(str):
    """The English text of a key with its values filled in; :meth:`in_language` says it in another language.

    >>> said = Said.of("promises.plain")
    >>> said.key, said.startswith("is accepted"), said.in_language("de").startswith("wird von dem Modell")
    ('promises.plain', True, True)
    """

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, key: str, /, **values: Any) -> Self:
        """The sentence of this key; values are numbers, texts, or other sentences."""
        plain = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}  # NumPy's
        made = cls(language_named("en").say(key, **plain))
        made.key, made.values = key, plain
        return made

    def in_language(self, language: str | Language) -> str:
        """The same in another language."""
        return language_named(language).written(self)

    def to_list(self) -> list[Any]:
        """Key and values, for JSON."""
        return [self.key, {name: v.to_list() if isinstance(v, Said) else v for name, v in self.values.items()}]

    @classmethod
    def from_list(cls, plain: list[Any]) -> Self:
        """The inverse of :meth:`to_list`."""
        key, values = plain
        return cls.of(key, **{name: cls.from_list(v) if isinstance(v, list) else v for name, v in values.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return Said.from_list, (self.to_list(),)


def to_table(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Of the sentences among these texts, each text with its key and values, for JSON."""
    return {str(text): text.to_list() for text in texts if isinstance(text, Said)}


def from_table(text: str, table: Mapping[str, Any]) -> str:
    """The sentence that :func:`to_table` kept of a text; the text alone where it kept none, or one that says another.

    What was said is the text, so that a later version with other words changes nothing of it.
    """
    if text not in table:
        return text
    try:
        said = Said.from_list(table[text])
    except (OptionError, KeyError, TypeError, ValueError):
        return text
    return said if said == text else text
