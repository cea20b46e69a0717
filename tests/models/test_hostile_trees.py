"""Ensembles fitted in every odd way a library allows: the form, and `plain` answers, against the library at all points.

Columns are whole numbers of a few values, so that "cheapest", "proven" and "there is none" are held against every
allowed point, asked of the library itself.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from rocerf import EstimatorModel, Feature, FeatureSchema, Rocerf, Status, TrainingSet, from_pipeline
from rocerf.errors import RocerfError
from rocerf.models.trees.reading import at_thresholds, trees_of

QUIET: dict[str, dict[str, Any]] = {
    "xgboost": {"n_jobs": 1, "n_estimators": 12, "max_depth": 3, "random_state": 0},
    "lightgbm": {"n_jobs": 1, "verbose": -1, "n_estimators": 12, "num_leaves": 6, "min_child_samples": 5},
    "catboost": {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "iterations": 10, "depth": 3},
}
KINDS = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier", "catboost": "CatBoostClassifier"}


def rows(seed: int = 0, n: int = 120, low: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three whole numbers of seven values each, many rows twice, and one that never changes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(low, low + 7, size=(n, 3)), np.full(n, 5)]).astype(float)
    z = (X[:, :3] - low) @ [1.0, -0.7, 0.5] - 2.4 + np.where(X[:, 1] - low == 3, 2.0, 0.0)
    return X, (z + rng.normal(size=n) > 0).astype(int)


X, Y = rows()
X_OTHER, Y_OTHER = rows(1)


def made(package: str, **options: Any) -> Any:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return getattr(__import__(package), KINDS[package])(**QUIET[package] | options)


def fitted(package: str, **options: Any) -> Callable[[], Any]:
    return lambda: made(package, **options).fit(X, Y)


def judged(package: str, how: dict[str, Any] | None = None, **options: Any) -> Callable[[], Any]:
    """Stopped early by other rows."""
    return lambda: made(package, **options).fit(X, Y, eval_set=[(X_OTHER, Y_OTHER)], **(how or {}))


def xgboost_stopped_by_callback() -> Any:
    estimator = made("xgboost", n_estimators=60, learning_rate=0.6)
    from xgboost.callback import EarlyStopping

    estimator.set_params(callbacks=[EarlyStopping(rounds=3)])
    return estimator.fit(X, Y, eval_set=[(X_OTHER, Y_OTHER)], verbose=False)


def lightgbm_stopped() -> Any:
    estimator = made("lightgbm", n_estimators=60, learning_rate=0.5)
    from lightgbm import early_stopping

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, Y, eval_set=[(X_OTHER, Y_OTHER)], callbacks=[early_stopping(3, verbose=False)])


def warm() -> Any:
    estimator = GradientBoostingClassifier(n_estimators=4, warm_start=True, random_state=0).fit(X, Y)
    return estimator.set_params(n_estimators=9).fit(X, Y)


def boosted(**options: Any) -> Any:
    return GradientBoostingClassifier(n_estimators=8, random_state=0, **options).fit(X, Y)


def hist(**options: Any) -> Any:
    return HistGradientBoostingClassifier(max_leaf_nodes=6, min_samples_leaf=5, random_state=0, **options).fit(X, Y)


#: Each with whether its trees are read; what is not read is searched, and nothing of it is called proven.
CASES: dict[str, tuple[bool, Callable[[], Any]]] = {
    "xgboost dart": (True, fitted("xgboost", booster="dart", rate_drop=0.4)),
    "xgboost parallel trees": (True, fitted("xgboost", num_parallel_tree=3, subsample=0.6)),
    "xgboost base score": (True, fitted("xgboost", base_score=0.93)),
    "xgboost stopped": (
        True,
        judged("xgboost", {"verbose": False}, n_estimators=60, learning_rate=0.6, early_stopping_rounds=3),
    ),
    "xgboost parallel trees stopped": (
        True,
        judged("xgboost", {"verbose": False}, n_estimators=60, num_parallel_tree=2, early_stopping_rounds=2),
    ),
    "xgboost stopped by a callback": (True, xgboost_stopped_by_callback),
    "xgboost weighted": (True, fitted("xgboost", scale_pos_weight=5.0)),
    "xgboost monotone": (True, fitted("xgboost", monotone_constraints=(1, -1, 0, 0))),
    "xgboost approximate": (True, fitted("xgboost", tree_method="approx", grow_policy="lossguide", max_leaves=5)),
    "xgboost linear": (False, fitted("xgboost", booster="gblinear", max_depth=None)),
    "xgboost one stump": (True, fitted("xgboost", n_estimators=1, max_depth=1)),
    "lightgbm goss": (True, fitted("lightgbm", data_sample_strategy="goss")),
    "lightgbm dart": (True, fitted("lightgbm", boosting_type="dart", drop_rate=0.5)),
    "lightgbm stopped": (True, lightgbm_stopped),
    "lightgbm linear leaves": (False, fitted("lightgbm", linear_tree=True)),
    "lightgbm extra trees": (True, fitted("lightgbm", extra_trees=True)),
    "lightgbm zeros missing": (False, fitted("lightgbm", zero_as_missing=True)),
    "lightgbm steeper": (False, fitted("lightgbm", sigmoid=2.0)),
    "lightgbm unbalanced": (True, fitted("lightgbm", is_unbalance=True)),
    "lightgbm without a split": (True, fitted("lightgbm", min_child_samples=119)),
    "catboost stopped": (
        True,
        judged("catboost", iterations=80, learning_rate=0.6, early_stopping_rounds=4, use_best_model=True),
    ),
    "catboost ordered": (True, fitted("catboost", boosting_type="Ordered")),
    "catboost weighted": (True, fitted("catboost", class_weights=(1.0, 4.0))),
    "catboost by depth": (True, fitted("catboost", grow_policy="Depthwise")),
    "init estimator": (False, lambda: boosted(init=LogisticRegression())),
    "init prior": (True, lambda: boosted(init=DummyClassifier(strategy="prior"))),
    "init zero": (True, lambda: boosted(init="zero")),
    "exponential loss": (False, lambda: boosted(loss="exponential")),
    "boosting stopped": (True, lambda: boosted(n_iter_no_change=2, validation_fraction=0.3)),
    "boosting with samples": (True, lambda: boosted(subsample=0.5, max_features=1)),
    "warm start": (True, warm),
    "balanced forest": (
        True,
        lambda: RandomForestClassifier(7, class_weight="balanced_subsample", random_state=0).fit(X, Y),
    ),
    "forest of whole trees": (True, lambda: RandomForestClassifier(7, bootstrap=False, random_state=0).fit(X, Y)),
    "extra trees": (
        True,
        lambda: ExtraTreesClassifier(7, max_depth=3, class_weight={0: 3.0}, random_state=0).fit(X, Y),
    ),
    "tree of one leaf": (True, lambda: DecisionTreeClassifier(min_samples_split=10**6).fit(X, Y)),
    "stump": (True, lambda: DecisionTreeClassifier(max_depth=1).fit(X, Y)),
    "monotone tree": (True, lambda: DecisionTreeClassifier(monotonic_cst=[1, -1, 0, 0], max_depth=4).fit(X, Y)),
    "pruned tree": (True, lambda: DecisionTreeClassifier(ccp_alpha=0.02, random_state=0).fit(X, Y)),
    "hist stopped": (True, lambda: hist(early_stopping=True, n_iter_no_change=2, max_iter=60)),
    "hist monotone": (True, lambda: hist(monotonic_cst=[1, -1, 0, 0], max_iter=8)),
    "hist weighted": (True, lambda: hist(class_weight="balanced", max_iter=8)),
    "calibrated": (False, lambda: CalibratedClassifierCV(RandomForestClassifier(5, random_state=0), cv=2).fit(X, Y)),
    "bagged": (False, lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=2), 4, random_state=0).fit(X, Y)),
    "ada": (False, lambda: AdaBoostClassifier(n_estimators=4, random_state=0).fit(X, Y)),
}


def every_point(low: int = 0) -> np.ndarray:
    return np.array([(*values, 5) for values in itertools.product(range(low, low + 7), repeat=3)], dtype=float)


def schema_from(low: int = 0) -> FeatureSchema:
    numbers = [Feature(name, kind="integer", lower=low, upper=low + 6) for name in ("x0", "x1", "x2")]
    return FeatureSchema([*numbers, Feature("x3", direction="fixed")])


def check_against_all(model: EstimatorModel, own: Any, favourable: int, low: int = 0, people: int = 5) -> None:
    """Answers of `plain` against every allowed point, asked of the user's own estimator."""
    every = every_point(low)
    chances = np.asarray(own.predict_proba(every)[:, favourable], dtype=float)
    refused = every[chances < 0.5 - 1e-5]
    if not len(refused):
        return
    asked = refused[:: max(1, len(refused) // people)][:people]
    explainer = Rocerf(model, 0, promise="plain", schema=schema_from(low), cost="l1")
    found = explainer.explain(asked)
    for place, x0 in enumerate(asked):
        prices = explainer.cost.of(every, np.broadcast_to(x0, every.shape))
        surely, perhaps = prices[chances > 0.5 + 1e-5], prices[chances > 0.5 - 1e-5]
        if found.statuses[place] is Status.ANSWERED:
            point = found.matrix[place]
            assert own.predict(point[None]).ravel()[0] == favourable
            assert found.costs[place] >= perhaps.min() * (1.0 - 1e-9)
            if found.gaps[place] == 0.0:
                assert found.costs[place] <= surely.min(initial=np.inf) * (1.0 + 1e-9)
        elif model.trees is not None:
            assert not len(surely)
    if model.trees is None:
        assert not (found.gaps[found.answered] == 0.0).any()


@pytest.mark.parametrize("favourable", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_read_exactly_or_searched(case: str, favourable: int) -> None:
    read, fit = CASES[case]
    own = fit()
    train = TrainingSet(X, Y, favourable=favourable)
    model = EstimatorModel.from_sklearn(own, train)
    assert (model.trees is not None) == read
    if model.trees is not None:
        form = model.trees.form
        asked = np.concatenate([every_point(), every_point() + 0.25, X + 1e-7, at_thresholds(form, X), -X * 1e3])
        assert form.apart(asked, own.predict_proba(asked)[:, favourable]) < 2e-6
    check_against_all(model, own, favourable)


@pytest.mark.parametrize("case", ["xgboost", "lightgbm", "catboost", "forest", "hist"])
def test_numbers_that_single_precision_does_not_have(case: str) -> None:
    low = 2**24 - 2  # whole numbers beyond are rounded to even ones by libraries that keep 24 bits
    many, labels = rows(2, low=low)
    own = {
        "forest": lambda: RandomForestClassifier(5, random_state=0),
        "hist": lambda: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    }.get(case, lambda: made(case))()
    own.fit(many, labels)
    model = EstimatorModel.from_sklearn(own, TrainingSet(many, labels))
    assert model.trees is not None
    assert model.trees.form.apart(every_point(low), own.predict_proba(every_point(low))[:, 1]) < 2e-6
    check_against_all(model, own, 1, low)


@pytest.mark.parametrize("case", ["xgboost", "lightgbm", "catboost", "forest", "hist"])
def test_cheapest_at_the_very_thresholds(case: str) -> None:
    """Tenths, which no float has: the cheapest corner of all cells, each asked of the library, is the answer."""
    shown, labels = X[:, :3] / 10.0, Y
    own = {
        "forest": lambda: RandomForestClassifier(4, max_depth=3, random_state=0),
        "hist": lambda: HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=4, min_samples_leaf=5),
    }.get(case, lambda: made(case).set_params(**{"iterations" if case == "catboost" else "n_estimators": 4}))()
    own.fit(shown, labels)
    model = EstimatorModel.from_sklearn(own, TrainingSet(shown, labels))
    assert model.trees is not None
    schema = FeatureSchema([Feature(f"x{j}", lower=0.0, upper=0.6) for j in range(3)])
    people = shown[own.predict(shown).ravel() == 0][:4]
    explainer = Rocerf(model, 0, promise="plain", schema=schema, cost="l1")
    found = explainer.explain(people)
    assert found.answered.all()
    assert (found.gaps == 0).all()
    assert (own.predict(found.matrix).ravel() == 1).all()
    for place, x0 in enumerate(people):
        sides = []
        for j in range(3):
            ends = model.trees.form.thresholds(j)
            values = np.concatenate([ends, np.nextafter(ends, np.inf), [x0[j]]])
            sides.append(np.unique(values[(values >= 0.0) & (values <= 0.6)]))
        corners = np.array(list(itertools.product(*sides)))
        prices = explainer.cost.of(corners, np.broadcast_to(x0, corners.shape))
        order = np.argsort(prices, kind="stable")
        chances = own.predict_proba(corners[order])[:, 1]
        assert found.costs[place] == pytest.approx(prices[order][np.argmax(chances > 0.5 + 1e-6)], rel=1e-9)


@pytest.mark.parametrize("number", [-999.0, 0.0, 3.0, 6.0])
def test_a_number_that_stands_for_missing_ones_is_no_number(number: float) -> None:
    shown = X.copy()
    shown[::5, 0] = number
    own = made("xgboost", missing=number).fit(shown, Y)
    model = EstimatorModel.from_sklearn(own, TrainingSet(shown, Y))
    asked = np.concatenate([every_point(), shown])
    if model.trees is not None:
        assert model.trees.form.apart(asked, own.predict_proba(asked)[:, 1]) < 2e-6
    check_against_all(model, own, 1)


def test_a_number_that_stands_for_missing_ones_though_no_row_has_it() -> None:
    """Rows say nothing about it then, and a cheapest point may lie on it."""
    shown = X[X[:, 0] != 3.0]
    own = made("xgboost", missing=3.0).fit(shown, Y[X[:, 0] != 3.0])
    model = EstimatorModel.from_sklearn(own, TrainingSet(shown, Y[X[:, 0] != 3.0]))
    if model.trees is not None:
        assert model.trees.form.apart(every_point(), own.predict_proba(every_point())[:, 1]) < 2e-6
    check_against_all(model, own, 1, people=12)


def of_codes(package: str) -> Any:
    """Categories as whole numbers, asked about by sets."""
    if package == "xgboost":
        return made(
            package,
            feature_types=["c", "q", "q", "q"],
            enable_categorical=True,
            tree_method="hist",
            max_cat_to_onehot=1,
        ).fit(X, Y)
    estimator = made(package, min_data_per_group=5, cat_smooth=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, Y, categorical_feature=[0])


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_categories_kept_as_whole_numbers_are_proven_only_where_true(package: str) -> None:
    own = of_codes(package)
    model = EstimatorModel.from_sklearn(own, TrainingSet(X, Y))
    assert model.trees is not None
    form = model.trees.form
    assert len(form.subsets)
    between = every_point() + np.array([0.75, 0.0, 0.0, 0.0])
    beyond = every_point() + np.array([30.0, 0.0, 0.0, 0.0])
    asked = np.concatenate([every_point(), between, beyond])
    assert form.apart(asked, own.predict_proba(asked)[:, 1]) < 2e-6
    check_against_all(model, own, 1, people=12)


def test_forms_of_both_labels_are_remembered_apart() -> None:
    own = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(X, Y)
    for _ in range(2):
        for favourable in (0, 1):
            form = trees_of(own, favourable, X)
            assert form is not None
            assert form.apart(X, own.predict_proba(X)[:, favourable]) < 1e-9


def gaps(seed: int = 3) -> tuple[pd.DataFrame, pd.Series]:
    many, labels = rows(seed)
    frame = pd.DataFrame(many[:, :3], columns=["a", "b", "c"])
    frame.loc[np.random.default_rng(seed).random(len(frame)) < 0.25, "a"] = np.nan
    return frame, pd.Series(labels)


GAPS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(6, max_depth=4, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "xgboost dart": lambda: made("xgboost", booster="dart", rate_drop=0.4),
    "lightgbm": lambda: made("lightgbm"),
    "lightgbm without missing": lambda: made("lightgbm", use_missing=False),
    "catboost least": lambda: made("catboost", nan_mode="Min"),
    "catboost most": lambda: made("catboost", nan_mode="Max"),
    "catboost most, grown": lambda: made("catboost", nan_mode="Max", grow_policy="Lossguide"),
}


@pytest.mark.parametrize("case", GAPS)
def test_missing_numbers_go_where_the_library_sends_them(case: str) -> None:
    frame, labels = gaps()
    own = GAPS[case]().fit(frame, labels)
    model = from_pipeline(own, frame, labels, otherwise="estimator")
    assert model.trees is not None
    values = [np.nan, *range(7)]
    every = pd.DataFrame(itertools.product(values, range(7), range(7)), columns=list(frame.columns), dtype=float)
    shown = model.matrix(every)
    chances = own.predict_proba(every)[:, 1]
    assert model.trees.form.apart(shown, chances) < 2e-6
    people = frame[own.predict(frame) == 0].head(6)
    explainer = Rocerf(model, 0, promise="plain", cost="l1")
    found = explainer.explain(people)
    assert found.answered.any()
    assert (own.predict(found.points[found.answered]) == 1).all()
    for place, x0 in enumerate(model.matrix(people)):
        may = every["a"].isna().to_numpy() == np.isnan(people["a"].iloc[place])  # what is missing stays missing
        prices = explainer.cost.of(shown[may], np.broadcast_to(x0, shown[may].shape))
        accepted = prices[chances[may] > 0.5 + 1e-6]
        if found.answered[place] and found.gaps[place] == 0.0:
            assert found.costs[place] <= accepted.min() * (1.0 + 1e-9)


def test_what_cannot_be_taken_is_refused_with_the_way_out() -> None:
    train = TrainingSet(X, Y)
    both = RandomForestClassifier(3, random_state=0).fit(X, np.column_stack([Y, 1 - Y]))
    with pytest.raises(RocerfError, match="fit one classifier for each"):
        EstimatorModel.from_sklearn(both, train)
    softmax = made("xgboost", objective="multi:softprob", num_class=2).fit(X, Y)
    with pytest.raises(RocerfError, match="objective='binary:logistic'"):
        EstimatorModel.from_sklearn(softmax, train)


@pytest.mark.parametrize(
    "case", ["xgboost stopped", "xgboost stopped by a callback", "lightgbm stopped", "catboost stopped"]
)
def test_boosting_stopped_by_other_rows_is_not_fitted_again_without_them(case: str, tmp_path: Path) -> None:
    """It would go on to the last round: another model than the one that decides."""
    train, own = TrainingSet(X, Y), CASES[case][1]()
    model = EstimatorModel.from_sklearn(own, train)
    for again in (lambda: model.refitted([train.ids[:2]]), lambda: model.without(train.ids[:2])):
        with pytest.raises(RocerfError, match=r"n_estimators=\d+\), early_stopping_rounds=None"):
            again()
    if "callback" not in case:
        Rocerf(model, 0, promise="plain", schema=schema_from()).save(tmp_path / "explainer")
        loaded = Rocerf.load(tmp_path / "explainer")
        assert loaded.model.score(X) == pytest.approx(model.score(X), abs=1e-6)
        with pytest.raises(RocerfError, match="early_stopping_rounds=None"):
            loaded.model.refitted([train.ids[:2]])


@pytest.mark.parametrize("case", ["xgboost dart", "lightgbm dart", "catboost weighted", "hist stopped", "warm start"])
def test_fitted_again_without_rows_it_is_read_again(case: str) -> None:
    train = TrainingSet(X, Y)
    model = EstimatorModel.from_sklearn(CASES[case][1](), train)
    again = model.refitted([train.ids[:3], train.ids[5:9]])
    for trees, scores in zip(model.trees_retrained(again), again.scores(every_point()), strict=True):
        assert trees is not None
        assert trees.scores(every_point()) == pytest.approx(scores, abs=1e-4)
