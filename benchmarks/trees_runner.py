"""Runs in the environment of other libraries, without rocerf: reads a task about XGBoost's trees, writes their answers.

    python trees_runner.py TASK_FOLDER treecf|dice

``model.json`` is the fitted model in XGBoost's own format; ``task.json`` names columns, what is fixed, may only rise or
fall, ranges, one-hot groups and the scale of each column; ``train.csv`` and ``people.csv`` hold the rows. Writes
``answers.csv`` (a row for each person, empty where there is none) and ``about.json`` (processor seconds, versions).
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost

#: Seconds that treecf may take for one person.
MOST_SECONDS = 20.0


def treecf_answers(model: Any, task: dict[str, Any], train: pd.DataFrame) -> Callable[[pd.DataFrame], Any]:
    """Its exact backend, under the same bounds, directions, groups, whole numbers and scale."""
    import treecf  # type: ignore[import-not-found, unused-ignore]

    rules: list[Any] = [treecf.Freeze(name) for name in task["fixed"]]
    rules += [treecf.Monotone(name, way) for name, way in task["directions"].items()]
    rules += [treecf.Range(name, *ends) for name, ends in task["ranges"].items()]
    rules += [treecf.OneHot(tuple(names)) for names in task["groups"]]
    explainer = treecf.Explainer(
        model,
        background=train.to_numpy(),
        constraints=rules,
        normalizers=task["scale"],
        value_policy=dict.fromkeys(task["whole"], "integer"),
    )
    target = treecf.Target.probability(op=">=", value=0.5)

    def answer(person: pd.DataFrame) -> Any:
        row = person.to_numpy()[0]
        found = explainer.explain(row, target=target, backend="exact", time_budget_s=MOST_SECONDS, seed=0)
        return (found.x_cf, found.proof) if hasattr(found, "x_cf") else (None, getattr(found, "proof", "none"))

    return answer


def dice_answers(model: Any, task: dict[str, Any], train: pd.DataFrame) -> Callable[[pd.DataFrame], Any]:
    """DiCE's genetic search; it can be told what may vary and the ranges."""
    import dice_ml

    table = train.assign(label=model.predict(train))
    data = dice_ml.Data(dataframe=table, continuous_features=list(train.columns), outcome_name="label")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method="genetic")
    vary = [name for name in train.columns if name not in task["fixed"]]
    ranges = {name: task["ranges"][name] for name in vary if name in task["ranges"]}

    def answer(person: pd.DataFrame) -> Any:
        found = explainer.generate_counterfactuals(
            person, total_CFs=1, desired_class=1, features_to_vary=vary, permitted_range=ranges, verbose=False
        )
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is None or not len(frame):
            return None, "none"
        return frame.iloc[0][list(train.columns)].to_numpy(dtype=float), "none"

    return answer


def main() -> None:
    """One task, one library."""
    warnings.simplefilter("ignore")
    folder, library = Path(sys.argv[1]), sys.argv[2]
    task = json.loads((folder / "task.json").read_text("utf-8"))
    train, people = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "people.csv")
    model = xgboost.XGBClassifier(n_jobs=1)
    model.load_model(folder / "model.json")
    make, package = {"treecf": (treecf_answers, "treecf"), "dice": (dice_answers, "dice-ml")}[library]
    ask = make(model, task, train)
    answers, seconds, proofs = [], [], []
    for place in range(len(people)):
        start = time.process_time()
        try:
            point, proof = ask(people.iloc[[place]])
        except Exception as error:  # a library raises where it finds nothing
            print(f"{place}: {type(error).__name__}: {error}", file=sys.stderr)
            point, proof = None, "none"
        seconds.append(time.process_time() - start)
        answers.append(np.full(people.shape[1], np.nan) if point is None else np.asarray(point, dtype=float))
        proofs.append(proof)
    pd.DataFrame(answers, columns=list(people.columns)).to_csv(folder / "answers.csv", index=False)
    about = {"seconds": seconds, "proofs": proofs, "version": version(package)}
    (folder / "about.json").write_text(json.dumps(about), "utf-8")


if __name__ == "__main__":
    main()
