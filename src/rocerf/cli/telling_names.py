"""What the name of a column says, in English and in German: who people are, their family, what has been."""

from __future__ import annotations

import re

#: Words in names of columns that letters had better not print: what law protects, or what hurts to be read out.
SENSITIVE = {
    *("black", "white", "color", "colour", "skin", "race", "racial", "ethnic", "ethnicity", "caste", "ancestry"),
    *("foreign", "foreigner", "native", "nationality", "citizen", "citizenship", "immigrant", "migrant", "gender"),
    *("sex", "sexual", "male", "female", "religion", "religious", "disability", "disabled", "pregnant", "pregnancy"),
    *("geschlecht", "männlich", "maennlich", "weiblich", "hautfarbe", "herkunft", "ethnie", "nationalität"),
    *("nationalitaet", "staatsangehörigkeit", "staatsangehoerigkeit", "staatsbürgerschaft", "staatsbuergerschaft"),
    *("ausländer", "auslaender", "migrationshintergrund", "konfession", "behinderung", "schwerbehindert", "schwanger"),
}

#: Words in names of columns that nobody can change or should be told to: these, age, the family, what has been.
UNCHANGEABLE = SENSITIVE | {
    *("age", "birth", "birthday", "birthplace", "born", "marital", "married", "divorced", "widowed", "spouse"),
    *("family", "child", "children", "kids", "dependant", "dependants", "dependent", "dependents"),
    *("history", "past", "previous", "prior", "priors", "delinquency", "delinquencies", "delinq", "bankruptcy"),
    *("bankruptcies", "arrest", "arrests", "conviction", "convictions", "criminal", "crime", "crimes", "offence"),
    *("offences", "offense", "offenses", "felony", "felonies", "juv", "juvenile", "recid", "recidivism"),
    *("alter", "altersgruppe", "geburt", "geburtsdatum", "geburtsjahr", "geburtsort", "geburtstag", "familienstand"),
    *("verheiratet", "ledig", "geschieden", "verwitwet", "kinder", "kinderzahl", "unterhaltspflichtige"),
    *("vorstrafe", "vorstrafen", "insolvenz", "insolvenzen", "vorgeschichte"),
}


def is_unchangeable(name: str) -> bool:
    """Whether a column's name says that nobody can change it, or should be told to.

    >>> [is_unchangeable(name) for name in ("MaritalStatus", "Geschlecht", "MALE", "years_in_job", "Wohnung")]
    [True, True, True, False, False]
    """
    return bool(UNCHANGEABLE & words_of(name))


def is_sensitive(name: str) -> bool:
    """Whether a column's name says that its values had better not be printed.

    >>> is_sensitive("applicant_race"), is_sensitive("Staatsangehörigkeit"), is_sensitive("age")
    (True, True, False)
    """
    return bool(SENSITIVE & words_of(name))


def words_of(name: str) -> set[str]:
    """The words of a column's name.

    >>> sorted(words_of("years_in_job") | words_of("YearsInJob2"))
    ['in', 'job', 'years']
    """
    parted = re.sub(r"(?<=[^\W\d_A-ZÄÖÜ])(?=[A-ZÄÖÜ])", " ", name)
    return set(re.split(r"[\W\d_]+", parted.lower())) - {""}
