"""The certificate against brute force over every subset: no proven bound is above the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from deletion.test_certificate_cases import KINDS, Case, make_case
from length import share
from nasty import problems
from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.deletion.certificate import Certificate, Options, certify, certify_model, largest_k_that_closes
from rocerf.deletion.certificate.bound_pieces import Rows, SharpPiece
from rocerf.deletion.certificate.branching import Tree
from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.problem import Problem, whiten
from rocerf.deletion.certificate.sharp_bound import close_box, sharp_piece
from rocerf.deletion.certificate.simple_bound import simple_piece
from rocerf.errors import ModelError, OptionError
from rocerf.promises import Certified
from rocerf.storage.state import State

#: Problems of the comparison with brute force.
COUNT = share(540, 6)
#: The brute force itself is good to this much, relative to 1 + |score|.
TOLERANCE = 1e-9


def sharp_only(problem: Problem, effort: BoxEffort | None = None) -> SharpPiece | None:
    white = whiten(problem)
    box = None if white is None else close_box(white, BoxEffort() if effort is None else effort)
    return None if white is None or box is None else sharp_piece(white, box[1])


def lowers(case: Case, *, branch: bool) -> dict[str, np.ndarray]:
    """Every version's lower bounds at the case's points; versions that abstain are left out."""
    rows = Rows(case.problem.design, case.problem.sign)
    found = {}
    sharp = sharp_only(case.problem)
    if sharp is not None:
        found["sharp"] = sharp.lower(case.points, rows)
    white = whiten(case.problem)
    simple = None if white is None else simple_piece(white)
    if simple is not None:
        found["simple"] = simple.lower(case.points, rows)
    default = case.certify(branch_nodes=30 if branch else 0)
    if default.closed:
        found["default"] = default.lower(case.points)
    return found


def compare(seeds: range, figures: list[str]) -> tuple[Counter[str], int]:
    """Hold every version against brute force; how often each closed, and how often a weakened bound was caught."""
    closed: Counter[str] = Counter()
    abstained = Counter(dict.fromkeys(KINDS, 0))
    ratios: list[float] = []
    no_optimum = weak_caught = 0
    for seed in seeds:
        case = make_case(seed)
        truth = case.truth()
        # Branching has its own test; here every ninth round of kinds may branch.
        bounds = lowers(case, branch=seed // len(KINDS) % 9 == 0)
        if truth is None:
            no_optimum += 1
            assert not bounds, f"seed {seed}: proven, yet some deletion has no optimum"
            continue
        score = case.points @ case.problem.theta
        for version, lower in bounds.items():
            closed[version] += 1
            excess = (lower - truth) / (1 + np.abs(score))
            assert excess.max() <= TOLERANCE, f"seed {seed} {case.kind} {version}: violated by {excess.max():.2e}"
        if "default" in bounds:
            drop, real = score - bounds["default"], score - truth
            ratios.extend(drop[real > 1e-3] / real[real > 1e-3])
        else:
            abstained[case.kind] += 1
        if "sharp" in bounds:  # a bound 10 % too small must be caught by this very check
            weak = score - 0.9 * (score - bounds["sharp"])
            weak_caught += int(((weak - truth) / (1 + np.abs(score))).max() > TOLERANCE)
    quantiles = ", ".join(f"{q:.0%} {np.quantile(ratios, q):.3f}" for q in (0.1, 0.5, 0.9, 0.99))
    figures += [
        f"certificate against brute force, {len(seeds)} problems, no violation; {no_optimum} with a deletion that has "
        f"no optimum, none of them certified; closed {dict(closed)}",
        f"  abstained, default version: {', '.join(f'{kind} {count}' for kind, count in abstained.items())}",
        f"  certified over true drop: {quantiles}; a bound 10 % too small is caught on {weak_caught} problems",
    ]
    return closed, weak_caught


@pytest.mark.slow
def test_no_violation_against_brute_force_over_every_subset(figures: list[str]) -> None:
    closed, weak_caught = compare(range(COUNT), figures)
    assert min(closed[version] for version in ("sharp", "simple", "default")) > COUNT // 4
    assert weak_caught > COUNT // 25


def test_no_violation_on_a_quick_subset(figures: list[str]) -> None:
    closed, weak_caught = compare(range(30000, 30010), figures)
    assert min(closed[version] for version in ("sharp", "simple", "default")) > 1
    assert weak_caught > 0


@pytest.mark.slow
def test_no_false_promise_on_nasty_models(figures: list[str]) -> None:
    """Through the model and the promise: threshold, scaling, weights and both penalties included."""
    closed: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for problem in problems(share(96), seed=11, most_rows=40):
        promise = Certified(problem.model, problem.k, options=Options(branch_nodes=20))
        asked[problem.kind] += 1
        if not promise.certificate.closed:
            continue
        closed[problem.kind] += 1
        truth = problem.truth()
        bound = promise.read(problem.point[None]).values[0]
        assert bound <= truth + TOLERANCE * (1 + abs(truth)), problem.kind
        direct = promise.certificate.lower(problem.model.design(problem.point[None]))[0] - problem.model.offset
        assert bound == pytest.approx(direct, abs=1e-12)
    figures.append(
        f"certified promise on {asked.total()} nasty models, no false promise; closed: "
        + ", ".join(f"{kind} {closed[kind]}/{asked[kind]}" for kind in asked)
    )
    assert closed.total() > asked.total() // 3


def test_rows_without_weight_still_carry_their_share_of_a_mean_penalty() -> None:
    """Deleting a row of weight 0 lowers the mean penalty, and here that is the worst deletion there is.

    All rows with weight pull the one coefficient up, so that deleting any of them lowers it; a lower penalty raises it.
    """
    x = np.where(np.arange(24) % 2 == 0, 1.0, -1.0)[:, None] * np.linspace(0.8, 1.2, 24)[:, None]
    weights = np.where(np.arange(24) < 16, 1.0, 0.0)
    train = TrainingSet(x, (x[:, 0] > 0).astype(int), sample_weight=weights)
    model = LogisticModel.fit(train, gamma=0.3, scale=False, fit_intercept=False)
    point = np.array([[-1.0]])
    for k in (1, 2, 3):
        truth = min(model.without(train.ids[16 : 16 + m]).score(point)[0] for m in range(k + 1))
        with_weight = min(model.without(train.ids[at : at + k]).score(point)[0] for at in range(16 - k))
        assert truth < model.score(point)[0] - 1e-3 < with_weight
        versions = set()
        for options in (Options(), Options(exact_work=0), Options(branch_rows=0, exact_work=0, spread_goal=0.0)):
            certificate = certify_model(model, k, options)
            assert certificate.closed, certificate.reason
            assert certificate.lower(point)[0] <= truth + 1e-9
            versions.add(certificate.version)
        tree = Tree(Options(spread_goal=0.2), BoxEffort())
        problem = make_problem(model, k)
        assert tree.cover(problem), tree.reason
        rows = Rows(problem.design, problem.sign)
        assert min(piece.lower(point, rows)[0] for piece in tree.pieces) <= truth + 1e-9
        white = whiten(problem)
        assert white is not None
        for piece in (sharp_only(problem), simple_piece(white)):
            assert piece is not None
            assert piece.lower(point, rows)[0] <= truth + 1e-9
        assert ("exact" in versions) == (k == 1)


def make_problem(model: LogisticModel, k: int) -> Problem:
    """The model as the inner parts of the certificate see it, mean penalty included."""
    objective = model.objective
    count = len(model.train)
    return Problem(
        model.design(model.train.X),
        1.0 - 2.0 * model.train.y,
        np.ones(count) if objective.weights is None else objective.weights,
        model.theta,
        objective.penalty_diagonal,
        model.penalty.per_row * objective.penalised,
        k,
        np.ones(count, bool),
    )


def test_liblinear_s_penalised_intercept_is_scaled_right() -> None:
    """Its entry of P is 1/s^2, here 4: more than that of the coefficients."""
    train = random_training_set(5, n=40)
    X = (train.X - train.X.mean(axis=0)) / train.spread
    train = TrainingSet(X, train.y)
    fitted = LogisticRegression(solver="liblinear", C=2.0, intercept_scaling=0.5, tol=1e-10).fit(X, train.y)
    model = LogisticModel.from_sklearn(fitted, train)
    assert model.objective.penalised[-1] == pytest.approx(4.0)
    certificate = certify_model(model, 1)
    assert certificate.version == "exact"
    points = model.design(X[:8])
    scores = np.array([points @ model.without([i]).theta for i in train.ids])
    np.testing.assert_allclose(
        certificate.lower(points), np.minimum(scores.min(axis=0), points @ model.theta), atol=1e-8
    )


@pytest.mark.slow
def test_branching_is_sound_and_tightens(figures: list[str]) -> None:
    closed, gains = 0, []
    for seed in range(5000, 5000 + share(60)):
        case = make_case(seed)
        problem = case.problem
        if problem.k == 1:
            continue
        tree = Tree(Options(branch_nodes=400, spread_goal=0.1), BoxEffort())
        if not tree.cover(problem):
            continue
        rows = Rows(problem.design, problem.sign)
        whole = Certificate(True, "", problem.k, "", rows, problem.theta, tuple(tree.pieces))
        truth = case.truth()
        assert truth is not None
        lower = whole.lower(case.points)
        assert ((lower - truth) / (1 + np.abs(truth))).max() <= TOLERANCE, seed
        plain = np.min([piece.lower(case.points, rows) for piece in tree.pieces], axis=0)
        np.testing.assert_allclose(lower, plain, rtol=0, atol=1e-12)
        closed += 1
        sharp = sharp_only(case.problem)
        if sharp is not None:
            gains.append(float(np.mean(lower - sharp.lower(case.points, rows))))
    figures.append(f"branched certificates, no violation: {closed}; mean gain over sharp {np.mean(gains):.3f}")
    assert closed > share(60) // 4


@pytest.mark.slow
def test_values_are_the_proven_bound_and_planes_lie_above_it() -> None:
    for seed in (0, 5, 20, 43):
        case = make_case(seed)
        certificate = case.certify()
        if not certificate.closed:
            continue
        values, slopes = certificate.value_and_cut(case.points)
        np.testing.assert_array_equal(values, certificate.lower(case.points))
        others = np.r_[case.points, case.points + 0.3]
        planes = values[:, None] + np.einsum("ij,ikj->ik", slopes, others[None] - case.points[:, None])
        assert (certificate.lower(others) <= planes + 1e-8 * (1 + np.abs(planes))).all()


@pytest.mark.slow
def test_round_trip_through_a_state(tmp_path) -> None:
    for seed, options in ((0, {}), (5, {"exact_work": 0}), (20, {"spread_goal": 0.01})):
        case = make_case(seed)
        certificate = case.certify(**options)
        certificate.state().write(tmp_path / "certificate.npz")
        again = Certificate.from_state(
            State.read(tmp_path / "certificate.npz", "rocerf-certificate/1", "certify_model")
        )
        np.testing.assert_array_equal(again.drop(case.points), certificate.drop(case.points))
        assert replace(again, rows=certificate.rows, theta=certificate.theta, pieces=(), about=None) == replace(
            certificate, pieces=(), about=None
        )
        assert again.about.difference(certificate.about) is None


def test_abstains_with_a_reason_when_a_class_can_be_deleted() -> None:
    rng = np.random.default_rng(4)
    model = LogisticModel.fit(TrainingSet(rng.normal(size=(30, 2)), [1, 1] + [0] * 28))
    certificate = certify_model(model, 2)
    design = model.design(model.train.X[:3])
    assert not certificate.closed
    assert "one class has only 2 rows" in certificate.reason
    assert np.isinf(certificate.drop(design)).all()
    with pytest.raises(ModelError, match="got none: one class"):
        certificate.value_and_cut(design)


def test_bad_input_is_refused_with_our_own_errors() -> None:
    model = LogisticModel.fit(random_training_set(1, n=40))
    for k in (-1, 40, 1.5, True):
        with pytest.raises(OptionError, match="k to be a whole number from 0 to 39"):
            certify_model(model, k)
    x, y, theta, penalty = np.ones((4, 1)), np.array([0, 1, 0, 1]), np.zeros(1), np.ones(1)
    bad = (
        {"y": np.array([0, 1, 2, 1])},
        {"theta": np.zeros(2)},
        {"weights": np.array([1, 1, -1, 1])},
        {"design": np.array([[1], [np.nan], [1], [1]])},
        {"penalty_diag": np.array([-1.0])},
    )
    for change in bad:
        arguments = {"design": x, "y": y, "theta": theta, "penalty_diag": penalty, "k": 1} | change
        with pytest.raises(ModelError):
            certify(**arguments)
    for penalties in (-1.0, np.nan, 2.0):
        with pytest.raises(OptionError):
            certify(x, y, theta, penalty, 1, per_row_penalty=penalties)


def test_largest_k_is_found_with_few_calls() -> None:
    calls = []

    def closes(k: int) -> Certificate:
        calls.append(k)
        return Certificate(k <= 37, "", k, "", Rows(np.zeros((1, 1)), np.zeros(1)), np.zeros(1), ())

    largest, known = largest_k_that_closes(closes, 1000)
    assert largest == 37
    assert len(calls) == len(set(calls)) <= 13
    assert largest_k_that_closes(closes, 1000, known)[0] == 37
