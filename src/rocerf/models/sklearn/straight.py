"""Fitted transformers as plain arithmetic: what they compute, without what scikit-learn checks at each call.

A search asks hundreds of small tables of dozens of pipelines, and nearly all the time of such a call is spent on
looking at tables and options again. Only transformers of exactly these classes and with these options are known here;
any other computes itself. Nobody trusts this arithmetic before it was compared with the pipeline's own answers
(:mod:`rocerf.models.sklearn.blockwise`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.types import Array


@dataclass(frozen=True)
class Arithmetic:
    """What a transformer makes of numbers (m, c).

    Transformers with the same ``alike`` make the same of the same numbers, whichever rows they were fitted on; None
    where each fit is expected to have numbers of its own, as means have.
    """

    of: Callable[[Array], Array]
    alike: Hashable = None

    def __call__(self, X: Array) -> Array:
        """What it makes of numbers (m, c)."""
        return self.of(X)


def arithmetic(transformer: Any) -> Arithmetic | None:
    """What a fitted transformer of numbers does; None where it is not known.

    >>> from sklearn.preprocessing import StandardScaler
    >>> scaled = arithmetic(StandardScaler().fit([[0.0], [2.0]]))
    >>> scaled(np.array([[4.0]])).tolist()
    [[3.0]]
    """
    known = _KNOWN.get(type(transformer).__name__)
    if known is None or not type(transformer).__module__.startswith("sklearn."):
        return None
    return known(transformer)


def _standardised(scaler: Any) -> Arithmetic:
    centre = scaler.mean_ if scaler.with_mean else 0.0
    spread = scaler.scale_ if scaler.with_std else 1.0
    return Arithmetic(lambda X: np.asarray((X - centre) / spread))


def _ranged(scaler: Any) -> Arithmetic | None:
    return None if scaler.clip else Arithmetic(lambda X: np.asarray(X * scaler.scale_ + scaler.min_))


def _function(transformer: Any) -> Arithmetic | None:
    """A NumPy function of each number; a user's own function may want a table."""
    func, options = transformer.func, transformer.kw_args or {}
    if func is None:
        return Arithmetic(lambda X: X)
    if not isinstance(func, np.ufunc):
        return None
    return Arithmetic(lambda X: np.asarray(func(X, **options)), None if options else func)


def _products(features: Any) -> Arithmetic:
    powers = features.powers_
    most = int(powers.sum(axis=1).max(initial=0))
    ones = powers.shape[1]  # where a column of ones stands
    factors = np.full((most, len(powers)), ones, np.intp)
    for place, own in enumerate(powers):
        named = np.repeat(np.arange(len(own)), own)
        factors[: len(named), place] = named

    def of(X: Array) -> Array:
        widened = np.column_stack([X, np.ones(len(X))])
        made = np.ones((len(X), len(powers)))
        for columns in factors:
            made *= widened[:, columns]
        return made

    return Arithmetic(of, ("products", powers.shape, powers.tobytes()))


def _binned(bins: Any) -> Arithmetic | None:
    edges = [np.asarray(found)[1:-1] for found in bins.bin_edges_]
    starts = np.concatenate([[0], np.cumsum(bins.n_bins_)]).astype(np.intp)

    def of(X: Array) -> Array:
        if not np.isfinite(X).all():
            raise ValueError("a number that is missing has no bin")
        places = [np.searchsorted(found, X[:, column], side="right") for column, found in enumerate(edges)]
        if bins.encode == "ordinal":
            return np.column_stack(places).astype(np.float64)
        made = np.zeros((len(X), starts[-1]))
        for start, place in zip(starts, places, strict=False):
            made[np.arange(len(X)), start + place] = 1.0
        return made

    return Arithmetic(of, ("bins", bins.encode, *(found.tobytes() for found in edges)))


def _filled(imputer: Any) -> Arithmetic | None:
    values = imputer.statistics_
    plain = not imputer.add_indicator and values.dtype.kind == "f" and np.isfinite(values).all()
    if not plain or not isinstance(imputer.missing_values, float) or not np.isnan(imputer.missing_values):
        return None
    return Arithmetic(lambda X: np.where(np.isnan(X), values, X))


_KNOWN: dict[str, Callable[[Any], Arithmetic | None]] = {
    "StandardScaler": _standardised,
    "MinMaxScaler": _ranged,
    "FunctionTransformer": _function,
    "PolynomialFeatures": _products,
    "KBinsDiscretizer": _binned,
    "SimpleImputer": _filled,
}


class Marks:
    """What a fitted OneHotEncoder makes of codes: a 1 in the column of each value's category."""

    def __init__(self, categories: list[dict[Any, int]], unknown: bool) -> None:
        self._categories, self._unknown = categories, unknown
        self._starts = np.concatenate([[0], np.cumsum([len(found) for found in categories])]).astype(np.intp)
        #: As of :class:`Arithmetic`; types beside the values, as 1 equals True.
        self.alike: Hashable = (
            "marks",
            unknown,
            tuple(tuple((type(value), value) for value in found) for found in categories),
        )

    @classmethod
    def of_encoder(cls, encoder: Any) -> Marks | None:
        """Of an encoder that drops nothing and puts no categories together; None of any other."""
        from sklearn.preprocessing import OneHotEncoder

        if type(encoder) is not OneHotEncoder or encoder.drop_idx_ is not None:
            return None
        if any(found is not None for found in getattr(encoder, "infrequent_categories_", [])):
            return None
        if encoder.handle_unknown not in ("ignore", "error"):
            return None
        categories = [{value: place for place, value in enumerate(found.tolist())} for found in encoder.categories_]
        return cls(categories, encoder.handle_unknown == "ignore")

    def of(self, coded: list[tuple[NDArray[np.intp], list[Any]]]) -> Array:
        """The columns (m, D) of rows given, column by column, as codes (m,) and the values that they stand for."""
        rows = len(coded[0][0])
        made, every = np.zeros((rows, self._starts[-1])), np.arange(rows)
        for (codes, values), categories, start in zip(coded, self._categories, self._starts, strict=False):
            places = np.array([categories.get(value, -1) for value in values], np.intp)[codes]
            known = places >= 0
            if not known.all():
                if not self._unknown:
                    raise ValueError("a category that the encoder does not know")
                made[every[known], start + places[known]] = 1.0
            else:
                made[every, start + places] = 1.0
        return made


def linear_scores(classifier: Any) -> Callable[[list[Array]], Array] | None:
    """The decision function of a fitted LogisticRegression of two classes; None of another classifier.

    It takes the blocks of columns that make up the design, (m, c) each.
    """
    from sklearn.linear_model import LogisticRegression

    if type(classifier) is not LogisticRegression or classifier.coef_.shape[0] != 1:
        return None
    coefficients, constant = classifier.coef_[0], float(classifier.intercept_[0])

    def of(blocks: list[Array]) -> Array:
        ends = np.cumsum([block.shape[1] for block in blocks])
        if ends[-1] != len(coefficients):
            raise ValueError(f"Expected {len(coefficients)} columns, got {ends[-1]}")
        own = np.split(coefficients, ends[:-1])
        return np.asarray(sum(block @ part for block, part in zip(blocks, own, strict=True)) + constant)

    return of
