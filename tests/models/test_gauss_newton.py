"""Every form of the Gauss-Newton solve against dense matrices from plain autograd, curvlinops, and the true Hessian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rocerf.errors import ModelError, NotConvergedError, OptionError, SingularCurvatureError
from rocerf.models.logistic.curvature import Curvature
from rocerf.models.network import gauss_newton as module
from rocerf.models.network.gauss_newton import GaussNewton, Limits, gauss_newton

Array = NDArray[np.float64]

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
#: Torch's forward mode, which both oracles use (and curvlinops on import), still scripts helpers of its own.
FORWARD_MODE = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
#: Sizes at which each form is the one taken: rows, and limits (the network has 40 parameters).
FORMS = {"primal": (90, Limits()), "dual": (23, Limits()), "conjugate gradients": (90, Limits(side=20))}


@dataclass
class Problem:
    """Rows' Jacobians and weights, whoever computes them; remembers what was asked for."""

    jacobian: Callable[[slice], Any]
    weights: Any
    width: int
    asked: list[slice] = field(default_factory=list)

    def __call__(self, rows: slice) -> Any:
        self.asked.append(rows)
        return self.jacobian(rows)

    def solver(self, ridge: float, limits: Limits = Limits()) -> GaussNewton:  # noqa: B008
        return gauss_newton(self, self.weights, ridge, width=self.width, limits=limits)

    def hessian(self, ridge: float) -> Array:
        """H without any of the code under test."""
        J = self.jacobian(slice(0, len(self.weights))).cpu().numpy()
        return J.T @ (self.weights.cpu().numpy()[:, None] * J) + ridge * np.eye(self.width)


class CentredSoftplus(torch.nn.Module):
    def forward(self, z: Any) -> Any:
        return torch.nn.functional.softplus(z) - np.log(2)


def network(seed: int, device: str = "cpu") -> Any:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(4, 5), CentredSoftplus(), torch.nn.Linear(5, 2), CentredSoftplus(), torch.nn.Linear(2, 1)]
    return torch.nn.Sequential(*layers).double().to(device)


def people(n: int, device: str = "cpu", seed: int = 7) -> Any:
    return torch.tensor(np.random.default_rng(seed).normal(size=(n, 4)), device=device)


def network_problem(n: int, device: str = "cpu", seed: int = 0) -> Problem:
    """A small network with 40 parameters, its Jacobian by ``torch.func``."""
    net, X = network(seed, device), people(n, device)
    theta = {name: value.detach() for name, value in net.named_parameters()}

    def logit(parameters: Any, x: Any) -> Any:
        return torch.func.functional_call(net, parameters, (x[None],))[0, 0]

    def jacobian(rows: slice) -> Any:
        parts = torch.func.vmap(torch.func.grad(logit), in_dims=(None, 0))(theta, X[rows])
        return torch.cat([part.flatten(1) for part in parts.values()], dim=1)

    omega = torch.linspace(0.5, 2, n, dtype=torch.float64, device=device)
    p = torch.sigmoid(net(X)[:, 0]).detach()
    return Problem(jacobian, omega * p * (1 - p), sum(value.numel() for value in theta.values()))


def matrix_problem(n: int, p: int, seed: int, scale: float = 1.0, device: str = "cpu") -> Problem:
    """Random Jacobian rows, some of them without weight."""
    rng = np.random.default_rng(seed)
    J = torch.tensor(scale * rng.normal(size=(n, p)), device=device)
    weights = torch.tensor(rng.uniform(size=n) * (rng.uniform(size=n) < 0.8), device=device)
    return Problem(lambda rows: J[rows], weights, p)


def with_empty_rows(problem: Problem, n: int) -> Problem:
    """The same H from n more rows, all of weight 0: enough of them turn the dual form into the primal one."""
    count = len(problem.weights)

    def jacobian(rows: slice) -> Any:
        real = problem.jacobian(slice(min(rows.start, count), min(rows.stop, count)))
        return torch.cat([real, torch.ones(rows.stop - rows.start - len(real), problem.width).to(real)])

    return Problem(jacobian, torch.cat([problem.weights, torch.zeros(n).to(problem.weights)]), problem.width)


def vectors_for(problem: Problem, seed: int = 0) -> Array:
    """Right-hand sides of every kind: rows' gradients (where H is largest), random ones, repeated ones, nothing."""
    J = problem.jacobian(slice(0, min(5, len(problem.weights)))).cpu().numpy()
    noise = np.random.default_rng(seed).normal(size=(3, problem.width))
    return np.concatenate([0.3 * J, noise, noise[:1], np.zeros((1, problem.width))])


def relative_error(found: Array, truth: Array) -> float:
    """Largest over the rows."""
    return float((np.linalg.norm(found - truth, axis=1) / np.maximum(np.linalg.norm(truth, axis=1), 1e-300)).max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 5.0])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_equals_a_dense_solve_with_autograd_one_row_at_a_time(form: str, ridge: float, device: str) -> None:
    n, limits = FORMS[form]
    problem = network_problem(n, device)
    net, X = network(0, device), people(n, device)
    H = ridge * np.eye(problem.width)
    for weight, x in zip(problem.weights.tolist(), X, strict=True):
        parts = torch.autograd.grad(net(x[None])[0, 0], tuple(net.parameters()))
        J = np.concatenate([part.cpu().numpy().ravel() for part in parts])
        H += weight * np.outer(J, J)
    solver = problem.solver(ridge, limits)
    assert (solver.form, solver.width) == (form, len(H))
    vectors = vectors_for(problem)
    truth = np.linalg.solve(H, vectors.T).T
    assert relative_error(solver.solve(vectors), truth) < 1e-9
    assert relative_error(solver.solve(vectors[3])[None], truth[3:4]) < 1e-9
    tensors = solver.solve_tensor(torch.tensor(vectors, device=device))
    assert tensors.device.type == device
    assert tensors.dtype == torch.float64
    np.testing.assert_array_equal(tensors.cpu().numpy(), solver.solve(vectors))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 23, 39])
def test_the_three_forms_agree_and_rows_without_weight_change_nothing(n: int, device: str) -> None:
    problem = network_problem(n, device)
    padded = with_empty_rows(problem, 60)
    vectors = vectors_for(problem)
    for ridge in (1e-3, 1.0):
        solvers = [problem.solver(ridge), padded.solver(ridge), padded.solver(ridge, Limits(side=8))]
        assert [solver.form for solver in solvers] == ["dual", "primal", "conjugate gradients"]
        dual, primal, iterated = (solver.solve(vectors) for solver in solvers)
        assert relative_error(dual, primal) < 1e-9
        assert relative_error(iterated, primal) < 1e-9


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 30),
    p=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    ridge=st.floats(1e-3, 10.0),
    chunk_rows=st.integers(1, 40),
    kept_rows=st.integers(1, 40),
    side=st.sampled_from([1, 10, 1000]),
)
def test_any_sizes_and_limits_give_the_dense_solution(
    n: int, p: int, seed: int, ridge: float, chunk_rows: int, kept_rows: int, side: int
) -> None:
    problem = matrix_problem(n, p, seed)
    limits = Limits(side=side, chunk_bytes=8 * p * chunk_rows, kept_bytes=8 * p * kept_rows)
    solver = problem.solver(ridge, limits)
    vectors = vectors_for(problem, seed)
    assert relative_error(solver.solve(vectors), np.linalg.solve(problem.hessian(ridge), vectors.T).T) < 1e-8
    assert all(rows.stop - rows.start <= chunk_rows for rows in problem.asked)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_size_of_chunks_changes_neither_the_answer_nor_what_is_asked_at_a_time(form: str) -> None:
    n, limits = FORMS[form]
    vectors = vectors_for(network_problem(n))
    whole = network_problem(n).solver(0.01, limits).solve(vectors)
    for chunk_rows in (1, 7, 1000):
        for kept_rows in (1, 10, 1000):
            problem = network_problem(n)
            row = 8 * problem.width
            sizes = replace(limits, chunk_bytes=chunk_rows * row + row // 2, kept_bytes=kept_rows * row)
            found = problem.solver(0.01, sizes).solve(vectors)
            assert relative_error(found, whole) < 1e-10
            assert max(rows.stop - rows.start for rows in problem.asked) == min(n, chunk_rows)


def test_a_chunk_is_at_least_one_row() -> None:
    problem = matrix_problem(6, 9, seed=1)
    problem.solver(1.0, Limits(chunk_bytes=1, kept_bytes=1))
    assert {rows.stop - rows.start for rows in problem.asked} == {1}


def test_the_primal_form_computes_each_row_once_and_needs_none_later() -> None:
    problem = matrix_problem(50, 12, seed=1)
    solver = problem.solver(0.1, Limits(chunk_bytes=8 * 12 * 16))
    solver.solve(np.ones((3, 12)))
    assert problem.asked == [slice(0, 16), slice(16, 32), slice(32, 48), slice(48, 50)]


def test_the_dual_form_computes_each_row_once_where_they_fit_and_in_few_walks_where_not() -> None:
    row = 8 * 50
    kept = matrix_problem(40, 50, seed=1)
    kept.solver(0.1, Limits(chunk_bytes=10 * row, kept_bytes=40 * row)).solve(np.ones((3, 50)))
    assert len(kept.asked) == 4
    streamed = matrix_problem(40, 50, seed=1)
    solver = streamed.solver(0.1, Limits(chunk_bytes=10 * row, kept_bytes=20 * row))
    # Two halves are held in turn (4 chunks to fill them); the first meets all 4 chunks, the second the last 2.
    assert len(streamed.asked) == 4 + 4 + 2
    streamed.asked.clear()
    solver.solve(np.ones((3, 50)))
    assert len(streamed.asked) == 5 * 4  # twice Woodbury (two walks) and one residual, whatever the vectors


def accurate_solution(problem: Problem, ridge: float, vectors: Array) -> Array:
    """A dense solve refined in long double: an ordinary one loses 1e-16 |H| / ridge."""
    J = problem.jacobian(slice(0, len(problem.weights))).cpu().numpy().astype(np.longdouble)
    H = (J.T * problem.weights.cpu().numpy()) @ J + np.longdouble(ridge) * np.eye(problem.width)
    solution = np.zeros(vectors.shape, dtype=np.longdouble)
    for _ in range(5):
        solution += np.linalg.solve(H.astype(np.float64), (vectors - solution @ H).astype(np.float64).T).T
    return solution.astype(np.float64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_the_dual_form_keeps_its_digits_where_the_curvature_is_1e7_ridges(scale: float, device: str) -> None:
    """Vectors in the span of the rows cancel in Woodbury's difference: without its corrections 1e-6 would be left."""
    rng = np.random.default_rng(3)
    rows, columns = np.linalg.qr(rng.normal(size=(20, 20)))[0], np.linalg.qr(rng.normal(size=(35, 20)))[0]
    J = torch.tensor(scale * (rows * np.logspace(0, -6, 20)) @ columns.T, device=device)
    problem = Problem(lambda rows: J[rows], torch.ones(20, dtype=torch.float64, device=device), 35)
    vectors = np.concatenate([vectors_for(problem), columns[:, :3].T])
    solver = problem.solver(1e-3)
    assert solver.form == "dual"
    assert relative_error(solver.solve(vectors), accurate_solution(problem, 1e-3, vectors)) < 1e-8


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("width", [7, 8, 9])
def test_h_is_accumulated_in_blocks_of_columns(width: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COLUMN_BLOCK", 4)
    problem = matrix_problem(30, width, seed=5, device=device)
    vectors = vectors_for(problem)
    found = problem.solver(0.1, Limits(chunk_bytes=8 * width * 11)).solve(vectors)
    assert relative_error(found, np.linalg.solve(problem.hessian(0.1), vectors.T).T) < 1e-12


@FORWARD_MODE
@pytest.mark.parametrize("device", DEVICES)
def test_curvlinops_has_the_same_matrix(device: str) -> None:
    curvlinops = pytest.importorskip("curvlinops")  # a development dependency: `make test` installs it
    problem, net, X = network_problem(60, device), network(0, device), people(60, device)
    labels = (X[:, :1] > 0).double()
    p = torch.sigmoid(net(X)[:, 0]).detach()
    problem.weights = p * (1 - p)
    vectors = vectors_for(problem)
    for reduction, factor in (("sum", 1.0), ("mean", 60.0)):
        loss = torch.nn.BCEWithLogitsLoss(reduction=reduction)
        batches = [(X[:25], labels[:25]), (X[25:], labels[25:])]
        operator = curvlinops.GGNLinearOperator(net, loss, list(net.parameters()), batches)
        identity = torch.eye(problem.width, dtype=torch.float64, device=device)
        theirs = factor * (operator @ identity).detach().cpu().numpy() + 0.01 * np.eye(problem.width)
        np.testing.assert_allclose(problem.hessian(0.01), theirs, atol=1e-12)
        for limits in (Limits(), Limits(side=20)):
            found = problem.solver(0.01, limits).solve(vectors)
            assert relative_error(found, np.linalg.solve(theirs, vectors.T).T) < 1e-9


@FORWARD_MODE
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [8, 70])
def test_for_a_logit_linear_in_theta_it_is_the_true_hessian(n: int, device: str) -> None:
    """The total loss is differentiated twice by autograd; rocerf's logistic curvature gives the same answer too."""
    rng = np.random.default_rng(n)
    X = torch.tensor(np.column_stack([rng.normal(size=(n, 11)), np.ones(n)]), device=device)
    y = torch.tensor(rng.integers(0, 2, n), dtype=torch.float64, device=device)
    omega = torch.tensor(rng.uniform(0.2, 3, n), device=device)
    theta = torch.tensor(rng.normal(size=12), device=device)
    ridge = 0.05

    def total(theta: Any) -> Any:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(X @ theta, y, weight=omega, reduction="sum")
        return loss + ridge / 2 * theta @ theta

    H = torch.func.hessian(total)(theta).cpu().numpy()
    p = torch.sigmoid(X @ theta)
    problem = Problem(lambda rows: X[rows], omega * p * (1 - p), 12)
    vectors = vectors_for(problem)
    for limits in (Limits(), Limits(side=5)):
        found = problem.solver(ridge, limits).solve(vectors)
        assert relative_error(found, np.linalg.solve(H, vectors.T).T) < 1e-10
        assert relative_error(found, Curvature(H).solve(vectors)) < 1e-10


@pytest.mark.parametrize("form", FORMS)
def test_solutions_differentiate_the_optimum_in_a_row_s_weight(form: str) -> None:
    """What the curvature is for: shrinking one row's weight moves the minimiser of the quadratic model by H^-1 g."""
    n, limits = FORMS[form]
    problem = network_problem(n)
    J = problem.jacobian(slice(0, n)).numpy()
    targets = np.random.default_rng(1).normal(size=n)
    weights = problem.weights.numpy()

    def minimiser(row_weights: Array) -> Array:
        scaled = (row_weights * weights)[:, None] * J
        return np.linalg.solve(J.T @ scaled + 0.1 * np.eye(problem.width), scaled.T @ targets)

    theta, step, row = minimiser(np.ones(n)), 1e-5, 4
    gradient = weights[row] * (J[row] @ theta - targets[row]) * J[row]
    less, more = np.ones(n), np.ones(n)
    less[row], more[row] = 1 - step, 1 + step
    moved = (minimiser(less) - minimiser(more)) / (2 * step)
    np.testing.assert_allclose(problem.solver(0.1, limits).solve(gradient), moved, atol=1e-8)


def test_vectors_may_be_read_only_strided_of_another_type_or_none() -> None:
    problem = matrix_problem(9, 6, seed=2)
    vectors = np.arange(24.0).reshape(4, 6)
    for limits in (Limits(), Limits(side=3)):
        solver = problem.solver(0.5, limits)
        expected = solver.solve(vectors)
        frozen = vectors.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(solver.solve(frozen), expected)
        np.testing.assert_allclose(solver.solve(vectors[::2, :]), expected[::2], rtol=1e-12)
        np.testing.assert_array_equal(solver.solve(vectors.astype(np.float32)), expected)
        assert solver.solve(np.zeros((0, 6))).shape == (0, 6)
        np.testing.assert_array_equal(vectors, np.arange(24.0).reshape(4, 6))


def test_without_a_ridge_the_primal_form_works_where_the_rows_determine_every_parameter() -> None:
    problem = matrix_problem(60, 8, seed=4)
    vectors = vectors_for(problem)
    truth = np.linalg.solve(problem.hessian(0.0), vectors.T).T
    assert relative_error(problem.solver(0.0).solve(vectors), truth) < 1e-11


def test_parameters_of_very_different_reach_do_not_look_singular() -> None:
    """A column in cents beside one in millions: the factor is taken at unit diagonal."""
    J = torch.tensor(np.random.default_rng(0).normal(size=(50, 3)) * [1e-8, 1.0, 1e7])
    problem = Problem(lambda rows: J[rows], torch.ones(50, dtype=torch.float64), 3)
    v = np.array([1e-8, 1.0, 1e7])
    solution = problem.solver(0.0).solve(v)
    np.testing.assert_allclose(problem.hessian(0.0) @ solution, v, rtol=1e-9)


def dead_parameter(n: int = 30) -> Problem:
    J = torch.tensor(np.random.default_rng(0).normal(size=(n, 4)) * [1.0, 1.0, 0.0, 1.0])
    return Problem(lambda rows: J[rows], torch.ones(n, dtype=torch.float64), 4)


def twin_parameters() -> Problem:
    J = torch.tensor(np.random.default_rng(0).normal(size=(30, 4)))[:, [0, 1, 2, 2]]
    return Problem(lambda rows: J[rows], torch.ones(30, dtype=torch.float64), 4)


@pytest.mark.parametrize("problem", [dead_parameter(), twin_parameters()], ids=["dead", "twins"])
def test_a_singular_matrix_asks_for_damping(problem: Problem) -> None:
    with pytest.raises(SingularCurvatureError, match=r"Expected an invertible .* got a singular one .* give damping"):
        problem.solver(0.0)
    assert problem.solver(1e-3).form == "primal"


@pytest.mark.parametrize(("n", "limits"), [(3, Limits()), (30, Limits(side=2))], ids=["dual", "iterated"])
def test_forms_that_cannot_tell_ask_for_damping_at_once(n: int, limits: Limits) -> None:
    problem = matrix_problem(n, 5, seed=0)
    with pytest.raises(SingularCurvatureError, match=r"ridge above 0 .* got 0.*; give damping"):
        problem.solver(0.0, limits)
    assert problem.asked == []


@pytest.mark.parametrize("ridge", [1e-5, 1e-12, 1e-300])
def test_a_ridge_that_float64_cannot_see_asks_for_more_damping(ridge: float) -> None:
    """The factor of the rows exists, but the solution moves with every correction, or overflows."""
    problem = matrix_problem(20, 30, seed=0, scale=1e3)
    top = np.linalg.eigh(problem.hessian(0.0))[1][:, -1]
    with pytest.raises(SingularCurvatureError, match=r"still moves by more than 1e-05; give more damping"):
        problem.solver(ridge).solve(top)
    with pytest.raises(NotConvergedError, match="give more damping"):
        problem.solver(ridge, Limits(side=10, iterations=20)).solve(top)


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf")])
def test_an_impossible_ridge_is_refused(ridge: float) -> None:
    with pytest.raises(OptionError, match="finite ridge of at least 0"):
        matrix_problem(9, 3, seed=0).solver(ridge)


def test_conjugate_gradients_that_run_out_of_passes_say_how_far_they_came() -> None:
    problem = matrix_problem(400, 300, seed=0)
    limits = Limits(side=10, iterations=3)
    with pytest.raises(NotConvergedError, match=r"1e-10 within 3 passes .* got to \d.* ridge 1.0e-03; give more damp"):
        problem.solver(1e-3, limits).solve(np.ones(300))


@pytest.mark.slow
def test_conjugate_gradients_share_their_passes_among_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact arithmetic needs 300 / 64 passes with a block of 64; one vector alone gains from random companions."""
    problem = matrix_problem(400, 300, seed=0)
    limits = Limits(side=10, kept_bytes=1)
    vectors = vectors_for(problem)
    truth = np.linalg.solve(problem.hessian(0.1), vectors.T).T

    def passes(vectors: Array, truth: Array) -> int:
        problem.asked.clear()
        assert relative_error(problem.solver(0.1, limits).solve(vectors), truth) < 1e-9
        return len(problem.asked)

    assert passes(vectors, truth) <= 10
    assert passes(vectors[:1], truth[:1]) <= 10
    monkeypatch.setattr(module, "LEAST_VECTORS", 1)
    assert passes(vectors[:1], truth[:1]) > 30
    monkeypatch.setattr(module, "MOST_VECTORS", 4)
    assert passes(vectors, truth) > 60


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_derivative_that_is_not_finite_names_its_row(form: str, bad: float) -> None:
    n, limits = FORMS[form]
    J = torch.ones(n, 41, dtype=torch.float64)
    J[17, 3] = bad
    problem = Problem(lambda rows: J[rows], torch.ones(n, dtype=torch.float64), 41)
    with pytest.raises(ModelError, match=r"finite derivatives of the logit, got nan or inf at row 17 of"):
        problem.solver(0.1, replace(limits, chunk_bytes=8 * 41 * 10)).solve(np.ones(41))


def test_derivatives_too_large_to_square_are_refused() -> None:
    J = torch.full((9, 2), 1e200, dtype=torch.float64)
    with pytest.raises(ModelError, match="too large to square"):
        Problem(lambda rows: J[rows], torch.ones(9, dtype=torch.float64), 2).solver(0.1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e-9])
def test_weights_that_are_no_weights_are_refused(bad: float) -> None:
    problem = matrix_problem(9, 3, seed=0)
    problem.weights[4] = bad
    with pytest.raises(ModelError, match=r"finite weights w_i >= 0"):
        problem.solver(0.1)


def test_a_jacobian_of_another_width_is_refused() -> None:
    problem = matrix_problem(9, 3, seed=0)
    problem.width = 4
    with pytest.raises(ModelError, match=r"shape \(9, 4\), got \(9, 3\)"):
        problem.solver(0.1)


@pytest.mark.parametrize("form", FORMS)
def test_vectors_that_are_not_finite_are_refused(form: str) -> None:
    n, limits = FORMS[form]
    problem = network_problem(n)
    with pytest.raises(ModelError, match="finite vectors"):
        problem.solver(0.1, limits).solve(np.full(problem.width, np.nan))
