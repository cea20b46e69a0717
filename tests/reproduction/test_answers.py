"""Does it work? The answers follow the figures, whichever way they fall: made-up curves turned round and round."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paper_runs import SWEPT, build, sweep_rows, write
from rocerf.reproduction.answers import (
    HOLDS,
    answers,
    compared,
    extra_costs,
    network_answer,
    network_brief,
    random_answer,
    random_brief,
    survived,
    works,
    worst_answer,
    worst_brief,
)
from rocerf.reproduction.frontier import Frontier, Tried, beaten_table, find, frontiers_of, own_value
from rocerf.reproduction.tables import read_results
from rocerf.reproduction.words import percent

#: (value, cost, random, picked)
Points = list[tuple[float, float, float, float]]


def curve(method: str, points: Points, own: int | None = 0, dataset: str = "german", model: str = "lr") -> Frontier:
    tried = tuple(
        Tried(value, cost, (cost, cost), random, (random, random), picked, (picked, picked), 40, 40, 1)
        for value, cost, random, picked in points
    )
    return Frontier("corrected", dataset, model, method, "k", tried, None if own is None else tried[own])


def margin(*points: tuple[float, float, float, float], **where: Any) -> Frontier:
    return curve("margin", list(points), None, **where)


ROCERF = curve("rocerf", [(0.005, 1.0, 0.99, 0.1), (0.02, 1.5, 1.0, 1.0)])
RETRAINED = curve("retrained", [(0.005, 1.1, 1.0, 1.0)])


def test_a_constant_margin_that_is_cheaper_is_said_to_be() -> None:
    verdict, sentence = random_answer([ROCERF, margin((0.1, 0.8, 0.98, 0), (0.5, 0.9, 0.99, 0), (1, 1.2, 1, 0))])
    assert verdict == "ROCERF works, but a constant margin does as well for less."
    assert "for less on German (−10\N{NO-BREAK SPACE}%)" in sentence  # the cheaper setting falls short


def test_a_constant_margin_that_is_dearer_is_said_to_be() -> None:
    verdict, sentence = random_answer([ROCERF, margin((0.1, 0.8, 0.98, 0), (1, 1.2, 1, 0))])
    assert verdict == "ROCERF works, and a constant margin costs as much or more."
    assert "for as much or more on German (+20\N{NO-BREAK SPACE}%)" in sentence
    verdict, sentence = random_answer([ROCERF, margin((0.1, 0.8, 0.98, 0))])
    assert verdict == "ROCERF works, and no constant margin tried does."
    assert "at no setting tried on German" in sentence


def test_a_margin_must_do_as_well_after_the_largest_deletions_too() -> None:
    papers, cheap, dear = (
        replace(point, random_most=share)
        for point, share in zip(
            (ROCERF.tried[0], *margin((0.5, 0.9, 1, 0), (2, 1.3, 1, 0)).tried), (0.99, 0.9, 1.0), strict=True
        )
    )
    rocerf = replace(ROCERF, tried=(papers,), own=papers)
    verdict, sentence = random_answer([rocerf, replace(margin((1, 1, 1, 1)), tried=(cheap, dear))])
    assert verdict == (
        "ROCERF works, but a constant margin does as well for less (after the largest deletions tried nowhere)."
    )
    assert "for less on German (−10" in sentence
    assert "after the largest deletions such a margin keeps as many for as much or more on German (+30" in sentence
    better = replace(cheap, random_most=0.99)
    verdict, _ = random_answer([rocerf, replace(margin((1, 1, 1, 1)), tried=(better, dear))])
    assert verdict == "ROCERF works, but a constant margin does as well for less."


def test_tables_that_differ_are_told_apart() -> None:
    adult = curve("rocerf", [(0.005, 2.0, 0.3, 0.1)], dataset="adult")
    cheap, dear = margin((1, 0.9, 1, 0)), margin((1, 2.2, 1, 0), dataset="adult")
    verdict, sentence = random_answer([ROCERF, adult, cheap, dear])
    assert verdict.startswith("ROCERF works on German, not on Adult, but a constant margin does as well for less on ")
    assert "for less on German" in sentence
    assert "for as much or more on Adult" in sentence
    assert random_answer([adult, dear])[0] == "ROCERF does not work."


def test_a_margin_is_weighed_only_where_rocerf_works() -> None:
    adult = curve("rocerf", [(0.005, 2.0, 0.3, 0.1)], dataset="adult")
    cheap = margin((1, 0.9, 1, 0), dataset="adult")
    verdict, sentence = random_answer([ROCERF, adult, margin((1, 1.2, 1, 0)), cheap])
    assert verdict == "ROCERF works on German, not on Adult, and a constant margin costs as much or more."
    assert "for less on Adult" in sentence  # what was measured is said all the same
    compas = curve("rocerf", [(0.005, 1.0, 1.0, 0)], dataset="compas")
    verdict, _ = random_answer([ROCERF, compas, margin((1, 0.9, 1, 0))])  # no margin was measured on COMPAS
    assert verdict == "ROCERF works, but a constant margin does as well for less on German."


def test_larger_deletions_and_the_people_asked_are_told(tmp_path: Path) -> None:
    """A margin that is as good after 0.5 % may not be after 5 %: the sentence has both, from the curves."""
    build(tmp_path, ("german",))
    table = pd.read_csv(tmp_path / "results.csv")
    last = (table["method"] == "margin") & (table["alpha"] == 0.05) & (table["model"] == "lr")
    table.loc[last, "validity"] = 0.75
    write(tmp_path, "results", table.to_dict("records"))
    first = answers(read_results(tmp_path))[0]
    assert first.question.startswith("0.5\N{NO-BREAK SPACE}% of the rows deleted at random")
    space = "\N{NO-BREAK SPACE}"
    assert (
        f"; after 5{space}% at random ROCERF and a constant margin of 0.2 keep 99.9{space}% and 75.0{space}% (German)."
    ) in first.sentence
    assert first.sentence.endswith(" People asked for the curves: 40 (German).")


def test_the_authors_search_is_told_with_its_draws() -> None:
    draws = pd.DataFrame({"people": [19, 19, 19], "validity": [11 / 19, 9 / 19, 10 / 19]})
    assert survived(draws) == "9 to 11 of 19"
    assert survived(draws[:1]) == "11 of 19"
    uneven = survived(pd.DataFrame({"people": [45, 30], "validity": [0.5, 0.6]}))
    assert uneven.replace("\N{NO-BREAK SPACE}", "") == "50.0% to 60.0%"


def test_worst_deletions_both_ways() -> None:
    dear = margin((1, 1.6, 1, 1))
    verdict, sentence = worst_answer([ROCERF, RETRAINED, dear], "10 of 19 (German)")
    assert verdict == "ROCERF does not work; `retrained` works, and nothing else tried does as much for less."
    assert "10 of 19 (German)" in sentence
    assert "at 1.10 times the cost of ROCERF" in sentence
    cheap = margin((1, 1.05, 1, 1))
    verdict, sentence = worst_answer([ROCERF, RETRAINED, cheap])
    assert verdict.endswith("as much for less: a constant margin on German.")
    strong = curve("rocerf", [(0.005, 1.0, 1, 1.0)])
    weak = curve("retrained", [(0.005, 1.1, 1, 0.5)])
    verdict, _ = worst_answer([strong, weak, dear])
    assert verdict == "ROCERF works; `retrained` does not work."
    larger = curve("rocerf", [(0.005, 0.9, 1, 0.0), (0.01, 1.05, 1, 1.0)])
    assert worst_answer([larger, RETRAINED])[0].endswith("as much for less: ROCERF with a larger k on German.")


def test_networks_both_ways() -> None:
    def networks(rocerf: float, simulated: float, retrained: float, cost: float) -> list[Frontier]:
        return [
            curve("rocerf", [(0.005, 1.0, rocerf, 0.0)], model="nn"),
            curve("simulated", [(0.05, 1.0, 0.99, simulated)], model="nn"),
            curve("retrained", [(0.005, 1.3, 1.0, retrained)], model="nn"),
            margin((1, cost, 1.0, 1.0), model="nn"),
        ]

    verdict, sentence = network_answer(networks(0.6, 0.5, 0.98, 2.0))
    assert verdict == (
        "Rows deleted at random: ROCERF does not work; `simulated` and `retrained` work. Picked rows: ROCERF and "
        "`simulated` do not work; `retrained` works, and nothing else tried does as much for less."
    )
    assert sentence.count("for as much or more on German") == 2
    verdict, sentence = network_answer(networks(0.99, 0.99, 0.5, 0.9))
    assert "Rows deleted at random: ROCERF, `simulated` and `retrained` work." in verdict
    assert verdict.endswith("Picked rows: ROCERF and `retrained` do not work; `simulated` works.")
    assert sentence.count("for less on German") == 2


def test_what_was_not_measured_is_not_answered(tmp_path: Path) -> None:
    for tell in (random_answer, worst_answer, network_answer):
        assert tell([])[0].startswith("Not measured")  # type: ignore[operator]
    build(tmp_path, ("german",))
    (tmp_path / "sweeps.csv").unlink()
    assert all(answer.verdict.startswith("Not measured") for answer in answers(read_results(tmp_path)))


def test_no_words_but_those_of_the_figures(tmp_path: Path) -> None:
    """The same run with costs and shares turned round says the opposite, from the CSV file on."""
    build(tmp_path, ("german", "adult"))
    first, second, third = answers(read_results(tmp_path))
    assert first.verdict == "ROCERF works, but a constant margin does as well for less."
    assert second.verdict == "ROCERF does not work; `retrained` works, and nothing else tried does as much for less."
    assert "10 of 40 (German) and 10 of 40 (Adult)" in second.sentence
    assert third.verdict.startswith("Rows deleted at random: ROCERF, `simulated` and `retrained` work.")
    other: Any = SWEPT | {
        "margin": ("margin", [(0.5, 5.0, 1.0, 0.0)]),
        "rocerf": ("k", [(0.005, 0.9, 0.999, 1.0)]),
        "retrained": ("k", [(0.005, 1.0, 1.0, 0.2)]),
    }
    rows = [row for d in ("german", "adult") for m in ("lr", "nn") for row in sweep_rows(d, m, other)]
    write(tmp_path, "sweeps", rows)
    first, second, third = answers(read_results(tmp_path))
    assert first.verdict == "ROCERF works, and a constant margin costs as much or more."
    assert second.verdict == "ROCERF works; `retrained` does not work."
    assert "Picked rows: ROCERF works; `simulated` and `retrained` do not work" in third.verdict


def test_the_cheapest_setting_as_valid_by_brute_force() -> None:
    shares, costs = (0.0, 0.5, 0.99, 1.0), (0.5, 1.0, 1.5)
    for first, second in itertools.product(itertools.product(shares, costs), repeat=2):
        points: Points = [(1, first[1], first[0], 0), (2, second[1], second[0], 0)]
        found = extra_costs([ROCERF, margin(*points)], "lr", "margin", "rocerf", "random")["german"]
        enough = [cost for share, cost in (first, second) if share >= 0.99]
        assert found == (min(enough) - 1.0 if enough else math.inf)
        assert compared("it", {"german": found})
    assert works("it", {"german": HOLDS, "adult": math.nextafter(HOLDS, 0)}) == "it works on German, not on Adult"


# Curves and who is beaten, from sweeps.csv.


def test_who_is_beaten_along_the_curves(tmp_path: Path) -> None:
    build(tmp_path, ("german",))
    table = beaten_table(read_results(tmp_path)).set_index(["model", "target", "other", "kind"])
    cases = {
        ("lr", "rocerf", "margin", "random"): ("yes", 0.8),  # at 0.5, not at its cheapest setting
        ("lr", "rocerf", "roar", "random"): ("no", 1.8),
        ("lr", "rocerf", "scfe", "random"): ("never", math.nan),
        ("lr", "retrained", "margin", "random"): ("yes", 0.8),
        ("lr", "retrained", "margin", "picked"): ("no", 1.6),
        ("lr", "retrained", "roar", "picked"): ("never", math.nan),
        ("lr", "retrained", "rocerf", "picked"): ("no", 1.5),
        ("nn", "simulated", "margin", "picked"): ("no", 1.6),
    }
    for key, (beats, cost) in cases.items():
        assert table.loc[key, "beats"] == beats
        assert table.loc[key, "l2"] == pytest.approx(cost, nan_ok=True)
    assert not any(target == other for _, target, other, _ in table.index)


def test_seeds_are_averaged_only_where_every_setting_has_them(tmp_path: Path) -> None:
    """One network at one setting must not stand in a curve of others; all its seeds are in the range."""
    build(tmp_path, ("german",))
    rows = sweep_rows("german", "nn", {"margin": SWEPT["margin"], "rocerf": SWEPT["rocerf"]})
    more = sweep_rows("german", "nn", {"rocerf": ("k", [(0.005, 2.0, 0.5, 0.6)])}, seed=1)
    write(tmp_path, "sweeps", rows + more)
    found = find(frontiers_of(read_results(tmp_path)), method="rocerf", model="nn")
    assert found is not None
    assert found.own is not None
    assert (found.own.l2, found.own.random, found.own.seeds) == (0.9, 0.999, 2)
    assert (found.own.random_range, found.own.l2_range) == ((0.5, 0.999), (0.9, 2.0))
    assert f"(over seeds {percent(0.5)} to {percent(0.999)})" in answers(read_results(tmp_path))[2].sentence
    whole = sweep_rows("german", "nn", {"margin": SWEPT["margin"], "rocerf": ("k", [(0.005, 1.0, 0.5, 0.6)])})
    write(tmp_path, "sweeps", whole + [row | {"seed": 1, "l2": row["l2"] + 1, "random": 1.0} for row in whole])
    found = find(frontiers_of(read_results(tmp_path)), method="rocerf", model="nn")
    assert found is not None
    assert found.own is not None
    assert (found.own.l2, found.own.random) == (1.5, 0.75)


def test_each_method_s_own_setting() -> None:
    assert own_value("rocerf", [0.001, 0.005], 4937) == 0.005
    assert own_value("retrained", [4.0, 25.0, 50.0], 4937) == 25
    assert own_value("rocerf", [24.0, 50.0], 4937) == 24  # cut off, as in the authors' code
    assert own_value("simulated", [0.005, 0.05], 800) == 0.05
    assert own_value("scfe", [0.0], 800) == 0
    assert own_value("cchvae", [0.05, 0.2], 800) == 0.05
    assert math.isnan(own_value("margin", [0.5], 800))
    assert math.isnan(own_value("roar", [0.02], 800))


def test_an_empty_file_of_curves_is_none(tmp_path: Path) -> None:
    build(tmp_path, ("german",))
    head = (tmp_path / "sweeps.csv").read_text("utf-8").splitlines()[0]
    (tmp_path / "sweeps.csv").write_text(f"{head}\n", "utf-8")
    results = read_results(tmp_path)
    assert results.sweeps is None
    assert frontiers_of(results) == []
    assert isinstance(beaten_table(results), pd.DataFrame)


# In brief: two sentences for pages that have room for no more.


def test_the_brief_figures_are_those_of_the_sentence_both_ways() -> None:
    space = "\N{NO-BREAK SPACE}"
    assert random_brief([ROCERF, margin((1, 0.8, 1, 0))]) == (
        f"ROCERF keeps 99.0{space}% of its answers valid; a constant margin that keeps as many costs 20{space}% less "
        "than ROCERF."
    )
    assert random_brief([ROCERF, margin((1, 1.5, 1, 0))]).endswith(f"costs 50{space}% more than ROCERF.")
    assert random_brief([ROCERF, margin((1, 1.5, 0.5, 0))]).endswith("no constant margin tried keeps as many.")
    other = [curve("rocerf", [(0.005, 1.0, 0.5, 0.1)], dataset="adult"), margin((1, 1.3, 0.9, 0), dataset="adult")]
    assert random_brief([ROCERF, margin((1, 0.8, 1, 0)), *other]) == (
        f"ROCERF keeps 50.0{space}% to 99.0{space}% of its answers valid, by table; a constant margin that keeps as "
        f"many costs −20{space}% to +30{space}% against ROCERF."
    )
    assert worst_brief([ROCERF, RETRAINED]).endswith("; `retrained` costs 1.10 times as much.")
    assert random_brief([]) == worst_brief([]) == network_brief([]) == ""


def test_a_verdict_about_networks_is_of_everybody_asked_in_any_seed(tmp_path: Path) -> None:
    """Four people of the first seed keep their answers, the two of the second lose theirs: four of six."""
    build(tmp_path, ("german",))
    rows = sweep_rows("german", "nn", {"rocerf": ("k", [(0.005, 1.0, 1.0, 1.0), (0.02, 1.5, 1.0, 1.0)])})
    more = sweep_rows("german", "nn", {"rocerf": ("k", [(0.005, 2.0, 0.0, 0.0)])}, seed=1)
    write(tmp_path, "sweeps", [row | {"people": 4} for row in rows] + [row | {"people": 2} for row in more])
    third = answers(read_results(tmp_path))[2]
    assert third.question == "Networks (a pilot: only 4 people a table and 2 seeds)"
    assert third.verdict.startswith("Rows deleted at random: ROCERF does not work.")
    assert third.brief.count(percent(4 / 6)) == 2
