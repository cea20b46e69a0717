"""The words of letters: one field a sentence, so that another language is another :class:`Words`.

Words are exact. "Accepted" is said of the model in use today only; what is promised about deletions is said by the
promise's own sentence and by nothing else; where nothing is promised the letter says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from string import Formatter
from typing import Any

from rocerf.errors import OptionError
from rocerf.recourse.result import Status

#: Whole numbers of fewer digits are written without separators: 2024 may be a year.
SEPARATED_FROM = 5

#: Numbers outside these sizes are written with an exponent; nobody counts thirty zeros.
SMALLEST, LARGEST = 1e-9, 1e15


@dataclass(frozen=True)
class Words:
    """Everything a letter says in one language; fields with ``{...}`` are filled in.

    Make another language with ``Words(...)``, all fields given, or change some with
    ``dataclasses.replace(ENGLISH, closing="Questions? Call ...")``.

    Parameters
    ----------
    language : str
        Its code, such as "en", for web pages and JSON.
    promises : mapping from the name of a promise to a sentence, optional
        Replaces the promise's own sentence, which is English; ``{k}`` and ``{delta}`` are filled in, and ``{sentence}``
        is the English one. It must say the same: no more was checked or proven.
    assumption_words : mapping from an assumption's English words to those of this language, optional
        ``recourses.settings.assumptions`` lists the English ones; what is not in the mapping stays English.

    Examples
    --------
    >>> ENGLISH.number(31234.5), ENGLISH.number(0.07), ENGLISH.number(2024.0)
    ('31,234.5', '0.07', '2024')
    >>> ENGLISH.day(date(2026, 12, 31))
    '31 December 2026'
    """

    language: str
    title: str
    reference: str
    issued: str
    opening: str
    changes_title: str
    one_option: str
    several_options: str
    option: str
    what: str
    now: str
    change_to: str
    rounded: str
    as_written: str
    not_given: str
    held_title: str
    held: str
    nothing_held: str
    promise_title: str
    promise_opening: str
    promise: str
    promises_by_option: str
    assumptions: str
    validity_title: str
    valid_until: str
    no_date: str
    model_version: str
    no_model_version: str
    ask_again: str
    ask_again_undated: str
    reasons_title: str
    reasons_separate: str
    changes_are_no_reasons: str
    reasons_given: str
    already_accepted: str
    unreachable: str
    not_robust: str
    contradiction: str
    promise_impossible: str
    invalid_input: str
    unreadable: str
    gave_up: str
    nothing_promised: str
    accepted_today_only: str
    closing: str
    yes: str
    no: str
    missing: str
    none_of_these: str
    day_format: str
    months: tuple[str, ...]
    decimal_point: str = "."
    thousands: str = ","
    promises: Mapping[str, str] = field(default_factory=dict)
    assumption_words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for known in fields(self):
            if known.name in ("months", "promises", "assumption_words"):
                continue
            _check(known.name, getattr(self, known.name), _FILLED_IN.get(known.name, frozenset()))
        for name, sentence in self.promises.items():
            _check(f"promises[{name!r}]", sentence, frozenset({"k", "delta", "sentence"}), all_needed=False)
        if len(self.months) != 12:
            raise OptionError(f"Expected the names of 12 months, got {len(self.months)}; give them from January on.")
        if self.decimal_point in ("", self.thousands):
            raise OptionError(
                f"Expected a decimal point unlike the thousands separator, got {self.decimal_point!r} and "
                f"{self.thousands!r}; numbers could not be read back."
            )
        signs = self.decimal_point + self.thousands
        if any(sign.isalnum() or sign in "+-" for sign in signs):
            raise OptionError(
                f"Expected a decimal point and a thousands separator that are no part of numbers, got "
                f"{self.decimal_point!r} and {self.thousands!r}; numbers could not be read back."
            )

    def status(self, status: Status) -> str:
        """What is said to somebody whose request ended like this."""
        return self.opening if status is Status.ANSWERED else str(getattr(self, status.code))

    def promised(self, name: str, sentence: str, k: int, delta: float) -> str:
        """A promise's sentence in this language, if it has one, else the promise's own."""
        return self.promises.get(name, "{sentence}").format(sentence=sentence, k=k, delta=self.number(delta))

    def number(self, value: float) -> str:
        """A number with every digit that it has, readable back by :meth:`parsed`."""
        value = float(value) + 0.0  # no minus before a zero
        if value and not SMALLEST <= abs(value) < LARGEST:
            return repr(value).replace(".", self.decimal_point)
        whole, _, decimals = f"{Decimal(repr(value)):f}".partition(".")
        sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
        if len(digits) >= SEPARATED_FROM:
            digits = f"{int(digits):,}".replace(",", self.thousands)
        return sign + digits + (self.decimal_point + decimals if decimals.strip("0") else "")

    def parsed(self, text: str) -> float:
        """The inverse of :meth:`number`."""
        plain = text.replace(self.thousands, "") if self.thousands else text
        return float(plain.replace(self.decimal_point, "."))

    def day(self, day: date) -> str:
        """A date."""
        return self.day_format.format(day=day.day, month=self.months[day.month - 1], year=day.year)


#: What is filled into which sentence.
_FILLED_IN = {
    "reference": frozenset({"person"}),
    "issued": frozenset({"date"}),
    "several_options": frozenset({"count"}),
    "option": frozenset({"number"}),
    "promise": frozenset({"sentence"}),
    "promises_by_option": frozenset({"number", "sentence"}),
    "valid_until": frozenset({"date"}),
    "model_version": frozenset({"version"}),
    "day_format": frozenset({"day", "month", "year"}),
}


def _check(name: str, sentence: Any, filled_in: frozenset[str], *, all_needed: bool = True) -> None:
    """Refuse a sentence that would drop what must be said, or could not be filled in."""
    try:
        asked = {part for _, part, _, _ in Formatter().parse(sentence) if part is not None}
    except (TypeError, ValueError) as error:
        raise OptionError(f"Expected a sentence as {name}, got {sentence!r}; braces are for {{names}} only.") from error
    if not asked <= filled_in or (all_needed and asked != filled_in):
        wanted = ", ".join(f"{{{part}}}" for part in sorted(filled_in)) or "nothing in braces"
        raise OptionError(f"Expected {wanted} in the sentence {name}, got {sentence!r}; correct it.")


ENGLISH = Words(
    language="en",
    title="Your application: what could be changed",
    reference="Reference: {person}",
    issued="Date: {date}",
    opening=(
        "The model in use today does not accept your application as it stands. This letter says what could be changed "
        "so that the model in use today accepts it. It is not a new decision: a new application is decided when you "
        "hand it in, with the details that you give then."
    ),
    changes_title="What you could change",
    one_option=(
        "The model in use today accepts your application if you make all of these changes and everything else stays "
        "as it is in your application."
    ),
    several_options=(
        "There are {count} options, and one of them is enough. The model in use today accepts your application if you "
        "make all the changes of one option and everything else stays as it is in your application. The options are "
        "sorted by a measure of how much they ask for, least first; which one is easiest for you, you know best."
    ),
    option="Option {number}",
    what="what",
    now="now",
    change_to="change to",
    rounded="Numbers to change to are rounded. It is the rounded numbers that were checked.",
    as_written=(
        "The changes were checked as they are written here. Other numbers, larger or smaller ones too, were not "
        "checked."
    ),
    not_given=(
        "These details are not given in your application. The changes are for an application in which they are still "
        "not given; if you fill them in, the answer may be another."
    ),
    held_title="What was held fixed",
    held="These details were taken as they are. No change of them was considered.",
    nothing_held="No detail was held fixed.",
    promise_title="If other people's data are deleted",
    promise_opening=(
        "Other people can ask for their data to be deleted. The model is then trained again without them, and may "
        "decide differently. What can be said about the changes above is this and no more:"
    ),
    promise="An application changed in this way {sentence}.",
    promises_by_option="An application changed as in option {number} {sentence}.",
    assumptions="In technical terms, this takes for granted:",
    validity_title="How long this letter is valid",
    valid_until="This letter is valid until {date}.",
    no_date="This letter names no date until which it is valid.",
    model_version=(
        "It speaks of version {version} of the model, and of that version trained again after deletions only as far "
        "as is said above."
    ),
    no_model_version=(
        "It speaks of the model in use on the date of this letter, and of that model trained again after deletions "
        "only as far as is said above."
    ),
    ask_again="When the date has passed, or another version is in use, please ask for a new letter.",
    ask_again_undated="When another version is in use, please ask for a new letter.",
    reasons_title="The reasons for the decision",
    reasons_separate="This letter does not give the reasons for the decision; they come separately.",
    changes_are_no_reasons="A change named in this letter is a way to be accepted, not a reason for the refusal.",
    reasons_given="These are the reasons given for the decision. Nothing else in this letter is one.",
    already_accepted=(
        "The model in use today accepts your application as it stands. There is nothing that you need to change."
    ),
    unreachable=(
        "We looked for changes with which the model in use today would accept your application. Among the changes "
        "that are allowed for you there is none. We are sorry that we cannot name one. This is about the model and "
        "the limits that were set for changes; it is no judgement of you."
    ),
    not_robust=(
        "There are changes with which the model in use today would accept your application. But we ask more of a "
        "change before we name it: it must also hold up when other people's data are deleted and the model is trained "
        "again. Among the changes that are allowed for you we found none that does. We would rather name none than "
        "one that may soon be of no use to you."
    ),
    contradiction=(
        "Some details of your application do not fit the limits that were set for them, so that no change is allowed. "
        "A mistake in the details or in the limits may be the cause. Please have both looked at, and ask again."
    ),
    promise_impossible=(
        "We name a change only if it also holds up when other people's data are deleted and the model is trained "
        "again. At present we cannot say this of any change, for anybody. It has nothing to do with you or with the "
        "details of your application."
    ),
    invalid_input=(
        "Some details of your application are missing or could not be read. So we could not look for changes. Please "
        "have them completed, and ask again."
    ),
    unreadable="These details are missing or could not be read:",
    gave_up=(
        "We looked for changes with which the model in use today would accept your application, and found none that "
        "passed all our checks. That does not mean that there is none. You can ask again."
    ),
    nothing_promised="This letter promises nothing.",
    accepted_today_only="This is said of the model in use today, and of no later one.",
    closing="",
    yes="yes",
    no="no",
    missing="not given",
    none_of_these="none of these",
    day_format="{day} {month} {year}",
    months=(
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
)

#: Languages that letters can be asked for by code.
LANGUAGES: dict[str, Words] = {"en": ENGLISH}


def words_of(language: str | Words) -> Words:
    """The words of a language given by its code, or as they are."""
    if isinstance(language, Words):
        return language
    if not isinstance(language, str) or language not in LANGUAGES:
        raise OptionError(
            f"Expected a language of letters ({', '.join(LANGUAGES)}) or Words, got {language!r}; write the sentences "
            "of your language as rocerf.letters.words.Words."
        )
    return LANGUAGES[language]
