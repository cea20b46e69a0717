"""An explainer in which nothing of some training rows is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rocerf.data.feature import Feature, Kind
from rocerf.data.guess import guessed_again, leaving_out, named_categories
from rocerf.errors import OptionError
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.own_solver import without_allowance
from rocerf.promises.plain import Plain
from rocerf.promises.retrained import Retrained
from rocerf.promises.simulated import SimulatedPromise

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema
    from rocerf.explainer.explainer import Rocerf
    from rocerf.models.model import Refittable
    from rocerf.promises.promise import Promise
    from rocerf.recourse.cost import CostTable


def forgotten_explainer(explainer: Rocerf, ids: Iterable[Any]) -> Rocerf:
    """The explainer made anew over the model made anew; of the old one only what the user said goes into it."""
    from rocerf.explainer.explainer import Rocerf

    declared = _declared(explainer.schema, explainer._table)
    model = explainer.model.forget(ids, declared=declared)
    return Rocerf(
        model,
        explainer.k,
        promise=_same_promise(without_allowance(explainer.promise), model, explainer.k),
        delta=explainer._delta,
        cost=explainer.cost.name if explainer._table is None else explainer._table,
        schema=_schema_of(explainer, model),
        max_changes=explainer.max_changes,
        solver=explainer.solver,
        effort=explainer.effort,
        seed=explainer.seed,
    )


def _declared(schema: FeatureSchema | None, prices: CostTable | None) -> set[str]:
    """Columns of schema space whose category somebody wrote down: in the schema, its rules, or a table of prices."""
    if schema is None:
        return set()
    guess = schema.guessed
    named = named_categories(schema)
    for feature in schema:
        price = None if prices is None else prices.prices.get(feature.name)
        priced = _named_in(price)
        guessed = guess is not None and "categories" in guess.still_guessed(feature)
        places = zip(feature.columns, feature.categories, strict=False)
        named |= {column for column, category in places if not guessed or category in priced}
    return named


def _named_in(price: Any) -> set[Any]:
    """Categories that prices from category to category name."""
    if not isinstance(price, Mapping):
        return set()
    return {*price, *(after for row in price.values() if isinstance(row, Mapping) for after in row)}


def _schema_of(explainer: Rocerf, model: Refittable) -> FeatureSchema | None:
    """The explainer's own schema over the columns of the model made anew."""
    schema = explainer.schema
    own = model.schema
    if schema is None or own is None:
        return schema if schema is None else guessed_again(schema, model.train.frame())
    if schema is explainer.model.schema:
        return own
    gone = [column for column in schema.columns if column not in own.columns]
    again = leaving_out(guessed_again(schema, model.own_rows(), own.columns), gone)
    return replace(again, features=tuple(_no_looser(feature, own[feature.name]) for feature in again))


def _no_looser(feature: Feature, known: Feature) -> Feature:
    """The feature, a yes/no question where the model's column has become one."""
    if known.kind is Kind.BINARY and feature.kind in (Kind.CONTINUOUS, Kind.INTEGER):
        return replace(
            feature, kind=Kind.BINARY, lower=max(feature.lower, 0.0), upper=min(feature.upper, 1.0), step=None
        )
    if known.kind is Kind.INTEGER and feature.kind is Kind.CONTINUOUS:
        return replace(feature, kind=Kind.INTEGER)
    return feature


def _same_promise(promise: Promise, model: Any, k: int) -> Any:
    """The same promise about another model, with nothing found, proven or simulated yet."""
    if isinstance(promise, SimulatedPromise):
        return promise.options
    if isinstance(promise, Retrained):
        return Retrained(model, k, effort=promise.effort, slack=promise.slack, seed=promise.adversary.seed)
    if isinstance(promise, Certified):
        return Certified(model, k, options=promise.options)
    if isinstance(promise, FirstOrder):
        return FirstOrder(model, k, seed=promise._seed)
    if isinstance(promise, LocalLinear):
        return LocalLinear(model, k, sampling=promise.sampling, seed=promise._seed)
    if isinstance(promise, Plain):
        return Plain(model)
    raise OptionError(
        f"Expected one of our own promises to be made anew, got {type(promise).__name__}; forget the rows in the model "
        "(model.forget(ids)) and make your promise and a new explainer for it."
    )
