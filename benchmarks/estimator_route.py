"""What ``otherwise="estimator"`` costs: a calibrated pipeline of logarithms, products and bins on German's raw columns.

Six people are answered with ``simulated`` and 40 models. The seconds of the processor are those of the whole way, from
``from_pipeline`` to the answers; beside them stand those of the 40 fits alone, below which nothing can go. How long
preparing was said to take before it began is held against the clock on the wall, as that is what people wait by: where
other work shares the machine, both are many times the processor's seconds.

Run: ``python -m benchmarks.estimator_route``.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import rocerf
from benchmarks.record import write_record
from rocerf.data.raw_tables import load_raw
from rocerf.promises import Simulated
from rocerf.promises.retrainings import after_random_deletions

SEED, PEOPLE, K = 0, 6, 5
GROUPS: dict[str, Any] = {"shaping": 15, "choosing": 15, "checking": 10}


def unfitted(table: Any) -> Any:
    """The pipeline: the amount by its logarithm, products of three columns, bins of the other numbers, categories."""
    numbers = list(table.select_dtypes("number"))
    amount = ["amount"]
    products = ["duration", "installment-rate", "age"]
    bins = [name for name in numbers if name not in amount + products]
    before = ColumnTransformer(
        [
            ("amount", make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), amount),
            ("products", make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False)), products),
            ("bins", KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), bins),
            ("categories", OneHotEncoder(handle_unknown="ignore"), list(table.select_dtypes(exclude="number"))),
        ]
    )
    return CalibratedClassifierCV(make_pipeline(before, LogisticRegression(max_iter=1000)), cv=3)


def measured() -> tuple[dict[str, Any], str]:
    """Seconds of the processor of the whole way and of its parts, and what came of it."""
    data = load_raw("german")
    y = np.asarray(data.y_train)
    pipeline = unfitted(data.train).fit(data.train, y)
    people = data.test[pipeline.predict(data.test) == 0].head(PEOPLE)
    clock = [time.process_time()]
    model = rocerf.from_pipeline(pipeline, data.train, y, schema=data.schema, otherwise="estimator")
    explainer = rocerf.Rocerf(model, K, promise=Simulated(validity=0.8, **GROUPS), seed=SEED)
    clock.append(time.process_time())
    expected = explainer.expected_seconds()
    clock.append(time.process_time())
    began = time.perf_counter()
    explainer.prepare()
    waited = time.perf_counter() - began
    clock.append(time.process_time())
    recourses = explainer.explain(people)
    clock.append(time.process_time())
    after_random_deletions(model, K, sum(GROUPS.values()), "fresh", SEED)
    clock.append(time.process_time())
    taken, guessed, prepared, answered, fits = np.diff(clock).tolist()
    answers = recourses.answered
    accepted = pipeline.predict(recourses.points[answers]) == 1
    return {
        "people": len(people),
        "models": sum(GROUPS.values()),
        "answered": int(answers.sum()),
        "accepted_by_the_pipeline": int(accepted.sum()),
        "mean_cost": float(recourses.costs[answers].mean()),
        "cpu_seconds": taken + prepared + answered,
        "cpu_seconds_of_parts": {"taken over": taken, "prepared": prepared, "answered": answered},
        "cpu_seconds_of_the_fits_alone": fits,
        "expected_seconds_to_prepare": expected,
        "seconds_to_prepare": waited,
        "cpu_seconds_to_expect": guessed,
    }, model.train.checksum


def main() -> None:
    """Measure and write the record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that do not converge are part of what is measured
        found, checksum = measured()
    print(json.dumps(found, indent=1))
    write_record("estimator_route", {**found, "k": K, **GROUPS}, seed=SEED, checksums={"german": checksum})


if __name__ == "__main__":
    main()
