"""Any scikit-learn classifier that can be fitted again: scores and refits, no slopes.

The favourable label is the user's own, so that a model fitted elsewhere and one fitted here agree. Refitting clones the
estimator with all its options and fits the clone on the rows that are left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from rocerf.data.columns import people_matrix
from rocerf.data.training_set import TrainingSet
from rocerf.data.training_set_file import pack, unpack
from rocerf.errors import FileFormatError, NoOptimumError, OptionError, UnsupportedModelError
from rocerf.models.model import RETRAININGS, Progress, Retraining
from rocerf.models.options import checked_seed, checked_threshold, refuse_bare_rows

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

FILE_FORMAT = "rocerf-estimator-model/1"

#: Probabilities are kept this far from 0 and 1, so that log-odds stay finite.
CLIP = 1e-6


@dataclass(frozen=True, eq=False)
class EstimatorEnsemble:
    """M fitted estimators and how to score with one of them."""

    estimators: tuple[Any, ...]
    score_one: Callable[[Any, Array], Array]

    def __len__(self) -> int:
        return len(self.estimators)

    def __getitem__(self, part: slice) -> EstimatorEnsemble:
        return EstimatorEnsemble(self.estimators[part], self.score_one)

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every estimator, shape (M, P)."""
        return np.stack([self.score_one(estimator, X) for estimator in self.estimators])


class EstimatorModel:
    """A fitted scikit-learn classifier with the rows it was fitted on.

    Make one with :meth:`fit` or :meth:`from_sklearn`. It accepts a person when ``score >= 0``: the log-odds of the
    favourable label reach those of ``threshold``.

    Examples
    --------
    >>> import rocerf
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], ["no", "no", "yes", "yes"], favourable="yes")
    >>> model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), train)
    >>> model.predict([[1.5], [3.5]]).tolist()
    [0, 1]
    >>> model.without([2]).predict([[2.8], [3.5]]).tolist()
    [0, 1]
    """

    def __init__(self, train: TrainingSet, estimator: Any, *, threshold: float, seed: int) -> None:
        self._train, self._estimator = train, estimator
        self.threshold, self.seed = threshold, seed

    @classmethod
    def fit(cls, estimator: Any, train: TrainingSet, *, threshold: float = 0.5, seed: int = 0) -> EstimatorModel:
        """Fit a clone of the estimator on the training rows, with the user's own labels and weights."""
        refuse_bare_rows(train)
        _refuse_what_is_no_classifier(estimator)
        fitted = _fitted_clone(estimator, train, np.arange(len(train)), None, named=train.from_frame)
        return cls.from_sklearn(fitted, train, threshold=threshold, seed=seed)

    @classmethod
    def from_sklearn(cls, fitted: Any, train: TrainingSet, *, threshold: float = 0.5, seed: int = 0) -> EstimatorModel:
        """Take over a fitted classifier; ``train`` must hold its training rows, which cannot be checked here.

        Parameters
        ----------
        fitted : scikit-learn classifier
            With ``predict_proba``, or with ``decision_function`` (then the threshold must stay 0.5).
        train : TrainingSet
            Its n rows and d columns, labelled as the estimator was taught.
        threshold : float in (0, 1)
            Probability of the favourable label from which a person is accepted.
        seed : int
            From which the random states of refits are drawn.
        """
        refuse_bare_rows(train)
        _refuse_what_is_no_classifier(fitted)
        _refuse_other_rows(fitted, train)
        if not hasattr(fitted, "predict_proba") and checked_threshold(threshold) != 0.5:
            raise UnsupportedModelError(
                f"Expected an estimator with predict_proba for threshold={threshold:g}, got {type(fitted).__name__} "
                "without; keep threshold=0.5, or calibrate it (sklearn.calibration.CalibratedClassifierCV)."
            )
        return cls(train, fitted, threshold=checked_threshold(threshold), seed=checked_seed(seed))

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        return self._train

    @property
    def estimator(self) -> Any:
        """The fitted scikit-learn estimator."""
        return self._estimator

    @property
    def offset(self) -> float:
        """``score = log-odds - offset``."""
        return float(logit(self.threshold))

    def __repr__(self) -> str:
        return f"EstimatorModel({type(self._estimator).__name__}, threshold={self.threshold}, train={self.train!r})"

    def matrix(self, X: ArrayLike | pd.DataFrame) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name."""
        matrix, _ = people_matrix(X, self.train.columns, named=self.train.from_frame)
        return matrix

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Log-odds of the favourable label minus those of the threshold; shape (P,)."""
        return self._score_one(self._estimator, self.matrix(X))

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """The same: this is the estimator in force."""
        return self.score(X)

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """1 where accepted, else 0; shape (P,)."""
        return (self.score(X) >= 0).astype(np.int64)

    def _score_one(self, estimator: Any, X: Array) -> Array:
        if not len(X):
            return np.empty(0)
        rows = _rows_for(estimator, X)
        place = estimator.classes_.tolist().index(self.train.favourable)
        if hasattr(estimator, "predict_proba"):
            chance = np.clip(estimator.predict_proba(rows)[:, place], CLIP, 1.0 - CLIP)
            return np.asarray(logit(chance) - self.offset)
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        return scores if place == 1 else -scores

    def without(self, ids: Iterable[Any]) -> EstimatorModel:
        """The estimator fitted again after deleting these rows, with its own random state."""
        gone = self.train.positions(ids)
        kept = np.delete(np.arange(len(self.train)), gone)
        fitted = _fitted_clone(self._estimator, self.train, kept, None, named=_is_named(self._estimator))
        left = self.train.without(self.train.ids[gone]) if len(gone) else self.train
        return EstimatorModel(left, fitted, threshold=self.threshold, seed=self.seed)

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> EstimatorEnsemble:
        """The estimator fitted again after each of M deletions; fit m depends on (seed, m) alone.

        "fresh" gives every ``random_state`` of the estimator a new value; going on from a fit ("warm") is not something
        scikit-learn estimators do in general.
        """
        if retraining not in RETRAININGS:
            raise OptionError(f"Expected retraining to be one of {', '.join(RETRAININGS)}, got {retraining!r}.")
        if retraining == "warm":
            raise UnsupportedModelError(
                "Expected retraining='fresh' for a scikit-learn estimator, got 'warm'; its fits start anew."
            )
        rows, named = np.arange(len(self.train)), _is_named(self._estimator)
        found = []
        for trial, ids in enumerate(deletions):
            state = int(np.random.SeedSequence([checked_seed(seed), trial]).generate_state(1)[0])
            kept = np.delete(rows, self.train.positions(ids))
            found.append(_fitted_clone(self._estimator, self.train, kept, state, named=named))
            if progress is not None:
                progress(trial + 1, len(deletions))
        return EstimatorEnsemble(tuple(found), self._score_one)

    def restored(self, arrays: Sequence[Array]) -> NoReturn:
        """Fitted estimators are not arrays: they are fitted again from their seeds."""
        raise UnsupportedModelError("Expected estimators to be fitted again from their seeds, got arrays to restore.")

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label."""
        good = int(self.train.y.sum())
        return {self.train.favourable: good, self.train.unfavourable: len(self.train) - good}

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove: then there is nothing left to tell apart."""
        label, count = min(self.class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    def assumptions(self) -> tuple[str, ...]:
        """What "retrained" means for this model, in sentences."""
        return (
            f"a {type(self._estimator).__name__} is fitted again with the same options on the rows that are left",
            "the decision threshold stays as it is when rows are deleted",
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write estimator (by skops, which cannot run code when read) and training rows to one ``.npz`` file."""
        from skops.io import dumps

        about, arrays = pack(self.train)
        about |= {"format": FILE_FORMAT, "threshold": self.threshold, "seed": self.seed}
        arrays["estimator"] = np.frombuffer(dumps(self._estimator), dtype=np.uint8)
        with open(path, "wb") as file:
            np.savez_compressed(file, **{"about": np.array(json.dumps(about)), **arrays})  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> EstimatorModel:
        """Read what :meth:`save` wrote; estimators with parts that are not scikit-learn's are refused."""
        from skops.io import get_untrusted_types, loads

        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays["about"]))
            if about["format"] != FILE_FORMAT:
                raise KeyError(about["format"])
            data = arrays["estimator"].tobytes()
            strange = [name for name in get_untrusted_types(data=data) if not name.startswith("sklearn.")]
            if strange:
                raise ValueError(f"it holds {', '.join(strange[:3])}, which is not scikit-learn's")
            estimator = loads(data, trusted=get_untrusted_types(data=data))
        except (ValueError, KeyError, OSError, EOFError, TypeError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise FileFormatError(
                f"Expected a file written by EstimatorModel.save ({FILE_FORMAT}), got {path} which is not ({error}); "
                "save the model again with this version."
            ) from error
        return cls(unpack(about, arrays), estimator, threshold=about["threshold"], seed=about["seed"])


def _is_named(estimator: Any) -> bool:
    return getattr(estimator, "feature_names_in_", None) is not None


def _rows_for(estimator: Any, X: Array) -> Any:
    """The rows as the estimator was shown them: with column names if it knows them."""
    if not _is_named(estimator):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(estimator.feature_names_in_))


def _fitted_clone(estimator: Any, train: TrainingSet, kept: NDArray[np.intp], state: int | None, *, named: bool) -> Any:
    """A clone fitted on these rows, every random state set from ``state`` unless that is None."""
    import pandas as pd
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    labels = np.where(train.y[kept] == 1, 0, 1)
    if labels.min() == labels.max():
        raise NoOptimumError(
            f"Expected rows of both classes to fit on, got {len(kept)} rows of one class; delete fewer rows."
        )
    fresh = clone(estimator)
    if state is not None:
        random = [name for name in fresh.get_params() if name == "random_state" or name.endswith("__random_state")]
        fresh.set_params(**dict.fromkeys(random, state))
    rows = pd.DataFrame(train.X[kept], columns=list(train.columns)) if named else train.X[kept]
    options = {}
    if train.weights is not None:
        if not has_fit_parameter(fresh, "sample_weight"):
            raise UnsupportedModelError(
                f"Expected an estimator that takes sample weights, got {type(fresh).__name__}; leave the weights out."
            )
        options["sample_weight"] = train.weights[kept]
    own = np.array([train.favourable, train.unfavourable], dtype=_label_type(train))
    return fresh.fit(rows, own[labels], **options)


def _label_type(train: TrainingSet) -> Any:
    return None if isinstance(train.favourable, type(train.unfavourable)) else object


def _refuse_what_is_no_classifier(estimator: Any) -> None:
    from sklearn.base import is_classifier

    if not hasattr(estimator, "fit") or not is_classifier(estimator):
        raise UnsupportedModelError(
            f"Expected a scikit-learn classifier, got {type(estimator).__name__}; pass a classifier for two classes."
        )
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise UnsupportedModelError(
            f"Expected a classifier with predict_proba or decision_function, got {type(estimator).__name__} with "
            "neither; a score is needed, not a decision alone."
        )


def _refuse_other_rows(fitted: Any, train: TrainingSet) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(fitted)
        classes = list(fitted.classes_.tolist())
    except (NotFittedError, AttributeError) as error:
        raise UnsupportedModelError(
            f"Expected a fitted classifier, got a {type(fitted).__name__} that was not fitted; use "
            "EstimatorModel.fit(estimator, train)."
        ) from error
    if len(classes) != 2 or set(classes) != {train.favourable, train.unfavourable}:
        raise UnsupportedModelError(
            f"Expected a classifier of {train.favourable!r} and {train.unfavourable!r}, got one of {classes}; "
            "label the training set as the classifier was taught."
        )
    width = getattr(fitted, "n_features_in_", train.X.shape[1])
    names = list(getattr(fitted, "feature_names_in_", train.columns))
    if width != train.X.shape[1] or (train.from_frame and names != list(train.columns)):
        raise UnsupportedModelError(
            f"Expected a classifier fitted on the columns of the training set ({train.X.shape[1]}: "
            f"{', '.join(train.columns[:4])}, ...), got one fitted on {width}: {', '.join(map(str, names[:4]))}, ...; "
            "pass the rows it was fitted on, columns in the same order."
        )
