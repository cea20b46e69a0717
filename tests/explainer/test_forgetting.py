"""After ``forget`` nothing of a row is left: not in an object, not in a file, and nothing to solve it from.

The strongest check comes first: whoever was forgotten, what is left is to the last bit what would be there had they
never been. Then no computation whatsoever can tell who they were.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import rocerf
from residue import Planted, contents, unpacked
from rocerf import EstimatorModel, FeatureSchema, LogisticModel, NeuralModel, Rocerf, TrainingSet
from rocerf.data.raw_tables import load_raw
from rocerf.errors import DataError, IdError, OptionError, UnsupportedModelError
from rocerf.promises import Certified, LocalLinear, Simulated
from rocerf.recourse.costs.prices import CostTable

Table = tuple[pd.DataFrame, np.ndarray]

#: The rows that are planted, in every column in which they stand out. Nobody else is near them.
ROWS: dict[str, dict[str, Any]] = {
    "planted-a": {"purpose": "zeppelin", "housing": "houseboat", "amount": 54319, "age": 123, "duration": 165.4321},
    "planted-with-a-long-name": {"purpose": "abacus", "housing": "tent", "amount": 13, "age": 7, "duration": 0.8125},
}
A, B = ROWS
TEXTS = ["purpose", "housing", "telephone"]
NUMBERS = ["duration", "amount", "installment-rate", "age", "number-credits"]


@cache
def table(planted: str | None) -> Table:
    """Some of German credit in raw columns, with gaps and a pandas category, and one row more in its middle."""
    data = load_raw("german")
    rows = data.train.iloc[:220, :].set_axis([f"row-{i}" for i in range(220)], axis=0)
    rows = rows[[*NUMBERS, *TEXTS]].astype({"duration": np.float64})
    rows.iloc[::9, 0] = np.nan
    labels = data.y_train[:220]
    if planted is not None:
        row = rows.iloc[[7]].set_axis([planted], axis=0).assign(**ROWS[planted])
        rows = pd.concat([rows.iloc[:100], row, rows.iloc[100:]])
        labels = np.insert(labels, 100, 1)
    return rows.astype({"housing": "category"}), labels


def refused(model: Any) -> pd.DataFrame:
    """Some of those who ask and are refused, in the model's columns."""
    asking = load_raw("german").test[[*NUMBERS, *TEXTS]].astype({"duration": np.float64, "housing": "category"})
    if model.train.columns == tuple(NUMBERS):
        asking = asking[NUMBERS] / (1.0 if model.train.X[:, 1].max() > 1000 else [10.0, 1e4, 1.0, 100.0, 1.0])
    return asking[model.predict(asking) == 0].iloc[:2]


def numbers(planted: str | None) -> TrainingSet:
    rows, labels = table(planted)
    rows = rows[NUMBERS].fillna({"duration": 20.0})
    return TrainingSet(rows, labels, np.array(rows.index.tolist()))  # ids of one width: that of the longest


def pipeline(last: Any = None, encoder: Any = None) -> Any:
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (encoder or OneHotEncoder(handle_unknown="ignore"), TEXTS),
    )
    return make_pipeline(prepared, last or LogisticRegression(max_iter=5000))


def taken_over(planted: str | None, unfitted: Any = None, **options: Any) -> Any:
    rows, labels = table(planted)
    return rocerf.from_pipeline((unfitted or pipeline()).fit(rows, labels), rows, labels, **options)


def declared() -> FeatureSchema:
    """All of it written down, also categories and bounds that only the planted rows make use of."""
    schema = FeatureSchema.from_frame(table(None)[0])
    words = {"purpose": ("zeppelin", "abacus"), "housing": ("houseboat", "tent")}
    for name, more in words.items():
        schema = schema.edit(name, categories=(*schema[name].categories, *more))
    for name in NUMBERS:
        schema = schema.edit(name, kind=schema[name].kind, lower=-100.0, upper=1e6)
    return schema


# --- explainers of every kind of model, before anything is forgotten ------------------------------------


def own_fit(planted: str | None) -> Rocerf:
    train = numbers(planted)
    return Rocerf(LogisticModel.fit(train, C=0.5), 2, cost="mad", schema=FeatureSchema.from_frame(train.frame()))


def own_fit_in_other_conventions(planted: str | None) -> Rocerf:
    rows = numbers(planted)
    weights = np.where(rows.X[:, 3] > 40, 2.0, 1.0)
    options = {"scale": False, "fit_intercept": False, "class_weight": {0: 2.0, 1: 1.0}, "threshold": 0.4}
    scaled = rows.with_values(rows.X / 1000.0).with_weights(weights)
    return Rocerf(LogisticModel.fit(scaled, gamma=0.01, **options), 1, promise="first_order", cost="percentile")


def calibrated(planted: str | None) -> Rocerf:
    return Rocerf(LogisticModel.fit(numbers(planted)), 2, promise="first_order", delta="calibrate")


def certified(planted: str | None) -> Rocerf:
    return Rocerf(LogisticModel.fit(numbers(planted)), 1, promise="certified", cost="l1")


def from_sklearn(planted: str | None) -> Rocerf:
    train = numbers(planted)
    train = train.with_values(train.X / [10.0, 1e4, 1.0, 100.0, 1.0])
    fitted = LogisticRegression(C=2.0, max_iter=5000).fit(train.frame(), train.y.astype(int))
    return Rocerf(LogisticModel.from_sklearn(fitted, train), 2)


def guessed_pipeline(planted: str | None) -> Rocerf:
    model = taken_over(planted)
    return Rocerf(model, 2, schema=model.schema.edit("age", direction="fixed"), effort="quick")


def declared_pipeline(planted: str | None) -> Rocerf:
    return Rocerf(taken_over(planted, schema=declared()), 2, effort="quick")


def refitted_pipeline(planted: str | None) -> Rocerf:
    return Rocerf(taken_over(planted, preprocessing="refitted", ids=table(planted)[0].index), 1)


def network(planted: str | None) -> Rocerf:
    model = NeuralModel.fit(numbers(planted), epochs=30, learning_rate=0.3, width=8, seed=3)
    return Rocerf(model, 2, promise=Simulated(shaping=3, choosing=3, checking=3))


def module(planted: str | None) -> Rocerf:
    import torch

    def refit(train: TrainingSet, seed: int, start: Any) -> Any:
        torch.manual_seed(seed)
        made = torch.nn.Linear(train.X.shape[1], 1)
        rows = torch.tensor((train.X - train.X.mean(0)) / train.spread, dtype=torch.float32)
        steps = torch.optim.SGD(made.parameters(), lr=0.5)
        for _ in range(200):
            steps.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(made(rows)[:, 0], torch.tensor(train.y).float())
            loss.backward()
            steps.step()
        with torch.no_grad():  # the scaling goes into the module
            made.weight /= torch.tensor(train.spread).float()
            made.bias -= made.weight[0] @ torch.tensor(train.X.mean(0)).float()
        return made

    train = numbers(planted)
    return Rocerf(NeuralModel.from_torch(refit(train, 0, None), train, refit=refit), 2, promise="local_linear")


def estimator(planted: str | None) -> Rocerf:
    model = EstimatorModel.fit(DecisionTreeClassifier(max_depth=4), numbers(planted), seed=5)
    return Rocerf(model, 2, promise=Simulated(shaping=3, choosing=3, checking=3))


def estimator_of_a_pipeline(planted: str | None) -> Rocerf:
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    unfitted = pipeline(HistGradientBoostingClassifier(max_iter=10, max_depth=3, random_state=0), encoder)
    return Rocerf(taken_over(planted, unfitted, otherwise="estimator"), 2, promise=Simulated(0.9, checking=3))


KINDS: tuple[Callable[[str | None], Rocerf], ...] = (
    own_fit,
    own_fit_in_other_conventions,
    calibrated,
    certified,
    from_sklearn,
    guessed_pipeline,
    declared_pipeline,
    refitted_pipeline,
    network,
    module,
    estimator,
    estimator_of_a_pipeline,
)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)

#: Explainers that are used before rows are forgotten: pools, margins and caches are full then.
USED = (own_fit, own_fit_in_other_conventions, calibrated, from_sklearn, guessed_pipeline, declared_pipeline)


@cache
def used(kind: Callable[[str | None], Rocerf], planted: str | None) -> Rocerf:
    made = kind(planted)
    if kind in USED:
        made.explain(refused(made.model))
    return made


@cache
def forgotten(kind: Callable[[str | None], Rocerf], planted: str) -> Rocerf:
    return used(kind, planted).forget([planted])


def saved_bytes(explainer: Rocerf, folder: Path) -> dict[str, Any]:
    """What the files of an explainer hold, but how long a proof took, and where skops says objects lay in memory.

    Checksums over these are left out with them; everything that they are taken of is compared.
    """
    explainer.save(folder)
    changing = isinstance(explainer.model, EstimatorModel), isinstance(explainer.promise, Certified)
    left_out = ("model.npz",) * changing[0] + ("promise.npz",) * changing[1]
    return {
        name: _without_checksums(name, data)
        for name, data in unpacked(folder)
        if name not in left_out and "estimator.npy" not in name and "seconds" not in name
    }


def _without_checksums(name: str, data: bytes) -> Any:
    if name.endswith(".json"):
        document = json.loads(data)
    elif name.endswith("about.npy"):
        document = json.loads(str(np.load(io.BytesIO(data), allow_pickle=False)))
    else:
        return data
    return {key: value for key, value in document.items() if key not in ("files", "sha256")}


def looked_for(planted: str, model: Any) -> Planted:
    """The row as it came and as the model scales it; of numbers, those that nobody else has."""
    kept, place = ROWS[planted], model.train.positions([planted])[0]
    own, others = model.train.X[place], np.delete(model.train.X, place, axis=0)
    alone = np.flatnonzero((own != others).all(axis=0) & (own != 0.0) & (own != 1.0))
    values = own[alone].tolist()
    design = getattr(model, "design", None)
    if design is not None and hasattr(design, "centre"):
        values += design(own[None])[0, alone].tolist()
    # 123, in whatever unit, may be anything: a product of two columns, say.
    values = [value for value in values if len(f"{value:.12g}".replace(".", "").strip("0")) > 3]
    return Planted([planted, kept["purpose"], kept["housing"]], values)


@pytest.mark.slow
@every_kind
def test_whoever_was_forgotten_what_is_left_is_as_if_they_had_never_been(
    kind: Callable[[str | None], Rocerf], tmp_path: Path
) -> None:
    first, second = forgotten(kind, A), forgotten(kind, B)
    files = [saved_bytes(made, tmp_path / str(place)) for place, made in enumerate((first, second, kind(None)))]
    assert files[0].keys() == files[1].keys() == files[2].keys()
    for name, data in files[0].items():
        assert data == files[1][name], name
        assert data == files[2][name], name
    for made in (first, second):
        if isinstance(made.promise, Certified):  # how long the proof took
            made.promise.certificate = replace(made.promise.certificate, seconds=0.0)
    assert contents(first) == contents(second)


@pytest.mark.slow
@every_kind
def test_the_row_is_in_no_object_and_in_no_file(kind: Callable[[str | None], Rocerf], tmp_path: Path) -> None:
    before, after = used(kind, A), forgotten(kind, A)
    row = looked_for(A, before.model)
    after.save(tmp_path / "after")
    assert len(row.numbers) >= 2
    if kind is declared_pipeline:  # these words stay because the user wrote them down
        row.texts = (A,)
    assert row.within(after) == []
    assert row.in_files(tmp_path / "after") == []
    # The search is one that finds things.
    before.save(tmp_path / "before")
    assert len(row.within(before)) >= 2
    assert row.in_files(tmp_path / "before")


@pytest.mark.slow
@every_kind
def test_the_old_explainer_is_untouched_and_options_are_the_same(kind: Callable[[str | None], Rocerf]) -> None:
    before, after = used(kind, A), forgotten(kind, A)
    assert A in before.model.train.ids
    assert len(after.model.train) == len(before.model.train) - 1
    assert after.model.train.ids.tolist() == [row for row in before.model.train.ids.tolist() if row != A]
    for name in ("k", "seed", "effort", "solver", "max_changes"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.promise.name == before.promise.name
    assert after.promise.sentence(0.5) == before.promise.sentence(0.5)
    assert after.cost.name == before.cost.name
    assert type(after.model) is type(before.model)
    assert after.model.threshold == before.model.threshold


def test_without_gives_the_row_back_and_forget_does_not() -> None:
    """The reason for all this: the scaling that ``without`` keeps is a sum over all rows."""
    before = own_fit(A).model
    row = before.train.X[before.train.positions([A])[0]]

    def solved(model: Any) -> np.ndarray:
        n = len(model.train)
        return np.asarray(model.design.centre * (n + 1) - model.train.X.sum(axis=0))

    def from_squares(model: Any) -> np.ndarray:
        n = len(model.train)
        squares = (model.design.scale**2 + model.design.centre**2) * (n + 1) - (model.train.X**2).sum(axis=0)
        return np.sqrt(np.maximum(squares, 0.0))

    asked = before.without([A])
    np.testing.assert_allclose(solved(asked), row, rtol=1e-9)
    np.testing.assert_allclose(from_squares(asked), np.abs(row), rtol=1e-4)
    after = before.forget([A])
    np.testing.assert_allclose(after.design.centre, after.train.X.mean(axis=0), rtol=1e-12)
    # What comes out is what the rows left have on average.
    np.testing.assert_allclose(solved(after), after.train.X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(from_squares(after), np.sqrt((after.train.X**2).mean(axis=0)), rtol=1e-6)


def test_what_was_found_before_is_found_anew() -> None:
    before, after = used(own_fit, A), own_fit(A).forget([A])
    assert len(before.promise.pool) > 1
    assert len(after.promise.pool) == 1
    answers, never = after.explain(refused(after.model)), own_fit(None).explain(refused(after.model))
    assert answers.answered.any()
    np.testing.assert_array_equal(answers.matrix, never.matrix)
    assert answers.settings == never.settings


def test_a_calibrated_margin_is_calibrated_anew_also_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_rows(model: Any, *_: Any, **__: Any) -> float:
        return float(model.train.X.mean())

    monkeypatch.setattr("rocerf.explainer.explainer.calibrate_delta", of_rows)
    before, never = calibrated(A), calibrated(None)
    with pytest.raises(OptionError, match=r"call prepare\(\) first"):
        _ = before.delta
    before.prepare()
    never.prepare()
    assert before.delta != never.delta
    before.save(tmp_path / "old")
    read = Rocerf.load(tmp_path / "old")
    assert read.delta == before.delta
    read.save(tmp_path / "again")
    for old in (before, read, Rocerf.load(tmp_path / "again")):
        assert old.forget([A]).settings().delta == never.delta


def test_a_given_margin_stays(tmp_path: Path) -> None:
    Rocerf(own_fit(A).model, 2, delta=0.25).save(tmp_path)
    assert Rocerf.load(tmp_path).forget([A]).delta == 0.25


@pytest.mark.slow
@pytest.mark.parametrize("kind", [own_fit, network, estimator, estimator_of_a_pipeline], ids=lambda k: k.__name__)
def test_forgetting_in_an_explainer_read_from_a_file_is_the_same(
    kind: Callable[[str | None], Rocerf], tmp_path: Path
) -> None:
    kind(A).save(tmp_path / "old")
    made = Rocerf.load(tmp_path / "old").forget([A])
    left = saved_bytes(made, tmp_path / "made")
    never = saved_bytes(kind(None), tmp_path / "never")
    assert left == never


@pytest.mark.slow
def test_a_pipeline_read_from_a_file_has_to_be_given(tmp_path: Path) -> None:
    rows, labels = table(A)
    fitted = pipeline().fit(rows, labels)
    rocerf.from_pipeline(fitted, rows, labels).save(tmp_path / "model.npz")
    with pytest.raises(UnsupportedModelError, match=r"LogisticModel.load\(path, pipeline=...\).*--pipeline"):
        LogisticModel.load(tmp_path / "model.npz").forget([A])
    again = LogisticModel.load(tmp_path / "model.npz", pipeline=fitted).forget([A])
    again.save(tmp_path / "again.npz")
    taken_over(None).save(tmp_path / "never.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "never.npz").read_bytes()


def test_a_logistic_regression_read_from_a_file_becomes_the_exact_optimum(tmp_path: Path) -> None:
    model = from_sklearn(A).model
    model.save(tmp_path / "model.npz")
    later = LogisticModel.load(tmp_path / "model.npz").forget([A])
    assert later.deployed_theta is None
    np.testing.assert_allclose(later.theta, from_sklearn(None).model.theta, atol=1e-8)
    again = model.forget([A])
    np.testing.assert_array_equal(again.deployed_theta, from_sklearn(None).model.deployed_theta)


@pytest.mark.slow
def test_after_what_if_a_row_can_still_be_forgotten() -> None:
    """Of a row that ``without`` took out, forgetting another one (or none) leaves nothing, either."""
    asked = taken_over(A).without([A])
    assert "purpose=zeppelin" in asked.train.columns
    row = Planted([A, "zeppelin", "houseboat"], [54319.0, 165.4321])
    assert row.within(asked)
    for model in (asked.forget([]), own_fit(A).model.without([A]).forget([])):
        assert row.within(model) == []


def test_tables_keep_no_notes_and_no_index_of_other_rows() -> None:
    """pandas keeps the values of an index that no row has any more, and whatever was written on a table."""
    rows, labels = table(A)
    rows = rows.set_axis(pd.CategoricalIndex(rows.index), axis=0)
    rows.attrs["largest"] = A
    model = rocerf.from_pipeline(pipeline().fit(rows, labels), rows, labels, ids=rows.index.tolist())
    row = looked_for(A, model)
    assert row.within(model.parts.recipe.frame.index)
    assert row.within(model.parts.recipe.frame.attrs)
    assert row.within(model.forget([A])) == []


@pytest.mark.slow
def test_declared_categories_stay_as_far_as_the_pipeline_takes_them() -> None:
    stays = forgotten(declared_pipeline, A)
    assert "zeppelin" in stays.schema["purpose"].categories
    assert stays.schema["amount"].upper == 1e6
    strict = taken_over(A, pipeline(encoder=OneHotEncoder()), schema=_with_planted(A))
    later = strict.forget([A])
    assert "zeppelin" not in later.schema["purpose"].categories
    assert looked_for(A, strict).within(later) == []


def _with_planted(planted: str) -> FeatureSchema:
    schema = FeatureSchema.from_frame(table(None)[0])
    for name in ("purpose", "housing"):
        schema = schema.edit(name, categories=(*schema[name].categories, ROWS[planted][name]))
    return schema


def test_a_category_stays_that_the_explainers_rules_or_prices_name() -> None:
    model = taken_over(A)
    schema = model.schema.edit("purpose", changes={"zeppelin": ("used car",)})
    for name in schema.names:
        schema = schema.edit(name, direction="any" if name == "housing" else "fixed")
    prices = CostTable({"housing": {"rented": {"houseboat": 3.0, "owned": 1.0}}})
    later = Rocerf(model, 1, schema=schema, cost=prices).forget([A])
    assert "zeppelin" in later.schema["purpose"].categories
    assert "houseboat" in later.schema["housing"].categories
    assert later.schema["amount"].upper < 2e4  # guessed, and guessed again


def test_a_guessed_schema_of_the_explainer_follows_the_declared_one_of_its_model() -> None:
    model = taken_over(A, schema=declared())
    own = FeatureSchema.from_frame(table(A)[0]).edit("duration", kind="integer")
    for name in ("purpose", "housing"):
        own = own.edit(name, categories=model.schema[name].categories)
    later = Rocerf(model, 1, schema=own).forget([A])
    assert later.schema["amount"].upper < 2e4
    assert later.schema.columns == later.model.schema.columns


@pytest.mark.slow
def test_who_cannot_be_forgotten() -> None:
    explainer = own_fit(A)
    with pytest.raises(IdError, match="1 unknown: 'nobody'"):
        explainer.forget(["nobody"])
    with pytest.raises(IdError, match="put it in a list"):
        explainer.forget(A)
    with pytest.raises(DataError, match="fewer than all"):
        explainer.forget(explainer.model.train.ids)
    one_class = explainer.model.train.ids[explainer.model.train.y == 0]
    for kind in (own_fit, guessed_pipeline, network, estimator):
        with pytest.raises(rocerf.errors.RocerfError, match=r"fewer rows|class"):
            used(kind, A).forget(one_class)


def test_what_cannot_be_made_anew_is_refused_with_the_way_out() -> None:
    from sklearn.frozen import FrozenEstimator

    train = numbers(A)
    bare = NeuralModel.from_torch(module(A).model.module, train)
    with pytest.raises(UnsupportedModelError, match=r"train it there yourself.*refit=function"):
        bare.forget([A])
    scaled = make_pipeline(FrozenEstimator(StandardScaler().fit(train.X)), DecisionTreeClassifier(max_depth=3))
    frozen = EstimatorModel.from_sklearn(scaled.fit(train.X, train.y.astype(int)), train)
    with pytest.raises(UnsupportedModelError, match="FrozenEstimator, which keeps what it learned"):
        frozen.forget([A])

    class Strange(rocerf.promises.Promise):
        name = "strange"

        def read(self, X: np.ndarray, target: Any = -np.inf) -> Any:
            return self.today(X)

    model = own_fit(A).model
    explainer = Rocerf(model, 2, promise=Strange(model, 2))
    with pytest.raises(OptionError, match=r"model.forget\(ids\)"):
        explainer.forget([A])


class Keeping(StandardScaler):  # type: ignore[misc]
    """Clones keep what it learned, whatever its class is called."""

    def __sklearn_clone__(self) -> Any:
        return self

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return self if hasattr(self, "mean_") else super().fit(X, y, sample_weight)


def test_parts_that_clones_keep_fitted_are_refused_whatever_their_class() -> None:
    from sklearn.frozen import FrozenEstimator

    class Cold(FrozenEstimator):  # type: ignore[misc]
        pass

    train = numbers(A)
    rows, labels = train.frame(), train.y.astype(int)
    for part in (Keeping(), Cold(StandardScaler().fit(rows))):
        deep = make_column_transformer((make_pipeline(part), NUMBERS))
        fitted = make_pipeline(deep, LogisticRegression(max_iter=5000)).fit(rows, labels)
        with pytest.raises(UnsupportedModelError, match=rf"is a {type(part).__name__}, which keeps what it learned"):
            rocerf.from_pipeline(fitted, rows, labels, ids=train.ids).forget([A])
        tree = make_pipeline(deep, DecisionTreeClassifier(max_depth=3)).fit(rows, labels)
        with pytest.raises(UnsupportedModelError, match="which keeps what it learned"):
            EstimatorModel.from_sklearn(tree, train).forget([A])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", "network"])
def test_scaling_is_made_anew_where_it_was_asked_for_whatever_the_columns_look_like(kind: str, tmp_path: Path) -> None:
    """Columns of mean 0 and spread 1 look as if they had not been scaled."""
    X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 6, dtype=float)
    train = TrainingSet(X, (X.sum(axis=1) + np.random.default_rng(0).normal(size=24) > 0).astype(int))

    def made(train: TrainingSet, scale: bool) -> Any:
        if kind == "logistic":
            return LogisticModel.fit(train, scale=scale)
        return NeuralModel.fit(train, scale=scale, width=8, epochs=300, learning_rate=0.3)

    for scale in (True, False):
        model = made(train, scale)
        assert not model.design.centre.any()
        model.save(tmp_path / "model.npz")
        never = made(train.forget([5]), scale)
        for later in (model.forget([5]), type(model).load(tmp_path / "model.npz").forget([5])):
            np.testing.assert_array_equal(later.design.centre, never.design.centre)
            np.testing.assert_array_equal(later.score(X), never.score(X))
        assert never.design.centre.any() == scale


def test_a_model_that_we_retrain_from_now_on_says_so(tmp_path: Path) -> None:
    """Fitted by scikit-learn, read from a file without its estimator, and forgetting: our exact optimum."""
    train = numbers(A)
    train = TrainingSet(train.X / train.spread, train.y, train.ids)
    fitted = LogisticRegression(max_iter=5000).fit(train.X, train.y)
    explainer = Rocerf(LogisticModel.from_sklearn(fitted, train), 1, promise="first_order")
    explainer.save(tmp_path / "e")
    later = Rocerf.load(tmp_path / "e").forget([A])
    assert later.model.retraining == "exact"
    assert any("retraining means rocerf's exact retraining" in told for told in later.model.assumptions())
    later.save(tmp_path / "e")
    again = Rocerf.load(tmp_path / "e")
    assert any("retraining means rocerf's exact retraining" in told for told in again.settings().assumptions)
    assert explainer.forget([A]).model.retraining == "own"  # with the estimator at hand it is fitted again
    assert LogisticModel.fit(train).forget([A]).retraining is None


def test_a_pipeline_that_cannot_be_cloned_is_taken_over_and_refused_only_when_it_must_be_fitted_again() -> None:
    class Stubborn(StandardScaler):  # type: ignore[misc]
        def __sklearn_clone__(self) -> Any:
            raise RuntimeError("these are mine")

    train = numbers(A)
    fitted = make_pipeline(Stubborn(), LogisticRegression(max_iter=5000)).fit(train.frame(), train.y.astype(int))
    model = rocerf.from_pipeline(fitted, train.frame(), train.y.astype(int))
    with pytest.raises(UnsupportedModelError, match=r"cannot clone.*rocerf.from_pipeline"):
        model.forget([A])


@pytest.mark.slow
def test_german_with_all_its_rows_and_columns(tmp_path: Path) -> None:
    """800 rows, 20 columns, numbers of every kind in the row: what is left is as if it had never been."""
    data = load_raw("german")
    odd = data.train.iloc[[3]].assign(amount=987654, age=151, purpose="zeppelin", job="augur").set_axis([987654321])
    rows = pd.concat([data.train.iloc[:400], odd, data.train.iloc[400:]])
    labels = np.insert(data.y_train, 400, 0)

    def explainer(rows: pd.DataFrame, labels: np.ndarray) -> Rocerf:
        texts = [name for name in rows if not pd.api.types.is_numeric_dtype(rows[name])]
        encoded = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler(), verbose_feature_names_out=False
        )
        fitted = make_pipeline(encoded, LogisticRegression(max_iter=5000)).fit(rows, labels)
        return Rocerf(rocerf.from_pipeline(fitted, rows, labels), 4, cost="percentile")

    before = explainer(rows, labels)
    after, never = before.forget([987654321]), explainer(data.train, data.y_train)
    row = Planted(["zeppelin", "augur"], [987654321.0, 987654.0])
    assert row.within(before)
    assert row.within(after) == []
    assert saved_bytes(after, tmp_path / "after") == saved_bytes(never, tmp_path / "never")
    assert row.in_files(tmp_path / "after") == []


def test_promises_keep_their_own_options() -> None:
    drawn = module(A)
    later = Rocerf(drawn.model, 2, promise=LocalLinear(drawn.model, 2, sampling="authors")).forget([A])
    assert later.promise.sampling == "authors"
    slack = Rocerf(own_fit(A).model, 2)
    slack.promise.slack = 0.5
    assert slack.forget([A]).promise.slack == 0.5
    simulated = used(network, A).forget([A])
    assert simulated.promise.options == Simulated(shaping=3, choosing=3, checking=3)
    assert simulated.promise.factor is None
