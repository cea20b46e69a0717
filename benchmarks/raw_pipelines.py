"""The pipelines of the benchmarks on raw columns: what a lender would fit on German credit or Adult."""

from __future__ import annotations

from typing import Any

from rocerf.data.raw_tables import RawDataset

#: Tight enough that scikit-learn's own stopping never decides a comparison.
TOLERANCE = 1e-8


def fitted_pipeline(data: RawDataset) -> Any:
    """Standardised numbers, one-hot categories, logistic regression with C = 1."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    categories = [feature.name for feature in data.schema if feature.kind == "categorical"]
    numbers = [feature.name for feature in data.schema if feature.kind != "categorical"]
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), numbers), ("categories", OneHotEncoder(handle_unknown="ignore"), categories)]
    )
    classifier = LogisticRegression(C=1.0, tol=TOLERANCE, max_iter=5000)
    return make_pipeline(columns, classifier).fit(data.train, data.y_train)
