"""A language: one file of sentences by key, and how it writes numbers and dates.

Sentences are texts with ``{names}`` that are filled in, with Python's format where a number has one (``{share:.1%}``);
one whose wording depends on a number is a mapping of its plural forms (``one``, ``other``), chosen by the parameter
``k`` or the one that ``of`` names. English is ``en.yaml`` beside this file; every other language has the same keys and
fills in the same names, so that none says less, and is refused where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Formatter
from typing import Any

from rocerf.errors import OptionError

#: A text with names to fill in, or one for each plural form.
Sentence = str | Mapping[str, str]

#: Whole numbers of fewer digits are written without separators: 2024 may be a year.
SEPARATED_FROM = 5

#: Numbers outside these sizes are written with an exponent; nobody counts thirty zeros.
SMALLEST, LARGEST = 1e-9, 1e15

#: The entry of plural forms that names the number they follow; without it, that is ``k``.
COUNTED = "of"


def one_or_other(number: float) -> str:
    """The plural form of a number in English and in German."""
    return "one" if number == 1 else "other"


def exact(number: float) -> str:
    """A number with all its digits: rounded, it may say more than was checked.

    >>> exact(5.1234567), exact(2.0), exact(0.1 + 0.2)
    ('5.1234567', '2', '0.30000000000000004')
    """
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Language:
    """Sentences by dotted key, and the signs in numbers and dates.

    Make one of your own out of a file with :meth:`read`, or change some sentences of one with :meth:`replace`.

    Parameters
    ----------
    code : str
        Such as "en", for web pages and JSON.
    sentences : mapping from dotted keys to sentences
        Those of ``en.yaml``, all of them. A translation must say the same: no more was checked or proven.
    plural : function
        The name of the plural form of a number, for languages with others than one and other.

    Examples
    --------
    >>> english = language_named("en")
    >>> english.say("promises.plain")
    'is accepted by the model as it is today; nothing is promised about deletions'
    >>> english.number(31234.5), english.number(0.07), english.number(2024.0), english.day(date(2026, 12, 31))
    ('31,234.5', '0.07', '2024', '31 December 2026')
    """

    code: str
    sentences: Mapping[str, Sentence] = field(repr=False)
    months: tuple[str, ...]
    decimal_point: str = "."
    thousands: str = ","
    percent: str = "%"
    day_format: str = "{day} {month} {year}"
    plural: Callable[[float], str] = one_or_other

    def __post_init__(self) -> None:
        english = _english()
        for key in english:
            if key not in self.sentences:
                raise OptionError(f"Expected the sentence {key!r} in the language {self.code!r}, got none; add it.")
        for key, sentence in self.sentences.items():
            _check(key, sentence, _names_of(key, english.get(key, sentence)))
        _check("day_format", self.day_format, {"day", "month", "year"})
        if len(self.months) != 12:
            raise OptionError(f"Expected the names of 12 months, got {len(self.months)}; give them from January on.")
        signs = f"{self.decimal_point!r} and {self.thousands!r}; numbers could not be read back."
        if self.decimal_point in ("", self.thousands):
            raise OptionError(f"Expected a decimal point unlike the thousands separator, got {signs}")
        if any(sign.isalnum() or sign in "+-" for sign in self.decimal_point + self.thousands):
            raise OptionError(
                f"Expected a decimal point and a thousands separator that are no part of numbers, got {signs}"
            )

    @classmethod
    def read(cls, path: str | Path | Traversable, plural: Callable[[float], str] = one_or_other) -> Language:
        """The language of a YAML file laid out as ``en.yaml``; its code is the file's name."""
        path = Path(path) if isinstance(path, str) else path
        document = _read_yaml(path.read_text("utf-8"))
        try:
            code, sentences = path.name.partition(".")[0], sentences_by_key(document.pop("sentences"))
            return cls(code, sentences, tuple(document.pop("months")), plural=plural, **document)
        except (AttributeError, KeyError, TypeError) as error:
            raise OptionError(
                f"Expected a language laid out as rocerf/words/en.yaml, got {path} ({error}); correct it."
            ) from error

    def replace(self, sentences: Mapping[str, Sentence]) -> Language:
        """The same language with some sentences of one's own.

        >>> language_named("en").replace({"letters.closing": "Questions? Call us."}).say("letters.closing")
        'Questions? Call us.'
        """
        unknown = [key for key in sentences if key not in self.sentences]
        if unknown:
            raise OptionError(f"Expected keys of sentences that are known, got {unknown[0]!r}; en.yaml lists them all.")
        return replace(self, sentences={**self.sentences, **sentences})

    def say(self, key: str, /, **values: Any) -> str:
        """The sentence of this key with its values filled in; a value that is a sentence is said in this language."""
        sentence = self.sentences.get(key)
        if sentence is None:
            raise OptionError(f"Expected the sentence {key!r} in the language {self.code!r}, got none; add it.")
        if not isinstance(sentence, str):
            form = self.plural(values[sentence.get(COUNTED, "k")])
            sentence = sentence.get(form, sentence["other"])
        parts = Formatter().parse(sentence)
        return "".join(
            text + ("" if name is None else self.written(values[name], form or "")) for text, name, form, _ in parts
        )

    def written(self, value: Any, form: str = "") -> str:
        """A value in this language: a sentence said, a number with its digits, any other text as it is."""
        from rocerf.words.said import Said

        if isinstance(value, Said):
            return self.say(value.key, **value.values)
        if isinstance(value, str) or (isinstance(value, int) and not form):
            return str(value)
        if form.endswith("g%"):  # a share in percent with the digits it was given with
            return self._signs(f"{format(100.0 * value, form[:-1])}%")
        return self._signs(format(value, form) if form else exact(value))

    def _signs(self, plain: str) -> str:
        """A number as Python writes it, with the signs of this language."""
        return plain.translate({ord("."): self.decimal_point, ord(","): self.thousands, ord("%"): self.percent})

    def number(self, value: float) -> str:
        """A number with every digit that it has, readable back by :meth:`parsed`."""
        value = float(value) + 0.0  # no minus before a zero
        if value and not SMALLEST <= abs(value) < LARGEST:
            return self._signs(repr(value))
        plain = f"{Decimal(repr(value)):,f}".removesuffix(".0")
        few = len(plain.partition(".")[0].strip("-").replace(",", "")) < SEPARATED_FROM
        return self._signs(plain.replace(",", "") if few else plain)

    def parsed(self, text: str) -> float:
        """The inverse of :meth:`number`."""
        plain = text.replace(self.thousands, "") if self.thousands else text
        return float(plain.replace(self.decimal_point, "."))

    def day(self, day: date) -> str:
        """A date."""
        return self.day_format.format(day=day.day, month=self.months[day.month - 1], year=day.year)


def _names_of(key: str, sentence: Sentence) -> set[str]:
    """The names that are filled into a sentence."""
    texts = (
        [sentence] if not isinstance(sentence, Mapping) else [sentence[form] for form in sentence if form != COUNTED]
    )
    try:
        return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name is not None}
    except (TypeError, ValueError) as error:
        raise OptionError(f"Expected a sentence as {key}, got {sentence!r}; braces are for {{names}} only.") from error


def _check(key: str, sentence: Sentence, wanted: set[str]) -> None:
    """Refuse a sentence that would drop what must be said, or could not be filled in.

    Only the number that a plural form follows may be left out of it, as "one" may say it in words.
    """
    forms = {"other": sentence} if not isinstance(sentence, Mapping) else dict(sentence)
    counted = forms.pop(COUNTED, "k")
    for form, text in forms.items():
        got = _names_of(key, text)
        if got != wanted and (form == "other" or got | {counted} != wanted):
            names = ", ".join(f"{{{name}}}" for name in sorted(wanted)) or "nothing in braces"
            raise OptionError(f"Expected {names} in the sentence {key}, got {text!r}; correct it.")


def sentences_by_key(tree: Mapping[str, Any]) -> dict[str, Sentence]:
    """The sentences of a document by dotted key.

    >>> sentences_by_key({"greeting": {"short": "Hi", "long": {"one": "Hello you", "other": "Hello all"}}})
    {'greeting.short': 'Hi', 'greeting.long': {'one': 'Hello you', 'other': 'Hello all'}}
    """
    return dict(_flat(tree))


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and their sentences."""
    for name, entry in tree.items():
        if isinstance(entry, Mapping) and "other" not in entry:
            yield from _flat(entry, f"{above}{name}.")
        else:
            yield above + name, entry


@cache
def _english() -> Mapping[str, Sentence]:
    """The sentences that every language must have."""
    return sentences_by_key(_read_yaml((files("rocerf.words") / "en.yaml").read_text("utf-8"))["sentences"])


def _read_yaml(text: str) -> Any:
    """A YAML document, read in C where PyYAML has that: several times faster, and part of every first answer."""
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


_REGISTERED: dict[str, Language] = {}


def register_language(language: Language) -> None:
    """Make a language known by its code: to letters, and to the command line if it is registered before that runs."""
    _REGISTERED[language.code] = language


def known_languages() -> tuple[str, ...]:
    """Codes of the languages that can be asked for: English, the others shipped, those registered."""
    return tuple(dict.fromkeys(("en", *_shipped_codes(), *_REGISTERED)))


@cache
def _shipped_codes() -> list[str]:
    return sorted(file.name.removesuffix(".yaml") for file in files("rocerf.words").iterdir() if "yaml" in file.name)


def language_named(language: str | Language) -> Language:
    """The language of this code, registered or shipped; a language itself is taken as it is."""
    if isinstance(language, Language):
        return language
    if not isinstance(language, str) or language not in known_languages():
        raise OptionError(
            f"Expected a language of letters ({', '.join(known_languages())}) or a Language, got {language!r}; write "
            "its sentences as rocerf/words/en.yaml has them, and read them with rocerf.words.Language.read."
        )
    return _REGISTERED[language] if language in _REGISTERED else _shipped(language)


@cache
def _shipped(code: str) -> Language:
    return Language.read(files("rocerf.words") / f"{code}.yaml")
