"""From a fitted model to a certificate: check the arguments, then try the ways to a proof, tightest first.

certificate = certify_model(model, k)
certificate.closed            # False: no proof, ``certificate.reason`` says why
certificate.drop(points)      # score - drop is a lower bound of x'theta_S for every |S| <= k
certificate.value_and_cut(points)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rocerf.deletion.certificate.about import CertifiedAbout
from rocerf.deletion.certificate.bound_pieces import Piece
from rocerf.deletion.certificate.branching import REFERENCE_POINTS, Tree
from rocerf.deletion.certificate.cells import close_cells
from rocerf.deletion.certificate.certificate import Certificate
from rocerf.deletion.certificate.exact_deletions import single_deletions
from rocerf.deletion.certificate.options import Options, default_effort
from rocerf.deletion.certificate.problem import Problem, White, whiten
from rocerf.deletion.certificate.sharp_bound import close_box, sharp_piece
from rocerf.deletion.certificate.simple_bound import simple_piece
from rocerf.deletion.certificate.stacked_pieces import Fears
from rocerf.errors import ModelError, OptionError
from rocerf.models.model import ExactModel
from rocerf.passes import one_blas_thread

_SIMPLE_WORK = 5e9  # rows^2 times columns above which the simple version is not tried


def certify_model(model: ExactModel, k: int, options: Options | None = None) -> Certificate:
    """Prove a lower bound of ``x'theta_S`` for every deletion of at most k of the model's training rows.

    It is about the rows that the model is really trained on (``model.training_design()``: those its pipeline makes, of
    which theta may be the optimum to rounding only, which the gradient in the bound makes up for). The certificate
    speaks of design rows and of log-odds: it does not know the decision threshold or categories that are refused, so
    the caller adds ``model.beyond_design(X)`` to its bounds to get bounds of ``model.score``.
    """
    about = CertifiedAbout.of(model, k)
    # _problem() scales P to a largest entry of 1; liblinear's intercept entry 1/s^2 may be larger.
    share = float(about.row_penalty.max(initial=0.0)) or None
    problem = _problem(about.design, model.train.y, about.theta, about.penalty, k, about.weights, share)
    return _certified(replace(problem, loss=model.objective.loss), options, about)


def certify(
    design: ArrayLike,
    y: ArrayLike,
    theta: ArrayLike,
    penalty_diag: ArrayLike,
    k: int,
    weights: ArrayLike | None = None,
    per_row_penalty: float | None = None,
    options: Options | None = None,
) -> Certificate:
    """Prove a lower bound of ``x'theta_S`` for every deletion S of at most k rows.

    The objective is ``sum_i omega_i loss_i + theta' diag(penalty_diag) theta / 2``; rows keep their weights when others
    go. With ``per_row_penalty = c`` (the mean penalty) every deleted row, of whatever weight, also takes ``c P`` from
    ``diag(penalty_diag)``, where P is ``penalty_diag`` scaled to a largest entry of 1. ``theta`` need only be close to
    the optimum: its gradient enters the bound.
    """
    problem = _problem(design, y, theta, penalty_diag, k, weights, per_row_penalty)
    about = CertifiedAbout(
        *(problem.k, problem.design, problem.sign, problem.theta),
        *(problem.weight, problem.penalty, problem.row_penalty),
    )
    return _certified(problem, options, about)


def _certified(problem: Problem, options: Options | None, about: CertifiedAbout) -> Certificate:
    began = time.perf_counter()
    with one_blas_thread():  # the cores are shared out by blocks and branches; BLAS threads would fight with them
        version, pieces, reason = _prove(problem, Options() if options is None else options)
    return Certificate(
        closed=bool(pieces),
        reason=reason,
        k=problem.k,
        version=version,
        rows=problem.rows,
        theta=problem.theta,
        pieces=tuple(pieces),
        seconds=time.perf_counter() - began,
        about=about,
    )


def largest_k_that_closes(
    closes: Callable[[int], Certificate], most: int, cache: dict[int, Certificate] | None = None
) -> tuple[int, dict[int, Certificate]]:
    """The largest k up to ``most`` for which ``closes(k)`` is closed, by bisection, and what was computed on the way.

    A bound for k rows holds for fewer, so closing is taken to be monotone in k; certificates of ``cache`` are reused. 0
    means that none closed.
    """
    known = {} if cache is None else dict(cache)

    def closed(k: int) -> bool:
        if k not in known:
            known[k] = closes(k)
        return known[k].closed

    low = max((k for k, found in known.items() if found.closed and k <= most), default=0)
    high = most + 1
    step = 1
    while low + step < high:  # climb by doubling: small k are cheap, large failures are not
        if closed(low + step):
            low, step = low + step, 2 * step
        else:
            high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if closed(middle) else (low, middle)
    return low, known


def _problem(
    design: ArrayLike,
    y: ArrayLike,
    theta: ArrayLike,
    penalty_diag: ArrayLike,
    k: int,
    weights: ArrayLike | None,
    per_row_penalty: float | None,
) -> Problem:
    """Check the arguments and put them in one place."""
    x = np.ascontiguousarray(design, dtype=float)
    labels, start = np.asarray(y, dtype=float), np.asarray(theta, dtype=float)
    penalty = np.asarray(penalty_diag, dtype=float)
    weight = np.ones(len(labels)) if weights is None else np.array(weights, dtype=float)
    shapes = (x.shape, labels.shape, start.shape, penalty.shape, weight.shape)
    if x.ndim != 2 or shapes[1:] != ((len(x),), (x.shape[1],), (x.shape[1],), (len(x),)):
        raise ModelError(f"Expected arrays of shapes (n, p), (n,), (p,), (p,), (n,), got {shapes}; one does not fit.")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise ModelError("Expected y to hold 0 and 1 only, got something else; recode the labels.")
    if not all(np.isfinite(part).all() for part in (x, start, penalty, weight)):
        raise ModelError("Expected finite rows, parameters, penalties and weights, got some that are not.")
    if (weight < 0).any() or (penalty < 0).any():
        raise ModelError("Expected weights and penalties of at least 0, got negative ones.")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < len(labels):
        raise OptionError(f"Expected k to be a whole number from 0 to {len(labels) - 1} (rows minus one), got {k!r}.")
    share = 0.0 if per_row_penalty is None else float(per_row_penalty)
    if not (np.isfinite(share) and share >= 0):
        raise OptionError(f"Expected a penalty of each row of at least 0, got {per_row_penalty!r}.")
    row_penalty = share * penalty / max(float(penalty.max(initial=0.0)), 1e-300)
    left = penalty - k * row_penalty
    if (left < -1e-12 * penalty).any():
        raise OptionError(f"Expected {k} deleted rows to take at most the whole penalty, got more; lower k.")
    # Rows without weight are absent, except that under the mean penalty their share of it can still be taken away.
    deletable = (weight > 0) | (share > 0)
    return Problem(x, 1 - 2 * labels, weight, start, penalty, row_penalty, int(k), deletable)


def _prove(problem: Problem, options: Options) -> tuple[str, list[Piece], str]:
    """Try the ways to a proof from the tightest that is affordable; version, pieces, reason."""
    n, p = problem.design.shape
    reason = _hopeless(problem)
    if reason:
        return "", [], reason
    white = whiten(problem)
    if white is None:
        return "", [], "the Hessian is singular to working precision"
    if problem.k == 0 or (problem.k == 1 and float(n) * n * p <= options.exact_work):
        cuts = single_deletions(white)
        if cuts is not None:
            return "exact", [cuts], ""
        return "", [], "after some deletion of one row the model has no usable optimum"
    return _prove_by_boxes(white, options)


def _prove_by_boxes(white: White, options: Options) -> tuple[str, list[Piece], str]:
    """The sharp and the simple version; where they fail or are poor, branching, or cells on large tables."""
    problem = white.problem
    n, p = problem.design.shape
    effort = options.effort or default_effort(n)
    found: list[tuple[str, list[Piece]]] = []
    reason = "the box of possible moves does not close for this k"
    box = close_box(white, effort)
    if box is not None:
        found.append(("sharp", [sharp_piece(white, box[1])]))
    if float(n) * n * p <= _SIMPLE_WORK:
        simple = simple_piece(white)
        if simple is not None:
            found.append(("simple", [simple]))
    poor = box is None or box[1].spread > options.spread_goal
    if poor and options.branch_nodes > 0 and n <= options.branch_rows and problem.k <= options.branch_k:
        tree = Tree(options, effort)
        if tree.cover(problem):
            found.append(("branched", tree.pieces))
        reason = tree.reason
    elif poor and options.branch_nodes > 0 and options.cells > 0:
        progress = options.progress or (lambda done, of: None)
        closed = close_cells(white, effort, options.cells, options.seconds, progress)
        if closed is not None:
            found.append(("cells", [sharp_piece(white, interval) for interval in closed.intervals]))
    if not found:
        return "", [], reason
    version, pieces = _better(found, problem)
    return version, pieces, ""


def _hopeless(problem: Problem) -> str:
    """Name the case without a retrained model: a free intercept and one class deleted whole."""
    design, free = problem.design, problem.penalty == 0
    constant = free & (design == design[0]).all(axis=0) & (design[0] != 0)
    present = problem.weight > 0
    fewest = min(int((problem.sign[present] == s).sum()) for s in (1.0, -1.0))
    if constant.any() and fewest <= problem.k:
        return f"one class has only {fewest} rows: all of them can be deleted"
    return ""


def _better(found: list[tuple[str, list[Piece]]], problem: Problem) -> tuple[str, list[Piece]]:
    """Keep the version with the higher mean bound at the rows nearest to the boundary."""
    if len(found) == 1:
        return found[0]
    nearest = problem.nearest(REFERENCE_POINTS)
    return max(found, key=lambda one: float(Fears(one[1], problem.rows).at(nearest).min(axis=0).mean()))
