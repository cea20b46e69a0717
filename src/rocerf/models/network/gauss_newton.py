"""The exact generalised Gauss-Newton matrix of a network's total loss, ready to solve with.

For a binary cross-entropy summed (not averaged) over n rows with weights ``omega_i >= 0``, logits ``z_i(theta)``,
probabilities ``p_i = 1 / (1 + exp(-z_i))`` and Jacobian rows ``J_i = dz_i/dtheta`` of shape (p,)::

    H = sum_i w_i J_i J_i' + ridge I,    w_i = omega_i p_i (1 - p_i) >= 0
      = A'A + ridge I,                   A = diag(sqrt(w)) J of shape (n, p)

It is the Hessian without the terms ``(p_i - y_i) d2 z_i``, so never indefinite, and the Hessian itself where the logit
is linear in theta. ``ridge`` is the penalty ``ridge/2 |theta|^2`` on the total, damping included.

Three forms of one answer, chosen by size: a Cholesky factor of H (p x p), one of ``ridge I + AA'`` (n x n), or neither,
with conjugate gradients on products with H. A is walked over in chunks of rows and never held whole, except where it
is small enough (:class:`Limits`). Nothing is approximated: no diagonal, no Kronecker factors, no sampled rows.

This module imports torch; only code that already has a network imports it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from rocerf.errors import ModelError, NotConvergedError, OptionError, SingularCurvatureError
from rocerf.models.logistic.curvature import SINGULAR_PIVOT
from rocerf.types import Array

Form = Literal["primal", "dual", "conjugate gradients"]

#: Rows of a slice -> their ``dz/dtheta``, shape (m, p), float64, on the device of the weights.
Jacobian = Callable[[slice], torch.Tensor]

#: Conjugate gradients stop where the residual bounds the solution's relative error by this.
TOLERANCE = 1e-10
#: Vectors in a block of conjugate gradients. Fewer would be idle beside the Jacobian rows that each pass computes;
#: with more, the work among the vectors themselves begins to count.
LEAST_VECTORS, MOST_VECTORS = 64, 256
#: The dual form is settled where a correction is below this share of the solution: what is then left is about its
#: square, or what float64 cannot resolve. The first correction usually is; later ones help only close to that limit.
#: Conjugate gradients must prove as much at their end.
SETTLED, MOST_CORRECTIONS = 1e-5, 3
#: Columns of H that are accumulated together: only blocks up to the diagonal, so nearly half the work is saved.
COLUMN_BLOCK = 512


@dataclass(frozen=True)
class Limits:
    """What may be held in memory at a time, and how long to iterate."""

    #: Largest side of a matrix to factorise: 2 GiB, and as much again for its factor; about 1.5e12 operations.
    side: int = 16_384
    #: Jacobian rows asked for at a time: long enough for full-speed products, and automatic differentiation holds
    #: a few times as much while it makes them.
    chunk_bytes: int = 2**26
    #: Rows of A that are kept where A is walked over more than once.
    kept_bytes: int = 2**30
    #: Passes over the rows by conjugate gradients: tens are usual, some hundreds where the curvature is 1e7 ridges.
    iterations: int = 1_000


DEFAULT_LIMITS = Limits()


class GaussNewton(ABC):
    """``H^-1 v`` for the Gauss-Newton matrix H of ``width`` parameters. Made by :func:`gauss_newton`."""

    form: Form

    def __init__(self, rows: _WeightedRows, ridge: float) -> None:
        self._rows = rows
        self._ridge = ridge

    @property
    def width(self) -> int:
        """Number of parameters p."""
        return self._rows.width

    def solve(self, vectors: Array) -> Array:
        """``H^-1 v`` for one vector (p,) or for each row of (m, p)."""
        rows = torch.tensor(np.atleast_2d(vectors), dtype=torch.float64, device=self._rows.device)
        return np.asarray(self.solve_tensor(rows).cpu().numpy().reshape(np.shape(vectors)))

    def solve_tensor(self, vectors: torch.Tensor) -> torch.Tensor:
        """``H^-1 v`` for each row of (m, p), on the device of the weights; same shape."""
        if not torch.isfinite(vectors).all():
            raise ModelError("Expected finite vectors to solve for, got nan or inf: look at the gradients they are.")
        return self._solve(vectors.detach().to(torch.float64))

    @abstractmethod
    def _solve(self, vectors: torch.Tensor) -> torch.Tensor: ...


def gauss_newton(
    jacobian: Jacobian, weights: torch.Tensor, ridge: float, *, width: int, limits: Limits = DEFAULT_LIMITS
) -> GaussNewton:
    """Factorise H, or prepare to iterate, whichever these sizes allow.

    ``weights`` (n,) are the ``w_i`` of the formula above; ``jacobian`` is asked for consecutive rows, at most
    ``limits.chunk_bytes`` of them at a time; ``width`` is p. Raises :class:`SingularCurvatureError` where H cannot be
    inverted, and :class:`ModelError` where weights or Jacobian are not finite.
    """
    rows = _WeightedRows(jacobian, weights, width, limits)
    if not np.isfinite(ridge) or ridge < 0:
        raise OptionError(f"Expected a finite ridge of at least 0, got {ridge}; for example 1e-3 on the total loss.")
    if width <= rows.count and width <= limits.side:
        return _Primal(rows, ridge)
    if ridge == 0:
        raise SingularCurvatureError(
            f"Expected a ridge above 0 for {rows.count} rows and {width} parameters, got 0: with fewer rows than "
            f"parameters, or with more than {limits.side} of both, H is not known to be invertible without; "
            "give damping (for example 1e-3)."
        )
    if rows.count <= limits.side:
        return _Dual(rows, ridge)
    return _ConjugateGradients(rows, ridge, limits.iterations)


class _WeightedRows:
    """``A = diag(sqrt(w)) J``, shape (n, p), walked over in chunks; computed anew on each walk unless kept."""

    def __init__(self, jacobian: Jacobian, weights: torch.Tensor, width: int, limits: Limits) -> None:
        weights = weights.detach().to(torch.float64)
        if weights.ndim != 1 or not (torch.isfinite(weights) & (weights >= 0)).all():
            raise ModelError(
                f"Expected finite weights w_i >= 0 of shape (n,), got shape {tuple(weights.shape)} or values that are "
                "negative, nan or inf: a logit is nan, or a row weight is wrong."
            )
        self.width = width
        self.count = len(weights)
        self.device = weights.device
        self._jacobian = jacobian
        self._roots = weights.sqrt()
        self._chunk = max(1, limits.chunk_bytes // (8 * width))
        self._kept: torch.Tensor | None = None
        #: Rows that fit into the memory for what is kept.
        self.keepable = max(1, limits.kept_bytes // (8 * width))

    def keep_if_small(self) -> None:
        """Hold all of A from now on, where it fits."""
        if self.count <= self.keepable:
            self._kept = self.hold(slice(0, self.count))

    def hold(self, rows: slice) -> torch.Tensor:
        """These rows of A in one piece."""
        if self._kept is not None:
            return self._kept[rows]
        held = torch.empty(rows.stop - rows.start, self.width, dtype=torch.float64, device=self.device)
        for chunk, A in self.walk(rows.start, rows.stop):
            held[chunk.start - rows.start : chunk.stop - rows.start] = A
        return held

    def walk(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[slice, torch.Tensor]]:
        """Slices of rows and ``A[slice]`` (m, p), in order."""
        stop = self.count if stop is None else stop
        for first in range(start, stop, self._chunk):
            rows = slice(first, min(first + self._chunk, stop))
            yield rows, self._kept[rows] if self._kept is not None else self._computed(rows)

    def _computed(self, rows: slice) -> torch.Tensor:
        J = self._jacobian(rows).detach()
        expected = (rows.stop - rows.start, self.width)
        if tuple(J.shape) != expected:
            raise ModelError(
                f"Expected Jacobian rows of shape {expected}, got {tuple(J.shape)}: count the parameters again."
            )
        A = self._roots[rows, None] * J.to(torch.float64)
        # The sum is not finite if any entry is not, and costs no memory.
        if not torch.isfinite(A.sum()):
            bad = int((~torch.isfinite(A)).any(dim=1).int().argmax())
            raise ModelError(
                f"Expected finite derivatives of the logit, got nan or inf at row {rows.start + bad} of those "
                "given: the network or its input overflows there; scale the columns, or train with more weight decay."
            )
        return A

    def gram_product(self, vectors: torch.Tensor) -> torch.Tensor:
        """``A'A v`` for each row v of (m, p); one walk for all of them."""
        total = torch.zeros_like(vectors)
        for _, A in self.walk():
            # Not addmm_: with a single vector, cuBLAS refuses it.
            total += (vectors @ A.T) @ A
        return total


class _Primal(GaussNewton):
    """A Cholesky factor of H: p^2 memory, n p^2 + p^3/3 operations once, 2 p^2 for each vector."""

    form: Form = "primal"

    def __init__(self, rows: _WeightedRows, ridge: float) -> None:
        super().__init__(rows, ridge)
        hessian = torch.zeros(rows.width, rows.width, dtype=torch.float64, device=rows.device)
        for _, A in rows.walk():
            for first in range(0, rows.width, COLUMN_BLOCK):
                last = min(first + COLUMN_BLOCK, rows.width)
                hessian[first:last, :last] += A[:, first:last].T @ A[:, :last]
        self._factor = _UnitFactor(hessian, ridge)

    def _solve(self, vectors: torch.Tensor) -> torch.Tensor:
        return self._factor.solve(vectors.T).T


class _Dual(GaussNewton):
    """A Cholesky factor of ``K = ridge I + AA'`` (n, n), and Woodbury's ``H^-1 v = (v - A'K^-1 A v) / ridge``."""

    form: Form = "dual"

    def __init__(self, rows: _WeightedRows, ridge: float) -> None:
        super().__init__(rows, ridge)
        rows.keep_if_small()
        gram = torch.zeros(rows.count, rows.count, dtype=torch.float64, device=rows.device)
        # Where A is not kept, each block of it that does fit is met by all later rows: few walks, not one a chunk.
        for first in range(0, rows.count, rows.keepable):
            block = slice(first, min(first + rows.keepable, rows.count))
            held = rows.hold(block)
            for chunk, A in rows.walk(first):
                gram[chunk, block] = A @ held.T
        self._factor = _UnitFactor(gram, ridge)

    def _solve(self, vectors: torch.Tensor) -> torch.Tensor:
        """Woodbury, corrected by its own residual until it no longer moves.

        The difference cancels for vectors in the span of A, which gradients of rows are: it loses up to
        ``(|H|/ridge)^2`` of the precision, and a correction brings that back to the ``|H|/ridge`` of a dense solve.
        """
        solutions = self._woodbury(vectors)
        for _ in range(MOST_CORRECTIONS):
            correction = self._woodbury(vectors - self._ridge * solutions - self._rows.gram_product(solutions))
            solutions += correction
            if _all_within(correction.norm(dim=1), SETTLED, solutions.norm(dim=1)):
                return solutions
        raise SingularCurvatureError(
            f"Expected a ridge that float64 can tell from the curvature, got {self._ridge:.1e}: after "
            f"{MOST_CORRECTIONS} corrections the solution still moves by more than {SETTLED:g}; give more damping."
        )

    def _woodbury(self, vectors: torch.Tensor) -> torch.Tensor:
        seen = torch.empty(self._rows.count, len(vectors), dtype=torch.float64, device=vectors.device)
        for chunk, A in self._rows.walk():
            seen[chunk] = A @ vectors.T
        inner = self._factor.solve(seen)
        result = vectors.clone()
        for chunk, A in self._rows.walk():
            result -= inner[chunk].T @ A
        return result / self._ridge


class _ConjugateGradients(GaussNewton):
    """Neither n^2 nor p^2 fits: block conjugate gradients, one walk over the rows for a whole block of vectors.

    All vectors of a block share their search directions: 6 to 45 times fewer walks than each on its own took on small
    networks. Residuals are kept orthonormal by a QR factorisation (Dubrulle's form), so that vectors may depend on each
    other. There is no diagonal preconditioner: it would tear apart the many eigenvalues that equal the ridge, and took
    one to three times the walks where columns are scaled.
    """

    form: Form = "conjugate gradients"

    def __init__(self, rows: _WeightedRows, ridge: float, iterations: int) -> None:
        super().__init__(rows, ridge)
        self._iterations = iterations
        rows.keep_if_small()

    def _solve(self, vectors: torch.Tensor) -> torch.Tensor:
        solutions = torch.empty_like(vectors)
        size = min(MOST_VECTORS, self.width)
        for first in range(0, len(vectors), size):
            block = vectors[first : first + size]
            solutions[first : first + size] = self._block(_widened(block).T, len(block)).T
        self._check(vectors, solutions)
        return solutions

    def _check(self, vectors: torch.Tensor, solutions: torch.Tensor) -> None:
        """The residuals carried along drift from the true ones where the curvature is too many ridges."""
        residuals = vectors - self._ridge * solutions - self._rows.gram_product(solutions)
        bounds, lengths = residuals.norm(dim=1) / self._ridge, solutions.norm(dim=1)
        if not _all_within(bounds, SETTLED, lengths):
            raise NotConvergedError(
                f"Expected a ridge that float64 can tell from the curvature, got {self._ridge:.1e}: the residual only "
                f"bounds the relative error by {float((bounds / lengths).max()):.1e}; give more damping."
            )

    def _block(self, columns: torch.Tensor, wanted: int) -> torch.Tensor:
        """``H^-1 c`` for the first columns of (p, b), as many as wanted. The residuals are ``Q @ sizes`` throughout."""
        solutions = torch.zeros_like(columns)
        Q, sizes = torch.linalg.qr(columns)
        directions = Q
        for _ in range(self._iterations):
            bent = self._ridge * directions + self._rows.gram_product(directions.T).T
            step = torch.linalg.inv(directions.T @ bent)
            solutions += directions @ (step @ sizes)
            Q, shrink = torch.linalg.qr(Q - bent @ step)
            sizes = shrink @ sizes
            # No eigenvalue of H is below the ridge, so this bounds the error of each solution. That residuals are
            # small beside the vectors would not: gradients of rows lie where H is largest and solutions are small.
            bounds = (sizes.norm(dim=0) / self._ridge)[:wanted]
            lengths = solutions.norm(dim=0)[:wanted]
            if _all_within(bounds, TOLERANCE, lengths):
                return solutions[:, :wanted]
            directions = Q + directions @ shrink.T
        raise NotConvergedError(
            f"Expected conjugate gradients to reach a relative error of {TOLERANCE:g} within {self._iterations} passes "
            f"over the rows, got to {float((bounds / lengths).max()):.1e} with ridge {self._ridge:.1e}; "
            "give more damping."
        )


def _widened(vectors: torch.Tensor) -> torch.Tensor:
    """The vectors, and random ones up to :data:`LEAST_VECTORS`, which make the search directions richer."""
    m, width = vectors.shape
    random = torch.Generator(vectors.device).manual_seed(0)
    extra = max(0, min(LEAST_VECTORS, width) - m)
    return torch.cat([vectors, torch.randn(extra, width, generator=random, dtype=torch.float64, device=vectors.device)])


class _UnitFactor:
    """The Cholesky factor of ``M + ridge I``, brought to unit diagonal first: parameters differ much in their reach.

    Only the lower triangle of M is read, and M is overwritten.
    """

    def __init__(self, matrix: torch.Tensor, ridge: float) -> None:
        matrix.diagonal().add_(ridge)
        diagonal = matrix.diagonal().clone()
        if not torch.isfinite(diagonal).all():
            raise ModelError(
                "Expected a finite Gauss-Newton matrix, got inf: derivatives of the logit are too large to square; "
                "scale the columns."
            )
        if not (diagonal > 0).all():
            raise _singular(ridge, 0.0)
        self._unit = diagonal.rsqrt()
        matrix.mul_(self._unit[:, None]).mul_(self._unit)
        self._lower, failed = torch.linalg.cholesky_ex(matrix)
        pivot = 0.0 if failed else float(self._lower.diagonal().square().min()) if len(diagonal) else 1.0
        if pivot < SINGULAR_PIVOT:
            raise _singular(ridge, pivot)

    def solve(self, columns: torch.Tensor) -> torch.Tensor:
        """``(M + ridge I)^-1 c`` for each column of (side, m)."""
        return torch.cholesky_solve(columns * self._unit[:, None], self._lower) * self._unit[:, None]


def _all_within(errors: torch.Tensor, share: float, sizes: torch.Tensor) -> bool:
    """Whether every error is at most this share of its size; beside a size that overflowed, none is."""
    return bool(((errors <= share * sizes) & torch.isfinite(sizes)).all())


def _singular(ridge: float, pivot: float) -> SingularCurvatureError:
    return SingularCurvatureError(
        f"Expected an invertible Gauss-Newton matrix, got a singular one (smallest relative pivot {pivot:.1e}, ridge "
        f"{ridge:.1e}): some parameters, or combinations of them, move no logit; give damping, or more of it."
    )
