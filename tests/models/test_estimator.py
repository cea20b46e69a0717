"""scikit-learn classifiers as models: against plain clones fitted by hand, and refused with a way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from problems import random_training_set
from rocerf import EstimatorModel, TrainingSet
from rocerf.errors import (
    ColumnError,
    DataError,
    FileFormatError,
    LabelError,
    NoOptimumError,
    OptionError,
    UnsupportedModelError,
)
from rocerf.models.ensembles import Ensemble
from rocerf.models.model import Refittable
from rocerf.models.sklearn.estimator_fitting import TIE_REFUSED
from rocerf.storage.seals import sealed

ROWS = random_training_set(1, n=120)
X, Y = np.array(ROWS.X), np.where(ROWS.y == 1, "good", "bad")
NAMES = ["income", "debt", "age"]
FRAME = pd.DataFrame(X, columns=NAMES)
TRAIN = TrainingSet(X, Y, favourable="good")
NAMED = TrainingSet(FRAME, Y, favourable="good")
DELETIONS = [np.array([], dtype=int), np.array([0, 5, 7]), np.arange(20, 40)]

ESTIMATORS = [
    pytest.param(GradientBoostingClassifier(n_estimators=8, subsample=0.6, random_state=3), id="boosting"),
    pytest.param(HistGradientBoostingClassifier(max_iter=8, random_state=3), id="hist-boosting"),
    pytest.param(RandomForestClassifier(n_estimators=8, random_state=3), id="forest"),
]
OTHERS = [
    pytest.param(make_pipeline(StandardScaler(), SVC()), id="pipeline-svc"),
    pytest.param(CalibratedClassifierCV(SVC(), ensemble=False, cv=3), id="calibrated-svc"),
    pytest.param(KNeighborsClassifier(), id="neighbours"),
    pytest.param(VotingClassifier([("a", GaussianNB()), ("b", RandomForestClassifier(4))], voting="soft"), id="voting"),
]


def log_odds(fitted: Any, rows: Any, label: Any = "good") -> np.ndarray:
    """The score of the favourable label by the formula, from scikit-learn alone; ties that it refuses are below 0."""
    chance = fitted.predict_proba(rows)[:, list(fitted.classes_).index(label)]
    scores = logit(np.clip(chance, 1e-6, 1 - 1e-6))
    scores[(scores == 0.0) & (fitted.predict(rows) != label)] = -TIE_REFUSED
    return scores


def test_it_is_what_simulations_and_evaluations_ask_for() -> None:
    model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), TRAIN)
    assert isinstance(model, Refittable)
    ensemble: Ensemble = model.refitted(DELETIONS)
    assert len(ensemble) == 3
    assert ensemble[1:].scores(X).shape == (2, len(X))
    assert ensemble[:0].scores(X).shape == (0, len(X))
    assert repr(model).startswith("EstimatorModel(DecisionTreeClassifier, threshold=0.5, train=TrainingSet(120 rows")


# --- scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("favourable", ["good", "bad"])
def test_score_is_the_log_odds_of_the_user_s_label_minus_those_of_the_threshold(
    estimator: Any, favourable: str
) -> None:
    fitted = clone(estimator).fit(X, Y)
    train = TrainingSet(X, Y, favourable=favourable)
    taken, own = EstimatorModel.from_sklearn(fitted, train, threshold=0.7), EstimatorModel.fit(estimator, train)
    np.testing.assert_allclose(taken.score(X), log_odds(fitted, X, favourable) - logit(0.7), atol=1e-11)
    np.testing.assert_array_equal(own.score(X), log_odds(fitted, X, favourable))  # our fit sees the user's labels too
    np.testing.assert_array_equal(own.predict(X) == 1, fitted.predict(X) == favourable)
    np.testing.assert_array_equal(own.deployed_score(X), own.score(X))


@pytest.mark.parametrize(
    "labels", [("no", "yes"), (0, 1), (1, 0), (False, True), (0.0, 1.0), (-1, 1), (2, np.int64(1))]
)
def test_labels_of_any_kind(labels: tuple[Any, Any]) -> None:
    train = TrainingSet(X, [labels[int(y)] for y in ROWS.y], favourable=labels[1])
    model = EstimatorModel.fit(GaussianNB(), train)
    np.testing.assert_allclose(model.score(X), log_odds(GaussianNB().fit(X, ROWS.y), X, 1.0))
    assert model.without([0]).estimator.classes_.tolist() == model.estimator.classes_.tolist()


@pytest.mark.parametrize("favourable", ["good", "bad"])
def test_without_probabilities_the_decision_function_counts(favourable: str) -> None:
    model = EstimatorModel.fit(SVC(), TrainingSet(X, Y, favourable=favourable))
    np.testing.assert_array_equal(model.predict(X) == 1, model.estimator.predict(X) == favourable)
    np.testing.assert_allclose(np.abs(model.score(X)), np.abs(model.estimator.decision_function(X)))


@pytest.mark.parametrize("favourable", ["good", "bad"])
@pytest.mark.parametrize("wrap", [None, 0.5])
def test_who_is_as_likely_as_not_is_decided_as_the_estimator_itself_does(favourable: str, wrap: float | None) -> None:
    forest = RandomForestClassifier(4, random_state=0)
    fitted = (forest if wrap is None else FixedThresholdClassifier(forest, threshold=wrap)).fit(X, Y)
    people = np.random.default_rng(1).normal(size=(400, 3))
    tied = fitted.predict_proba(people)[:, 0] == 0.5
    assert tied.sum() > 20
    model = EstimatorModel.from_sklearn(fitted, TrainingSet(X, Y, favourable=favourable))
    np.testing.assert_array_equal(model.predict(people) == 1, fitted.predict(people) == favourable)
    np.testing.assert_allclose(model.score(people)[tied], 0.0, atol=1e-11)
    if wrap is None:  # who says from which probability on people are accepted has decided it
        chosen = EstimatorModel.from_sklearn(fitted, TrainingSet(X, Y, favourable=favourable), threshold=0.499999)
        assert (chosen.predict(people[tied]) == 1).all()


def test_people_with_gaps_have_no_score_and_nobody_is_fine() -> None:
    model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), TRAIN)
    people = X[:3].copy()
    people[1, 2] = np.nan
    scores = model.score(people)
    assert np.isnan(scores).tolist() == [False, True, False]
    np.testing.assert_array_equal(scores[[0, 2]], model.score(X[[0, 2]]))
    assert model.score(np.empty((0, 3))).shape == (0,)


def test_estimators_that_know_column_names_are_asked_by_name() -> None:
    by_name = make_pipeline(
        make_column_transformer((StandardScaler(), ["income", "age"]), remainder="passthrough"),
        RandomForestClassifier(n_estimators=4, random_state=0),
    )
    model = EstimatorModel.fit(by_name, NAMED)  # a warning about names would be an error here
    np.testing.assert_allclose(model.score(FRAME[NAMES[::-1]]), log_odds(clone(by_name).fit(FRAME, Y), FRAME))
    later = model.refitted(DELETIONS).scores(X)
    assert later.shape == (3, len(X))
    # Rows that came without names are matched by position, and refits still get the names the pipeline needs.
    unnamed = EstimatorModel.from_sklearn(clone(by_name).fit(FRAME, Y), TRAIN)
    np.testing.assert_array_equal(unnamed.score(X), model.score(X))
    np.testing.assert_array_equal(unnamed.refitted(DELETIONS).scores(X), later)
    assert EstimatorModel.from_sklearn(DecisionTreeClassifier().fit(X, Y), NAMED).score(FRAME).shape == (len(X),)


def test_names_are_dropped_only_where_no_column_is_chosen_by_name() -> None:
    boosting = HistGradientBoostingClassifier(max_iter=4, monotonic_cst={"debt": 1}, random_state=0)
    model = EstimatorModel.fit(boosting, NAMED)
    kept = FRAME.iloc[20:]
    plain = clone(boosting).set_params(random_state=int(np.random.SeedSequence([0, 0]).generate_state(1)[0]))
    expected = log_odds(plain.fit(kept, Y[20:]), FRAME)
    np.testing.assert_array_equal(model.refitted([np.arange(20)]).scores(X)[0], expected)
    forest = EstimatorModel.fit(RandomForestClassifier(n_estimators=2), NAMED)
    assert forest.estimator.feature_names_in_.tolist() == NAMES  # the user's estimator keeps them
    assert not hasattr(forest.refitted(DELETIONS[:1]).estimators[0], "feature_names_in_")


# --- refits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("estimator", [*ESTIMATORS, OTHERS[0]])
def test_refits_are_a_plain_loop_of_clones(estimator: Any, named: bool) -> None:
    train, rows = (NAMED, FRAME) if named else (TRAIN, X)
    model = EstimatorModel.from_sklearn(clone(estimator).fit(rows, Y), train)
    seen: list[tuple[int, int]] = []
    scores = model.refitted(DELETIONS, seed=9, progress=lambda done, total: seen.append((done, total))).scores(X)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    for trial, gone in enumerate(DELETIONS):
        kept = np.setdiff1d(np.arange(len(X)), gone)
        plain = clone(estimator)
        if "random_state" in plain.get_params():
            state = int(np.random.SeedSequence([9, trial]).generate_state(1)[0])
            plain.set_params(random_state=state)
        plain.fit(rows.iloc[kept] if named else rows[kept], Y[kept])
        expected = log_odds(plain, rows) if hasattr(plain, "predict_proba") else plain.decision_function(rows)
        np.testing.assert_array_equal(scores[trial], expected)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_deletion_keeps_the_estimator_s_own_random_state(estimator: Any) -> None:
    model = EstimatorModel.fit(estimator, TRAIN)
    later = model.without([3, 4])
    plain = clone(estimator).fit(np.delete(X, [3, 4], axis=0), np.delete(Y, [3, 4]))
    np.testing.assert_array_equal(later.score(X), log_odds(plain, X))
    assert later.train.ids.tolist() == np.delete(TRAIN.ids, [3, 4]).tolist()
    assert isinstance(later, EstimatorModel)
    assert later.threshold == model.threshold
    np.testing.assert_array_equal(model.without([]).score(X), model.score(X))


def test_random_states_left_open_come_from_the_seed_also_nested_ones() -> None:
    forests = [(name, RandomForestClassifier(n_estimators=4)) for name in "ab"]
    open_ = VotingClassifier(forests, voting="soft")
    models = [EstimatorModel.fit(open_, TRAIN, seed=seed) for seed in (0, 0, 1)]
    scores = [model.without([1]).score(X) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()
    assert open_.get_params()["a__random_state"] is None  # the user's estimator is left alone
    refits = [models[0].refitted([DELETIONS[1]] * 2, seed=seed) for seed in (4, 4, 5)]
    np.testing.assert_array_equal(refits[0].scores(X), refits[1].scores(X))
    assert (refits[0].scores(X) != refits[2].scores(X)).any()
    first = refits[0].estimators[0].get_params()
    assert first["a__random_state"] != first["b__random_state"]  # or both forests would be the same
    assert (refits[0].scores(X)[0] != refits[0].scores(X)[1]).any()  # the same rows, other random numbers


def test_weights_reach_the_classifier_also_at_the_end_of_a_pipeline() -> None:
    weights = np.random.default_rng(0).uniform(0.1, 5.0, len(X))
    train = TrainingSet(X, Y, favourable="good", sample_weight=weights)
    forest = RandomForestClassifier(n_estimators=4, random_state=0)
    model = EstimatorModel.fit(forest, train)
    np.testing.assert_allclose(model.score(X), log_odds(clone(forest).fit(X, Y, sample_weight=weights), X))
    later = clone(forest).fit(X[9:], Y[9:], sample_weight=weights[9:])
    np.testing.assert_allclose(model.without(range(9)).score(X), log_odds(later, X))
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    outer = EstimatorModel.fit(make_pipeline(StandardScaler(), inner), train)
    plain = clone(outer.estimator).fit(X, Y, pipeline__logisticregression__sample_weight=weights)
    np.testing.assert_allclose(outer.score(X), log_odds(plain, X))
    assert np.abs(outer.score(X) - EstimatorModel.fit(outer.estimator, TRAIN).score(X)).max() > 0.01
    for estimator in (KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
        with pytest.raises(
            UnsupportedModelError, match=r"takes sample weights.*got KNeighborsClassifier.*leave the weights"
        ):
            EstimatorModel.fit(estimator, train)
        with pytest.raises(UnsupportedModelError, match="takes sample weights"):
            EstimatorModel.from_sklearn(clone(estimator).fit(X, Y), train)


def test_a_class_that_can_vanish() -> None:
    labels = np.where(np.arange(len(X)) < 3, "good", "bad")
    train = TrainingSet(X, labels, favourable="good")
    model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), train)
    assert [model.removable_class(k) for k in (0, 2, 3, 50)] == [None, None, "good", "good"]
    for refit in (lambda: model.without([0, 1, 2]), lambda: model.refitted([np.array([0, 1, 2])])):
        with pytest.raises(NoOptimumError, match=r"rows of both classes.*labelled 'good'.*delete fewer rows"):
            refit()
    weightless = train.with_weights(np.where(np.arange(len(X)) == 0, 0.0, 1.0))
    weighted = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), weightless)
    assert [weighted.removable_class(k) for k in (1, 2)] == [None, "good"]
    with pytest.raises(NoOptimumError, match="none \\(with weight\\) labelled 'good'"):
        weighted.without([1, 2])


def test_assumptions_say_what_is_fitted_again() -> None:
    forest = EstimatorModel.fit(RandomForestClassifier(n_estimators=2, class_weight="balanced"), TRAIN).assumptions()
    assert "RandomForestClassifier is fitted again" in forest[0]
    assert "new random numbers" in forest[0]
    assert "class weights included" in forest[1]
    plain = EstimatorModel.fit(make_pipeline(StandardScaler(), GaussianNB()), TRAIN).assumptions()
    assert "without random numbers" in plain[0]
    assert "scaling" in plain[1]


# --- refusals -----------------------------------------------------------------------------------------


def test_what_cannot_be_taken_over_is_refused_with_a_way_out() -> None:
    tree = DecisionTreeClassifier()
    cases: list[tuple[Any, TrainingSet, type[Exception], str]] = [
        (DecisionTreeClassifier(), TRAIN, UnsupportedModelError, "not fitted; .*use EstimatorModel.fit"),
        (DecisionTreeClassifier, TRAIN, UnsupportedModelError, r"got the class.*DecisionTreeClassifier\(\)"),
        (
            RandomForestRegressor(2).fit(X, ROWS.y),
            TRAIN,
            UnsupportedModelError,
            "classifier, got RandomForestRegressor",
        ),
        (StandardScaler().fit(X), TRAIN, UnsupportedModelError, "classifier, got StandardScaler"),
        (object(), TRAIN, UnsupportedModelError, "classifier, got object"),
        (clone(tree).fit(X[:, :2], Y), TRAIN, ColumnError, "classifier's 2 columns, got 3"),
        (clone(tree).fit(X, ROWS.y), TRAIN, LabelError, "'bad' and 'good'.*one of 0.0 and 1.0.*as the classifier was"),
        (
            clone(tree).fit(X, np.arange(len(X)) % 3),
            TRAIN,
            UnsupportedModelError,
            r"two classes, got one of 3: \[0, 1, 2\]",
        ),
        (clone(tree).fit(FRAME[NAMES[::-1]], Y), NAMED, ColumnError, "got 'income' as column 1 where it has 'age'"),
    ]
    hard = VotingClassifier([("a", GaussianNB())], voting="hard").fit(X, Y)
    cases.append((hard, TRAIN, UnsupportedModelError, "predict_proba or decision_function.*calibrate"))
    for fitted, train, error, message in cases:
        with pytest.raises(error, match=message):
            EstimatorModel.from_sklearn(fitted, train)
    for unusable in (RandomForestRegressor(), DecisionTreeClassifier, "forest"):
        with pytest.raises(UnsupportedModelError, match=r"Expected a (scikit-learn )?classifier"):
            EstimatorModel.fit(unusable, TRAIN)
    with pytest.raises(DataError, match="Expected a TrainingSet"):
        EstimatorModel.fit(tree, X)  # type: ignore[arg-type]


def test_options_are_checked() -> None:
    model = EstimatorModel.fit(GaussianNB(), TRAIN)
    with pytest.raises(UnsupportedModelError, match=r"'fresh'.*got 'warm'.*use 'fresh'"):
        model.refitted(DELETIONS, retraining="warm")
    with pytest.raises(OptionError, match="one of fresh, warm, got 'cold'"):
        model.refitted(DELETIONS, retraining="cold")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="seed"):
        model.refitted(DELETIONS, seed=-1)
    with pytest.raises(UnsupportedModelError, match=r"threshold=0.7, got RidgeClassifier.*keep threshold=0.5"):
        EstimatorModel.fit(RidgeClassifier(), TRAIN, threshold=0.7)
    for threshold, message in ((1.5, "between 0 and 1"), (1e-7, "where probabilities are told apart")):
        with pytest.raises(OptionError, match=message):
            EstimatorModel.fit(GaussianNB(), TRAIN, threshold=threshold)
    with pytest.raises(ColumnError, match="3 columns"):
        model.score(X[:, :2])


def test_errors_of_scikit_learn_say_what_to_do() -> None:
    with pytest.raises(UnsupportedModelError, match=r"GaussianNB that can be fitted on 120 rows.*delete fewer rows"):
        EstimatorModel.fit(GaussianNB(), TrainingSet(X, [["no", 1][int(y)] for y in ROWS.y], favourable=1))
    few = TrainingSet(X[:12], ["good", "bad"] * 6, favourable="good")
    calibrated = EstimatorModel.fit(CalibratedClassifierCV(GaussianNB(), cv=5), few)
    with pytest.raises(UnsupportedModelError, match="fitted on 9 rows"):
        calibrated.without([0, 2, 4])  # three of a class are too few for five folds


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *OTHERS])
def test_save_and_load(estimator: Any, tmp_path: Path) -> None:
    weights = None if isinstance(estimator, KNeighborsClassifier | VotingClassifier) else np.linspace(1, 2, len(X))
    train = TrainingSet(FRAME, Y, favourable="good", sample_weight=weights)
    threshold = 0.5 if "svc" in str(estimator).lower() else 0.6
    model = EstimatorModel.fit(estimator, train, threshold=threshold, seed=4)
    model.save(tmp_path / "model.npz")
    again = EstimatorModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.score(FRAME), model.score(FRAME))
    np.testing.assert_array_equal(again.without([1, 2]).score(FRAME), model.without([1, 2]).score(FRAME))
    np.testing.assert_array_equal(again.refitted(DELETIONS).scores(X), model.refitted(DELETIONS).scores(X))
    assert (again.threshold, again.seed, again.train.checksum) == (threshold, 4, train.checksum)


def test_what_could_run_code_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    strange = make_pipeline(FunctionTransformer(json.loads, check_inverse=False), GaussianNB())
    strange[-1].fit(X, Y)
    with pytest.raises(UnsupportedModelError, match=r"got one with json\.loads"):
        EstimatorModel(TRAIN, strange, threshold=0.5, seed=0).save(path)
    assert not path.exists()
    # A file made elsewhere that names a function of scikit-learn's own, which reaches the disk.
    from skops.io import dumps

    EstimatorModel.fit(GaussianNB(), TRAIN).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    from sklearn.datasets import load_files

    data = dumps(make_pipeline(FunctionTransformer(load_files), strange[-1]))
    np.savez(path, **with_seal(arrays | {"estimator": np.frombuffer(data, np.uint8)}))
    with pytest.raises(FileFormatError, match="load_files, which is not trusted"):
        EstimatorModel.load(path)


def with_seal(arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays with a checksum that fits them."""
    others = {name: values for name, values in arrays.items() if name != "about"}
    return {**others, "about": np.array(json.dumps(sealed(json.loads(str(arrays["about"])), others)))}


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), TRAIN)
    model.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    broken = {
        "not a zip": arrays | {"estimator": np.zeros(9, np.uint8)},
        "save the model again": {"about": np.array("{}")},
        "score as it did with scikit-learn": arrays | {"scores": arrays["scores"] + 1},
        "match their checksum": arrays | {"X": arrays["X"] + 1},
    }
    for message, content in broken.items():
        np.savez(path, **with_seal(content))
        with pytest.raises(FileFormatError, match=message):
            EstimatorModel.load(path)
    np.savez(path, **(arrays | {"scores": arrays["scores"] + 1}))
    with pytest.raises(FileFormatError, match="was changed after it was written"):
        EstimatorModel.load(path)
    path.write_text("hello")
    with pytest.raises(FileFormatError, match=r"written by EstimatorModel\.save"):
        EstimatorModel.load(path)
    with pytest.raises(FileNotFoundError):
        EstimatorModel.load(tmp_path / "none.npz")


# --- what is taken over is the classifier as it is, and stays so -----------------------------------------


def test_the_users_classifier_stays_theirs() -> None:
    fitted = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    model = EstimatorModel.from_sklearn(fitted, TRAIN)
    before = model.score(X)
    fitted.set_params(max_depth=1).fit(X, Y[::-1])
    np.testing.assert_array_equal(model.score(X), before)
    assert model.without([0]).estimator.max_depth == 2


@pytest.mark.parametrize("favourable", ["good", "bad"])
@pytest.mark.parametrize("about", [None, "bad"])
def test_a_classifier_with_a_threshold_of_its_own_keeps_it(about: str | None, favourable: str) -> None:
    strict = FixedThresholdClassifier(RandomForestClassifier(5, random_state=0), threshold=0.8, pos_label=about)
    train = TrainingSet(X, Y, favourable=favourable)
    model = EstimatorModel.from_sklearn(strict.fit(X, Y), train)
    assert model.threshold == pytest.approx(0.8 if favourable == (about or "good") else 0.2)
    people = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_array_equal(model.predict(people) == 1, strict.predict(people) == favourable)
    with pytest.raises(UnsupportedModelError, match=r"has itself, 0\.[28], got threshold=0\.6; leave threshold= out"):
        EstimatorModel.from_sklearn(strict, train, threshold=0.6)


class _Stubborn(GaussianNB):
    """Accepts nobody, whatever its probabilities."""

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), TRAIN.unfavourable)


def test_decisions_that_probabilities_do_not_make() -> None:
    stubborn = _Stubborn().fit(X, Y)
    with pytest.raises(UnsupportedModelError, match=r"a probability of 0\.5, got a _Stubborn that decides otherwise"):
        EstimatorModel.from_sklearn(stubborn, TRAIN)
    model = EstimatorModel.from_sklearn(stubborn, TRAIN, threshold=0.6)  # then that decides
    chance = stubborn.predict_proba(X)[:, stubborn.classes_.tolist().index(TRAIN.favourable)]
    np.testing.assert_array_equal(model.predict(X), (chance >= 0.6).astype(int))
