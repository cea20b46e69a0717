"""The named data sets: German credit and Adult from inside the package, COMPAS from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rocerf.data.schema import FeatureSchema
from rocerf.data.tables import described
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError

#: The data sets by name, each with the module that loads it; a file of the module's name in ``embedded/`` describes it.
_DATASETS = {
    "german": "german",
    "adult": "adult",
    "compas": "compas",
    "german-as-published": "german",
    "compas-as-published": "compas_as_published",
}


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


def list_datasets() -> tuple[DatasetInfo, ...]:
    """The data sets known by name, without loading any.

    >>> [info.name for info in list_datasets()]
    ['german', 'adult', 'compas', 'german-as-published', 'compas-as-published']
    """
    known = {name: _said(name).items() for name in _DATASETS}
    return tuple(DatasetInfo(name, **{key: v for key, v in said if key != "notes"}) for name, said in known.items())


def _said(name: str) -> dict[str, Any]:
    """The description of a data set, with notes that others of its module share."""
    document = described(_DATASETS[name])
    said = document["sets"][name]
    return {**said, "notes": (*said["notes"], *document.get("notes", ()))}


def load_dataset(name: str, *, path: str | Path | None = None) -> Dataset:
    """A named data set: training rows, test rows and a schema of the columns.

    Parameters
    ----------
    name : "german", "adult", "compas", "german-as-published" or "compas-as-published"
        German and Adult ship with the package. In "german-as-published" the labels are in the wrong order of the
        published files. "compas-as-published" is COMPAS as the paper's code loads it (label ``two_year_recid``,
        oversampled), with the training rows of the folder that the environment variable ``ROCERF_AUTHORS_CODE`` names.
    path : file or folder, optional
        Only for "compas": ProPublica's ``compas-scores-two-years.csv`` (53 columns, or 46 without the identifying
        ones), or the 8 final columns as one file in any order or as the pair ``compas-train.csv`` and
        ``compas-test.csv`` in one folder; plain or gzip. Default: the file named by ``ROCERF_COMPAS``, else the cache,
        else fetched and checked.

    Examples
    --------
    >>> data = load_dataset("german")
    >>> data.train
    TrainingSet(800 rows x 60 columns, 560 1, 240 0)
    >>> data.schema["amount"].unit
    'DM'
    """
    if name not in _DATASETS:
        known = ", ".join(_DATASETS)
        raise OptionError(f"Expected the name of a data set ({known}), got {name!r}; choose one of these.")
    if path is not None and name != "compas":
        raise OptionError(f"Expected path=... only for compas, got it for {name!r}, which takes none; leave it out.")
    train, test, schema = import_module(f"rocerf.data.{_DATASETS[name]}").load(name, path)
    said = _said(name)
    return Dataset(name, train, test, schema, said["title"], said["source"], said["licence"], said["notes"])
