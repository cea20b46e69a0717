"""The parts of the certificate: scalar bounds, group sums, pieces and fast paths against plain forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from deletion.test_certificate_cases import make_case, retrain_all_subsets
from rocerf.deletion.certificate import Options, group_sums
from rocerf.deletion.certificate.bound_pieces import Rows, SharpPiece
from rocerf.deletion.certificate.branching import Tree, condense
from rocerf.deletion.certificate.exact_deletions import retrain, rows_to_delete, single_deletions
from rocerf.deletion.certificate.group_sums import Columns, norm_of_group_sum, signed_top_k, top_k_sum
from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.problem import Problem, whiten
from rocerf.deletion.certificate.sharp_bound import Sample, close_box, interval_on_box, sharp_piece
from rocerf.deletion.certificate.simple_bound import simple_piece
from rocerf.models.loss import LARGEST_MOVE, LOGISTIC


def sharp_only(problem: Problem, effort: BoxEffort | None = None) -> SharpPiece | None:
    white = whiten(problem)
    box = None if white is None else close_box(white, BoxEffort() if effort is None else effort)
    return None if white is None or box is None else sharp_piece(white, box[1])


def test_exact_single_deletions_match_brute_force() -> None:
    for seed in range(120):
        case = make_case(seed + 9000)
        problem = replace(case.problem, k=1)
        white = whiten(problem)
        cuts = None if white is None else single_deletions(white)
        thetas = retrain_all_subsets(problem)
        if cuts is None:
            continue
        assert thetas is not None
        thetas = thetas[np.r_[0, 1 + rows_to_delete(problem)]]
        size = np.linalg.norm((thetas - cuts.thetas) @ np.linalg.inv(cuts.to_norm).T, axis=1)
        assert (size <= cuts.error + 1e-9).all(), seed


@pytest.mark.slow
def testcondensed_single_deletions_stay_below_the_truth() -> None:
    checked = 0
    for seed in range(60):
        case = make_case(seed + 12000)
        problem = replace(case.problem, k=1)
        white = whiten(problem)
        cuts = None if white is None else single_deletions(white)
        if cuts is None:
            continue
        rows = Rows(problem.design, problem.sign)
        pieces = condense(white, cuts, most=4)
        lower = np.min([piece.lower(case.points, rows) for piece in pieces], axis=0)
        truth = (case.points @ retrain_all_subsets(problem).T).min(axis=1)
        assert ((lower - truth) / (1 + np.abs(truth))).max() <= 1e-8, seed
        checked += len(pieces) == 2
    assert checked > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4, 5, 7, 8, 15, 30, 47])
def test_cutting_planes_lie_above_the_bound(seed) -> None:
    case = make_case(seed)
    problem, rng = case.problem, np.random.default_rng(seed)
    rows = Rows(problem.design, problem.sign)
    pieces = [sharp_only(problem), simple_piece(whiten(problem)), single_deletions(whiten(problem))]
    pieces = [piece for piece in pieces if piece is not None]
    if problem.k > 1:
        tree = Tree(Options(branch_nodes=50), BoxEffort())
        pieces += tree.pieces if tree.cover(problem) else []
    assert pieces
    for piece in pieces:
        for point in case.points:
            value, slope = piece.linearise(point, rows)
            near = point + 0.05 * rng.normal(size=(20, len(point)))
            far = point + 3 * rng.normal(size=(20, len(point)))
            others = np.r_[near, far, point[None]]
            plane = value + (others - point) @ slope
            lower = piece.lower(others, rows)
            assert (lower <= plane + 1e-8 * (1 + np.abs(plane))).all()
            assert value - lower[-1] <= 1e-6 * (1 + abs(value))


@pytest.mark.slow
def test_sharp_piece_matches_a_fine_grid_over_eta() -> None:
    for seed in (0, 5, 6, 7, 13):
        case = make_case(seed)
        piece = sharp_only(case.problem)
        if piece is None:
            continue
        rows = Rows(case.problem.design, case.problem.sign)
        for point in case.points:
            r = np.linalg.norm(point @ piece.to_d)
            linear, shift = piece._linear(point[None], rows)
            fixed = r * piece.g0_d / 2 + np.linalg.norm(point @ piece.to_a) * piece.g0_a
            plain = []
            for zeta in np.r_[r / piece.gamma_d * np.geomspace(1e-3, 1e3, 3000)]:
                terms = np.maximum(linear[0] + zeta * piece.coupled / 4, 0)
                terms = terms[piece.residual > 0] + shift[0] + zeta * piece.pull_coupling / 4
                plain.append(top_k_sum(terms, piece.k) + r * r / (4 * zeta))
            grid = point @ piece.theta - min(plain) - fixed
            assert piece.lower(point[None], rows)[0] >= grid - 1e-7 * (1 + abs(grid))


def test_scalar_bounds_hold_on_a_fine_grid() -> None:
    rng = np.random.default_rng(0)
    z = np.r_[rng.normal(size=300) * 4, 0, 0, 30, -30, 1e-9]
    down, up = rng.exponential(2, size=len(z)), rng.exponential(2, size=len(z))
    low, high = LOGISTIC.curvature_interval(z, down, up)
    radius = np.maximum(down, up)
    q = LOGISTIC.second_order_factor(z, radius)
    for share in np.linspace(0, 1, 401):
        u = -down + share * (down + up)
        mean = LOGISTIC.mean_curvature(z, u)
        assert (low <= mean * (1 + 1e-12)).all()
        assert (mean <= high * (1 + 1e-12)).all()
        for sign in (1.0, -1.0):
            bound = LOGISTIC.residual_bound(z, np.full(len(z), sign), down, up)
            assert (expit(sign * (z + u)) <= bound).all()
        wide = (2 * share - 1) * radius
        gap = np.abs(expit(z) * expit(-z) - LOGISTIC.mean_curvature(z, wide))
        assert (gap <= q * np.abs(wide) + 1e-15).all()


def test_mean_slopes_of_tiny_moves_keep_their_digits() -> None:
    """``sigma'(z) + sigma''(z) u/2`` is exact to 1e-17 for such moves."""
    z = np.linspace(-8, 8, 33)
    for u in (9e-10, -9e-10, 3e-11, 1e-15, 5e-324, 0.0):
        series = expit(z) * expit(-z) * (1 + (expit(-z) - expit(z)) * u / 2)
        np.testing.assert_allclose(LOGISTIC.mean_curvature(z, np.full(33, u)), series, rtol=3e-15)


def test_mean_slopes_of_huge_moves() -> None:
    z = np.linspace(-8, 8, 33)
    for u in (599.0, 650.0, 1e4, -650.0, -1e4):
        mean = (expit(z + u) - expit(z)) / u
        np.testing.assert_allclose(LOGISTIC.mean_curvature(z, np.full(33, u)), mean, rtol=1e-12)
        low, _ = LOGISTIC.curvature_interval(z, np.maximum(-np.full(33, u), 0), np.maximum(np.full(33, u), 0))
        assert (low <= mean).all()


def test_no_interval_of_matrices_on_a_box_beyond_the_limit() -> None:
    """One limit for every way to a box: the search, a guess, the hull of retrained models, cells."""
    white = whiten(make_case(0).problem)
    count = len(white.z)
    everything = Sample.everything(white)
    small = np.full(count, 0.1)
    assert interval_on_box(white, np.stack([small, small]), everything, 1.0) is not None
    for value in (LARGEST_MOVE + 1, 700.0, np.inf, np.nan):
        far = small.copy()
        far[3] = value
        assert interval_on_box(white, np.stack([far, small]), everything, 1.0) is None
        assert interval_on_box(white, np.stack([small, far]), everything, 1.0) is None


def collinear_problem(gap: float) -> Problem:
    """Two columns that differ by ``gap`` only, hardly penalised: the Hessian's condition is about 1/gap^2."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    design = np.c_[a, a + gap * rng.normal(size=300), np.ones(300)]
    y = (rng.random(300) < expit(a)).astype(float)
    penalty = np.array([1e-9, 1e-9, 0.0])
    return Problem(design, 1 - 2 * y, np.ones(300), np.zeros(3), penalty, np.zeros(3), 2, np.ones(300, bool))


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-4, 3e-5])
def test_white_coordinates_are_as_white_as_they_claim(gap) -> None:
    """``T'HT`` in extended precision; what is left of the identity is claimed, and below the accepted limit."""
    problem = collinear_problem(gap)
    white = whiten(problem)
    assert white is not None
    x, to_white = problem.design.astype(np.longdouble), white.to_white.astype(np.longdouble)
    rows = x @ to_white
    gram = (rows * white.slope[:, None].astype(np.longdouble)).T @ rows + (to_white.T * problem.penalty) @ to_white
    left = float(np.linalg.norm((gram - np.eye(3)).astype(float), 2))
    assert left <= white.error <= 1e-8
    assert (np.linalg.norm((rows - white.rows).astype(float), axis=1) <= white.rounding).all()


@pytest.mark.slow
def test_the_simple_version_pays_for_coordinates_that_are_not_quite_white() -> None:
    """With T off by E, ``x'Delta`` is off by ``|x| |E| |Delta|``: certificates in skewed coordinates stay valid."""
    rng = np.random.default_rng(4)
    checked = 0
    for seed in range(60, 84):
        case = make_case(seed)
        white = whiten(case.problem)
        p = white.rows.shape[1]
        off = rng.normal(size=(p, p))
        skew = np.eye(p) + 0.03 * off / np.linalg.norm(off, 2)
        turned = replace(
            white,
            to_white=white.to_white @ skew,
            rows=white.rows @ skew,
            norms=np.linalg.norm(white.rows @ skew, axis=1),
            gradient=white.gradient @ skew,
            pull=white.pull @ skew,
            penalty=skew.T @ white.penalty @ skew,
            row_penalty=skew.T @ white.row_penalty @ skew,
            error=float(np.linalg.norm(skew.T @ skew - np.eye(p), 2)) + white.error,
        )
        honest, careless = simple_piece(turned), simple_piece(replace(turned, error=0.0))
        thetas = retrain_all_subsets(case.problem)
        if honest is None or careless is None or thetas is None:
            continue
        rows = Rows(case.problem.design, case.problem.sign)
        truth = (case.points @ thetas.T).min(axis=1)
        lower = honest.lower(case.points, rows)
        assert (lower <= truth + 1e-9 * (1 + np.abs(truth))).all(), seed
        assert (lower < careless.lower(case.points, rows)).all()
        checked += 1
    assert checked > 8


def test_curvature_interval_away_from_zero() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(size=600) * 3
    low_end = rng.normal(size=600) * 4
    high_end = low_end + rng.exponential(2, size=600)
    low, high = LOGISTIC.curvature_interval(z, -low_end, high_end)
    for share in np.linspace(0, 1, 401):
        mean = LOGISTIC.mean_curvature(z, low_end + share * (high_end - low_end))
        assert (low <= mean * (1 + 1e-12)).all()
        assert (mean <= high * (1 + 1e-12)).all()


def test_group_norm_bounds_every_group() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        vectors = rng.standard_t(3, size=(12, 3))
        for k in (1, 2, 3):
            worst = max(
                np.linalg.norm((t[:, None] * vectors[list(s)]).sum(axis=0))
                for s in combinations(range(12), k)
                for t in (np.ones(k), rng.random(k))
            )
            assert worst <= norm_of_group_sum(vectors, k)


@pytest.mark.parametrize("mean_penalty", [False, True])
def test_blocks_pruning_and_single_precision_against_the_plain_form(monkeypatch, mean_penalty) -> None:
    rng = np.random.default_rng(2)
    points, columns = rng.normal(size=(301, 5)), rng.standard_t(3, size=(2600, 5))
    addend = rng.random(2600)
    scale = rng.random(301)
    shift = rng.normal(size=301) if mean_penalty else np.zeros(301)
    products = points @ columns.T
    k = 40
    plain = [
        top_k_sum(np.maximum(s * products + scale[:, None] * addend, 0) + (s * shift + 0.1)[:, None], k)
        for s in (1, -1)
    ]
    order = np.argsort(-np.linalg.norm(columns, axis=1))
    kept, dropped = rng.permutation(order[:2300]), order[2300:]
    pruned = Columns(
        columns[kept],
        float(np.linalg.norm(columns[dropped], axis=1).max()),
        addend[kept],
        float(addend[dropped].max()),
    )
    whole = Columns(columns, 0.0, addend, 0.0)
    for many in (1000, 10**9):
        monkeypatch.setattr(group_sums, "_MANY_COLUMNS", many)
        for size in (2600 * 8, 10**7):
            monkeypatch.setattr(group_sums, "_BLOCK_BYTES", size)
            for table, slack in ((whole, 1.08), (pruned, 1.5)):
                got = signed_top_k(points, table, k, scale, shift, 0.1)
                for bound, true in zip(got, plain, strict=True):
                    assert (bound >= true * (1 - 1e-12)).all()
                    assert np.median(bound / true) <= slack


@pytest.mark.slow
def test_search_sample_and_pruned_columns_give_a_valid_and_similar_bound() -> None:
    rng = np.random.default_rng(3)
    n, k = 5000, 10
    design = np.c_[rng.normal(size=(n, 4)), np.ones(n)]
    y = (rng.random(n) < expit(design @ [1, -0.5, 0.3, 0, -1.0])).astype(float)
    penalty = np.array([1.0, 1, 1, 1, 0])
    zero = np.zeros(5)
    bare = Problem(design, 1 - 2 * y, np.ones(n), zero, penalty, zero, k, np.ones(n, bool))
    problem = replace(bare, theta=retrain(bare, zero))
    rows = Rows(design, problem.sign)
    points = design[:10]
    plain = sharp_only(problem)
    fast = sharp_only(problem, BoxEffort(keep=0.5, sample=1500))
    assert plain is not None
    assert fast is not None
    score = points @ problem.theta
    ratio = (score - fast.lower(points, rows)) / (score - plain.lower(points, rows))
    assert ratio.min() > 0.99
    assert ratio.max() < 1.1
    worst = _greedy_attack(problem, points)
    assert (plain.lower(points, rows) <= worst + 1e-9).all()
    assert (fast.lower(points, rows) <= worst + 1e-9).all()


def _greedy_attack(problem: Problem, points: np.ndarray) -> np.ndarray:
    """Score after deleting the k rows with the worst first-order effect, truly retrained."""
    white = whiten(problem)
    residual = problem.sign * expit(problem.sign * white.z)
    out = []
    for point in points:
        effect = (white.rows @ (point @ white.to_white)) * residual
        weight = problem.weight.copy()
        weight[np.argsort(effect)[: problem.k]] = 0
        out.append(point @ retrain(replace(problem, weight=weight), problem.theta))
    return np.array(out)
