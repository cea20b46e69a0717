"""Branching against brute force: every way through the tree, branches that are kept, many pieces asked at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deletion.test_certificate_cases import Case, make_case, retrain_all_subsets
from length import share
from rocerf import passes
from rocerf.deletion.certificate import Certificate, Options, branching, certify, group_sums
from rocerf.deletion.certificate.bound_pieces import Rows, SharpPiece
from rocerf.deletion.certificate.branching import Tree
from rocerf.deletion.certificate.group_sums import largest_values
from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.stacked_pieces import Fears, SharpStack

#: How the tree is asked to work: narrow intervals, whatever closes, and every row branched on that can be.
WAYS = {
    "narrow": {"spread_goal": 0.1},
    "looser": {"spread_goal": 0.1, "looser_goals": (2.0,)},
    "whatever closes": {"spread_goal": 2.0, "looser_goals": ()},
}


def branched(case: Case, **options: object) -> Certificate | None:
    """The certificate of a tree, whatever the other versions would say."""
    problem = case.problem
    tree = Tree(Options(**{"branch_nodes": 400, **options}), BoxEffort())
    if not tree.cover(problem):
        assert tree.reason
        return None
    rows = Rows(problem.design, problem.sign)
    return Certificate(True, "", problem.k, "branched", rows, problem.theta, tuple(tree.pieces))


def compare(seeds: range, figures: list[str]) -> tuple[dict[str, int], int]:
    """Hold every way against brute force; how often each closed, and how often a weakened bound was caught."""
    closed = dict.fromkeys(WAYS, 0)
    weak_caught = several = 0
    for seed in seeds:
        case = make_case(seed)
        if case.problem.k == 1:
            continue
        truth = case.truth()
        score = case.points @ case.problem.theta
        for way, options in WAYS.items():
            certificate = branched(case, **options)
            if certificate is None:
                continue
            assert truth is not None, f"seed {seed}: proven, yet some deletion has no optimum"
            lower = certificate.lower(case.points)
            excess = (lower - truth) / (1 + np.abs(score))
            assert excess.max() <= 1e-9, f"seed {seed} {case.kind} {way}: violated by {excess.max():.2e}"
            plain = np.min([piece.lower(case.points, certificate.rows) for piece in certificate.pieces], axis=0)
            np.testing.assert_allclose(lower, plain, rtol=0, atol=1e-12)
            closed[way] += 1
            several += len(certificate.pieces) > 1
            weak = score - 0.9 * (score - lower)
            weak_caught += int(((weak - truth) / (1 + np.abs(score))).max() > 1e-9)
    figures.append(
        f"trees against brute force, {len(seeds)} problems, no violation; closed {closed}, {several} with several "
        f"pieces; a bound 10 % too small is caught on {weak_caught}"
    )
    assert several > len(seeds) // 6
    return closed, weak_caught


def test_every_way_through_the_tree_is_below_the_truth(figures: list[str]) -> None:
    closed, weak_caught = compare(range(40000, 40003), figures)
    assert min(closed.values()) > 0
    assert weak_caught > 1


@pytest.mark.slow
def test_every_way_through_the_tree_is_below_the_truth_at_length(figures: list[str]) -> None:
    cases = share(180, 6)
    closed, weak_caught = compare(range(41000, 41000 + cases), figures)
    assert min(closed.values()) > cases // 5
    assert weak_caught > cases // 3


def case_with_branches() -> Case:
    """The first problem whose tree has several branches below its first split."""
    for seed in range(5000, 5100):
        case = make_case(seed)
        told: list[tuple[int, int]] = []
        if case.problem.k > 1:
            closed = branched(case, spread_goal=0.1, progress=lambda *step, told=told: told.append(step))
            if closed is not None and told[-1][1] >= 3:
                return case
    raise AssertionError("no such problem")


def test_progress_is_told_from_nothing_to_everything() -> None:
    told: list[tuple[int, int]] = []
    assert branched(case_with_branches(), spread_goal=0.1, progress=lambda done, of: told.append((done, of)))
    total = told[0][1]
    assert told == [(done, total) for done in range(total + 1)]


def test_an_interrupted_proof_goes_on_where_it_stopped(tmp_path: Path) -> None:
    case = case_with_branches()
    whole = branched(case, spread_goal=0.1)
    assert whole is not None
    told: list[int] = []

    def interrupted(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        branched(case, spread_goal=0.1, checkpoint=tmp_path, progress=interrupted)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) >= 2
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    kept[0].write_bytes(kept[0].read_bytes()[:100])  # damaged: proven again
    again = branched(case, spread_goal=0.1, checkpoint=tmp_path, progress=lambda done, _: told.append(done))
    assert again is not None
    assert told[0] == len(kept) - 1
    np.testing.assert_array_equal(again.lower(case.points), whole.lower(case.points))
    told.clear()
    assert branched(case, spread_goal=0.1, checkpoint=tmp_path, progress=lambda done, _: told.append(done))
    assert len(told) == 1  # all of it was kept


@pytest.mark.slow
def test_branches_of_another_problem_are_not_taken_over(tmp_path: Path) -> None:
    case = case_with_branches()
    assert branched(case, spread_goal=0.1, checkpoint=tmp_path)
    files = {path.name for path in tmp_path.iterdir()}
    problem = case.problem
    changed = replace(case, problem=replace(problem, penalty=problem.penalty * 1.01))
    for other, goal in ((changed, 0.1), (case, 0.11)):
        told: list[int] = []
        branched(other, spread_goal=goal, checkpoint=tmp_path, progress=lambda done, _, told=told: told.append(done))
        assert told[0] == 0
    first = next(path for path in tmp_path.iterdir() if path.name in files and path.name.endswith("-0.npz"))
    first.replace(first.with_name(first.name.replace("-0.npz", "-1.npz")))  # renamed to look like another branch
    whole, again = branched(case, spread_goal=0.1), branched(case, spread_goal=0.1, checkpoint=tmp_path)
    assert whole is not None
    assert again is not None
    np.testing.assert_array_equal(again.lower(case.points), whole.lower(case.points))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_with_branches()
    seen: set[int] = set()
    bounds = []
    for cores in (1, 3):
        monkeypatch.setattr(branching, "workers", lambda cores=cores: cores)
        told = lambda *_: seen.add(threading.get_ident())  # noqa: E731
        certificate = branched(case, spread_goal=0.1, progress=told)
        assert certificate is not None
        bounds.append(certificate.lower(case.points))
    np.testing.assert_array_equal(bounds[0], bounds[1])
    assert seen == {threading.get_ident()}  # progress is told where the proof was asked for


def test_a_failed_branch_ends_the_tree_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_with_branches()
    tree = Tree(Options(spread_goal=0.1, branch_nodes=3), BoxEffort())
    assert not tree.cover(case.problem)
    assert tree.reason == "gave up branching after 3 nodes"
    assert tree.pieces == []
    monkeypatch.setattr(branching, "delete_row", lambda *_: None)
    tree = Tree(Options(spread_goal=0.1), BoxEffort())
    assert not tree.cover(case.problem)
    assert tree.reason == "after some deletion the model has no optimum"


@pytest.mark.slow
def test_many_pieces_at_once_are_below_each_piece() -> None:
    """Also under a mean penalty, where pieces have a shift; and close enough to be of use."""
    for seed in (5, 7, 17, 29, 41, 53):
        case = make_case(seed)
        rows = Rows(case.problem.design, case.problem.sign)
        certificate = branched(case, spread_goal=0.1) if case.problem.k > 1 else None
        sharp = [p for p in certificate.pieces if isinstance(p, SharpPiece)] if certificate else []
        for k in {piece.k for piece in sharp}:
            pieces = [piece for piece in sharp if piece.k == k]
            fears = SharpStack(pieces, rows).cheap_lower(case.points)
            exact = np.array([piece.lower(case.points, rows) for piece in pieces])
            assert (fears <= exact).all()
            assert np.median(exact - fears) <= 0.01


def test_pieces_are_stacked_where_there_are_many() -> None:
    case = case_with_branches()
    certificate = branched(case, spread_goal=0.1)
    assert certificate is not None
    pieces = certificate.pieces * 8
    fears = Fears(pieces, certificate.rows)
    assert fears.stacks
    single = np.array([piece.cheap_lower(case.points, certificate.rows) for piece in pieces])
    np.testing.assert_allclose(fears.at(case.points), single, rtol=0.1, atol=0.05)


def test_the_largest_values_by_sorting() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 3, 8, 9, 20, 40):
        values = rng.integers(-5, 5, size=(30, 25)).astype(float)
        got = np.sort(largest_values(values.copy(), k), axis=1)[:, ::-1]
        count = min(k, 25)
        np.testing.assert_array_equal(got[:, :count], np.sort(values, axis=1)[:, ::-1][:, :count])
        assert np.isneginf(got[:, count:]).all()


def test_tables_shared_among_cores_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    points, columns = rng.normal(size=(500, 4)), group_sums.Columns(rng.normal(size=(300, 4)), 0.1)
    alone = group_sums.signed_top_k(points, columns, 5)
    monkeypatch.setattr(group_sums, "_SHARED_ENTRIES", 0)
    monkeypatch.setattr(passes, "workers", lambda: 3)
    for one, other in zip(alone, group_sums.signed_top_k(points, columns, 5), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_certify_keeps_the_best_of_what_closed() -> None:
    """A tree that closes only loosely does not replace a tighter bound by one box."""
    for seed in range(5000, 5030):
        case = make_case(seed)
        problem = case.problem
        if problem.k == 1:
            continue
        whole, boxes = (
            certify(
                problem.design,
                case.y,
                problem.theta,
                problem.penalty,
                problem.k,
                weights=case.weights,
                per_row_penalty=case.per_row,
                options=Options(branch_nodes=nodes, spread_goal=0.1),
            )
            for nodes in (100, 0)
        )
        if boxes.closed:
            reference = problem.design[np.argsort(np.abs(problem.design @ problem.theta))[:32]]
            assert whole.lower(reference).mean() >= boxes.lower(reference).mean() - 0.02
            assert retrain_all_subsets(problem) is not None
