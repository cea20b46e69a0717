"""The recorded full run in docs/results/reproduction: complete, made by this code, and what is claimed of it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import rocerf
from rocerf.reproduction.report import paper_report
from rocerf.reproduction.tables import Results, read_results, validity_curves_of, write_tables
from rocerf.reproduction.theorem import GAMMA

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "reproduction"
TABLES = ("accuracy", "cost_l1_lr", "cost_l1_nn", "cost_l2_lr", "cost_l2_nn", "pareto", "validity")
TIDY = ("checks", "methods", "models", "sensitivity", "theorem")
FIGURES = ("sensitivity", "theorem", "validity_lr", "validity_nn", "worst_case")


@pytest.fixture(scope="module")
def recorded() -> Results:
    return read_results(FOLDER)


def test_nothing_but_tables_figures_and_records_is_kept() -> None:
    """In particular no row of anybody's data, and nothing large."""
    expected = {*(f"{name}.csv" for name in TABLES + TIDY), *(f"{name}.svg" for name in FIGURES)}
    expected |= {"results.csv.gz", "report.html", "settings.yaml", "run.json"}
    assert {path.name for path in FOLDER.iterdir()} == expected
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3e6


@pytest.mark.slow
def test_tables_and_the_page_are_those_of_the_tidy_files(recorded: Results, tmp_path: Path) -> None:
    """Every table to the byte, and every figure that the page names, in order; its wording may change."""
    tables = write_tables(recorded, tmp_path)
    for name in TABLES:
        assert (tmp_path / f"{name}.csv").read_text("utf-8") == (FOLDER / f"{name}.csv").read_text("utf-8"), name
    drawings = {f"{name}.svg": "<svg ></svg>" for name in FIGURES}
    made, kept = paper_report(recorded, tables, drawings), (FOLDER / "report.html").read_text("utf-8")

    def figures_in(page: str) -> list[str]:
        said = re.sub(r"<(svg|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        return re.findall(r"\d[\d,.]*", unescape(said))

    assert len(figures_in(kept)) > 2900
    assert figures_in(made) == figures_in(kept)


def test_the_run_is_complete_and_says_where_it_was_made(recorded: Results) -> None:
    assert recorded.missing() == []
    assert (recorded.run["preset"], recorded.run["failed"], recorded.run["missing"]) == ("full", {}, {})
    sessions = recorded.run["sessions"]
    assert all(session["machine"] and session["wall_seconds"] > 0 for session in sessions)
    assert {session["device"].split(":")[0] for session in sessions} == {"cpu", "cuda"}
    counts = recorded.results.groupby(["setting", "dataset", "model", "method", "alpha"])["trial"].count()
    once = (recorded.results["model"] == "lr") & (recorded.results["alpha"] == 0)
    assert set(counts) == {1, 100}
    assert (counts == 1).sum() == once.sum()


def test_what_is_claimed_of_logistic_regression(recorded: Results) -> None:
    curves = {(c.setting, c.dataset, c.method): c for c in validity_curves_of(recorded) if c.model == "lr"}
    worst = recorded.methods[recorded.methods["model"] == "lr"].set_index(["setting", "dataset", "method"])
    for dataset in ("german", "compas", "adult"):
        assert min(curves["published", dataset, "rocerf"].means) > 0.98
        assert all(0.45 < mean < 0.55 for mean in curves["corrected", dataset, "scfe"].means[1:])
        assert min(curves["published", dataset, "scfe"].means) > 0.6  # it walks past the boundary
        assert worst.loc[("corrected", dataset, "rocerf"), "worst_case_validity"] == 0
        assert worst.loc[("corrected", dataset, "retrained"), "worst_case_validity"] == 1
        ratio = worst.loc[("corrected", dataset, "retrained"), "l2"] / worst.loc[("corrected", dataset, "rocerf"), "l2"]
        assert 1 < ratio < 1.1


def test_no_baseline_is_better_in_both(recorded: Results) -> None:
    pareto = pd.read_csv(FOLDER / "pareto.csv", keep_default_na=False)
    assert len(pareto) == 3 * (5 + 6)
    baselines = pareto[pareto["role"] == "baseline"]
    assert set(baselines["dominates_ours"]) == {"no"}
    better = pareto[pareto["dominates_ours"] == "yes"]
    assert set(zip(better["method"], better["model"], strict=True)) <= {("rocerf", "lr")}


@pytest.mark.slow
def test_the_theorems_bounds_are_those_of_other_code(recorded: Results) -> None:
    """The bound computed again from the theorem's text with plain NumPy and SciPy, and the recorded cost held to it."""
    assert recorded.theorem is not None
    rows = recorded.theorem[recorded.theorem["n"] == 1000].set_index("k")
    seed = int(recorded.run["seeds"]["seed"])
    data = rocerf.load_dataset("adult")
    chosen = np.random.default_rng([seed, 41]).permutation(len(data.train))[:1000]
    X, y = data.train.X[chosen], (data.train.y[chosen] > 0).astype(float)
    middle, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    Z = np.column_stack([(X - middle) / spread, np.ones(len(X))])
    penalty = np.diag([2 * GAMMA] * X.shape[1] + [0.0])  # of gamma theta'P theta, the intercept free

    def objective(theta: Any) -> tuple[float, Any]:
        score = Z @ theta
        loss = np.logaddexp(0, score) - y * score
        slope = Z.T @ (1 / (1 + np.exp(-score)) - y) / len(Z) + penalty @ theta
        return float(loss.mean() + theta @ penalty @ theta / 2), slope

    theta = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    accepted = 1 / (1 + np.exp(-Z @ theta))
    hessian = (Z * (accepted * (1 - accepted))[:, None]).T @ Z / len(Z) + penalty
    gradients = (accepted - y)[:, None] * Z + theta @ penalty
    constant = float(np.linalg.norm(np.linalg.solve(hessian, gradients.T), axis=0).max())
    assert constant == pytest.approx(rows["constant"].iloc[0], rel=1e-3)
    norm = float(np.linalg.norm(theta[:-1]))
    people = np.column_stack([(data.test.X - middle) / spread, np.ones(len(data.test.X))])
    denied = people[people @ theta < 0][: int(rows["people"].iloc[0])]
    nearest = denied.copy()
    nearest[:, :-1] -= np.outer(denied @ theta, theta[:-1]) / norm**2
    length = float(np.linalg.norm(nearest, axis=1).mean())
    for k, row in rows.iterrows():
        share = float(k) / 1000
        room = norm - share * constant
        if room <= 0:
            assert np.isnan(row["bound"])
            continue
        bound = share * constant * length / room
        assert row["bound"] == pytest.approx(bound, rel=1e-2)
        assert 0 < row["extra_cost"] < bound


def test_no_recorded_extra_cost_exceeds_its_recorded_bound(recorded: Results) -> None:
    """Consistency of the record, for all sizes; that the bound is the theorem's is the test above."""
    assert recorded.theorem is not None
    for name in ("bound", "bound_42"):
        known = recorded.theorem[recorded.theorem[name].notna()]
        assert len(known) > 10
        assert (known["extra_cost"] <= known[name]).all()
