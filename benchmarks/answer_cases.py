"""What :mod:`benchmarks.same_answers` asks: cases over the three tables, each noted as figures and as words.

Only names of ``rocerf`` itself are used, so that the same cases run with versions whose rooms are arranged otherwise.
Every case is a function in :data:`CASES`; it asks a few people (10 to 30) with fixed seeds and notes all it gets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np

import rocerf
from benchmarks.answer_notes import Notes

#: Dates of letters, so that no letter depends on the day of the run.
ISSUED, VALID_UNTIL = date(2026, 1, 2), date(2026, 7, 2)


@cache
def table(name: str, rows: int | None = None) -> tuple[Any, Any]:
    """A prepared table and our own fit of its training rows, or of the first so many."""
    data = rocerf.load_dataset(name)
    train = data.train if rows is None else data.train.without(data.train.ids[rows:])
    return data, rocerf.LogisticModel.fit(train, C=1.0)


def refused(model: Any, people: Any, most: int) -> Any:
    """The first people whom the model refuses, in the form they come in."""
    return people[model.predict(people) == 0][:most]


@cache
def pipeline(name: str, rows: int) -> tuple[Any, Any, Any]:
    """A raw table, a pipeline over its numbers and categories fitted on its first rows, and those rows' labels."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    data = rocerf.load_raw(name)
    texts = [feature.name for feature in data.schema if feature.kind == "categorical"]
    numbers = [feature.name for feature in data.schema if feature.kind != "categorical"]
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("numbers", StandardScaler(), numbers), ("categories", encoder, texts)])
    fitted = make_pipeline(columns, LogisticRegression(C=1.0, max_iter=2000))
    return data, fitted.fit(data.train[:rows], data.y_train[:rows]), data.y_train[:rows]


def taken_over(name: str, rows: int, **options: Any) -> tuple[Any, Any]:
    """A raw table's pipeline as a model, and people whom it refuses."""
    data, fitted, labels = pipeline(name, rows)
    model = rocerf.from_pipeline(fitted, data.train[:rows], labels, schema=data.schema, **options)
    return model, data.test[fitted.predict(data.test) == 0]


def prepared(notes: Notes, name: str, *, rows: int | None, k: int, certified: int, people: int) -> None:
    """A prepared table from explanation to letter: both promises about deletions, attacks, proof, rechecks, files."""
    data, model = table(name, rows)
    asking = refused(model, data.test.X, people)
    explainer = rocerf.Rocerf(model, k, seed=1)
    found = explainer.explain(data.test.frame()[: 2 * people])  # some of these are accepted as they are
    notes.recourses("everybody", found)
    found = explainer.explain(asking)
    notes.recourses("retrained", found)
    notes.recourses("first order", rocerf.Rocerf(model, k, promise="first_order").explain(asking))
    notes.recourses("Algorithm 1", rocerf.Rocerf(model, k, promise="first_order", solver="penalty").explain(asking[:5]))
    attacks = notes.attacks("attacks", model, k, found.matrix[found.answered][:10], seed=7)
    notes.recheck("recheck", explainer, found, attacks.deleted_ids[0])
    notes.recheck("recheck beyond k", explainer, found, model.train.ids[: 3 * k])
    proof = rocerf.promises.Certified(model, certified)
    notes.certificate("certificate", proof, found.matrix[found.answered])
    notes.budget("budget", explainer, found.matrix[found.answered][:4], 2 * k)
    notes.reloaded("retrained", explainer, asking[:5])
    notes.letters("letters", explainer.letters(found, valid_until=VALID_UNTIL, issued=ISSUED, model_version="v1"))
    notes.recourses("forgotten", explainer.forget(model.train.ids[:5]).explain(asking[:5]))


def proven(notes: Notes, name: str, *, rows: int | None, k: int, C: float, people: int) -> None:
    """The promise ``certified``: answers, abstentions, letters and files."""
    data, own = table(name, rows)
    model = rocerf.LogisticModel.fit(own.train, C=C)
    asking = refused(model, data.test.X, people)
    proof = rocerf.promises.Certified(model, k)
    notes.certificate("certificate", proof, asking)
    explainer = rocerf.Rocerf(model, k, promise=proof, cost="l1")
    found = explainer.explain(asking)
    notes.recourses("certified", found)
    notes.budget("budget", explainer, asking[:3], k + 2)
    notes.reloaded("certified", explainer, asking[:5])
    letters = explainer.letters(found, valid_until=None, issued=ISSUED, digits=2)
    notes.letters("letters", letters)


def calibrated(notes: Notes, name: str, rows: int | None) -> None:
    """Margins chosen by retraining: ``delta="calibrate"``, and the promise ``simulated`` of a linear model."""
    data, model = table(name, rows)
    asking = refused(model, data.test.X, 15)
    explainer = rocerf.Rocerf(model, "1%", promise="first_order", delta="calibrate", seed=3)
    notes.recourses("calibrated", explainer.explain(asking))
    options = rocerf.promises.Simulated(validity=0.95, shaping=10, choosing=20, checking=30)
    simulated = rocerf.Rocerf(model, "2%", promise=options, seed=3)
    notes.recourses("simulated", simulated.explain(asking))
    notes.reloaded("simulated", simulated, asking[:5])
    fixed = rocerf.Rocerf(model, "2%", promise=replace(options, margin="fixed"), cost="l1")
    notes.recourses("simulated, fixed margin", fixed.explain(asking))


def costs(notes: Notes, name: str, rows: int | None) -> None:
    """Every cost with the table's own schema, and free."""
    data, model = table(name, rows)
    asking = refused(model, data.test.frame(), 10)
    for cost in ("l2", "l1", "mad", "percentile"):
        explainer = rocerf.Rocerf(model, 3, cost=cost, schema=data.schema, effort="quick")
        notes.recourses(f"{cost}, schema", explainer.explain(asking))
        notes.recourses(f"{cost}, free", rocerf.Rocerf(model, 3, promise="first_order", cost=cost).explain(asking))
    prices = {attribute.name: 1.0 + place % 5 for place, attribute in enumerate(data.schema.attributes)}
    numbers = {feature.name: (0.3, 0.2) for feature in data.schema if feature.kind in ("integer", "continuous")}
    listed = rocerf.Rocerf(model, 3, cost=rocerf.CostTable({**prices, **numbers}), schema=data.schema, effort="quick")
    notes.recourses("price table", listed.explain(asking))
    notes.reloaded("price table", listed, asking[:4])


def open_groups(notes: Notes) -> None:
    """Groups whose reference category was left out, under each cost."""
    data, model = table("german")
    schema = replace(data.schema, open_groups=("status", "housing"))
    asking = refused(model, data.test.X, 10)
    for cost in ("l2", "l1", "mad", "percentile"):
        explainer = rocerf.Rocerf(model, 3, promise="first_order", cost=cost, schema=schema)
        notes.recourses(cost, explainer.explain(asking))


def own_fits(notes: Notes, name: str, rows: int | None, k: int, certified: int) -> None:
    """A scikit-learn fit at its default tolerance, retrained by itself and exactly."""
    from sklearn.linear_model import LogisticRegression

    data, own = table(name, rows)
    train = own.train.with_values((own.train.X - own.train.centre) / own.train.spread)
    people = (data.test.X - own.train.centre) / own.train.spread
    fitted = LogisticRegression(C=1.0).fit(train.X, train.y)
    model = rocerf.LogisticModel.from_sklearn(fitted, train)
    asking = refused(model, people, 12)
    for promise, deletions in (("retrained", k), ("first_order", k), ("certified", certified)):
        explainer = rocerf.Rocerf(model, deletions, promise=promise)
        found = explainer.explain(asking)
        notes.recourses(promise, found)
        notes.recheck(f"{promise}, recheck", explainer, found, train.ids[:deletions])
        notes.reloaded(promise, explainer, asking[:4])
    exact = rocerf.LogisticModel.from_sklearn(fitted, train, retraining="exact")
    notes.recourses("retrained exactly", rocerf.Rocerf(exact, k).explain(asking))


def raw(notes: Notes, name: str, rows: int, people: int) -> None:
    """Raw columns and a pipeline: alternatives, letters, files, rechecks, proof; preprocessing frozen and refitted."""
    model, denied = taken_over(name, rows)
    asking = denied[:people]
    explainer = rocerf.Rocerf(model, "0.5%", cost="l1", seed=2)
    options = explainer.alternatives(asking, 3)
    for place, found in enumerate(options, 1):
        notes.recourses(f"option {place}", found)
    reasons = [["income not verified"]] * len(asking)
    written = explainer.letters(options, valid_until=VALID_UNTIL, issued=ISSUED, refusal_reasons=reasons)
    notes.letters("letters", written)
    notes.recheck("recheck", explainer, options, model.train.ids[:4])
    notes.attacks("attacks", model, explainer.k, options[0].points[:5], effort="quick")
    notes.certificate("certificate", rocerf.promises.Certified(model, 1), options[0].points)
    notes.reloaded("retrained", explainer, asking[:3])
    notes.recourses("certified", rocerf.Rocerf(model, 1, promise="certified", cost="mad").explain(asking))
    refitted, _ = taken_over(name, rows, preprocessing="refitted")
    again = rocerf.Rocerf(refitted, 2, cost="l1", effort="quick")
    notes.recourses("refitted preprocessing", again.explain(asking[:3]))


def rules(notes: Notes) -> None:
    """Raw German with steps, relations, conditions, a limit on changes, missing values and odd people."""
    model, denied = taken_over("german", 800)
    schema = model.schema.edit("duration", step=6).edit("amount", step=100, upper=12_000)
    schema = schema.edit("housing", fixed_if="age >= 50").edit("installment-rate", direction="decrease", weight=2.0)
    schema = schema.relate("amount <= 400 * duration", "`number-credits` <= 4 - `housing=rented`")
    asking = denied[:10].copy()
    asking.iloc[1, asking.columns.get_loc("housing")] = "a tent"
    for cost in ("l2", "l1", "mad", "percentile"):
        explainer = rocerf.Rocerf(model, 2, cost=cost, schema=schema, max_changes=3, effort="quick")
        notes.recourses(cost, explainer.explain(asking))
    few = rocerf.Rocerf(model, 4, promise="first_order", cost="l1", schema=schema, max_changes=1)
    found = few.explain(asking)
    notes.recourses("one change", found)
    notes.letters("one change, letters", few.letters(found, valid_until=None, issued=ISSUED))
    housing = {"for free": {"rented": 5.0, "owned": 9.0}, "rented": {"owned": 7.5}}
    prices = dict.fromkeys(schema.names, 2.0) | {"amount": (0.01, 0.002), "duration": 0.5, "housing": housing}
    listed = rocerf.Rocerf(model, 2, cost=rocerf.CostTable(prices), schema=schema, effort="quick")
    notes.recourses("price table", listed.explain(asking))
    notes.reloaded("price table", listed, asking[:4])


def baselines(notes: Notes, name: str, rows: int | None) -> None:
    """SCFE and ROAR, corrected and as their authors have them."""
    data, model = table(name, rows)
    asking = refused(model, data.test.X, 10)
    notes.recourses("scfe", rocerf.baselines.Scfe(model).explain(asking))
    notes.recourses("scfe, l1, schema", rocerf.baselines.Scfe(model, cost="l1", schema=data.schema).explain(asking))
    notes.recourses("scfe, authors", rocerf.baselines.Scfe(model, preset="authors").explain(asking))
    notes.recourses("roar", rocerf.baselines.Roar(model, delta_max=0.02).explain(asking))
    notes.recourses("roar, l1", rocerf.baselines.Roar(model, delta_max=0.02, cost="l1").explain(asking))
    authors = rocerf.baselines.Roar(model, delta_max=0.02, preset="authors", lam=0.1)
    notes.recourses("roar, authors", authors.explain(asking[:5]))


def network(notes: Notes) -> None:
    """A small network on German: every promise that it can be given, and the baselines."""
    data, own = table("german", 400)
    model = rocerf.NeuralModel.fit(own.train, seed=0, width=8, epochs=15, learning_rate=0.1)
    asking = refused(model, data.test.X, 10)
    options = rocerf.promises.Simulated(validity=0.8, shaping=6, choosing=10, checking=20)
    simulated = rocerf.Rocerf(model, promise=options)
    found = simulated.explain(asking)
    notes.recourses("simulated", found)
    notes.letters("simulated, letters", simulated.letters(found, valid_until=None, issued=ISSUED))
    notes.reloaded("simulated", simulated, asking[:4])
    notes.recheck("simulated, recheck", simulated, found, own.train.ids[:3])
    notes.recourses("local linear", rocerf.Rocerf(model, 2, promise="local_linear").explain(asking))
    notes.recourses("first order", rocerf.Rocerf(model, 2, promise="first_order").explain(asking))
    ruled = rocerf.Rocerf(model, 2, promise="first_order", cost="l1", schema=data.schema, max_changes=4)
    notes.recourses("first order, rules", ruled.explain(asking[:4]))
    penalty = rocerf.Rocerf(model, 2, promise="first_order", solver="penalty")
    notes.recourses("first order, Algorithm 1", penalty.explain(asking[:4]))
    notes.recourses("scfe", rocerf.baselines.Scfe(model).explain(asking))
    notes.recourses("roar", rocerf.baselines.Roar(model, delta_max=0.01).explain(asking[:5]))
    cchvae = rocerf.baselines.CChvae(own, epochs=5, samples=200, seed=4)
    notes.recourses("cchvae", cchvae.explain(refused(own, data.test.X, 5)))


def trees(notes: Notes) -> None:
    """Models that only score: a small tree on Adult's columns, another behind raw German columns."""
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    data, own = table("adult", 400)
    model = rocerf.EstimatorModel.fit(tree, own.train)
    options = rocerf.promises.Simulated(validity=0.8, shaping=4, choosing=4, checking=10)
    explainer = rocerf.Rocerf(model, "1%", promise=options, seed=5)
    asking = refused(model, data.test.X, 8)
    found = explainer.explain(asking)
    notes.recourses("tree", found)
    notes.reloaded("tree", explainer, asking[:3])
    notes.recheck("tree, recheck", explainer, found, own.train.ids[:4])
    notes.recourses("tree, local linear", rocerf.Rocerf(model, 2, promise="local_linear").explain(asking[:4]))
    german, whole, labels = pipeline("german", 800)
    rows, labels = german.train[:80], labels[:80]
    fitted = make_pipeline(whole[0], tree).fit(rows, labels)
    scored = rocerf.from_pipeline(fitted, rows, labels, schema=german.schema, otherwise="estimator")
    few = rocerf.promises.Simulated(validity=0.7, shaping=2, choosing=2, checking=10)
    denied = german.test[fitted.predict(german.test) == 0][:2]
    notes.recourses("raw tree", rocerf.Rocerf(scored, "3%", promise=few, cost="l1").explain(denied))


def refusals(notes: Notes) -> None:
    """Requests that are refused: the kind of error, and its message."""
    data, model = table("german")
    _, small = table("adult", 400)
    found = rocerf.Rocerf(model, 2, promise="first_order").explain(data.test.X[:5])
    requests: dict[str, Callable[[], Any]] = {
        "promise": lambda: rocerf.Rocerf(model, 2, promise="sworn"),
        "promise of a line": lambda: rocerf.Rocerf(model, 2, promise="local_linear").explain(data.test.X[:5]),
        "k": lambda: rocerf.Rocerf(model, 900),
        "no k": lambda: rocerf.Rocerf(model),
        "cost": lambda: rocerf.Rocerf(model, 2, cost="l7"),
        "solver": lambda: rocerf.Rocerf(model, 2, solver="guess"),
        "rules": lambda: rocerf.Rocerf(model, 2, promise="first_order", solver="penalty", schema=data.schema),
        "delta": lambda: rocerf.Rocerf(model, 2, delta=-1.0),
        "prices": lambda: rocerf.Rocerf(model, 2, cost=rocerf.CostTable({"amount": 1.0}), schema=data.schema),
        "model": lambda: rocerf.Rocerf("a model", 2),  # type: ignore[arg-type]
        "columns": lambda: rocerf.Rocerf(model, 2).explain([[1.0]]),
        "another promise": lambda: rocerf.Rocerf(model, 3).recheck(found, [0]),
        "another model": lambda: rocerf.Rocerf(small, 2, promise="first_order").recheck(found, [0]),
        "unknown ids": lambda: rocerf.Rocerf(model, 2, promise="first_order").recheck(found, ["nobody"]),
        "not read": lambda: rocerf.Recourses.from_json("{}"),
        "no folder": lambda: rocerf.Rocerf.load("no such folder"),
        "attack": lambda: rocerf.Adversary(small, 2).attack(np.full((1, 13), np.nan)),
    }
    for what, request in requests.items():
        try:
            request()
        except rocerf.RocerfError as error:
            notes.figure(what, type(error).__name__)
            notes.word(what, str(error))
        else:
            notes.figure(what, "not refused")


CASES: dict[str, Callable[[Notes], None]] = {
    "german prepared": lambda notes: prepared(notes, "german", rows=None, k=4, certified=1, people=20),
    "compas prepared": lambda notes: prepared(notes, "compas", rows=None, k=12, certified=12, people=12),
    "adult prepared": lambda notes: prepared(notes, "adult", rows=600, k=3, certified=2, people=12),
    "german proven": lambda notes: proven(notes, "german", rows=None, k=2, C=1.0, people=12),
    "german strongly penalised, proven": lambda notes: proven(notes, "german", rows=None, k=4, C=0.01, people=10),
    "compas proven": lambda notes: proven(notes, "compas", rows=None, k=25, C=1.0, people=10),
    "adult, no proof": lambda notes: proven(notes, "adult", rows=300, k=30, C=100.0, people=10),
    "german calibrated": lambda notes: calibrated(notes, "german", None),
    "compas calibrated": lambda notes: calibrated(notes, "compas", None),
    "german costs": lambda notes: costs(notes, "german", None),
    "compas costs": lambda notes: costs(notes, "compas", None),
    "adult costs": lambda notes: costs(notes, "adult", 600),
    "german open groups": open_groups,
    "german own fits": lambda notes: own_fits(notes, "german", None, 4, 1),
    "compas own fits": lambda notes: own_fits(notes, "compas", None, 5, 5),
    "german raw": lambda notes: raw(notes, "german", 800, 10),
    "adult raw": lambda notes: raw(notes, "adult", 800, 6),
    "german rules": rules,
    "german baselines": lambda notes: baselines(notes, "german", None),
    "compas baselines": lambda notes: baselines(notes, "compas", None),
    "adult baselines": lambda notes: baselines(notes, "adult", None),
    "network": network,
    "trees": trees,
    "refusals": refusals,
}
