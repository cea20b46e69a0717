"""Runs inside DiCE's own environment, without rocerf: reads a task, writes DiCE's counterfactuals and times.

    python dice_runner.py TASK_FOLDER METHOD

``task.json`` names categories, numbers, what may vary, ranges and the label; ``train.csv`` and ``people.csv`` hold the
rows. Writes ``answers_METHOD.csv`` (a row for each person, empty where DiCE found nothing) and ``times_METHOD.json``.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import dice_ml
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def main() -> None:
    """One task, one method."""
    warnings.simplefilter("ignore")
    folder, method = Path(sys.argv[1]), sys.argv[2]
    task = json.loads((folder / "task.json").read_text("utf-8"))
    train, people = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "people.csv")
    label = task["label"]
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), task["numbers"]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), task["categories"]),
        ]
    )
    pipeline = make_pipeline(columns, LogisticRegression(C=1.0, tol=1e-8, max_iter=5000))
    pipeline.fit(train.drop(columns=label), train[label])
    data = dice_ml.Data(dataframe=train, continuous_features=task["numbers"], outcome_name=label)
    explainer = dice_ml.Dice(data, dice_ml.Model(model=pipeline, backend="sklearn"), method=method)
    answers, times = [], []
    for place in range(len(people)):
        start = time.perf_counter()
        try:
            found = explainer.generate_counterfactuals(
                people.iloc[[place]],
                total_CFs=1,
                desired_class=1,
                features_to_vary=task["vary"],
                permitted_range=task["ranges"],
                verbose=False,
                **({"random_seed": 0} if method == "random" else {}),
            )
            frame = found.cf_examples_list[0].final_cfs_df
        except Exception as error:  # DiCE raises where it finds nothing
            print(f"{place}: {type(error).__name__}: {error}", file=sys.stderr)
            frame = None
        times.append(time.perf_counter() - start)
        none = frame is None or len(frame) == 0
        answers.append(dict.fromkeys(people.columns) if none else frame.iloc[0][list(people.columns)].to_dict())
    pd.DataFrame(answers, columns=list(people.columns)).to_csv(folder / f"answers_{method}.csv", index=False)
    record = {"seconds": times, "dice_ml": version("dice-ml")}
    (folder / f"times_{method}.json").write_text(json.dumps(record), "utf-8")


if __name__ == "__main__":
    main()
