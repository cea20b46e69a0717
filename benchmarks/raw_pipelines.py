"""The pipelines of the benchmarks on raw columns: what a lender would fit on German credit or Adult."""

from __future__ import annotations

from typing import Any

from rocerf.data.raw_tables import RawDataset

#: Tight enough that scikit-learn's own stopping never decides a comparison between methods. What stopping does at the
#: default tolerance is measured by benchmarks/own_fits.py.
TOLERANCE = 1e-8


def unfitted_pipeline(data: RawDataset, scaler: Any, **options: Any) -> Any:
    """Numbers through this scaler, one-hot categories, logistic regression with these options; not fitted."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    categories = [feature.name for feature in data.schema if feature.kind == "categorical"]
    numbers = [feature.name for feature in data.schema if feature.kind != "categorical"]
    columns = ColumnTransformer(
        [("numbers", scaler, numbers), ("categories", OneHotEncoder(handle_unknown="ignore"), categories)]
    )
    return make_pipeline(columns, LogisticRegression(**options))


def fitted_pipeline(data: RawDataset) -> Any:
    """Standardised numbers, one-hot categories, logistic regression with C = 1."""
    from sklearn.preprocessing import StandardScaler

    made = unfitted_pipeline(data, StandardScaler(), C=1.0, tol=TOLERANCE, max_iter=5000)
    return made.fit(data.train, data.y_train)
