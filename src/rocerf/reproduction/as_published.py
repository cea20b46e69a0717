"""What the setting "as published" takes over from the paper's code besides its methods: tables, people, numbers.

* Tables: German with the labels in the published order; COMPAS as the authors load it (``compas-risk`` is the variant
  with the label ``risk``, whose accuracy the paper prints).
* People: each test file is standardised by its own mean and spread, and the files are the parts into which the authors
  cut the tests: COMPAS 100 consecutive parts, for networks also Adult, 300. Their script for logistic models reads
  Adult whole, and the printed costs fit that: SCFE 1.04, ours 1.03 whole and 1.09 in parts. COMPAS read whole, a line
  that their script has as a comment, is the variant ``compas-whole``; ``compas-30`` lies between, and its costs are
  those that the paper prints: in how many parts its authors read the file we do not know.
* Order: where not everybody is asked, those asked are drawn, not the first of the file.
* Numbers: C = 100, k rounded down, ROAR's lambda chosen for each part. For Adult's logistic models that is a reading of
  theirs: over the whole file their rule takes 1.3, which costs 1.22, in parts 1.2 to 1.9, which costs 1.05; printed is
  1.07, which 1.6 for everybody costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rocerf.baselines.roar_descent import Parts
from rocerf.data.authors_code import weights_file, why_missing
from rocerf.data.datasets import Dataset
from rocerf.deletion.k import number_of_deletions
from rocerf.types import Array

#: The data set of each setting, where it is another than the one of that name.
DATA = {
    ("published", "german"): "german-as-published",
    ("published", "compas"): "compas-as-published",
    ("published", "compas-whole"): "compas-as-published",
    ("published", "compas-30"): "compas-as-published",
    ("published", "compas-risk"): "compas",
}

#: The inverse penalty of the logistic models of each setting: that of the paper's code, and scikit-learn's default.
C_OF = {"published": 100.0, "corrected": 1.0}

#: Into how many consecutive parts the authors cut the test rows of a data set, where they do; how many of them each
#: model's people are standardised in, where it is not the whole file.
CUT = {"compas-as-published": 100, "adult": 300}
STANDARDISED = {("compas-as-published", "lr"): 100, ("compas-as-published", "nn"): 100, ("adult", "nn"): 300}

#: In how many parts the test file of a variant is read, where that is what it is about.
READ_IN = {"compas-whole": 1, "compas-30": 30}

#: The table for which the authors ship weights of an autoencoder, by our data set.
WEIGHTS = {"german": "german", "compas": "compas", "compas-whole": "compas", "compas-30": "compas", "adult": "adult"}

#: Seed of the order in which people are asked.
ORDER = 2023


def people_of(data: Dataset, setting: str, model: str = "lr", *, parts: int | None = None) -> Array:
    """Test people (P, d) as the setting sees them, the test file in so many ``parts``, by default the authors'.

    The paper's code standardises each test file by the file's own mean and spread: a person is then ``mean_train +
    sd_train (x - mean_test) / sd_test`` in the columns of the training rows.
    """
    if setting != "published":
        return data.test.X
    people, train = np.empty(data.test.X.shape), data.train
    for rows in np.array_split(np.arange(len(people)), parts or STANDARDISED.get((data.name, model), 1)):
        X = data.test.X[rows]
        spread = X.std(axis=0)
        # A column that is the same in all of a part has no spread there; theirs is divided by 1.
        spread = np.where(np.ptp(X, axis=0) > 0, spread, 1.0)
        people[rows] = train.centre + train.spread * (X - X.mean(axis=0)) / spread
    return people


def parts_of(data: Dataset, setting: str, *, parts: int | None = None) -> NDArray[np.intp]:
    """Which of the authors' parts each test person is in, (P,), or of so many; all in one where there are none."""
    labels = np.zeros(len(data.test), np.intp)
    if setting == "published":
        for part, rows in enumerate(np.array_split(np.arange(len(labels)), parts or CUT.get(data.name, 1))):
            labels[rows] = part
    return labels


def drawn_order(labels: NDArray[np.intp], seed: int = ORDER) -> NDArray[np.intp]:
    """The order in which denied people are asked, by their parts' labels (P,): whoever is asked is a random sample.

    Parts are drawn, and a part's people come in the order of the file, since the authors' ROAR chooses its lambda on a
    part's first people; where there is one part people are drawn.

    >>> drawn_order(np.array([0, 0, 1, 1, 2])).tolist()
    [4, 2, 3, 0, 1]
    """
    rng = np.random.default_rng(seed)
    parts = np.unique(labels)
    if len(parts) < 2:
        return rng.permutation(len(labels))
    rank = rng.permutation(len(parts))
    return np.argsort(rank[np.searchsorted(parts, labels)], kind="stable")


@dataclass(frozen=True, eq=False)
class Share:
    """Some of the denied people, for a job that does only these: ``own`` of those ``taken``, which are whole parts."""

    taken: NDArray[np.intp]
    own: NDArray[np.intp]
    parts: Parts


def whole_parts(labels: NDArray[np.intp], places: NDArray[np.intp], first: int, last: int) -> Share:
    """People first to last of the denied, and whoever else is needed to choose lambda, as they follow in the file.

    ``labels`` (P,) are those of their parts, ``places`` (P,) where they stand in the file.

    >>> share = whole_parts(np.array([1, 1, 0, 0, 2]), np.array([2, 3, 0, 1, 4]), 1, 3)
    >>> share.taken.tolist(), share.own.tolist()
    ([2, 3, 0, 1], [3, 0])
    """
    # Lambda depends on who is first in a part, and on how many there are in it.
    needed = np.flatnonzero(np.isin(labels, labels[first:last]))
    taken = needed[np.argsort(places[needed])]
    place = np.empty(len(labels), np.intp)
    place[taken] = np.arange(len(taken))
    return Share(taken, place[first:last], Parts(labels[taken], len(labels)))


def rows_in(share: float, n: int, setting: str = "corrected") -> int:
    """A share of n rows as a number: rounded up as everywhere, as published rounded down as in the paper's code.

    >>> rows_in(0.005, 36177), rows_in(0.005, 36177, "published")
    (181, 180)
    """
    return number_of_deletions(f"{share * 100!r}%", n, rounded="down" if setting == "published" else "up")


def weights_of(setting: str, dataset: str) -> Path | None:
    """The file with the authors' autoencoder for a case; None where there is none."""
    return weights_file(WEIGHTS[dataset]) if setting == "published" and dataset in WEIGHTS else None


def left_out(setting: str, dataset: str) -> dict[str, str]:
    """Methods that cannot be run as published on this machine, and why."""
    if setting != "published" or weights_of(setting, dataset) is not None:
        return {}
    if dataset not in WEIGHTS:
        return {"cchvae": "Expected an autoencoder that the authors ship, got none: there is none for these columns."}
    return {"cchvae": why_missing(f"the autoencoder's weights (vae_{WEIGHTS[dataset]}_rr_cfe)")}
