"""A language: one file of sentences by key, and how it writes numbers.

Sentences are texts with ``{names}`` that are filled in; one whose wording depends on a number is a mapping with
``one`` and ``other``, chosen by the parameter ``k``. ``en.yaml`` and ``de.yaml`` lie beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rocerf.errors import OptionError


@dataclass(frozen=True, eq=False)
class Language:
    """Sentences by dotted key, and the signs in numbers.

    >>> language_named("en").say("promises.plain")
    'is accepted by the model as it is today; nothing is promised about deletions'
    """

    code: str
    sentences: Mapping[str, str | Mapping[str, str]]
    decimal_point: str = "."

    def say(self, key: str, **values: Any) -> str:
        """The sentence of this key with its values filled in; a value that is a sentence is said in this language."""
        sentence = self.sentences.get(key)
        if sentence is None:
            raise OptionError(f"Expected the sentence {key!r} in the language {self.code!r}, got none; add it.")
        if isinstance(sentence, Mapping):
            sentence = sentence["one" if values.get("k") == 1 else "other"]
        return sentence.format(**{name: self._written(value) for name, value in values.items()})

    def _written(self, value: Any) -> str:
        from rocerf.words.said import Said

        if isinstance(value, Said):
            return self.say(value.key, **value.values)
        if isinstance(value, float):
            return exact(value).replace(".", self.decimal_point)
        return str(value)


def exact(number: float) -> str:
    """A number with all its digits: rounded, it may say more than was checked.

    >>> exact(5.1234567), exact(2.0), exact(0.1 + 0.2)
    ('5.1234567', '2', '0.30000000000000004')
    """
    return repr(float(number)).removesuffix(".0")


_REGISTERED: dict[str, Language] = {}


def register_language(language: Language) -> None:
    """Make a language known by its code."""
    _REGISTERED[language.code] = language


def language_named(code: str) -> Language:
    """The language of this code, ours or registered."""
    return _REGISTERED[code] if code in _REGISTERED else _shipped(code)


@cache
def _shipped(code: str) -> Language:
    import yaml

    file = files("rocerf.words") / f"{code}.yaml"
    document = yaml.safe_load(file.read_text("utf-8"))
    return Language(code, dict(_flat(document["sentences"])), document["decimal_point"])


def _flat(tree: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Dotted keys and their sentences."""
    found: list[tuple[str, Any]] = []
    for name, entry in tree.items():
        leaf = not isinstance(entry, Mapping) or set(entry) == {"one", "other"}
        found += [(above + name, entry)] if leaf else _flat(entry, f"{above}{name}.")
    return found
