"""Writing letters: from recourses, and the explainer that made them, to what each person reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.audit.recheck import batches_of, check_same_model
from rocerf.data.feature import Kind
from rocerf.data.schema import Attribute, FeatureSchema
from rocerf.errors import DataError, OptionError
from rocerf.letters.letter import Detail, Letter, LetterChange, LetterPromise, Option
from rocerf.letters.numbers import stated, stated_ranges
from rocerf.models.options import positive_whole
from rocerf.progress import Telling, shown
from rocerf.recourse.ranges import Ranges
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array
from rocerf.visible import one_line, visible
from rocerf.words import Language, language_named

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf


#: Significant digits are those of a double at most.
MOST_DIGITS = 15

#: A person's own numbers keep all digits before the point, and of those behind it two, or what makes so many in all.
OWN_DIGITS, OWN_DECIMALS = 6, 2

#: The part of a change that may be lost where the person's own number is shown so.
LOST = 0.01

#: What recourses and the explainer that checks them again must have in common.
_SHARED = ("promise", "k", "delta", "cost", "max_changes")

#: To whom it is said what was held fixed: those for whom changes were looked for.
_LOOKED_FOR = (Status.ANSWERED, Status.UNREACHABLE, Status.NOT_ROBUST, Status.GAVE_UP)


def letters_and_points(
    explainer: Rocerf,
    recourses: Recourses | Sequence[Recourses],
    *,
    valid_until: date | None,
    model_version: str | None = "",
    issued: date | None = None,
    language: str | Language = "en",
    digits: int = 3,
    refusal_reasons: Mapping[Any, Sequence[str]] | Sequence[Sequence[str]] | None = None,
    ranges: bool = False,
    progress: Telling = None,
) -> tuple[tuple[Letter, ...], tuple[Recourses, ...], tuple[Ranges, ...]]:
    """A letter for each person, the batches with the very points that the letters state (rounded, checked anew), and
    the ranges that they print around these."""
    language, digits = language_named(language), _digits(digits)
    batches = batches_of(recourses, "several batches of them for the same people")
    _check_batches(explainer, batches)
    issued = date.today() if issued is None else _day(issued, "issued")
    valid_until = None if valid_until is None else _day(valid_until, "valid_until")
    if valid_until is not None and valid_until < issued:
        raise OptionError(
            f"Expected letters to be valid on the day they are issued ({issued}), got valid_until {valid_until}; "
            "choose a later date."
        )
    names = batches[0].names
    given = _reasons(refusal_reasons, names)
    checked = [stated(explainer, batch, digits) for batch in batches]
    around = [stated_ranges(explainer, batch, overshoot=ranges) for batch, _ in checked]
    writer = _Writer(batches[0], language, explainer, checked, around)
    letters = []
    with shown((progress, "letters")) as (tell,):
        for person, name in enumerate(names):
            letters.append(writer.letter(person, name))
            if tell is not None:
                tell(person + 1, len(names))
    version = "" if model_version is None else str(model_version)
    dated = tuple(
        replace(letter, issued=issued, valid_until=valid_until, model_version=version, refusal_reasons=reasons)
        for letter, reasons in zip(letters, given, strict=True)
    )
    return dated, tuple(batch for batch, _ in checked), tuple(around)


def of_people(recourses: Recourses, places: Sequence[int]) -> Recourses:
    """The recourses of these people alone, without what is said about the batch as a whole."""
    rows = np.array(places, dtype=np.intp)
    arrays = ("people", "matrix", "costs", "margins", "index", "retrainings", "scores", "gaps")
    tuples = ("statuses", "reasons", "missing")
    chosen: dict[str, Any] = {
        **{name: values[rows] for name in arrays if (values := getattr(recourses, name)) is not None},
        **{name: tuple(values[row] for row in rows) for name in tuples if (values := getattr(recourses, name))},
    }
    return replace(recourses, **chosen, worst_ids=None, held_out=None, picked=None)


def _check_batches(explainer: Rocerf, batches: Sequence[Recourses]) -> None:
    """Refuse recourses that this explainer cannot check: made for others, or with something else."""
    own, schema = explainer.settings(), explainer.schema or FeatureSchema.free(explainer.model.train.columns)
    for batch in batches:
        if batch.names != batches[0].names or not np.array_equal(batch.people, batches[0].people, equal_nan=True):
            raise DataError(
                "Expected alternatives for the same people in the same order, got different ones; pass what one call "
                "of alternatives returned."
            )
        check_same_model(explainer.model, batch)
        for name in _SHARED:
            expected, got = getattr(own, name), getattr(batch.settings, name)
            if got != expected:
                raise DataError(
                    f"Expected recourses made with this explainer's {name}, {expected!r}, got {got!r}; letters are "
                    "checked again, so use the explainer that made the recourses (Rocerf.save keeps it)."
                )
        if batch.schema != schema:
            raise DataError(
                "Expected recourses made with this explainer's schema, got another one; use the explainer that made "
                "the recourses (Rocerf.save keeps it)."
            )


def _digits(digits: Any) -> int:
    if positive_whole(digits, "digits") > MOST_DIGITS:
        raise OptionError(f"Expected digits from 1 to {MOST_DIGITS}, got {digits}; 3 is the default.")
    return int(digits)


def _day(day: Any, name: str) -> date:
    if isinstance(day, datetime):
        return day.date()
    if not isinstance(day, date):
        raise OptionError(f"Expected {name} as a datetime.date, got {day!r}; write date(2026, 12, 31).")
    return day


def _reasons(given: Any, names: Sequence[Any]) -> list[tuple[str, ...] | None]:
    """The reasons for each person's refusal, None where none were given."""
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping):
        counts = Counter(names)
        for name in given:
            if name not in counts:
                raise OptionError(
                    f"Expected refusal_reasons for people of the recourses, got {name!r}; name them as in the "
                    "recourses' index."
                )
            if counts[name] > 1:
                raise OptionError(
                    f"Expected refusal_reasons by names that one person has, got {name!r} of several; give a list of "
                    "reasons for each person in their order."
                )
        return [_sentences(given.get(name)) for name in names]
    listed = list(given) if isinstance(given, Sequence) else [given]
    if isinstance(given, str) or not isinstance(given, Sequence) or len(listed) != len(names):
        raise OptionError(
            f"Expected refusal_reasons for each of {len(names)} people, or by their names, got {len(listed)}; a "
            "list of reasons for each person."
        )
    return [_sentences(one) for one in listed]


def _sentences(reasons: Any) -> tuple[str, ...] | None:
    if reasons is None:
        return None
    if not isinstance(reasons, Sequence):
        raise OptionError(f"Expected a list of sentences for each person in refusal_reasons, got {reasons!r}.")
    return (reasons,) if isinstance(reasons, str) else tuple(map(str, reasons))


def _readable(number: float) -> float:
    """The number without the digits that binary fractions and long divisions leave behind.

    >>> _readable(0.1 + 0.2), _readable(1 / 3), _readable(1293903.04), _readable(2e6 / 3)
    (0.3, 0.333333, 1293903.04, 666666.67)
    """
    before_the_point = floor(log10(abs(number))) + 1 if number else 0
    return round(number, max(OWN_DECIMALS, OWN_DIGITS - before_the_point))


def told_apart(words: Sequence[str]) -> list[str]:
    r"""Words for categories; those that would look alike on paper are quoted, with their white space written out.

    >>> told_apart(["own", "own ", "rent"])
    ["'own'", "'own\\x20'", 'rent']
    """
    shown = Counter(" ".join(one_line(word).split()) for word in words)
    alike = [shown[" ".join(one_line(word).split())] > 1 for word in words]
    return [_quoted(word) if same else word for word, same in zip(words, alike, strict=True)]


def _quoted(word: str) -> str:
    """The word in quotation marks; white space is written out, but for single spaces inside it."""
    written = re.sub(r"^ +| +$|(?<= ) +", lambda found: "\\x20" * len(found.group()), word)
    return "'" + "".join(c if c == " " or not c.isspace() else f"\\u{ord(c):04x}" for c in written) + "'"


@dataclass(frozen=True, eq=False)
class _Writer:
    """Puts one batch's people into words."""

    batch: Recourses
    language: Language
    explainer: Rocerf
    #: The batches as letters state them, and whose numbers were rounded.
    checked: Sequence[tuple[Recourses, NDArray[np.bool_]]]
    #: Around the points of each batch, ranges that hold.
    around: Sequence[Ranges]

    def letter(self, person: int, name: Any) -> Letter:
        """What the person of this name reads, but for dates, version and reasons."""
        options = self.options(person)
        status = Status.ANSWERED if options else self.checked[0][0].statuses[person]
        if status is Status.NO_FURTHER:
            raise DataError(
                f"Expected all options of {name!r} together, got a further batch of alternatives without the first, in "
                "which there is nothing to tell this person; pass all that alternatives returned."
            )
        held = self.held(person) if status in _LOOKED_FOR else []
        return Letter(
            person=name if isinstance(name, str | int) and not isinstance(name, bool) else str(name),
            status=status,
            options=options,
            held=tuple(self.own(one, self.batch.people[person], person) for one in held if not one.private),
            held_unlisted=sum(one.private for one in held),
            not_given=self.not_given(person, options),
            unreadable=self.unreadable(person) if status is Status.INVALID_INPUT else (),
            language=self.language,
        )

    def say(self, name: str) -> str:
        """One of the words of letters."""
        return self.language.say(f"letters.{name}")

    @cached_property
    def labels(self) -> dict[str, str]:
        """How features are called, each in its own way."""
        attributes = self.batch.schema.attributes
        shown = Counter(one_line(attribute.label) for attribute in attributes)
        return {
            a.name: a.label if shown[one_line(a.label)] == 1 else f"{a.label} ({visible(a.name)})" for a in attributes
        }

    def options(self, person: int) -> tuple[Option, ...]:
        """What the batches, as stated, offer one person, cheapest first, each once."""
        offered = [
            (batch, bool(rounded[person]), around)
            for (batch, rounded), around in zip(self.checked, self.around, strict=True)
            if batch.statuses[person] is Status.ANSWERED
        ]
        offered.sort(key=lambda one: float(one[0].costs[person]))
        return tuple(dict.fromkeys(self.option(batch, person, rounded, around) for batch, rounded, around in offered))

    def option(self, batch: Recourses, person: int, rounded: bool, around: Ranges) -> Option:
        """The changes of one stated answer, and its promise."""
        before, after = batch.people[person], batch.matrix[person]
        changes = []
        for attribute in batch.schema.attributes:
            places = list(attribute.places)
            if (before[places] != after[places]).any():
                change = float(np.abs(after[places] - before[places]).max())
                was, now = self.own(attribute, before, person, LOST * change), self.detail(attribute, after)
                if around.wide[person, places[0]]:
                    now = self.range(now, *(float(end[person, places[0]]) for end in (around.low, around.high)))
                changes.append(LetterChange(was.feature, was.label, was.value, now.value, was.text, now.text, now.unit))
        own, said, given = batch.settings, self.language.written, batch[person]
        assumptions = tuple(map(said, own.assumptions))
        promise = LetterPromise(own.promise, said(given.promise), own.k, given.certified, assumptions)
        return Option(tuple(changes), promise, rounded)

    def range(self, detail: Detail, low: float, high: float) -> Detail:
        """A number in words that name the whole range in which it may lie."""
        ends = {"low": self.language.number(low), "high": self.language.number(high)}
        name = "between" if np.isfinite([low, high]).all() else "at_least" if np.isfinite(low) else "at_most"
        return replace(detail, text=" ".join(self.language.say(f"letters.{name}", unit=detail.unit, **ends).split()))

    def held(self, person: int) -> list[Attribute]:
        """The attributes that nothing could change for this person: fixed by the schema, or without a price."""
        return [attribute for attribute, closed in self._closed if closed[person]]

    @cached_property
    def _closed(self) -> list[tuple[Attribute, NDArray[np.bool_]]]:
        """Each attribute, and for whom (n,) nothing could change it; all people at once, since the rules are shared."""
        asked = sorted({p for b, _ in self.checked for p, status in enumerate(b.statuses) if status in _LOOKED_FOR})
        X0 = self.batch.people[asked]
        allowed = self.explainer.problem(X0, [self._missing(person) for person in asked], ruled=True).allowed
        found = []
        for attribute in self.batch.schema.attributes:
            places = list(attribute.places)
            lower, upper = allowed.lower[:, places], allowed.upper[:, places]
            closed = (lower == upper).all(axis=1)
            if attribute.categories is not None:  # only the own category is left
                closed |= allowed.complete(attribute) & ((X0[:, places] != 0) | (upper == 0)).all(axis=1)
            whole = np.zeros(len(self.batch.people), bool)
            whole[asked] = closed
            found.append((attribute, whole))
        return found

    def not_given(self, person: int, options: Sequence[Option]) -> tuple[str, ...]:
        """Labels of the details that the application lacks and that some option leaves so."""
        asked = [{change.feature for change in option.changes} for option in options]
        missing = self._missing(person)
        return tuple(
            self.labels[attribute.name]
            for attribute in self.batch.schema.attributes
            if attribute.name in missing and not all(attribute.name in features for features in asked)
        )

    def unreadable(self, person: int) -> tuple[str, ...]:
        """Labels of the details that have no usable value."""
        x0 = self.batch.people[person]
        return tuple(
            self.labels[a.name] for a in self.batch.schema.attributes if not np.isfinite(x0[list(a.places)]).all()
        )

    def _missing(self, person: int) -> tuple[str, ...]:
        return () if self.batch.missing is None else self.batch.missing[person]

    def own(self, attribute: Attribute, x0: Array, person: int, most: float = np.inf) -> Detail:
        """A person's own value: as it is, and in words without digits nobody reads, by at most ``most`` beside it."""
        full = self.detail(attribute, x0, self._missing(person))
        if not isinstance(full.value, float):
            return full
        shown = _readable(full.value)
        if abs(shown - full.value) > most:
            return full
        return replace(full, text=f"{self.language.number(shown)} {full.unit}".strip())

    def detail(self, attribute: Attribute, x: Array, missing: Sequence[str] = ()) -> Detail:
        """An attribute's value at a point (d,), as plain value and in words."""
        values, label = x[list(attribute.places)], self.labels[attribute.name]
        feature = self.batch.schema.column_features[attribute.places[0]]
        if attribute.name in missing:
            return Detail(attribute.name, label, None, self.say("missing"))
        if attribute.categories is not None:
            if not values.any():
                return Detail(attribute.name, label, None, self.say("none_of_these"))
            place = int(values.argmax())
            value = attribute.categories[place]
            text = self.say("missing") if value is None else told_apart(attribute.words)[place]
            return Detail(attribute.name, label, value, text)
        number = float(values[0])
        if feature.kind is Kind.BINARY:
            return Detail(attribute.name, label, int(number), self.say("yes" if number else "no"))
        plain = int(number) if feature.kind is Kind.INTEGER and number.is_integer() else number
        text = f"{self.language.number(number)} {feature.unit}".strip()
        return Detail(attribute.name, label, plain, text, feature.unit)
