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
from rocerf.reproduction.answers import answers
from rocerf.reproduction.frontier import find, frontiers_of
from rocerf.reproduction.published import TABLES as THREE
from rocerf.reproduction.report import panel_name, paper_report
from rocerf.reproduction.report_tables import write_tables
from rocerf.reproduction.tables import Results, cost_table, over_seeds, read_results, validity_curves_of
from rocerf.reproduction.theorem import GAMMA
from rocerf.reproduction.words import percent

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "reproduction"
NETWORKS = FOLDER.with_name("reproduction-networks")
TABLES = ("accuracy", "cost_l1_lr", "cost_l1_nn", "cost_l2_lr", "cost_l2_nn", "beaten", "validity")
TIDY = ("methods", "models", "sensitivity", "sweeps", "theorem", "worst")
#: Models of the record; networks want a GPU.
MODELS = tuple(sorted(set(pd.read_csv(FOLDER / "models.csv")["model"])))
FIGURES = ("sensitivity", "theorem", *(f"{kind}_{model}" for model in MODELS for kind in ("curves", "validity")))


@pytest.fixture(scope="module")
def recorded() -> Results:
    return read_results(FOLDER)


def test_nothing_but_tables_figures_and_records_is_kept() -> None:
    """In particular no row of anybody's data, and nothing large."""
    expected = {*(f"{name}.csv" for name in TABLES + TIDY), *(f"{name}.svg" for name in FIGURES)}
    expected |= {"results.csv.xz", "report.html", "settings.yaml", "run.json"}
    assert {path.name for path in FOLDER.iterdir()} == expected
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 5e6


@pytest.mark.slow
def test_tables_and_the_page_are_those_of_the_tidy_files(recorded: Results, tmp_path: Path) -> None:
    """Every table to the byte, and every figure that the page names, in order; its wording may change."""
    tables = write_tables(recorded, tmp_path)
    for name in TABLES:
        assert (tmp_path / f"{name}.csv").read_text("utf-8") == (FOLDER / f"{name}.csv").read_text("utf-8"), name
    drawings = {f"{name}.svg": "<svg ></svg>" for name in FIGURES}
    panels = [(model, table, kind) for model in MODELS for table in THREE for kind in ("random", "picked")]
    drawings |= {panel_name(*panel): "<svg ></svg>" for panel in panels}
    made, kept = paper_report(recorded, tables, drawings), (FOLDER / "report.html").read_text("utf-8")

    def figures_in(page: str) -> list[str]:
        said = re.sub(r"<(svg|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        return re.findall(r"\d[\d,.]*", unescape(said))

    assert len(figures_in(kept)) > 1000 * len(MODELS)
    assert figures_in(made) == figures_in(kept)


def test_the_run_is_complete_and_says_where_it_was_made(recorded: Results) -> None:
    """As far as its settings go: nothing failed or missing, one code, every trial there."""
    assert recorded.run["failed"] == recorded.run["missing"] == {}
    sessions = recorded.run["sessions"]
    assert all(session["machine"] and session["wall_seconds"] > 0 for session in sessions)
    assert len({session["code_sha256"] for session in sessions}) == 1  # one code, however many sittings
    keys = ["setting", "dataset", "model", "method", "seed", "alpha"]
    counts = recorded.results.groupby(keys)["trial"].count()
    once = (recorded.results["model"] == "lr") & (recorded.results["alpha"] == 0)
    assert set(counts) == {1, 100}
    assert (counts == 1).sum() == once.sum()


@pytest.mark.xfail(
    strict=True,
    reason="not one run but two: logistic regression by the preset cpu, where Adult's people are a sample, and "
    "networks on a GPU, in a record of their own, where at most 200 people of a table are asked",
)
def test_the_run_is_the_full_one(recorded: Results) -> None:
    lacking = []
    lacking += ["preset full"] if recorded.run["preset"] != "full" else []
    lacking += ["a GPU"] if not any(part["device"].startswith("cuda") for part in recorded.run["sessions"]) else []
    lacking += ["everybody of Adult"] if recorded.methods["people"].max() < 7000 else []
    lacking += recorded.missing()
    for table in (recorded.methods, recorded.results):
        networks = table[(table["model"] == "nn") & table["dataset"].isin(THREE)]
        seeds = set(networks.groupby(["setting", "dataset", "method"])["seed"].nunique())
        lacking += ["five seeds of every network"] if seeds != {5} else []
    assert lacking == []


def test_the_record_of_logistic_regression_is_one_sitting(recorded: Results) -> None:
    """One uninterrupted run of one commit, all its jobs done."""
    run = recorded.run
    if "asked" not in run:
        pytest.skip("the record is from before people were drawn, of two sittings; its page says so")
    (sitting,) = run["sessions"]
    assert (sitting["dirty"], sitting["commit"]) == (False, run["commit"])
    assert run["jobs"]["done"] == run["jobs"]["planned"] == sitting["jobs_run"]


def test_the_record_of_networks_is_one_sitting_on_a_gpu() -> None:
    """Five seeds of every network and method, 100 removals for each; what is claimed of `retrained` is its figures."""
    networks = read_results(NETWORKS)
    run, methods = networks.run, networks.methods[networks.methods["dataset"].isin(THREE)]
    (sitting,) = run["sessions"]
    assert (sitting["dirty"], sitting["commit"], sitting["device"]) == (False, run["commit"], "cuda")
    assert run["jobs"]["done"] == run["jobs"]["planned"] == sitting["jobs_run"]
    assert run["failed"] == run["missing"] == {}
    assert set(methods.groupby(["setting", "dataset", "method"])["seed"].nunique()) == {5}
    assert set(networks.results.groupby(["setting", "dataset", "method", "seed", "alpha"])["trial"].count()) == {100}
    corrected = methods[methods["setting"] == "corrected"].set_index(["dataset", "method"])["worst_case_validity"]
    for dataset in THREE:
        assert corrected[dataset, "retrained"].min() > 0.9
        assert corrected[dataset, "rocerf"].max() < 0.3


def test_what_is_claimed_of_logistic_regression(recorded: Results) -> None:
    curves = {(c.setting, c.dataset, c.method): c for c in validity_curves_of(recorded) if c.model == "lr"}
    frontiers = [f for f in frontiers_of(recorded) if f.model == "lr" and f.setting == "corrected"]
    for dataset in THREE:
        assert min(curves["published", dataset, "rocerf"].means) > 0.95
        assert all(0.4 < mean < 0.6 for mean in curves["corrected", dataset, "scfe"].means[1:])
        papers, ours = (find(frontiers, dataset=dataset, method=method) for method in ("rocerf", "retrained"))
        assert papers is not None
        assert ours is not None
        assert papers.own is not None
        assert ours.own is not None
        assert papers.own.picked < 0.1
        assert ours.own.picked > 0.95
        assert 1 < ours.own.l2 / papers.own.l2 < 1.2


#: What an audit computed with code of its own from the authors' procedure, mean L2 cost of logistic regression.
AUDITED = {
    ("german", "rocerf"): 1.37,
    ("adult", "rocerf"): 1.16,
    ("compas", "rocerf"): 0.88,
    ("adult", "cchvae"): 3.85,
    ("german", "cchvae"): 8.40,
    ("compas", "roar"): 1.09,
    ("compas", "cchvae"): 6.57,
    ("compas-whole", "cchvae"): 5.49,
    ("adult", "scfe"): 1.04,
}


def test_the_authors_procedure_costs_what_other_code_found(recorded: Results) -> None:
    known = {key: cost for key, cost in AUDITED.items() if key[0] in set(recorded.methods["dataset"])}
    assert set(THREE) <= {dataset for dataset, _ in known}
    for (dataset, method), cost in known.items():
        row = over_seeds(recorded.methods, ("l2",), setting="published", dataset=dataset, model="lr", method=method)
        assert row is not None
        # Of all people, or of some; the audit's own figure is of one draw of these searches, too, and errs as ours.
        allowed = max(0.05 * cost, 2.5 * 2**0.5 * row["l2_se"] if row["people"] < 1000 else 0.0)
        assert row["l2"] == pytest.approx(cost, abs=allowed), (dataset, method)
    table = cost_table(recorded, "l2", "lr")
    assert set(table[table["method"] == "rocerf"]["published_verdict"]) <= {"within", "higher", "lower"}


def test_the_answers_are_complete_and_their_figures_are_the_sweeps(recorded: Results) -> None:
    """Read from sweeps.csv without the code of the answers: what a constant margin costs for ROCERF's validity."""
    first, second, third = answers(recorded)
    assert ["Not measured" in answer.verdict for answer in (first, second, third)] == [False, False, "nn" not in MODELS]
    sweeps = pd.read_csv(FOLDER / "sweeps.csv")
    sweeps = sweeps[(sweeps["setting"] == "corrected") & (sweeps["model"] == "lr") & (sweeps["seed"] == 0)]
    cheaper: dict[str, list[bool]] = {"random": [], "random_most": []}
    for dataset in THREE:
        rows = sweeps[sweeps["dataset"] == dataset]
        own = rows[(rows["method"] == "rocerf") & np.isclose(rows["value"], 0.005)].iloc[0]
        margins = rows[rows["method"] == "margin"]
        for name, found in cheaper.items():
            reach = margins[margins[name] >= own[name]]
            found.append(len(reach) > 0 and reach["l2"].min() < own["l2"])
    few, most = cheaper["random"], cheaper["random_most"]
    assert ("for less" in first.verdict) == any(few)
    assert ("for less on" in first.verdict) == (any(few) and not all(few))
    less_later = [later for now, later in zip(few, most, strict=True) if now]
    assert ("after the largest deletions tried" in first.verdict) == (not all(less_later))
    for dataset, now, later in zip(("German", "COMPAS", "Adult"), few, most, strict=True):
        assert (dataset in first.verdict.partition("largest")[2]) == (now and later and not all(less_later))


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


NETWORKS = FOLDER.with_name("reproduction-networks")


@pytest.fixture(scope="module")
def networks() -> Results:
    return read_results(NETWORKS)


def test_the_run_of_networks_says_where_it_was_made_and_how_much_of_it_is_there(networks: Results) -> None:
    assert {path.suffix for path in NETWORKS.iterdir()} == {".csv", ".svg", ".xz", ".html", ".yaml", ".json"}
    assert networks.run["failed"] == networks.run["missing"] == {}
    made = {(part["code_sha256"], part["commit"], part["dirty"]) for part in networks.run["sessions"]}
    assert made == {(networks.run["code_sha256"], networks.run["commit"], False)}
    assert set(networks.models["model"]) == {"nn"}
    assert set(networks.models["dataset"]) >= set(THREE)
    page = (NETWORKS / "report.html").read_text("utf-8")
    assert f"{networks.run['jobs']['done']} of {networks.run['jobs']['planned']} done" in page


def test_networks_tell_people_apart(networks: Results) -> None:
    """Shares of valid answers say nothing of a network that accepts everybody, or guesses."""
    for row in networks.models.to_dict("records"):
        if row["setting"] == "published":  # German's labels are scrambled there, and COMPAS is another table
            assert 0 < row["denied"] < row["test_rows"]
            continue
        data = rocerf.load_dataset(row["dataset"]).test if row["dataset"] != "compas" else None
        majority = 0.8 if data is None else max(data.y.mean(), 1 - data.y.mean())  # four of five have a low risk
        assert row["accuracy"] > majority
        assert 0.05 * row["test_rows"] < row["denied"] < 0.9 * row["test_rows"]


def test_the_answer_about_networks_is_that_of_the_sweeps(networks: Results) -> None:
    """Read from sweeps.csv without the code of the answers."""
    answer = answers(networks)[-1]
    assert "Not measured" not in answer.verdict
    sweeps = pd.read_csv(NETWORKS / "sweeps.csv")
    sweeps = sweeps[sweeps["setting"] == "corrected"]
    for method, value in (("rocerf", 0.005), ("simulated", 0.05), ("retrained", 0.005)):
        own = sweeps[(sweeps["method"] == method) & np.isclose(sweeps["value"], value)]
        shares = [np.average(rows["picked"], weights=rows["people"]) for _, rows in own.groupby("dataset")]
        for end in (min(shares), max(shares)):
            assert percent(end) in answer.sentence
            assert percent(end) in answer.brief
