"""Our methods under recourse_bench's interface: registered with a stand-in for the package, asked on a small task."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the benchmark's models are torch modules")

from benchmarks import recourse_bench_task as tasks
from benchmarks.recourse_bench_methods import METHODS, RULES, method_of, register, schema_of, taken_over

from rocerf.errors import OptionError


def german(path: Path, rng: np.random.Generator, shift: float) -> Path:
    """A table with the columns of the benchmark's German tables."""
    size = 240
    frame = pd.DataFrame(
        {
            "duration": rng.integers(4, 72, size),
            "amount": rng.integers(250, 18_000, size),
            "age": rng.integers(19, 75, size),
            "personal_status_sex": rng.integers(1, 5, size),
        }
    )
    score = 0.04 * (frame["age"] - 45) - 0.05 * (frame["duration"] - 36) - 0.0001 * (frame["amount"] - 8_000) + shift
    frame["credit_risk"] = (score + rng.normal(0, 0.7, size) > 0).astype(int)
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    return german(folder / "german.csv", rng, 0.0), german(folder / "german_roar.csv", rng, 0.3)


@pytest.fixture(scope="module", params=["linear", "mlp"])
def task(request: pytest.FixtureRequest, files: tuple[Path, Path]) -> tasks.Task:
    return tasks.make_task(*files, request.param)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    """What register() asks of an installed recourse_bench: the base class of methods, and its decorator."""
    entered: dict[str, type] = {}

    class MethodObject:
        """Stands for theirs."""

    def enter(name: str) -> Any:
        return lambda method: entered.setdefault(name, method)

    names = ("recourse_bench", "recourse_bench.method", "recourse_bench.utils")
    modules = {name: types.ModuleType(name) for name in (*names, f"{names[1]}.method_object", f"{names[2]}.registry")}
    modules[f"{names[1]}.method_object"].MethodObject = MethodObject  # type: ignore[attr-defined]
    modules[f"{names[2]}.registry"].register = enter  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    entered["base"] = MethodObject
    return entered


def test_all_methods_are_registered_under_their_base_class(package: dict[str, type]) -> None:
    names = register()
    assert names == [f"rocerf_{promise}" for promise in METHODS]
    for name in names:
        assert issubclass(package[name], package["base"])
        assert name == f"rocerf_{package[name].promise}"  # type: ignore[attr-defined]


#: Rules are the schema's, which no model knows of: the network is asked with one kind.
ASKED = [("linear", promise, rules) for promise in ("plain", "margin", "first_order") for rules in RULES]
ASKED += [("mlp", promise, "categories") for promise in ("plain", "margin", "first_order")]


@pytest.mark.parametrize(("task", "promise", "rules"), ASKED, indirect=["task"])
def test_points_keep_what_the_interface_asks(task: tasks.Task, promise: str, rules: str) -> None:
    people = task.people[:3]
    method = method_of(promise)(task.model, seed=0, desired_class=1, k=2, rules=rules, margin=0.1)
    method.fit(task.train)
    points = method.get_counterfactuals(people)
    assert points.index.equals(people.index)
    assert list(points.columns) == list(people.columns)
    found = points.notna().all(axis=1)
    assert found.any()
    assert task.model.accepts(points)[found].all()
    assert not task.model.accepts(points)[~found].any()
    one_hot = points.filter(like="personal_status_sex")[found]
    if rules != "free":
        assert (one_hot.sum(axis=1) == 1).all()
        assert one_hot.isin([0.0, 1.0]).all(axis=None)
    if rules == "declared":
        numbers = list(tasks.NUMBERS)
        assert (points.loc[found, numbers] >= people.loc[found, numbers] - 1e-9).all(axis=None)


def test_our_score_is_their_difference_of_outputs_and_our_retraining_is_their_fit(task: tasks.Task) -> None:
    model = taken_over(task.model, task.train, 1)
    assert np.array_equal(model.score(task.people.to_numpy()) >= 0, task.model.accepts(task.people))
    gone = model.train.ids[:5]
    kept = task.train.get().index[5:]
    theirs = tasks.TorchModel(task.model.hidden, task.model.epochs, task.model.rate, _seed=7)
    whole = pd.concat([task.train.get(), task.train.get(target=True)], axis=1)
    theirs.fit(tasks.Table(whole.loc[kept]))
    ours = model.retrainer.refit(model.train.without(gone), 7, None)
    for mine, other in zip(ours.module.parameters(), theirs._model.parameters(), strict=True):
        assert mine.equal(other)


def test_retrained_of_the_linear_model_returns_what_their_model_accepts(files: tuple[Path, Path]) -> None:
    task = tasks.make_task(*files, "linear")
    method = method_of("retrained")(task.model, seed=0, desired_class=1, k=2)
    method.fit(task.train)
    judged = task.judged(method.get_counterfactuals(task.people))
    assert judged["found"] == judged["validity"] > 0  # what the optimum accepts and their model refuses is left out
    assert judged["found"] < float(np.mean(method.explainer.explain(task.people.to_numpy()).answered))


def test_what_is_not_known_is_refused(task: tasks.Task) -> None:
    with pytest.raises(OptionError, match="one of free, categories, declared"):
        schema_of(task.train, "all")

    class Forest:
        def get_class_to_index(self) -> dict[int, int]:
            return {0: 0, 1: 1}

    with pytest.raises(OptionError, match="over torch"):
        taken_over(Forest(), task.train, 1)


def test_the_figures_are_those_of_the_definition(task: tasks.Task) -> None:
    """Nobody found counts as refused, and the length is over those found."""
    points = task.people.copy()
    points.iloc[0] = np.nan
    points.iloc[1:, 0] += 0.25
    judged = task.judged(points)
    assert judged["found"] == pytest.approx(1 - 1 / len(points))
    assert judged["l1"] == pytest.approx(0.25)
    assert judged["future_validity"] == np.mean([task.future.accepts(points.iloc[[i]])[0] for i in range(len(points))])


def measured(model: str) -> dict[str, Any]:
    """The rows of the record of one model by method and setting, and what it says beside them."""
    path = Path(__file__).parent.parent / "docs/results/recourse_bench.json"
    whole: dict[str, Any] = json.loads(path.read_text("utf-8"))["measured"][model]
    found: dict[str, Any] = {"published": whole["published"]}
    for method in METHODS:
        for row in whole[method]:
            setting = row.get("margin", row.get("k"))
            found[" ".join(str(part) for part in (method, setting, row["rules"]) if part is not None)] = row
    assert whole["people_as_published"]
    return found


def test_the_page_says_of_the_linear_model_what_the_record_does() -> None:
    rows = measured("linear")
    rivals, plain, five = rows["published"], rows["plain categories"], rows["first_order 5% categories"]
    assert plain["future_validity"] > rivals["PROBE"]["future_validity"]
    assert plain["l1"] / rivals["PROBE"]["l1"] == pytest.approx(1 / 3, abs=0.02)
    for row in (five, rows["simulated 5% categories"], rows["margin 0.5 categories"]):
        assert row["future_validity"] == rivals["T-Rex"]["future_validity"] == 1.0
        assert row["l1"] / rivals["T-Rex"]["l1"] == pytest.approx(0.5, abs=0.1)
    assert rows["margin 0.5 categories"]["l1"] / five["l1"] == pytest.approx(1.0, abs=0.1)
    retrained = rows["retrained 5% categories"]
    assert retrained["future_validity"] == retrained["found"] == 1.0
    assert retrained["l1"] > 1.5 * five["l1"]


def test_the_page_says_of_the_network_what_the_record_does() -> None:
    rows = measured("mlp")
    rivals = rows.pop("published")
    five, simulated = rows["first_order 5% categories"], rows["simulated 5% categories"]
    assert all(five["future_validity"] > one["future_validity"] for one in rivals.values())
    assert five["l1"] > max(rivals["RBR"]["l1"], rivals["CVAS"]["l1"])
    assert five["found"] < 1
    assert simulated["found"] == simulated["future_validity"] == pytest.approx(2 / 3, abs=0.02)
    margins = [rows[f"margin {size} categories"] for size in (0.1, 0.25, 0.5, 1.0, 2.0)]
    assert max(row["future_validity"] for row in margins) - margins[0]["future_validity"] < 0.05
    assert rows["margin 0.5 categories"]["found"] < rows["margin 1.0 categories"]["found"]
    for name in ("RBR", "CVAS"):
        theirs = rivals[name]
        assert not any(
            row["l1"] is not None and row["l1"] <= theirs["l1"] and row["future_validity"] >= theirs["future_validity"]
            for row in rows.values()
        )
    none, one = rows["retrained 5% categories"], rows["retrained 0.2% categories"]
    assert none["statuses"] == {"gave_up": 50}
    assert one["found"] == one["future_validity"] > 0.5
    assert set(one["statuses"]) == {"answered", "gave_up"}


def test_the_page_says_of_the_safest_points_what_the_record_does() -> None:
    path = Path(__file__).parent.parent / "docs/results/recourse_bench.json"
    found = json.loads(path.read_text("utf-8"))["measured"]["mlp"]["safest"]
    assert found["accepted_by_all"] > 0
    assert max(found["shares"]) < 0.95  # what `retrained` asks for


@pytest.mark.slow
@pytest.mark.parametrize("task", ["mlp"], indirect=True)
def test_the_safest_points_are_attacked_by_models_really_retrained(task: tasks.Task) -> None:
    from benchmarks.recourse_bench import safest

    found = safest(task, k=2, drawn=50, networks=3, attacked=2)
    assert 0 <= found["accepted_by_all"] <= 1
    assert len(found["shares"]) == 2
    assert found["models"] > 1
