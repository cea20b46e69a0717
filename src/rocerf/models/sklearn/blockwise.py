"""Pipelines asked about many points at once, without what scikit-learn looks at again in every call.

A search asks small tables hundreds of times of dozens of pipelines. So a ColumnTransformer is taken apart into its
blocks. Known transformers are plain arithmetic (:mod:`rocerf.models.sklearn.straight`); any other is asked itself,
about the rows that differ in its columns, and which those are is found once for all models. Nothing is assumed about
transformers but that a row is transformed by itself, and that is checked: on the first table that a model sees, rows
from all over it are given to the model itself, too, and where both do not say the same, or anything fails, the model is
asked as it is. Of refits of one estimator the first few are checked so; where one of them fails, every one is. Points
that leave are given to the user's model itself once more, in the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from rocerf.models.sklearn.bulk import remembered
from rocerf.models.sklearn.straight import Arithmetic, Marks, arithmetic, linear_scores
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

#: Rows that a first table must have, and rows of it that are compared with what the model itself says of them.
FEWEST, COMPARED = 64, 40

#: Refits of one estimator that are compared before the others are believed.
COMPARED_KIN = 5

#: What two ways to compute the same may differ by, as a share: the order of a sum.
SAME = 1e-10

#: What a fitted part makes of rows: of a table, or of what the part before it made.
Made = Callable[[Any], Any]


class Kin:
    """What became of comparing refits of one estimator, of which only the rows differ."""

    def __init__(self) -> None:
        self._same: Counter[str] = Counter()
        self._apart: set[str] = set()

    def compared(self, method: str, *, same: bool) -> None:
        """One more of them was compared."""
        if same:
            self._same[method] += 1
        else:
            self._apart.add(method)

    def trusted(self, method: str) -> bool:
        """Whether enough of them were, and none said anything else."""
        return self._same[method] >= COMPARED_KIN and method not in self._apart


class Quick:
    """A fitted classifier and a shorter way to its answers, which is gone as long as it leads to the same."""

    def __init__(self, whole: Any, kin: Kin | None = None) -> None:
        self.whole, self._kin = whole, Kin() if kin is None else kin
        self._ways: dict[str, Made | None] = {}
        self._trusted: set[str] = set()

    def predict_proba(self, rows: Any) -> Array:
        """The classifier's probabilities, shape (m, 2)."""
        return self._answers("predict_proba", rows)

    def decision_function(self, rows: Any) -> Array:
        """The classifier's scores, shape (m,)."""
        return self._answers("decision_function", rows)

    def _answers(self, method: str, rows: Any) -> Array:
        own: Made = getattr(self.whole, method)
        if method not in self._ways:
            self._ways[method] = _answering(self.whole, method)
        way = self._ways[method]
        seen = method in self._trusted or self._kin.trusted(method)
        if way is None or not hasattr(rows, "columns") or (len(rows) < FEWEST and not seen):
            return np.asarray(own(rows))
        try:
            said = np.asarray(way(rows), np.float64)
        except Exception:  # parts of it may be the user's own code; who asks deals with rows that cannot be taken
            return np.asarray(own(rows))
        if not seen:
            every = max(1, len(rows) // COMPARED)
            own_said = np.asarray(own(rows.iloc[::every]))
            same = own_said.shape == said[::every].shape
            same = same and np.allclose(own_said, said[::every], rtol=SAME, atol=SAME, equal_nan=True)
            self._kin.compared(method, same=same)
            if not same:
                self._ways[method] = None
                return np.asarray(own(rows))
            self._trusted.add(method)
        return said


def _answering(classifier: Any, method: str) -> Made | None:
    """The shorter way from a table to what the classifier answers; None where there is none."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import Pipeline

    if isinstance(classifier, Pipeline):
        return _in_turn([step for _, step in classifier.steps], method)
    if isinstance(classifier, CalibratedClassifierCV) and method == "predict_proba":
        return _averaged(classifier)
    scores = _linear(classifier, method)
    return None if scores is None else lambda design: scores([design])


def _linear(classifier: Any, method: str) -> Callable[[list[Array]], Array] | None:
    """What a linear classifier answers about a design given in blocks of columns; None of another one."""
    scores = linear_scores(classifier)
    if scores is None or method == "decision_function":
        return scores
    return lambda blocks: _both(expit(scores(blocks)))


def _both(chances: Array) -> Array:
    """Probabilities of the second class (m,) as those of both."""
    return np.column_stack([1.0 - chances, chances])


def _averaged(calibrated: Any) -> Made | None:
    """The mean of the calibrated probabilities of the classifiers below."""
    parts = calibrated.calibrated_classifiers_
    ways = [_answering(part.estimator, "decision_function") for part in parts]
    known = [way for way in ways if way is not None]
    if len(known) < len(parts) or len(calibrated.classes_) != 2:
        return None
    pairs = [(way, part.calibrators[0].predict) for way, part in zip(known, parts, strict=True)]
    return lambda rows: _both(np.mean([np.ravel(calibrate(way(rows))) for way, calibrate in pairs], axis=0))


def _in_turn(steps: list[Any], method: str) -> Made | None:
    """A pipeline that begins with a ColumnTransformer, or with another pipeline that does."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    while steps and isinstance(steps[0], Pipeline):
        steps = [*(step for _, step in steps[0].steps), *steps[1:]]
    if len(steps) < 2 or not isinstance(steps[0], ColumnTransformer):
        return None
    blocks = _blocks(steps[0])
    if blocks is None:
        return None
    # Whoever computes for himself gets a sparse matrix where the transformer would have made one.
    linear = _linear(steps[-1], method)
    if linear is not None and all(step in (None, "passthrough") for step in steps[1:-1]):
        return lambda rows: linear([block(rows) for block in blocks])
    own_form: Made = sparse.csr_matrix if steps[0].sparse_output_ else np.asarray
    ways: list[Made] = [lambda rows: np.hstack([block(rows) for block in blocks])]
    for step in steps[1:-1]:
        found = None if step in (None, "passthrough") else arithmetic(step)
        if found is None and step not in (None, "passthrough"):
            ways, own_form = [*ways, own_form, step.transform], _unchanged
        elif found is not None:
            ways.append(found)
    last = _answering(steps[-1], method)
    ways += [own_form, getattr(steps[-1], method)] if last is None else [last]
    return lambda rows: _through(ways, rows)


def _unchanged(made: Any) -> Any:
    return made


def _through(ways: Sequence[Made], rows: Any) -> Any:
    for way in ways:
        rows = way(rows)
    return rows


# --- blocks of columns ----------------------------------------------------------------------------------


def _blocks(whole: Any) -> list[Made] | None:
    """What each block of a ColumnTransformer makes of a table; None where its columns are not known by name."""
    names = getattr(whole, "feature_names_in_", None)
    if names is None or getattr(whole, "_sklearn_output_config", {}).get("transform", "default") != "default":
        return None
    blocks = []
    for _, transformer, columns in whole.transformers_:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        if not isinstance(columns, list) or not hasattr(transformer, "transform"):
            return None
        found = [column if isinstance(column, str) else str(names[column]) for column in columns]
        if found:
            blocks.append(_block(transformer, found))
    return blocks


def _block(transformer: Any, names: list[str]) -> Made:
    from sklearn.pipeline import Pipeline

    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    known = [arithmetic(step) for step in steps]
    marks = Marks.of_encoder(steps[-1]) if len(steps) == 1 else None
    if marks is not None:
        key = ("made", *names, marks.alike)
        return lambda rows: remembered(rows, key, lambda: marks.of([_coded(rows, name) for name in names]))
    ways = [step for step in known if step is not None]
    if len(ways) == len(known):
        return lambda rows: _computed(rows, names, ways) if _wide(rows, names) else _own(transformer, rows, names)
    return lambda rows: _own(transformer, rows, names)


def _computed(rows: pd.DataFrame, names: list[str], ways: list[Arithmetic]) -> Array:
    """What the ways make of these columns; as far as they are alike in other models, it is made once for all."""
    made, alike = _numbers(rows, names), 0
    while alike < len(ways) and ways[alike].alike is not None:
        alike += 1
    if alike:
        key = ("made", *names, *(way.alike for way in ways[:alike]))
        made = remembered(rows, key, lambda: _through(ways[:alike], _numbers(rows, names)))
    return np.asarray(_through(ways[alike:], made))


def _wide(rows: pd.DataFrame, names: list[str]) -> bool:
    """Whether these columns are numbers of 64 bits: with others, such as truth values, NumPy computes coarsely."""
    kinds = remembered(rows, "kinds", lambda: {name: str(kind) for name, kind in rows.dtypes.items()})
    return all(kinds[name] in ("float64", "int64") for name in names)


def _numbers(rows: pd.DataFrame, names: list[str]) -> Array:
    return remembered(rows, ("numbers", *names), lambda: np.asarray(rows[names], dtype=np.float64))


def _coded(rows: pd.DataFrame, name: str) -> tuple[NDArray[np.intp], list[Any]]:
    """A column as codes (m,) and the values they stand for; refused where values are missing or of several kinds."""

    def made() -> tuple[NDArray[np.intp], list[Any]]:
        import pandas as pd

        codes, values = pd.factorize(_of_one_kind(rows[name]))
        if (codes < 0).any():
            raise ValueError("a missing value")
        return np.asarray(codes, np.intp), list(values)

    return remembered(rows, ("codes", name), made)


def _of_one_kind(column: pd.Series) -> pd.Series:
    """The column, if no two of its values are equal and yet of different types, as 1 and True are."""
    import pandas as pd

    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True).startswith("mixed"):
        raise ValueError("values of several types")
    return column


def _own(transformer: Any, rows: pd.DataFrame, names: list[str]) -> NDArray[Any]:
    """What a transformer itself makes of the rows that differ in its columns, handed out to all of them."""
    few, kinds = remembered(rows, ("different", *names), lambda: _different(rows, names))
    made = transformer.transform(few)
    return np.asarray((made.toarray() if hasattr(made, "toarray") else np.asarray(made))[kinds])


def _different(rows: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """The first of each kind of row in these columns, and the kind of each row."""
    import pandas as pd

    kinds: NDArray[np.intp] = np.zeros(len(rows), np.intp)
    for name in names:
        codes, values = pd.factorize(_of_one_kind(rows[name]), use_na_sentinel=False)
        kinds = np.asarray(pd.factorize(kinds * (len(values) + 1) + codes)[0], np.intp)
    _, first = np.unique(kinds, return_index=True)
    return rows[names].iloc[first], kinds
