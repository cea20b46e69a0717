"""Cells against brute force: bounds below the truth, and every true move inside what was proven."""

from __future__ import annotations

import numpy as np
import pytest

from deletion.test_certificate_cases import make_case, retrain_all_subsets
from length import share
from rocerf.deletion.certificate.bound_pieces import Rows
from rocerf.deletion.certificate.cells import close_cells
from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.problem import whiten
from rocerf.deletion.certificate.sharp_bound import close_box, sharp_piece


def compare(seeds: range, figures: list[str], effort: BoxEffort, label: str) -> tuple[int, int]:
    """Hold cells against brute force; how many closed, and how many of those with several cells."""
    closed = several = wins = without_box = weak_caught = 0
    ratios: list[float] = []
    for seed in seeds:
        case = make_case(seed)
        problem = case.problem
        white = whiten(problem)
        found = None if white is None else close_cells(white, effort, 4)
        if white is None or found is None:
            continue
        thetas = retrain_all_subsets(problem)
        assert thetas is not None, f"seed {seed}: proven, yet some deletion has no optimum"
        rows = Rows(problem.design, problem.sign)
        pieces = [sharp_piece(white, interval) for interval in found.intervals]
        lower = np.min([piece.lower(case.points, rows) for piece in pieces], axis=0)
        truth, score = (case.points @ thetas.T).min(axis=1), case.points @ problem.theta
        assert ((lower - truth) / (1 + np.abs(score))).max() <= 1e-9, f"seed {seed} {case.kind}"
        weak = score - 0.9 * (score - lower)
        weak_caught += int(((weak - truth) / (1 + np.abs(score))).max() > 1e-9)

        everything = np.arange(len(white.z))
        functionals = np.concatenate([white.rows, found.slicing.functionals(white, everything)])
        moves = (thetas - problem.theta) @ np.linalg.inv(white.to_white).T
        values = functionals @ moves.T
        moving = np.concatenate([white.live, white.live, [True]])
        assert (values.max(axis=1) <= found.bounds[1] + 1e-9)[moving].all(), seed
        assert (-values.min(axis=1) <= found.bounds[0] + 1e-9)[moving].all(), seed

        real = score - truth
        ratios.extend((score - lower)[real > 1e-3] / real[real > 1e-3])
        closed += 1
        several += len(pieces) > 1
        box = close_box(white, BoxEffort())
        without_box += box is None
        if box is not None:
            wins += bool(lower.mean() > sharp_piece(white, box[1]).lower(case.points, rows).mean() + 1e-6)
    figures.append(
        f"cells against brute force ({label}), {len(seeds)} problems, no violation, every true move inside: closed "
        f"{closed}, {several} with several cells, {without_box} where one box does not close, better than one box on "
        f"{wins}; certified over true drop: median {np.median(ratios):.3f}, 90% {np.quantile(ratios, 0.9):.2f}; "
        f"a bound 10 % too small is caught on {weak_caught}"
    )
    assert weak_caught > closed // 6
    return closed, several


def test_cells_against_brute_force_quick(figures: list[str]) -> None:
    closed, several = compare(range(21000, 21008), figures, BoxEffort(), "quick")
    assert closed > 3
    assert several > 0


@pytest.mark.slow
def test_cells_against_brute_force(figures: list[str]) -> None:
    cases = share(144)
    closed, several = compare(range(20000, 20000 + cases), figures, BoxEffort(), "all rows searched")
    assert closed > cases // 2
    assert several > cases // 8


@pytest.mark.slow
def test_cells_with_a_search_sample_and_pruned_columns(figures: list[str]) -> None:
    """The paths of large tables; whatever the sample suggested, the proof is over all rows."""
    closed, _ = compare(range(22000, 22024), figures, BoxEffort(keep=0.5, sample=12), "sampled")
    assert closed > 6


@pytest.mark.slow
def test_certify_falls_back_on_cells_where_branching_is_not_allowed() -> None:
    versions = set()
    for seed in range(40):
        case = make_case(seed)
        certificate = case.certify(branch_rows=0, exact_work=0, spread_goal=0.0)
        versions.add(certificate.version)
        if certificate.version == "cells":
            truth = case.truth()
            assert truth is not None
            assert (certificate.lower(case.points) <= truth + 1e-9 * (1 + np.abs(truth))).all()
    assert "cells" in versions


def test_progress_of_cells_ends_with_everything_done() -> None:
    told: list[tuple[int, int]] = []
    white = whiten(make_case(21000).problem)
    assert white is not None
    assert close_cells(white, BoxEffort(), 4, progress=lambda done, of: told.append((done, of))) is not None
    assert [done for done, _ in told] == [*range(len(told) - 1), told[0][1]]
