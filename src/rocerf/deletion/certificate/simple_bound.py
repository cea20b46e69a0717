"""The simple bound: one radius for the whole move, a first-order term and a quadratic remainder.

Weaker than the sharp bound on large tables, better on some problems with outliers. White coordinates throughout, so
that ``H = I`` and ``c_i = H^{-1/2} x_i`` is a row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocerf.deletion.certificate.bound_pieces import SimplePiece
from rocerf.deletion.certificate.group_sums import Columns, norm_of_group_sum, signed_top_k
from rocerf.deletion.certificate.matrices import gram, largest_eigenvalue, length
from rocerf.deletion.certificate.problem import White
from rocerf.deletion.certificate.sharp_bound import ABSOLUTE_TOLERANCE, CLOSING_TOLERANCE
from rocerf.types import Array


def simple_piece(white: White, passes: int = 80, growth: float = 1.02) -> SimplePiece | None:
    """Close the symmetric box ``|u_i| <= U_i`` and return the better of the two remainders."""
    box = np.zeros(len(white.z))
    for _ in range(passes):
        image = _image(white, box)
        if image is None or not white.allows(image[0][None]):
            return None
        if (image[0] < box)[white.live].all():
            break
        box = np.where(image[0] >= box, image[0] * growth, box)
    else:
        return None
    for _ in range(4):
        smaller = _image(white, box)
        if smaller is None:
            return None
        box = np.minimum(box, smaller[0])
    final = _image(white, box)
    return None if final is None else _better_remainder(white, np.minimum(box, final[0]), *final[1:])


def _image(white: White, box: Array) -> tuple[Array, float, Array, Array] | None:
    """Bound every ``|u_i|`` on the box; also the radius t, q_i and the residual bounds."""
    problem, k, rows = white.problem, white.problem.k, white.rows
    low = problem.weight * problem.loss.curvature_interval(white.z, box, box)[0]
    lost = k * white.row_penalty
    matrix = gram(rows, low) + white.penalty - lost
    smallest = float(np.linalg.eigvalsh(matrix)[0]) - 1e-11 * float(np.trace(matrix)) - white.margin(low)
    if not smallest > 1e-6:
        return None
    residual = white.residual_bound(box, box)
    pull, g0 = length(white.pull), length(white.gradient)
    able = residual > 0
    columns = Columns((rows * (problem.sign * residual)[:, None])[able], 0.0)
    radius = (norm_of_group_sum(columns.vectors, k) + k * pull + g0) / smallest
    radius = radius * (1 + CLOSING_TOLERANCE) + ABSOLUTE_TOLERANCE
    q = problem.weight * problem.loss.second_order_factor(white.z, box)
    quadratic = largest_eigenvalue(gram(rows, q * white.norms))
    up, down = signed_top_k(rows, columns, k, shift=rows @ white.pull)
    taken = largest_eigenvalue(lost)
    rest = white.norms * (quadratic * radius**2 + g0 + (taken + white.error) * radius)
    image = np.minimum(white.norms * radius, np.maximum(up, down) + rest)
    slack = ABSOLUTE_TOLERANCE + white.rounding * radius
    return image * (1 + CLOSING_TOLERANCE) + slack, radius, q, residual


def _better_remainder(white: White, box: Array, radius: float, q: Array, residual: Array) -> SimplePiece:
    """Build both pieces and keep the one with the smaller drop at rows near the boundary."""
    problem = white.problem
    largest = max(largest_eigenvalue(white.row_penalty), 0.0)
    spectral = SimplePiece(
        theta=problem.theta,
        to_white=white.to_white,
        residual=residual,
        remainder=q * radius**2,
        pull=problem.row_penalty * problem.theta,
        pull_rest=problem.k * np.sqrt(largest) * radius,
        root_penalty=np.sqrt(problem.row_penalty),
        g0=length(white.gradient) + white.error * radius,
        k=problem.k,
        spectral=True,
    )
    plain = replace(spectral, remainder=q * box**2, spectral=False)
    both = [float(piece.lower(problem.nearest(16), problem.rows).mean()) for piece in (spectral, plain)]
    return spectral if both[0] >= both[1] else plain
