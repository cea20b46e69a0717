"""Every row's ``H^-1 g_i`` for a network of 1,837 parameters and 20,000 rows, against two other ways to it.

H is the exact Gauss-Newton matrix of the total loss, g_i the gradient of row i's loss. Ours: `models/gauss_newton.py`.
The others are timed on a part of the work where the whole would take too long; what is scaled up from a part says so:

* ``curvlinops``, the package for such matrices: H as its operator times the identity, then the same factor and solves
  as ours; or its conjugate gradients for some g_i, with a limit on the iterations, so that its time is a lower bound.
* the plain loop: autograd one row at a time, then one dense solve.

Run: ``python -m benchmarks.curvature [--device cuda]``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from benchmarks.record import seconds, write_record
from rocerf.models.network.gauss_newton import GaussNewton, gauss_newton

ROWS, COLUMNS, HIDDEN = 20_000, 17, 34
#: Weight decay of 1e-3 on the mean loss.
RIDGE = 1e-3 * ROWS
TRAINING_STEPS = 100
SEED = 0
CHUNK = 4096
#: The parts of the others' work that are timed.
LOOP_ROWS, IDENTITY_COLUMNS, CG_VECTORS, CG_ITERATIONS = 500, 32, 8, 60


class CentredSoftplus(torch.nn.Module):  # type: ignore[misc]
    """``softplus(z) - ln 2``: smooth, and 0 at 0."""

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Elementwise."""
        return torch.nn.functional.softplus(z) - np.log(2)


@dataclass
class Problem:
    """A briefly trained network, its rows and labels, all float64 on one device."""

    net: Any
    X: torch.Tensor
    y: torch.Tensor

    def __post_init__(self) -> None:
        self.theta = {name: value.detach() for name, value in self.net.named_parameters()}
        self.width = sum(value.numel() for value in self.theta.values())
        probabilities = torch.sigmoid(self.net(self.X)[:, 0]).detach()
        self.weights = probabilities * (1 - probabilities)
        self.errors = probabilities - self.y
        self._per_row = vmap(grad(self._logit), in_dims=(None, 0))

    def _logit(self, theta: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(self.net, theta, (x[None],))[0, 0]

    def jacobian(self, rows: slice) -> torch.Tensor:
        """``d logit / d theta``, shape (m, p)."""
        return torch.cat([part.flatten(1) for part in self._per_row(self.theta, self.X[rows]).values()], dim=1)

    def gradients(self, rows: slice) -> torch.Tensor:
        """``g_i = (p_i - y_i) J_i``, shape (m, p)."""
        return self.errors[rows, None] * self.jacobian(rows)

    def all_effects(self, solver: GaussNewton) -> torch.Tensor:
        """``H^-1 g_i`` of every row, shape (n, p)."""
        found = torch.empty(ROWS, self.width, dtype=torch.float64, device=self.X.device)
        for first in range(0, ROWS, CHUNK):
            rows = slice(first, min(first + CHUNK, ROWS))
            found[rows] = solver.solve_tensor(self.gradients(rows))
        return found


def made_up(device: str) -> Problem:
    """Random rows, labels with an interaction and noise, a few steps of Adam."""
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.logistic(size=ROWS) > 0
    layers = (torch.nn.Linear(COLUMNS, HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Linear(HIDDEN, 1))
    net = torch.nn.Sequential(layers[0], CentredSoftplus(), layers[1], CentredSoftplus(), layers[2]).double().to(device)
    people, labels = torch.tensor(X, device=device), torch.tensor(y, dtype=torch.float64, device=device)
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(TRAINING_STEPS):
        adam.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(net(people)[:, 0], labels).backward()
        adam.step()
    return Problem(net, people, labels)


def timed(action: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """As :func:`seconds`, to the end of the device's work."""

    def finished() -> Any:
        result = action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result

    return seconds(finished, repeats=repeats)


def measure_ours(problem: Problem, repeats: int) -> tuple[dict[str, Any], GaussNewton, torch.Tensor]:
    """Factor and all rows' solutions, each with the Jacobians it needs."""

    def factorise() -> GaussNewton:
        return gauss_newton(problem.jacobian, problem.weights, RIDGE, width=problem.width)

    jacobians, _ = timed(lambda: [problem.jacobian(slice(i, i + CHUNK)) for i in range(0, ROWS, CHUNK)][-1], repeats)
    factor, solver = timed(factorise, repeats)
    solves, effects = timed(lambda: problem.all_effects(solver), repeats)
    whole = factor + solves
    measured = {"form": solver.form, "jacobians_once": jacobians, "factor": factor, "solves": solves, "whole": whole}
    return measured, solver, effects


def measure_curvlinops(problem: Problem, ours: dict[str, Any], effects: torch.Tensor) -> dict[str, Any]:
    """Its operator times some columns of the identity; its conjugate gradients for some rows' gradients."""
    with warnings.catch_warnings():
        # Scripted helpers of torch's forward mode and of linear_operator.
        warnings.filterwarnings("ignore", r"`torch\.jit\.script` is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", "CG terminated in")  # the limit on its iterations is ours
        from curvlinops import CGInverseLinearOperator, GGNLinearOperator
        from curvlinops.examples import IdentityLinearOperator

        parameters = list(problem.net.parameters())
        loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
        batches = [(X, y[:, None]) for X, y in zip(problem.X.split(CHUNK), problem.y.split(CHUNK), strict=True)]
        operator = GGNLinearOperator(problem.net, loss, parameters, batches, check_deterministic=False)
        unit = torch.eye(problem.width, dtype=torch.float64, device=problem.X.device)[:, :IDENTITY_COLUMNS]
        operator @ unit[:, :2]  # the first product prepares its functions
        columns, products = timed(lambda: operator @ unit)
        shapes = [tuple(parameter.shape) for parameter in parameters]
        identity = IdentityLinearOperator(shapes, problem.X.device, torch.float64)
        inverse = CGInverseLinearOperator(operator + RIDGE * identity, max_iter=CG_ITERATIONS, tolerance=1e-10)
        vectors = problem.gradients(slice(0, CG_VECTORS)).T
        cg, found = timed(lambda: inverse @ vectors)
    expected = effects[:CG_VECTORS].T
    dense = columns * problem.width / IDENTITY_COLUMNS
    return {
        "columns_timed": IDENTITY_COLUMNS,
        "columns_seconds": columns,
        "matrix_scaled_up": dense,
        "dense_whole_scaled_up": dense + ours["solves"],
        "dense_ratio": (dense + ours["solves"]) / ours["whole"],
        "matrix_difference": matrix_difference(problem, products.detach()),
        "cg_vectors_timed": CG_VECTORS,
        "cg_iterations_at_most": CG_ITERATIONS,
        "cg_seconds": cg,
        "cg_whole_scaled_up": cg * ROWS / CG_VECTORS,
        "cg_ratio": cg * ROWS / CG_VECTORS / ours["whole"],
        "cg_difference": float(((found.detach() - expected).norm(dim=0) / expected.norm(dim=0)).max()),
    }


def matrix_difference(problem: Problem, theirs: torch.Tensor) -> float:
    """Their first columns of H (without ridge) against plain sums over our Jacobian rows, relative."""
    mine = torch.zeros_like(theirs)
    for first in range(0, ROWS, CHUNK):
        rows = slice(first, min(first + CHUNK, ROWS))
        J = problem.jacobian(rows)
        mine += J.T @ (problem.weights[rows, None] * J[:, : theirs.shape[1]])
    return float((mine - theirs).norm() / mine.norm())


def measure_plain_loop(problem: Problem, ours: dict[str, Any], effects: torch.Tensor) -> dict[str, Any]:
    """Autograd for some rows, one at a time; the matrix and one dense solve for all of them."""
    parameters = tuple(problem.net.parameters())

    def loop() -> torch.Tensor:
        logits = (problem.net(problem.X[i : i + 1])[0, 0] for i in range(LOOP_ROWS))
        return torch.stack([torch.cat([g.ravel() for g in torch.autograd.grad(z, parameters)]) for z in logits])

    rows_seconds, _ = timed(loop)
    J = problem.jacobian(slice(0, ROWS))

    def dense() -> torch.Tensor:
        H = J.T @ (problem.weights[:, None] * J)
        H.diagonal().add_(RIDGE)
        return torch.linalg.solve(H, (problem.errors[:, None] * J).T).T

    dense_seconds, found = timed(dense)
    whole = rows_seconds * ROWS / LOOP_ROWS + dense_seconds
    return {
        "rows_timed": LOOP_ROWS,
        "rows_seconds": rows_seconds,
        "jacobians_scaled_up": rows_seconds * ROWS / LOOP_ROWS,
        "dense_seconds": dense_seconds,
        "whole_scaled_up": whole,
        "ratio": whole / ours["whole"],
        "difference": float(((found - effects).norm(dim=1) / effects.norm(dim=1)).max()),
    }


def show(problem: Problem, ours: dict[str, Any], theirs: dict[str, Any], plain: dict[str, Any]) -> None:
    """The table."""
    print(
        f"H^-1 g_i for {ROWS:,} rows and {problem.width:,} parameters on {problem.X.device.type}, "
        f"{torch.get_num_threads()} threads; * is scaled up from a part"
    )
    print(f"{'':42} {'seconds':>10} {'times ours':>11}   largest relative difference")
    parts = f"factor {ours['factor']:.2f}, solves {ours['solves']:.2f}, Jacobians {ours['jacobians_once']:.2f} in each"
    print(f"{'rocerf, ' + ours['form']:42} {ours['whole']:>10.2f} {1:>11.1f}   ({parts})")
    for name, seconds_, ratio, difference in (
        (
            f"curvlinops dense* ({theirs['columns_timed']} columns timed)",
            theirs["dense_whole_scaled_up"],
            theirs["dense_ratio"],
            theirs["matrix_difference"],
        ),
        (
            f"curvlinops CG* ({CG_VECTORS} rows, {CG_ITERATIONS} iterations)",
            theirs["cg_whole_scaled_up"],
            theirs["cg_ratio"],
            theirs["cg_difference"],
        ),
        (f"plain loop* ({LOOP_ROWS} rows timed)", plain["whole_scaled_up"], plain["ratio"], plain["difference"]),
    ):
        print(f"{name:42} {seconds_:>10.2f} {ratio:>11.1f}   {difference:.1e}")


def main() -> int:
    """Measure, print, write out/curvature.json; 1 if the others give another matrix."""
    parser = argparse.ArgumentParser(description="Curvature of a network: rocerf, curvlinops and a plain loop.")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = parser.parse_args().device
    problem = made_up(device)
    ours, _, effects = measure_ours(problem, repeats=1 if device == "cpu" else 3)
    theirs = measure_curvlinops(problem, ours, effects)
    plain = measure_plain_loop(problem, ours, effects)
    show(problem, ours, theirs, plain)
    measured = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "rows": ROWS,
        "parameters": problem.width,
        "ridge": RIDGE,
        "ours": ours,
        "curvlinops": theirs,
        "plain_loop": plain,
        "packages": {name: version(name) for name in ("torch", "curvlinops-for-pytorch")},
    }
    checksum = hashlib.sha256(problem.X.cpu().numpy().tobytes()).hexdigest()
    print("written:", write_record("curvature", measured, seed=SEED, checksums={"random rows": checksum}))
    return int(max(theirs["matrix_difference"], plain["difference"]) > 1e-8)


if __name__ == "__main__":
    sys.exit(main())
