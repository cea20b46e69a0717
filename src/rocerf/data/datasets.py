"""The named data sets: German credit and Adult from inside the package, COMPAS from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError

_UCI = "UCI Machine Learning Repository"
_UCI_LICENCE = "CC BY 4.0"
_EMBEDDED = "Ships with rocerf."


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is loaded."""

    name: str
    title: str
    rows_train: int
    rows_test: int
    columns: int
    source: str
    licence: str
    availability: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test rows of a named data set, with what its columns mean.

    ``notes`` are quirks of the data that a reader of results should know.
    """

    name: str
    train: TrainingSet
    test: TrainingSet
    schema: FeatureSchema
    title: str
    source: str
    licence: str
    notes: tuple[str, ...]


_INFOS = (
    DatasetInfo(
        name="german",
        title="German credit",
        rows_train=800,
        rows_test=200,
        columns=60,
        source=f"Hofmann, Statlog (German Credit Data), {_UCI}; columns and split of OpenXAI",
        licence=_UCI_LICENCE,
        availability=_EMBEDDED,
    ),
    DatasetInfo(
        name="adult",
        title="Adult census income",
        rows_train=36177,
        rows_test=9045,
        columns=13,
        source=f"Becker and Kohavi, Adult, {_UCI}; columns and split of OpenXAI",
        licence=_UCI_LICENCE,
        availability=_EMBEDDED,
    ),
    DatasetInfo(
        name="compas",
        title="COMPAS two-year recidivism",
        rows_train=4937,
        rows_test=1235,
        columns=7,
        source="ProPublica, compas-analysis; columns and split of OpenXAI",
        licence="no licence given; ProPublica's data terms forbid passing the raw data on and ask for citation",
        availability=(
            "Not shipped: read from path=..., from the file named by ROCERF_COMPAS, from the cache, or fetched once."
        ),
    ),
    DatasetInfo(
        name="german-as-published",
        title="German credit with the misaligned labels of the published files",
        rows_train=800,
        rows_test=200,
        columns=60,
        source=f"Hofmann, Statlog (German Credit Data), {_UCI}; columns, split and label order of OpenXAI",
        licence=_UCI_LICENCE,
        availability=_EMBEDDED,
    ),
)

_GERMAN_NOTES = (
    "The 12 one-hot groups are complete: centred, the 60 columns have rank 48, so an undamped Hessian is singular.",
    "foreign-worker is coded 1 (yes) and 2 (no), not 0 and 1.",
    "UCI's attribute descriptions are known to be wrong in places (Groemping 2019, South German Credit).",
)

_NOTES: dict[str, tuple[str, ...]] = {
    "german": (
        "Labels are UCI's own; the published benchmark files carry them in the wrong order (german-as-published).",
        *_GERMAN_NOTES,
    ),
    "german-as-published": (
        "Row i carries the label of UCI row i instead of its own, as in the published files: noise.",
        "Only for reproducing published figures; use german otherwise.",
        *_GERMAN_NOTES,
    ),
    "adult": (
        "The 45,222 rows without an unknown value; 134 exact duplicates among them.",
        "capital-gain 99999 is a cap, not an amount.",
        "fnlwgt is a survey weight, not a trait of the person.",
    ),
    "compas": (
        "two_year_recid is an outcome used as a feature.",
        "1,195 exact duplicates (325 test rows also occur in train); 139 feature vectors carry both labels.",
        "length_of_stay is -1 in 183 rows whose release is stamped before the arrest.",
        "Hardly anything here is in a person's hands: the schema leaves length_of_stay and c_charge_degree_F free.",
    ),
}


def list_datasets() -> tuple[DatasetInfo, ...]:
    """The data sets known by name, without loading any.

    >>> [info.name for info in list_datasets()]
    ['german', 'adult', 'compas', 'german-as-published']
    """
    return _INFOS


def load_dataset(name: str, *, path: str | Path | None = None) -> Dataset:
    """A named data set: training rows, test rows and a schema of the columns.

    Parameters
    ----------
    name : "german", "adult", "compas" or "german-as-published"
        German and Adult ship with the package. In "german-as-published" the labels are in the
        wrong order of the published files.
    path : file or folder, optional
        Only for "compas": ProPublica's ``compas-scores-two-years.csv`` (53 columns, or 46
        without the identifying ones), or the 8 final columns as one file in any order or as the
        pair ``compas-train.csv`` and ``compas-test.csv`` in one folder; plain or gzip. Default:
        the file named by ``ROCERF_COMPAS``, else the cache, else fetched and checked.

    Examples
    --------
    >>> data = load_dataset("german")
    >>> data.train
    TrainingSet(800 rows x 60 columns, 560 1, 240 0)
    >>> data.schema["amount"].unit
    'DM'
    """
    info = next((info for info in _INFOS if info.name == name), None)
    if info is None:
        known = ", ".join(info.name for info in _INFOS)
        raise OptionError(f"Expected the name of a data set ({known}), got {name!r}; choose one of these.")
    if path is not None and name != "compas":
        raise OptionError(f"Expected path=... only for compas, got it for {name!r}, which ships inside; leave it out.")
    train, test, schema = _load(name, path)
    return Dataset(name, train, test, schema, info.title, info.source, info.licence, _NOTES[name])


def _load(name: str, path: str | Path | None) -> tuple[TrainingSet, TrainingSet, FeatureSchema]:
    if name == "adult":
        from rocerf.data.adult import adult_rows, adult_schema

        train, test = adult_rows()
        return train, test, adult_schema(train)
    if name == "compas":
        from rocerf.data.compas import compas_rows, compas_schema

        train, test = compas_rows(path)
        return train, test, compas_schema(train)
    from rocerf.data.german import german_rows, german_schema

    train, test = german_rows(published_labels=name == "german-as-published")
    return train, test, german_schema(train)
