"""Fitting scikit-learn estimators on training sets, and refusing those that cannot be.

Estimators are taught the user's own labels, get column names if they knew them, sample weights if there are any, and
random states that do not depend on chance.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import ColumnError, LabelError, NoOptimumError, OptionError, UnsupportedModelError
from rocerf.models.model import class_counts
from rocerf.models.options import checked_threshold
from rocerf.models.sklearn.own_threshold import deciding, own_threshold
from rocerf.models.sklearn.pipeline_steps import split, weight_name
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


#: Probabilities are kept this far from 0 and 1, so that log-odds stay finite.
CLIP = 1e-6

#: Scores this near to 0 are ties, in which an estimator may decide either way.
TIE = 1e-6

#: Where a tie is refused, its score is this far below 0.
TIE_REFUSED = 1e-12

#: CatBoost's names for how many trees are grown.
CATBOOST_ROUNDS = ("iterations", "n_estimators", "num_boost_round", "num_trees")

#: Training rows at most on which decisions are compared: some estimators take long to ask.
COMPARED_ROWS = 4096


def own_copy(fitted: Any) -> Any:
    """A copy that stays as it is, whatever the user does with theirs (fitting it again, say)."""
    try:
        return copy.deepcopy(fitted)
    except Exception as error:  # parts of it may be the user's own code
        raise UnsupportedModelError(
            f"Expected a fitted model that can be copied, got a {type(fitted).__name__} that cannot "
            f"({type(error).__name__}: {error}); leave open files, locks and generators out of it."
        ) from error


def unfitted_copy(fitted: Any) -> Any:
    """An unfitted clone, to be fitted on other rows later; None of what cannot be cloned: it need not be until then."""
    from sklearn.base import clone

    try:
        return clone(fitted)
    except Exception:  # parts of it may be the user's own code
        return None


def names_of(estimator: Any) -> Sequence[str] | None:
    """The columns the estimator knows by name, if it was fitted on a DataFrame."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def nameless(estimator: Any) -> Any:
    """The fitted estimator without its column names where it can do without; the given one is left alone.

    Tables with names are several times slower to ask, and only steps that choose columns by name need them: parts that
    are estimators themselves, and options that are more than a word or a number.
    """
    settings = estimator.get_params()
    if any("__" in name or not isinstance(value, str | int | float | None) for name, value in settings.items()):
        return estimator
    bare = copy.copy(estimator)
    try:
        del bare.feature_names_in_
    except AttributeError:  # it has none, or computes them
        return estimator
    return bare


def rows_for(estimator: Any, X: Array) -> Any:
    """The rows as the estimator was shown them: with column names if it knows them."""
    names = names_of(estimator)
    return X if names is None else _frame(X, names)


def rows_to_score(estimator: Any, X: Array) -> Any:
    """The same, to ask for chances: trees of XGBoost look at no names then, and a table costs ten times the trees."""
    trees = hasattr(estimator, "get_booster") and getattr(estimator, "booster", None) != "gblinear"
    return X if trees else rows_for(estimator, X)


def _frame(X: Array, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(X, columns=list(names))


def random_states(estimator: Any) -> list[str]:
    """Names of the estimator's options for random numbers, those of its parts included."""
    return sorted(n for n in estimator.get_params() if n == "random_state" or n.endswith("__random_state"))


def open_states(estimator: Any) -> list[str]:
    """Names of the random states that the user left open."""
    settings = estimator.get_params()
    return [name for name in random_states(estimator) if settings[name] is None]


def _refuse_stopped_by_other_rows(estimator: Any) -> None:
    """Boosting that rows given to ``fit`` alone have stopped would go on when fitted again: another kind of model."""
    _, last = split(getattr(estimator, "pipeline_", estimator))
    if hasattr(last, "calc_leaf_indexes"):  # CatBoost
        kept = None if last.best_iteration_ is None else int(last.tree_count_)
        asked = next((last.get_params()[n] for n in CATBOOST_ROUNDS if n in last.get_params()), 1000)
    else:  # XGBoost counts from 0 and stops nowhere without such rows
        best, kept = getattr(last, "best_iteration", None), getattr(last, "best_iteration_", None) or None
        kept, asked = (kept, getattr(last, "n_estimators", None)) if best is None else (int(best) + 1, None)
    if kept is None or kept < 1 or kept == asked:
        return
    raise UnsupportedModelError(
        f"Expected a classifier that can be fitted again as it was, got a {type(last).__name__} that other rows "
        f"(eval_set) stopped after {kept} rounds: without them it would go on; fit it with that many rounds "
        f"(n_estimators={kept}), early_stopping_rounds=None and no eval_set, and pass that."
    )


def cloned(estimator: Any) -> Any:
    """An unfitted clone."""
    from sklearn.base import clone

    _refuse_stopped_by_other_rows(estimator)
    try:
        return clone(estimator)
    except RuntimeError as error:
        raise UnsupportedModelError(
            f"Expected a classifier that scikit-learn can clone, to be fitted again, got one that it cannot ({error}); "
            "leave its options as they were given: CatBoost takes a tuple for cat_features (and class_weights), and "
            "copies a list."
        ) from error


def settled(estimator: Any, seed: int) -> Any:
    """An unfitted clone whose random states are not left open."""
    return cloned(estimator).set_params(**dict.fromkeys(open_states(estimator), seed))


def reseeded(estimator: Any, seed: int, trial: int) -> Any:
    """An unfitted clone with random states of its own for this trial."""
    names = random_states(estimator)
    states = np.random.SeedSequence([seed, trial]).generate_state(len(names)).tolist()
    return cloned(estimator).set_params(**dict(zip(names, states, strict=True)))


def fitted_on(unfitted: Any, train: TrainingSet, names: Sequence[str] | None) -> Any:
    """The estimator fitted on these rows, on the user's own labels, with column names if there are any."""
    gone = [label for label, count in class_counts(train, train.weights).items() if not count]
    if gone:
        raise NoOptimumError(
            f"Expected rows of both classes to fit on, got {len(train)} rows and none (with weight) labelled "
            f"{gone[0]!r}; delete fewer rows."
        )
    rows = train.X if names is None else _frame(train.X, names)
    option = weight_option(unfitted, train)
    try:
        return unfitted.fit(rows, own_labels(train), **({} if option is None else {option: train.weights}))
    except (ValueError, TypeError) as error:
        raise UnsupportedModelError(
            f"Expected a {type(unfitted).__name__} that can be fitted on {len(train)} rows of two classes, got an "
            f"error ({error}); change its options, the labels or the weights, or delete fewer rows."
        ) from error


def own_labels(train: TrainingSet) -> NDArray[Any]:
    """The user's labels of the rows, (n,)."""
    pair = np.array([train.unfavourable, train.favourable])
    if pair.tolist() != [train.unfavourable, train.favourable]:  # NumPy turns 1 beside "no" into text
        pair = np.array([train.unfavourable, train.favourable], dtype=object)
    return np.asarray(pair[train.y.astype(np.intp)])


def weight_option(estimator: Any, train: TrainingSet) -> str | None:
    """Under which name the estimator's ``fit`` takes the rows' weights; None where they have none."""
    from sklearn.utils.validation import has_fit_parameter

    if train.weights is None:
        return None
    option, last = weight_name(estimator)
    if not has_fit_parameter(last, "sample_weight"):
        raise UnsupportedModelError(
            f"Expected an estimator that takes sample weights, since the training rows have some, got "
            f"{type(last).__name__}, which does not; leave the weights out or use another estimator."
        )
    return option


# --- what cannot be taken over ------------------------------------------------------------------------


def refuse_what_is_no_classifier(estimator: Any) -> None:
    """Only what scikit-learn calls a classifier can be cloned and fitted again."""
    from sklearn.base import is_classifier

    if isinstance(estimator, type):
        raise UnsupportedModelError(
            f"Expected a classifier, got the class {estimator.__name__}; make one of it: {estimator.__name__}()."
        )
    try:
        good = hasattr(estimator, "get_params") and is_classifier(estimator)
    except AttributeError:  # no part of scikit-learn's family
        good = False
    if not good:
        raise UnsupportedModelError(
            f"Expected a scikit-learn classifier, got {type(estimator).__name__}; pass a classifier for two classes."
        )


def refuse_unfitted(fitted: Any) -> None:
    """Only a fitted classifier that says how sure it is has a score."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(fitted).__name__
    try:
        check_is_fitted(fitted)
    except NotFittedError as error:
        raise UnsupportedModelError(
            f"Expected a fitted classifier, got a {name} that was not fitted; call its fit first, or use "
            "EstimatorModel.fit(estimator, train)."
        ) from error
    if not (hasattr(fitted, "predict_proba") or hasattr(fitted, "decision_function")):
        raise UnsupportedModelError(
            f"Expected a classifier with predict_proba or decision_function, got a {name} with neither; "
            "a score is needed, not a decision alone: calibrate it (sklearn.calibration.CalibratedClassifierCV)."
        )


def _one_output(fitted: Any) -> bool:
    """Whether there is one label to decide, and not several with classes of their own."""
    return all(np.ndim(label) == 0 for label in fitted.classes_)


def refuse_unfitted_end(last: Any) -> None:
    """What was not fitted is said to be so, whatever it is."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    with suppress(TypeError):  # no estimator at all: said elsewhere
        try:
            check_is_fitted(last)
        except NotFittedError as error:
            raise UnsupportedModelError(
                f"Expected a fitted pipeline, got one whose {type(last).__name__} is not fitted; call its fit first."
            ) from error


def check_labels(fitted: Any, train: TrainingSet) -> None:
    """The classifier must tell the training set's two labels apart."""
    classes = np.asarray(fitted.classes_).tolist() if _one_output(fitted) else []
    if not classes:
        raise UnsupportedModelError(
            f"Expected a classifier of one label, got a {type(fitted).__name__} that decides several at once; recourse "
            "is defined for one decision, so fit one classifier for each."
        )
    if len(classes) != 2:
        raise UnsupportedModelError(
            f"Expected a classifier of two classes, got one of {len(classes)}: {classes[:5]}; recourse is defined for "
            "accept/refuse decisions, so fit on two labels."
        )
    if set(classes) != {train.favourable, train.unfavourable}:
        raise LabelError(
            f"Expected a classifier of the training set's labels {train.unfavourable!r} and {train.favourable!r}, got "
            f"one of {classes[0]!r} and {classes[1]!r}; label the training set as the classifier was taught."
        )


def check_columns(fitted: Any, train: TrainingSet, *, width: int = 0) -> None:
    """The classifier must have been fitted on the training set's columns, in their order."""
    # CatBoost says 0 once it was read from a file.
    width, names = width or getattr(fitted, "n_features_in_", 0) or train.X.shape[1], names_of(fitted)
    if width != train.X.shape[1]:
        raise ColumnError(
            f"Expected training rows with the classifier's {width} columns, got {train.X.shape[1]}; "
            "pass the columns it was fitted on."
        )
    if names is None or not train.from_frame:
        return
    for place, (fitted_on, given) in enumerate(zip(names, train.columns, strict=True), start=1):
        if fitted_on != given:
            raise ColumnError(
                f"Expected the columns the classifier was fitted on, in that order, got {given!r} as column {place} "
                f"where it has {fitted_on!r}; reorder or rename them."
            )


def threshold_for(fitted: Any, threshold: Any, favourable: Any) -> float:
    """The threshold, if this estimator can be held to it; its own where it has one and the user says nothing."""
    chance, own = checked_threshold(threshold), own_threshold(fitted, favourable)
    if own is not None and not (chance == 0.5 or abs(chance - own) <= TIE):
        raise UnsupportedModelError(
            f"Expected the threshold that the {type(deciding(fitted)).__name__} has itself, {own:g}, got "
            f"threshold={chance:g}; leave threshold= out, or pass the classifier inside it (estimator_) with the one "
            "that you want."
        )
    chance = chance if own is None else own
    if not hasattr(fitted, "predict_proba") and chance != 0.5:
        raise UnsupportedModelError(
            f"Expected an estimator with predict_proba for threshold={chance:g}, got {type(fitted).__name__} "
            "without; keep threshold=0.5, or calibrate it (sklearn.calibration.CalibratedClassifierCV)."
        )
    if not CLIP < chance < 1 - CLIP:
        raise OptionError(
            f"Expected a threshold between {CLIP:g} and 1 - {CLIP:g}, where probabilities are told apart, "
            f"got {chance!r}; use for example threshold=0.5."
        )
    return chance


def check_decisions(fitted: Any, train: TrainingSet, score: Callable[[Array], Array], threshold: float) -> None:
    """What the classifier itself decides about the training rows must be what its scores say of them.

    With another threshold than 0.5 the user has said what decides, unless the classifier has a threshold of its own.
    """
    inner = getattr(fitted, "pipeline_", fitted)
    _, last = split(inner)
    has_its_own = deciding(fitted) is not None
    if threshold != 0.5 and not has_its_own:
        return
    X = np.asarray(train.X[:: -(-len(train) // COMPARED_ROWS)])
    try:
        own, scores = np.asarray(fitted.predict(rows_for(fitted, X))) == train.favourable, score(X)
    except Exception as error:  # estimators may be the user's own code
        raise UnsupportedModelError(
            f"Expected a classifier that takes the rows it was fitted on, got a {type(inner).__name__} that cannot "
            f"({type(error).__name__}: {error}); pass these rows, in the columns it was fitted on."
        ) from error
    if own.shape != scores.shape:  # XGBoost with objective="multi:softprob", say
        raise UnsupportedModelError(
            f"Expected a classifier whose predict gives one label for each row, got a {type(inner).__name__} that "
            f"gives {own.shape[1:]} of them; fit it for two classes (XGBoost: objective='binary:logistic')."
        )
    differing = int(((own != (scores >= 0)) & (np.abs(scores) > TIE)).sum())
    if not differing:
        return
    rule = f"a probability of {threshold:g}" if hasattr(fitted, "predict_proba") else "its decision function"
    advice = (
        "pass the classifier inside it (estimator_) with the threshold that you want"
        if has_its_own
        else "pass one whose predict follows its predict_proba (an SVC without probability=True, say), or say with "
        "threshold=... from which probability on people are accepted"
    )
    raise UnsupportedModelError(
        f"Expected a classifier that decides by {rule}, got a {type(last).__name__} that decides otherwise about "
        f"{differing} of {len(X)} training rows; {advice}."
    )
