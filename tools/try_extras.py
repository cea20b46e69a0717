"""One call for each extra that is named, in the environment this runs in: `python tools/try_extras.py nn scale`.

`tools/check_release.py --extras` runs it where it has installed the wheel with those extras. A trial answers at least
one person, or asks the service, through the libraries that the extra brings; the tests do the rest.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

PATIENCE_S = 180.0


def _refused(model: Any, people: Any, count: int = 2) -> Any:
    return people[model.predict(people) == 0].head(count)


def _answers(model: Any, data: Any, **options: Any) -> Any:
    """Answers of two refused people, which the model accepts."""
    import rocerf

    found = rocerf.Rocerf(model, schema=data.schema, **options).explain(_refused(model, data.test.frame()))
    assert found.answered.all(), found.reasons
    assert (model.predict(found.points) == 1).all()
    return found


def nn(folder: Path) -> str:
    """A network is fitted, saved, read back, and answers."""
    import rocerf

    data = rocerf.load_dataset("german")
    model = rocerf.NeuralModel.fit(data.train, seed=0, width=6, epochs=20, learning_rate=0.1)
    model.save(folder / "network.npz")
    _answers(rocerf.NeuralModel.load(folder / "network.npz"), data, promise="plain")
    return f"torch {version('torch')}"


def scale(folder: Path) -> str:
    """Rows from Parquet, in this process and on a Dask worker, to the same answers."""
    import numpy as np
    from distributed import Client, LocalCluster

    import rocerf

    data = rocerf.load_dataset("german")
    data.train.frame().assign(good=data.train.y.astype(int)).to_parquet(folder / "rows.parquet")
    rows = rocerf.TrainingSet.from_parquet(folder / "rows.parquet", label="good")
    model = rocerf.LogisticModel.fit(rows, C=1.0)
    here = _answers(model, data, k=4, promise="first_order")
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client, rocerf.running(client):
        there = _answers(model, data, k=4, promise="first_order")
    assert np.allclose(here.matrix, there.matrix)
    return f"pyarrow {version('pyarrow')}, distributed {version('distributed')}"


def service(folder: Path) -> str:
    """The service with its demonstration starts, reaches its database, and ends when told to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "rocerf.cli", "serve", "--demo", "--port", str(port)]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        said = _asked(f"http://127.0.0.1:{port}/ready", process, folder / "service.log")
    finally:
        process.terminate()
        process.wait(60)
    assert '"ok"' in said, said
    return f"fastapi {version('fastapi')}, sqlalchemy {version('sqlalchemy')}"


def _asked(address: str, process: subprocess.Popen[bytes], log: Path) -> str:
    """What is said there, once something is."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
    raise SystemExit(f"the service did not answer\n{log.read_text()[-2000:]}")


def mlflow(folder: Path) -> str:
    """An explainer into a registry in a folder and out of it, with the same answers."""
    os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true")
    import mlflow as library
    import numpy as np

    import rocerf
    import rocerf.mlflow

    library.set_tracking_uri(f"file://{folder}/runs")
    library.set_registry_uri(f"file://{folder}/runs")
    data = rocerf.load_dataset("german")
    explainer = rocerf.Rocerf(rocerf.LogisticModel.fit(data.train, C=1.0), k=4, schema=data.schema)
    people = _refused(explainer.model, data.test.frame())
    with library.start_run():
        rocerf.mlflow.log_model(explainer, "credit", registered_model_name="credit")
    back = rocerf.mlflow.load_model("models:/credit/1")
    assert np.array_equal(back.explain(people).matrix, explainer.explain(people).matrix)
    return f"mlflow-skinny {version('mlflow-skinny')}"


def trees(folder: Path) -> str:
    """Boosted trees of all three libraries, read exactly, answer; and are read back from a file."""
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    import rocerf

    data = rocerf.load_dataset("german")
    boosted = (
        XGBClassifier(n_estimators=8, max_depth=2, n_jobs=1),
        LGBMClassifier(n_estimators=8, max_depth=2, n_jobs=1, verbose=-1),
        CatBoostClassifier(n_estimators=8, depth=2, thread_count=1, verbose=0, allow_writing_files=False),
    )
    for number, estimator in enumerate(boosted):
        model = rocerf.EstimatorModel.fit(estimator, data.train)
        found = _answers(model, data, promise="plain", cost="l1")
        assert (found.gaps == 0).all(), found.gaps
        rocerf.Rocerf(model, promise="plain", schema=data.schema).save(folder / str(number))
        again = rocerf.Rocerf.load(folder / str(number)).model
        assert (again.predict(data.test.frame()) == model.predict(data.test.frame())).all()
    return ", ".join(f"{name} {version(name)}" for name in ("xgboost-cpu", "lightgbm", "catboost"))


TRIALS: dict[str, Callable[[Path], str]] = {
    "nn": nn,
    "scale": scale,
    "service": service,
    "mlflow": mlflow,
    "trees": trees,
}


def main(names: list[str]) -> int:
    """Every trial named, in its own folder; the first that fails ends it."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            print(f"extra {name}: {TRIALS[name](Path(folder))}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
