"""A sentence that knows its key and its numbers, so that it can be said again in another language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from rocerf.words.language import language_named


class Said(str):
    """The English text of a key with its values filled in; :meth:`in_language` says it in another language.

    >>> said = Said.of("promises.plain")
    >>> said.key, said.startswith("is accepted")
    ('promises.plain', True)
    """

    __slots__ = ("key", "values")
    key: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, key: str, **values: Any) -> Self:
        """The sentence of this key; values are numbers, texts, or other sentences."""
        made = cls(language_named("en").say(key, **values))
        made.key, made.values = key, values
        return made

    def in_language(self, code: str) -> str:
        """The same in another language."""
        return language_named(code).say(self.key, **self.values)

    def to_list(self) -> list[Any]:
        """Key and values, for JSON."""
        return [self.key, {name: v.to_list() if isinstance(v, Said) else v for name, v in self.values.items()}]

    @classmethod
    def from_list(cls, plain: list[Any]) -> Self:
        """The inverse of :meth:`to_list`."""
        key, values = plain
        return cls.of(key, **{name: cls.from_list(v) if isinstance(v, list) else v for name, v in values.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.to_list(),)


def _again(plain: list[Any]) -> Said:
    return Said.from_list(plain)
