"""Models that cannot carry a promise are refused with a way out; those that can agree with scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.errors import (
    ColumnError,
    DataError,
    LabelError,
    NoOptimumError,
    NotAtOptimumError,
    OptionError,
    RocerfError,
    SingularCurvatureError,
    UnsupportedModelError,
)

NAMES = ["income", "debt", "age"]
TIGHT: dict[str, Any] = {"tol": 1e-12, "max_iter": 100_000}


def standardised(seed: int, n: int = 200, *, weights: bool = False) -> TrainingSet:
    """A random problem with columns in comparable units, where scikit-learn's own tolerances are good."""
    train = random_training_set(seed, n, weights=weights)
    X = (train.X - train.X.mean(0)) / train.spread
    return TrainingSet(X, train.y.astype(int), sample_weight=train.weights)


TRAIN = standardised(1)
X, Y = TRAIN.X, TRAIN.y.astype(int)
FRAME = pd.DataFrame(X, columns=NAMES)


def quietly(fit: Callable[[], Any]) -> Any:
    """The fit without scikit-learn's own words about deprecation and convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def theta_of(fitted: LogisticRegression, sign: float = 1.0) -> np.ndarray:
    theta = fitted.coef_[0]
    return sign * (np.append(theta, fitted.intercept_[0]) if fitted.fit_intercept else theta)


# --- estimators we cannot retrain -----------------------------------------------------------------

UNSUPPORTED = [
    pytest.param(
        lambda: LogisticRegression().fit(X, np.arange(len(X)) % 3),
        r"a classifier of two classes, got one of 3: \[0, 1, 2\].*fit on two labels",
        id="multiclass",
    ),
    pytest.param(
        lambda: LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0,)).fit(X, Y),
        r"got LogisticRegressionCV, which chooses C anew.*the C it chose \(its attribute C_\)",
        id="cross-validated",
    ),
    pytest.param(LogisticRegression, "got one that is not fitted; call its fit first", id="not-fitted"),
    pytest.param(
        lambda: Perceptron().fit(X, Y),
        "a fitted scikit-learn LogisticRegression, got Perceptron; fit one on",
        id="other-estimator",
    ),
    pytest.param(
        lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
        "got Pipeline; fit one on the prepared numeric columns. A StandardScaler followed by",
        id="pipeline",
    ),
    pytest.param(lambda: LogisticRegression, "LogisticRegression, got type;", id="the-class-itself"),
    pytest.param(lambda: None, "LogisticRegression, got NoneType;", id="nothing"),
]


@pytest.mark.parametrize(("make", "message"), UNSUPPORTED)
def test_unsupported_models(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        LogisticModel.from_sklearn(quietly(make), TRAIN)


def test_elasticnet_without_an_l1_part_is_l2() -> None:
    fitted = quietly(lambda: LogisticRegression(penalty="elasticnet", l1_ratio=0.0, solver="saga", **TIGHT).fit(X, Y))
    np.testing.assert_allclose(LogisticModel.from_sklearn(fitted, TRAIN).theta, theta_of(fitted), rtol=1e-5)


def test_class_weights_that_are_none_are_refused_with_what_they_may_be() -> None:
    with pytest.raises(OptionError, match=r"None, 'balanced' or a dict.*got 'even'; balanced weights, .*=\{0: "):
        LogisticModel.fit(TRAIN, class_weight="even")


# --- a model and rows that do not belong together -------------------------------------------------


def test_other_labels() -> None:
    fitted = LogisticRegression().fit(X, np.where(Y == 1, "good", "bad"))
    with pytest.raises(LabelError, match="the training set's labels 0 and 1, got one of 'bad' and 'good'; label"):
        LogisticModel.from_sklearn(fitted, TRAIN)


def test_another_width() -> None:
    with pytest.raises(ColumnError, match="the classifier's 2 columns, got 3; pass the columns it was fitted on"):
        LogisticModel.from_sklearn(LogisticRegression().fit(X[:, :2], Y), TRAIN)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["income", "debt", "height"], "got 'height' as column 3 where it has 'age'; reorder or rename"),
        (["debt", "income", "age"], "got 'debt' as column 1 where it has 'income'; reorder or rename"),
    ],
)
def test_columns_renamed_or_reordered(columns: list[str], message: str) -> None:
    fitted = LogisticRegression().fit(FRAME, Y)
    with pytest.raises(ColumnError, match=message):
        LogisticModel.from_sklearn(fitted, TrainingSet(FRAME.set_axis(columns, axis=1), Y))
    assert LogisticModel.from_sklearn(fitted, TrainingSet(FRAME, Y)).train.columns == tuple(NAMES)


def test_columns_reordered_without_names_are_noticed_by_the_optimum() -> None:
    with pytest.raises(NotAtOptimumError, match="other rows, columns, labels"):
        LogisticModel.from_sklearn(LogisticRegression().fit(X, Y), TrainingSet(X[:, ::-1], Y))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"C": 1e-4}, id="C"),
        pytest.param({"class_weight": {0: 10.0}}, id="class_weight"),
    ],
)
def test_settings_changed_after_the_fit(change: dict[str, Any]) -> None:
    fitted = LogisticRegression(C=1.0).fit(X, Y).set_params(**change)
    with pytest.raises(NotAtOptimumError, match=r"its settings \(C, class_weight\) were changed after the fit"):
        LogisticModel.from_sklearn(fitted, TRAIN)


@pytest.mark.parametrize(
    "train",
    [
        pytest.param(standardised(3), id="other-rows"),
        pytest.param(TrainingSet(X, 1 - Y), id="labels-swapped"),
        pytest.param(TrainingSet(X * 10.0, Y), id="other-units"),
        pytest.param(TRAIN.without(np.flatnonzero(X[:, 0] > 0.3)), id="some-of-a-kind-missing"),
    ],
)
def test_other_rows(train: TrainingSet) -> None:
    with pytest.raises(NotAtOptimumError, match="other rows, columns, labels or sample weights") as refused:
        LogisticModel.from_sklearn(LogisticRegression(**TIGHT).fit(X, Y), train)
    message = str(refused.value)
    assert f"on these {len(train)} rows" in message
    assert "standard deviations" in message
    assert "pass exactly what it was fitted on" in message


def test_the_check_admits_that_a_few_missing_rows_go_unnoticed() -> None:
    fitted = LogisticRegression(**TIGHT).fit(X, Y)
    with pytest.raises(NotAtOptimumError, match=r"A few missing rows, or many .* would not be noticed"):
        LogisticModel.from_sklearn(fitted, standardised(3))
    for missing in (2, 60):  # and so it is
        model = LogisticModel.from_sklearn(fitted, TRAIN.without(range(missing)))
        assert model.polish is not None
        assert 1e-4 < model.polish.shift < 0.1
    assert "cannot notice a few missing rows" in (LogisticModel.from_sklearn.__doc__ or "")


def test_wrong_sample_weights() -> None:
    weights = np.where(Y == 1, 5.0, 0.2)
    fitted = LogisticRegression(**TIGHT).fit(X, Y, sample_weight=weights)
    with pytest.raises(NotAtOptimumError, match="sample weights than those given"):
        LogisticModel.from_sklearn(fitted, TRAIN)
    with pytest.raises(DataError, match=r"200 sample weights, one for each row, got shape \(3,\)"):
        LogisticModel.from_sklearn(fitted, TRAIN, sample_weight=[1.0, 2.0, 3.0])


def test_not_converged() -> None:
    wide = X * [1.0, 300.0, 0.01]
    fitted = quietly(lambda: LogisticRegression(max_iter=2).fit(wide, Y))
    with pytest.raises(
        NotAtOptimumError, match=r"its limit of max_iter=2 iterations .* or raise max_iter, and fit again"
    ):
        LogisticModel.from_sklearn(fitted, TrainingSet(wide, Y))


def test_rows_without_labels() -> None:
    for refused in (
        lambda: LogisticModel.fit(X),
        lambda: LogisticModel.from_sklearn(LogisticRegression().fit(X, Y), X),
    ):
        with pytest.raises(DataError, match=r"Expected a TrainingSet, got ndarray; .* TrainingSet\(X, y\)"):
            refused()


# --- objectives without a minimum -----------------------------------------------------------------


def unpenalised(train: TrainingSet, how: str) -> LogisticModel:
    if how == "scikit-learn's":
        fitted = quietly(lambda: LogisticRegression(C=np.inf).fit(train.X, train.y.astype(int)))
        return LogisticModel.from_sklearn(fitted, train)
    return LogisticModel.fit(train, C=np.inf, scale=how == "ours")


@pytest.mark.parametrize("how", ["ours", "scikit-learn's"])
def test_unpenalised_dependent_columns(how: str) -> None:
    train = TrainingSet(np.column_stack([X, X[:, 0] + X[:, 1]]), Y)
    with pytest.raises(SingularCurvatureError, match=r"5 x 5 Hessian, got a singular one .* use a finite C"):
        unpenalised(train, how)
    assert LogisticModel.fit(train, C=1.0).optimality < 1e-10


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("how", ["ours", "ours unscaled", "scikit-learn's"])
def test_unpenalised_separable_rows(how: str, scale: float) -> None:
    apart = (X @ [1.0, -2.0, 0.5] > 0.1).astype(int)
    train = TrainingSet(X * scale, apart)
    with pytest.raises(NoOptimumError, match=r"separates the classes, .* use a finite C \(for example C=1\)"):
        unpenalised(train, how)
    assert LogisticModel.fit(train, C=1.0).optimality < 1e-10


def test_unpenalised_rows_that_one_category_separates() -> None:
    """An 0/1 column that only favourable rows have: its coefficient alone grows without end."""
    sure = ((np.arange(len(X)) % 3 == 0) & (Y == 1)).astype(float)
    with pytest.raises(NoOptimumError, match="separates the classes"):
        LogisticModel.fit(TrainingSet(np.column_stack([X, sure]), Y), C=np.inf)


def test_deletions_that_leave_separable_rows() -> None:
    train = TrainingSet([[float(i)] for i in range(10)], [0, 0, 0, 0, 1, 0, 1, 1, 1, 1])
    model = LogisticModel.fit(train, C=np.inf)
    with pytest.raises(NoOptimumError, match="separates the classes"):
        model.without([5])


def separable(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether some direction puts no row on the wrong side and one strictly on its own: a linear program."""
    rows = np.column_stack([X, np.ones(len(X))]) * (2 * y - 1)[:, None]
    found = linprog(-rows.sum(0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * rows.shape[1])
    return bool(-found.fun > 1e-9)


def test_no_optimum_is_claimed_exactly_where_a_linear_program_separates_the_rows() -> None:
    outcomes = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(rng.integers(8, 40), 2))
        rows = rows.round() if seed % 2 else rows
        y = (rows @ [1.0, 1.0] + rng.normal(size=len(rows)) * rng.choice([0.1, 0.5, 1.0]) > 0.2).astype(int)
        y[:2] = [0, 1]
        try:
            LogisticModel.fit(TrainingSet(rows, y), C=np.inf)
            outcomes.append(False)
        except NoOptimumError:
            outcomes.append(True)
        assert outcomes[-1] == separable(rows, y), seed
    assert 10 < sum(outcomes) < 70  # both answers were tried


def test_one_class_left() -> None:
    train = TrainingSet([[1.0], [2.0], [3.0], [4.0]], ["no", "yes", "yes", "yes"], favourable="yes")
    for model in (LogisticModel.fit(train), LogisticModel.fit(train, gamma=0.1)):
        with pytest.raises(
            NoOptimumError, match=r"rows of both classes, got 3 rows of one class only.*keep at least one"
        ):
            model.without([0])
    assert LogisticModel.fit(train, fit_intercept=False).without([0]).optimality < 1e-10


def test_one_class_left_counts_rows_of_weight_zero_as_gone() -> None:
    train = TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1], sample_weight=[1.0, 0.0, 1.0, 1.0])
    with pytest.raises(NoOptimumError, match="rows of both classes"):
        LogisticModel.fit(train).without([0])


# --- options of our own fit -----------------------------------------------------------------------

BAD_OPTIONS = [
    *[({"C": value}, OptionError, "Expected C > 0") for value in (0, -1.0, np.nan, "1", True)],
    *[({"gamma": value}, OptionError, "Expected gamma > 0") for value in (0, -1.0, np.nan, np.inf, "1")],
    ({"C": 1.0, "gamma": 0.1}, OptionError, "C .* or gamma .*, got both; drop one"),
    *[
        ({"threshold": value}, OptionError, "threshold strictly between 0 and 1 .*use for example")
        for value in (0, 1, -0.1, 1.5, np.nan, "0.5", None)
    ],
    ({"class_weight": {2: 1.0}}, LabelError, "class_weight for 1 and 0, got 2; use the labels"),
    ({"class_weight": {"0": 1.0}}, LabelError, "got '0'; use the labels"),
    *[
        ({"class_weight": {0: value}}, OptionError, "positive numbers as class weights, got .*a number above 0")
        for value in (0, -1, np.nan, np.inf, "2", None)
    ],
    ({"class_weight": [1.0, 2.0]}, OptionError, r"'balanced' or a dict from label to weight, got \[1.0, 2.0\]"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS)
def test_bad_options(options: dict[str, Any], error: type[RocerfError], message: str) -> None:
    with pytest.raises(error, match=message):
        LogisticModel.fit(TRAIN, **options)


@pytest.mark.parametrize("threshold", [0, 1, "half"])
def test_bad_threshold_for_a_scikit_learn_model(threshold: Any) -> None:
    with pytest.raises(OptionError, match="threshold strictly between 0 and 1"):
        LogisticModel.from_sklearn(LogisticRegression().fit(X, Y), TRAIN, threshold=threshold)


# --- good ones agree with scikit-learn -------------------------------------------------------------

OURS_AND_THEIRS = [
    pytest.param({}, False, id="default"),
    pytest.param({"C": 0.05}, True, id="sample-weight"),
    pytest.param({"class_weight": {0: 3.0, 1: 0.5}}, False, id="class-weight"),
    pytest.param({"class_weight": {0: 3.0}, "C": 5.0}, True, id="both-weights"),
    pytest.param({"fit_intercept": False}, False, id="no-intercept"),
    pytest.param({"C": np.inf}, False, id="unpenalised"),
    pytest.param({"solver": "liblinear"}, False, id="liblinear"),
    pytest.param({"solver": "liblinear", "intercept_scaling": 5.0}, False, id="liblinear-scaled-intercept"),
    pytest.param({"solver": "liblinear", "fit_intercept": False, "C": 0.2}, True, id="liblinear-no-intercept"),
    pytest.param({"solver": "newton-cholesky"}, False, id="newton"),
    pytest.param({"solver": "sag"}, False, id="sag"),
]


@pytest.mark.parametrize(("options", "weighted"), OURS_AND_THEIRS)
def test_fits_and_refits_agree_with_scikit_learn(options: dict[str, Any], weighted: bool) -> None:
    train = standardised(11, weights=weighted)
    estimator = LogisticRegression(**{**TIGHT, **options})
    y = train.y.astype(int)
    model = LogisticModel.from_sklearn(
        estimator.fit(train.X, y, sample_weight=train.weights), TrainingSet(train.X, y), sample_weight=train.weights
    )
    np.testing.assert_allclose(model.theta, theta_of(estimator), rtol=1e-5)
    assert model.polish is not None
    assert model.polish.shift < 1e-5
    gone = [0, 3, 50, 51, 52, 120]
    keep = np.setdiff1d(np.arange(len(train)), gone)
    refit = LogisticRegression(**{**TIGHT, **options})
    refit.fit(train.X[keep], y[keep], sample_weight=None if train.weights is None else train.weights[keep])
    np.testing.assert_allclose(model.without(gone).theta, theta_of(refit), rtol=1e-5)
    assert np.abs(theta_of(refit) / theta_of(estimator) - 1).max() > 1e-3  # deleting these rows did something


@pytest.mark.parametrize("intercept_scaling", [1.0, 5.0])
def test_liblinear_s_penalised_intercept_is_modelled(intercept_scaling: float) -> None:
    """With rare labels and a strong penalty the two intercepts differ much, so modelling it wrongly would show."""
    train = standardised(12)
    y = (train.X @ [1.0, 1.0, 1.0] + 1.0 > 3.5).astype(int)
    y[::40] = 1
    options: dict[str, Any] = {"solver": "liblinear", "intercept_scaling": intercept_scaling, "C": 0.02, **TIGHT}
    fitted = LogisticRegression(**options).fit(train.X, y)
    free = LogisticRegression(C=0.02, **TIGHT).fit(train.X, y)
    assert abs(fitted.intercept_[0] - free.intercept_[0]) > 0.02
    model = LogisticModel.from_sklearn(fitted, TrainingSet(train.X, y))
    assert model.polish is not None
    assert model.polish.shift < 1e-6
    gone = np.flatnonzero(y)[:4]
    refit = LogisticRegression(**options).fit(np.delete(train.X, gone, axis=0), np.delete(y, gone))
    np.testing.assert_allclose(model.without(gone).theta, theta_of(refit), rtol=1e-5)


def test_our_own_fit_agrees_with_scikit_learn() -> None:
    train = standardised(13, weights=True)
    y = train.y.astype(int)
    fitted = LogisticRegression(C=0.7, class_weight={1: 2.0}, **TIGHT).fit(train.X, y, sample_weight=train.weights)
    model = LogisticModel.fit(train, C=0.7, class_weight={1: 2.0}, scale=False)
    np.testing.assert_allclose(model.theta, theta_of(fitted), rtol=1e-5)


@pytest.mark.parametrize("favourable", ["granted", "refused"])
def test_either_label_may_be_the_favourable_one(favourable: str) -> None:
    """scikit-learn scores classes_[1]; where that is the label nobody hopes for, every sign turns."""
    labels = np.where(Y == 1, "granted", "refused")
    fitted = LogisticRegression(**TIGHT).fit(X, labels)
    assert fitted.classes_.tolist() == ["granted", "refused"]
    model = LogisticModel.from_sklearn(fitted, TrainingSet(X, labels, favourable=favourable))
    sign = 1.0 if favourable == "refused" else -1.0
    np.testing.assert_allclose(model.score(X), sign * fitted.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X) == 1, fitted.predict(X) == favourable)
    refit = LogisticRegression(**TIGHT).fit(X[5:], labels[5:])
    np.testing.assert_allclose(model.without(range(5)).theta, theta_of(refit, sign), rtol=1e-5)


@pytest.mark.parametrize("tol", [1e-4, 1e-2])
def test_predictions_are_scikit_learn_s_own(tol: float) -> None:
    people = np.random.default_rng(0).normal(size=(5000, 3))
    fitted = LogisticRegression(tol=tol).fit(X, Y)
    model = LogisticModel.from_sklearn(fitted, TRAIN)
    np.testing.assert_array_equal(model.predict(people), fitted.predict(people))


def test_a_threshold_is_a_probability_of_the_favourable_label() -> None:
    people = np.random.default_rng(0).normal(size=(2000, 3))
    fitted = LogisticRegression(**TIGHT).fit(X, Y)
    model = LogisticModel.from_sklearn(fitted, TRAIN, threshold=0.8)
    expected = fitted.predict_proba(people)[:, 1] >= 0.8
    np.testing.assert_array_equal(model.predict(people) == 1, expected)
    assert 0 < expected.mean() < fitted.predict(people).mean()
    refit = LogisticRegression(**TIGHT).fit(X[9:], Y[9:])
    later = model.without(range(9))
    np.testing.assert_array_equal(later.predict(people) == 1, refit.predict_proba(people)[:, 1] >= 0.8)
    np.testing.assert_allclose(later.theta, theta_of(refit), rtol=1e-5)
