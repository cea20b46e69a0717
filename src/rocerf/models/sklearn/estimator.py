"""Any scikit-learn classifier that can be fitted again: scores and refits, no slopes.

Estimators are fitted on the user's own labels, so that a model fitted elsewhere and one fitted here agree. Refitting
clones the estimator with all its options and fits the clone on the rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from rocerf.data.frames import Frames
from rocerf.data.training_set import TrainingSet, rows_in
from rocerf.errors import FileFormatError, UnsupportedModelError
from rocerf.models.expected_time import seconds_of
from rocerf.models.model import RETRAININGS, Proposing, Retraining
from rocerf.models.options import checked_seed, one_of, refuse_bare_rows
from rocerf.models.sklearn.blockwise import Kin
from rocerf.models.sklearn.bulk import asked_in_bulk
from rocerf.models.sklearn.estimator_bytes import estimator_read, estimator_written
from rocerf.models.sklearn.estimator_fitting import (
    CLIP,
    TIE_REFUSED,
    check_columns,
    check_decisions,
    check_labels,
    fitted_on,
    nameless,
    names_of,
    own_copy,
    random_states,
    refuse_unfitted,
    refuse_what_is_no_classifier,
    reseeded,
    rows_to_score,
    settled,
    threshold_for,
    weight_option,
)
from rocerf.models.sklearn.own_threshold import deciding, own_threshold, refuses_ties
from rocerf.models.sklearn.proposals import Proposals
from rocerf.models.sklearn.shortest import shortest
from rocerf.models.trees.reading import COMPARED, COMPARED_AGAIN, trees_of
from rocerf.models.trees.scored import ScoredTrees
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


FORMAT = "rocerf-estimator-model/2"

#: Training rows whose scores are kept in the file, to be found again when it is read.
CHECKED_ROWS = 100

#: Points from which a model is asked in bulk.
MANY = 16


@dataclass(frozen=True, eq=False)
class EstimatorEnsemble:
    """M fitted estimators and how to score with one of them."""

    estimators: tuple[Any, ...]
    score_one: Callable[[Any, Array], Array]

    def __len__(self) -> int:
        return len(self.estimators)

    def __getitem__(self, part: slice) -> EstimatorEnsemble:
        return EstimatorEnsemble(self.estimators[part], self.score_one)

    def joined(self, other: EstimatorEnsemble) -> EstimatorEnsemble:
        """These estimators and, after them, the others."""
        return EstimatorEnsemble((*self.estimators, *other.estimators), self.score_one)

    def arrays(self) -> list[Array]:
        """None: fitted estimators are not arrays, they are fitted again from their seeds."""
        return []

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every estimator, shape (M, P)."""
        with asked_in_bulk():
            whole = np.asarray(np.isfinite(X).all(axis=1))
            X = X if whole.all() else X[whole]  # the same array for all of them
            scores = np.full((len(self), len(whole)), np.nan)
            for place, estimator in enumerate(self.estimators):
                scores[place, whole] = self.score_one(estimator, X)
        return scores


class EstimatorModel(Proposing):
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
        self._train, self._estimator, self._asked = train, estimator, nameless(estimator)
        self._threshold, self.seed = threshold, seed

    @classmethod
    def fit(cls, estimator: Any, train: TrainingSet, *, threshold: float = 0.5, seed: int = 0) -> EstimatorModel:
        """Fit a clone of the estimator on the training rows, with the user's own labels and weights.

        Where the estimator leaves a ``random_state`` open (None), it becomes ``seed``.
        """
        refuse_bare_rows(train)
        refuse_what_is_no_classifier(estimator)
        names = train.columns if train.from_frame else None
        fitted = fitted_on(settled(estimator, checked_seed(seed)), train, names)
        return cls._taken_over(fitted, train, threshold=threshold, seed=seed)

    @classmethod
    def from_sklearn(cls, fitted: Any, train: TrainingSet, *, threshold: float = 0.5, seed: int = 0) -> EstimatorModel:
        """Take over a fitted classifier; ``train`` must hold its training rows, which cannot be checked here.

        A copy is taken. What it decides about the training rows must be what the threshold says.

        Parameters
        ----------
        fitted : scikit-learn classifier
            With ``predict_proba``, or with ``decision_function`` (then that is the score, and the threshold must stay
            0.5). Fitted on a DataFrame, it is also asked with one.
        train : TrainingSet
            Its n rows and d columns, labelled as the estimator was taught. Sample weights are used when rows are
            deleted; they must be those it was fitted with.
        threshold : float in (0, 1)
            Probability of the favourable label from which a person is accepted.
        seed : int
            For :meth:`without`, where the estimator leaves a ``random_state`` open.
        """
        refuse_bare_rows(train)
        refuse_what_is_no_classifier(fitted)
        refuse_unfitted(fitted)
        return cls._taken_over(own_copy(fitted), train, threshold=threshold, seed=seed)

    @classmethod
    def _taken_over(cls, fitted: Any, train: TrainingSet, *, threshold: float, seed: int) -> EstimatorModel:
        """Of a fitted classifier that nobody else has."""
        refuse_unfitted(fitted)
        check_labels(fitted, train)
        check_columns(fitted, train)
        weight_option(fitted, train)
        model = cls(
            train, fitted, threshold=threshold_for(fitted, threshold, train.favourable), seed=checked_seed(seed)
        )
        check_decisions(fitted, train, lambda X: model._score_one(fitted, X), model.threshold)
        return model

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        return self._train

    @property
    def estimator(self) -> Any:
        """The fitted scikit-learn estimator."""
        return self._estimator

    @property
    def frames(self) -> Frames | None:
        """Between the user's own columns and schema space, for a model made by :func:`rocerf.from_pipeline`."""
        text = getattr(self._estimator, "frames", None)
        if not isinstance(text, str):
            return None
        from rocerf.models.sklearn.pipeline_estimator import frames_of

        return frames_of(text)

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return self._threshold

    def __repr__(self) -> str:
        return f"EstimatorModel({self._name}, threshold={self.threshold}, train={self.train!r})"

    @property
    def _name(self) -> str:
        return type(self._estimator if self.frames is None else self._estimator.pipeline_).__name__

    def own_rows(self) -> pd.DataFrame:
        """The training rows in the user's own columns, gaps included."""
        rows: pd.DataFrame = super().own_rows() if self.frames is None else self._estimator.own_rows(self.train.X)
        return rows

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Log-odds of the favourable label minus those of the threshold, shape (P,); NaN for rows with gaps.

        Who is as likely as not is refused where the estimator's own ``predict`` does, by a score just below 0.
        Probabilities are clipped to [1e-6, 1 - 1e-6]. Of an estimator without them it is the decision function.
        """
        points = self.matrix(X)
        if isinstance(X, np.ndarray) and X.dtype == points.dtype and np.array_equal(X, points):
            points = X  # what was made of this very array for others is made once
        if len(points) < MANY:
            return self._score_one(self._asked, points)
        with asked_in_bulk():
            return self._score_one(self._asked, points)

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """The same, of the estimator as it is however many the points: what leaves is judged so."""
        return self._score_one(self._asked, self.matrix(X))

    def _score_one(self, estimator: Any, X: Array) -> Array:
        scores, whole = np.full(len(X), np.nan), np.isfinite(X).all(axis=1)
        if not whole.any():  # scikit-learn refuses tables without rows
            return scores
        rows = rows_to_score(estimator, X if whole.all() else X[whole])
        place = estimator.classes_.tolist().index(self.train.favourable)
        if hasattr(estimator, "predict_proba"):
            chance = estimator.predict_proba(rows)[:, place]
            if self.frames is not None:  # a pipeline fitted again that cannot take a category refuses it
                chance = np.nan_to_num(chance, nan=0.0)
            scores[whole] = logit(np.clip(chance, CLIP, 1.0 - CLIP)) - self._offset_of(estimator)
        else:
            scores[whole] = np.asarray(estimator.decision_function(rows)) * (1.0 if place == 1 else -1.0)
            if self.frames is not None:
                scores[whole] = np.nan_to_num(scores[whole], nan=float(logit(CLIP)))
        if refuses_ties(self._estimator, self.train.favourable, self.threshold):
            # One minus a threshold is rounded.
            dust = 0.0 if deciding(self._estimator) is None else TIE_REFUSED
            scores[np.abs(scores) <= dust] = -TIE_REFUSED
        return scores

    def _offset_of(self, estimator: Any) -> float:
        """Log-odds from which an estimator accepts: one with a threshold of its own may have another when refitted."""
        own = own_threshold(estimator, self.train.favourable)
        return self.offset if own is None else float(logit(np.clip(own, CLIP, 1.0 - CLIP)))

    def _score_quickly(self, estimator: Any, X: Array) -> Array:
        """The same, of trees by a shorter way where there is one: refits are asked again and again."""
        return self._score_one(shortest(estimator, self.train.X), X)

    @cached_property
    def trees(self) -> ScoredTrees | None:
        """Its trees over the columns of schema space, compared with its own answers; None where it has none to read."""
        return self._trees_in(self._asked, COMPARED)

    def trees_retrained(self, models: EstimatorEnsemble) -> list[ScoredTrees | None]:
        """The same of each of the estimators that :meth:`refitted` gave."""
        return [self._trees_in(estimator, COMPARED_AGAIN) for estimator in models.estimators]

    def _trees_in(self, estimator: Any, compared: int) -> ScoredTrees | None:
        X = np.asarray(self.train.X)
        form = trees_of(estimator, self.train.favourable, X, compared)
        return None if form is None else ScoredTrees(form, self._offset_of(estimator))

    def without(self, ids: Iterable[Any]) -> EstimatorModel:
        """The estimator fitted again after deleting these rows, with its own random state.

        This answers "what if": of a pipeline the schema stays, with categories and ranges that only deleted rows had,
        and so do the numbers that stand for missing ones. To be rid of rows: :meth:`forget`.
        """
        left = self.train.without(ids)
        fitted = fitted_on(settled(self._estimator, self.seed), left, names_of(self._estimator))
        return EstimatorModel(left, fitted, threshold=self.threshold, seed=self.seed)

    def forget(self, ids: Iterable[Any], *, declared: Collection[str] = ()) -> EstimatorModel:
        """A new model in which nothing of these rows is left, as if they had never been there.

        A clone of the estimator is fitted on the rows left, with its own random state (``seed`` where it leaves that
        open). Of a pipeline, what was guessed of its schema is guessed again, too, and what was declared stays;
        ``declared`` are columns of schema space (``feature=category``) that stay though no row left has the category.
        This object and what was saved of it keep the rows: drop them.
        """
        from rocerf.models.forgetting import estimator_forgetting

        return estimator_forgetting(self, ids, declared)

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        trials: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> EstimatorEnsemble:
        """The estimator fitted again after each of M deletions; fit m depends on (seed, trials[m]) alone.

        "fresh" gives every ``random_state`` of the estimator a new value; going on from a fit ("warm") is not something
        scikit-learn estimators do in general.
        """
        one_of(retraining, "retraining", RETRAININGS)
        if retraining == "warm":
            raise UnsupportedModelError(
                "Expected retraining='fresh' for a scikit-learn estimator, got 'warm': it cannot in general go on from "
                "a fit, its fits start anew; use 'fresh'."
            )
        names, kin, found = names_of(self._asked), Kin(), []
        for place, ids in enumerate(deletions):
            fresh = reseeded(self._estimator, checked_seed(seed), place if trials is None else trials[place])
            found.append(fitted_on(fresh, self.train.without(ids), names))
            if self.frames is not None:
                found[-1].related(kin)
            if progress is not None:
                progress(place + 1, len(deletions))
        return EstimatorEnsemble(tuple(found), self._score_quickly)

    def seconds_to_retrain(self, count: int, *, retraining: Retraining = "fresh") -> float:
        """So many times what one fit on all rows takes."""
        unfitted, names = reseeded(self._estimator, self.seed, 0), names_of(self._asked)
        return count * seconds_of(lambda: fitted_on(unfitted, self.train, names))

    def repeated(self, count: int) -> EstimatorEnsemble:
        """This estimator so many times, to see what asking so many retrained ones costs."""
        return EstimatorEnsemble((self._asked,) * count, self._score_quickly)

    @cached_property
    def _proposals(self) -> Proposals:
        """Leaves of all training rows take a while: they are asked for with the first guess."""
        return Proposals(self.train, self._asked, lambda X: expit(self.score(X) + self.offset))

    @property
    def proposals(self) -> tuple[str, ...]:
        """Ways to guess which rows hold a point up (:mod:`rocerf.models.sklearn.proposals`), the best first."""
        return self._proposals.names

    def harms(self, X: Array, proposal: str) -> Array:
        """How far deleting each training row alone is guessed to move the scores of points (P, d); shape (P, n)."""
        return self._proposals.harms(X, proposal)

    @property
    def held(self) -> int:
        """Numbers that guesses made so far hold in memory."""
        return self._proposals.held

    def as_retrained(self, models: EstimatorEnsemble, place: int) -> EstimatorModel:
        """One of the estimators that :meth:`refitted` gave, as a model of these training rows: to guess with."""
        return EstimatorModel(self.train, models.estimators[place], threshold=self.threshold, seed=self.seed)

    def restored(self, arrays: Sequence[Array]) -> NoReturn:
        """Fitted estimators are not arrays: they are fitted again from their seeds."""
        raise UnsupportedModelError("Expected estimators to be fitted again from their seeds, got arrays to restore.")

    def assumptions(self) -> tuple[Said, ...]:
        """What "retrained" means for this model, in sentences."""
        settings = self._estimator.get_params()
        chance = Said.of(f"models.estimator.{'random' if random_states(self._estimator) else 'not_random'}")
        balanced = any(key.endswith("class_weight") and isinstance(value, str) for key, value in settings.items())
        return (
            Said.of("models.estimator.fitted_again", name=self._name, chance=chance),
            Said.of("models.estimator.learned_again_with_weights" if balanced else "models.estimator.learned_again"),
        )

    def known_by(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What tells this model from others: scores, and the plain options by which it is fitted again."""
        settings, (_, scores) = self._estimator.get_params(), super().known_by()
        plain = sorted([n, repr(v)] for n, v in settings.items() if isinstance(v, str | int | float | None))
        return {"estimator": type(self._estimator).__name__, "estimator's options": plain}, scores

    def state(self) -> State:
        """Estimator (as bytes of skops, which cannot run code when read) and training rows, to be kept anywhere."""
        from sklearn import __version__ as version

        parts = estimator_written(self._estimator)
        return self.train.state().extended(
            FORMAT,
            {"threshold": self.threshold, "seed": self.seed, "sklearn": version},
            {**parts, "scores": self.score(self.train.X[:CHECKED_ROWS])},
        )

    @classmethod
    def from_state(cls, state: State) -> EstimatorModel:
        """What :meth:`state` gave; its scores are compared with those it had then."""
        about = state.values
        with state.understood(FORMAT, "EstimatorModel.save"):
            train, estimator = rows_in(state), estimator_read(state.arrays)
            model = cls._taken_over(estimator, train, threshold=about["threshold"], seed=about["seed"])
            same = np.allclose(model.score(train.X[:CHECKED_ROWS]), state.arrays["scores"], rtol=0.0, atol=1e-9)
        if not same:
            raise FileFormatError(
                f"Expected the estimator in {state.source} to score as it did with scikit-learn {about['sklearn']}, it "
                "does not: scikit-learn differs, or the file was altered; fit and save it again."
            )
        return model

    @classmethod
    def load(cls, path: str | PathLike[str]) -> EstimatorModel:
        """Read what :meth:`save` wrote; its scores are compared with those it was saved with."""
        return cls.from_state(State.read(path, FORMAT, "EstimatorModel.save"))
