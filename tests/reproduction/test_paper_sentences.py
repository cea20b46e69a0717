"""What the report says of the numbers: judged by other code, on a synthetic run whose numbers are known."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paper_runs import build, cost_row, curve, write
from rocerf.reproduction.costs import (
    REASONS,
    cost_sentence,
    cost_summary,
    exchange_sentence,
    exchanged_verdict,
    known_reasons,
    reasons_of,
    unexplained,
    unexplained_sentences,
)
from rocerf.reproduction.findings import check_sentences
from rocerf.reproduction.published import COSTS, MODELS, WIDTHS
from rocerf.reproduction.tables import accuracy_table, read_results, validity_curves_of, verdict
from rocerf.reproduction.words import (
    accuracy_sentence,
    cost_claims,
    logistic_claims,
    network_claims,
    percent,
    theorem_sentences,
    validity_sentences,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("full"))


def figures_in(text: str) -> list[float]:
    """The numbers that a text names, in order."""
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_verdicts_are_two_combined_standard_errors() -> None:
    assert verdict(1.0, 0.03, 1.1, 0.04) == "within"  # exactly 0.1 apart, spread 0.1
    assert verdict(0.999, 0.03, 1.1, 0.04) == "lower"
    assert verdict(1.201, 0.03, 1.1, 0.04) == "higher"
    assert verdict(math.nan, 0.1, 1.0, 0.1) == verdict(1.0, math.nan, 1.0, 0.1) == "unknown"


def test_a_cost_is_told_with_its_distance_from_the_papers() -> None:
    """Cost and error, distance, share of the paper's value, that value and its error, spread."""
    within = cost_sentence(cost_row(0.80, 0.02), "lr", "l2")
    first, _, second = within.partition(" Corrected: ")
    assert figures_in(first) == figures_in(second) == [0.80, 0.02, 0.02, 2.6, 0.78, 0.02, 0.06]
    assert "within the spread" in within
    above = cost_sentence(cost_row(1.0, 0.02), "lr", "l2")
    assert figures_in(above)[:7] == [1.0, 0.02, 0.22, 28.2, 0.78, 0.02, 0.06]
    assert "above the paper's" in above
    assert "outside the spread" in above
    below = cost_sentence(cost_row(0.5, 0.001), "lr", "l1")
    assert figures_in(below)[:4] == [0.5, 0.001, 0.28, 35.9]
    assert "below the paper's" in below
    some = cost_row(0.5, 0.01, method="roar", published_answered=30)
    assert figures_in(cost_sentence(some, "lr", "l2"))[:5] == [0.5, 0.01, 30, 40, 0.28]


def test_reasons_are_named_only_where_they_bear() -> None:
    def notes(model: str, norm: str = "l2", **changes: Any) -> list[str]:
        row = cost_row(changes.pop("ours", 0.5), 0.01, **changes)
        found, sentence = known_reasons(row, model, norm), cost_sentence(row, model, norm)
        assert (f"what bears on it: {', '.join(found)}" in sentence) == bool(found)
        return found

    assert notes("lr", method="rocerf", ours=0.7) == ["b"]
    assert notes("lr", method="rocerf", ours=1.5) == []
    assert notes("lr", method="rocerf", dataset="adult", ours=1.5) == ["c"]
    assert notes("lr", method="cchvae", dataset="german") == ["a", "e"]
    assert notes("lr", "l1") == ["d", "h"]
    assert notes("nn", method="rocerf") == ["f", "g"]
    assert notes("nn", method="scfe", dataset="german") == ["a", "d", "f", "k", "l"]
    assert notes("lr", method="roar") == ["i"]
    assert notes("lr", method="roar", published_answered=39) == ["i", "j"]
    assert "what bears on it" not in cost_sentence(cost_row(0.80, 0.02), "lr", "l2")
    assert all(len(text) > 20 for text in REASONS.values())


def test_sentences_for_nobody_one_person_and_methods_the_paper_lacks() -> None:
    nobody = cost_row(math.nan, math.nan, published_people=0)
    sentence = cost_sentence(nobody, "lr", "l2")
    assert "nobody is denied" in sentence
    assert "none of 40 people was answered" in sentence
    assert known_reasons(nobody | {"dataset": "german", "method": "rocerf"}, "nn", "l1") == ["a", "f", "k", "l"]
    assert "one person has no spread" in cost_sentence(cost_row(0.9, math.nan), "lr", "l2")
    ours = cost_row(0.9, 0.01, method="retrained", paper=math.nan, paper_se=math.nan)
    assert figures_in(cost_sentence(ours, "lr", "l2")) == [0.9, 0.01]
    assert "the paper has no such method" in cost_sentence(ours, "lr", "l2")
    assert "Corrected: not measured." in cost_sentence(cost_row(0.8, 0.01, corrected_verdict=""), "lr", "l2")


def test_accuracy_sentences_claim_no_agreement(run: Path) -> None:
    """Both accuracies are of the same test rows: the difference is told in rows, and no spread excuses it."""
    row = accuracy_table(read_results(run)).to_dict("records")[0]
    sentence = accuracy_sentence(row)
    assert figures_in(sentence) == [72.2, *[70.0, 2.2, 4, 200] * 2, 72.2]
    assert "within" not in sentence
    same = accuracy_sentence(row | {"published": 0.722, "published_rows": 0})
    assert figures_in(same) == [72.2, 72.2, 0, 200, 70.0, 2.2, 4, 200, 72.2]


AS_PRINTED = {"scfe": [0.5, 0.5], "cchvae": [0.9, 0.8], "roar": [0.97, 0.99], "rocerf": [1.0, 1.0]}


def test_what_the_paper_says_of_logistic_regression_is_judged_part_by_part() -> None:
    def judged(dataset: str, **means: list[float]) -> list[bool]:
        """ROCERF full; SCFE least; ROCERF better than ROAR; C-CHVAE worse than ROCERF (not said of German)."""
        return [held for _, held in logistic_claims(dataset, AS_PRINTED | means)]

    assert judged("adult") == [True] * 4
    assert judged("german") == [True] * 3
    assert judged("adult", cchvae=[0.4, 1.0]) == [True, False, True, False]
    assert judged("adult", roar=[1.0, 1.0]) == [True, True, False, True]
    assert judged("german", rocerf=[0.98, 0.99]) == [False, True, True]
    curves = [
        curve("german", "lr", method, *means) for method, means in (AS_PRINTED | {"rocerf": [0.98, 0.99]}).items()
    ]
    _, sentence, _ = validity_sentences(curves)
    assert sentence.count(": yes") == 2
    assert sentence.count(": not reproduced") == 1
    assert figures_in(sentence.partition("As in")[0])[1:] == [98.5, 98.0, 85.0, 50.0]  # after "α above 0", best first
    assert ": yes" not in validity_sentences([curve("compas", "lr", "scfe", 0.5)])[1]


def test_validity_sentences_of_a_run(run: Path) -> None:
    results = read_results(run)
    assert [held for _, held in cost_claims("german", results.methods)] == [True, True, True]
    sentences = validity_sentences(validity_curves_of(results), results.methods)
    assert len(sentences) == 1 + 3 + 1 + 3
    assert figures_in(sentences[1])[-2:] == [1.20, 50.1]  # past the boundary, and the nearest point's
    assert figures_in(sentences[4])[:4] == [50.1, 93.1, 97.1, 95.0]
    assert sentences[4].endswith("somewhere: not reproduced.")


def test_what_the_paper_says_of_networks_is_judged_part_by_part() -> None:
    def judged(dataset: str, **means: float) -> list[bool]:
        return [
            held for _, held in network_claims(dataset, [curve(dataset, "nn", m, mean) for m, mean in means.items()])
        ]

    assert judged("compas", scfe=0.5, cchvae=0.8, roar=0.9, rocerf=0.95) == [True]
    assert judged("compas", scfe=0.5, cchvae=0.99, roar=0.9, rocerf=0.95) == [False]
    assert judged("adult", scfe=0.5, cchvae=0.7, roar=0.8, rocerf=0.9) == [True, False]
    assert judged("german", scfe=1.0, cchvae=1.0, roar=1.0, rocerf=0.9) == [False, False, False]
    assert judged("compas", scfe=0.5) == []


def test_validity_is_judged_over_all_denied_people() -> None:
    """The paper divides by all of them: answering few people well is not validity."""
    curves = [curve("adult", "nn", m, mean) for m, mean in {"scfe": 0.5, "cchvae": 0.3, "rocerf": 0.77}.items()]
    roar = curve("adult", "nn", "roar", 0.8, answered=25, people=100)
    assert (roar.means_all, roar.worst) == ([0.25, 0.2], (0.2, 0.01))
    assert [held for _, held in network_claims("adult", [*curves, roar])] == [False, False]
    (sentence,) = validity_sentences([*curves, roar])
    assert f"ROAR {percent(0.2)} (25 of 100 answered, {percent(0.8)} of these)" in sentence
    nobody = curve("adult", "nn", "roar", math.nan, answered=0, people=100)
    assert nobody.means_all == [0.0, 0.0]
    assert f"ROAR {percent(0.0)} (0 of 100 answered)" in validity_sentences([*curves, nobody])[0]


@pytest.mark.slow
def test_reasons_carry_what_the_checks_measured(run: Path, tmp_path: Path) -> None:
    assert set(reasons_of(read_results(run))) == {"a", "d", "e", "f", "g", "h", "i", "k", "l", "b"}
    assert figures_in(reasons_of(read_results(run))["k"])[-5:] == [100, 0, 4, 200, 27]
    build(tmp_path, answered=39)
    columns = ("check", "dataset", "model", "value", "people", "answered", "denied", "l2", "l2_se", "share")
    rows = [
        ("cchvae_seed", "adult", "lr", 0, 200, 200, "", 10.0, 0.1, ""),
        ("cchvae_seed", "adult", "lr", 1, 200, 200, "", 3.0, 0.1, ""),
        ("cchvae_seed", "compas", "lr", 0, 111, 111, "", 3.0, 0.1, ""),
        ("cchvae_seed", "compas", "lr", 1, 111, 111, "", 3.1, 0.1, ""),
        ("authors_problem", "adult", "lr", 0.01, 7296, 7296, "", 0.99, 0.02, ""),
        ("scfe_steps", "adult", "lr", 1000, 200, 200, "", 1.1, 0.1, 1.17),
        ("roar_chosen", "adult", "lr", 1.3, 7296, "", "", "", "", ""),
        ("roar_lambda", "adult", "lr", 1.3, 200, 199, "", 1.25, 0.1, ""),
        ("roar_lambda", "adult", "lr", 1.6, 200, 200, "", 1.15, 0.1, ""),
        ("roar_lambda", "adult", "lr", 1.7, 200, 200, "", 1.06, 0.1, ""),
        ("roar_box", "adult", "lr", 0.1, 7296, 7285, "", "", "", 0.001),
        ("roar_stand_in", "adult", "nn", 0.1, 200, 200, "", 0.94, 0.1, 0.37),
        ("stand_in_authors", "adult", "nn", 181, 200, 200, "", 2.5, 0.1, ""),
        ("stand_in_widened", "adult", "nn", 181, 200, 200, "", 1.06, 0.1, ""),
        ("german_100_epochs", "german", "nn", 0, 200, "", 0, "", "", ""),
        ("german_100_epochs", "german", "nn", 1, 200, "", 4, "", "", ""),
    ]
    write(tmp_path, "checks", [dict(zip(columns, row, strict=True)) for row in rows])
    results = read_results(tmp_path)
    said = reasons_of(results)
    assert figures_in(said["e"])[-6:] == [3.0, 10.0, 3.79, 3.0, 3.1, 5.93]  # least, most, and the paper's
    assert "within" in said["e"]
    assert "outside" in said["e"]
    assert figures_in(said["b"])[-3:] == [0.99, 0.02, 1.14]
    assert figures_in(said["d"].partition(" The run allows")[0])[-2:] == [1.17, 1.20]
    assert figures_in(said["i"])[-7:] == [1.25, 1.3, 199, 200, 1.06, 1.7, 1.07]
    assert figures_in(said["j"])[-3:] == [37, 0.94, 200]
    assert figures_in(said["g"])[-3:] == [2.5, 1.06, 4.06]
    assert figures_in(said["k"])[-7:] == [100, 0, 4, 200, 0, 1, 27]
    assert figures_in(check_sentences(results)[0])[-2:] == [0.1, 0.1]  # the box, and 0.1 % of the points
    assert figures_in(check_sentences(results)[-1])[-4:] == [11.12, 22.07, 12.56, 49.45]
    assert "checks" not in " ".join(results.missing())


def test_what_the_measured_reasons_do_not_carry_is_not_explained(run: Path) -> None:
    far = cost_row(0.983, 0.01, method="rocerf", dataset="german", paper=1.35, paper_se=0.05) | {
        "published_verdict": "lower"
    }
    assert (known_reasons(far, "lr", "l2"), unexplained(far, "lr", "l2", None)) == (["a", "b"], "b gives 1.04 to 1.29")
    assert "not explained: b gives 1.04 to 1.29." in cost_sentence(far, "lr", "l2")
    near = far | {"published": 1.1}
    assert unexplained(near, "lr", "l2", None) == ""
    assert "not explained" not in cost_sentence(near, "lr", "l2")
    columns = ("check", "dataset", "model", "value", "people", "answered", "denied", "l2", "share")
    checks = pd.DataFrame(
        [("cchvae_seed", "compas", "lr", seed, 99, 99, "", cost, "") for seed, cost in enumerate((3.01, 3.2))],
        columns=columns,
    )
    row = cost_row(3.0, 0.01, method="cchvae", paper=5.93, paper_se=0.11) | {"published_verdict": "lower"}
    assert unexplained(row, "lr", "l2", checks) == "e gives 3.01 to 3.20"
    assert unexplained(row, "lr", "l1", checks) == "e gives 3.01 to 3.20 in L2"
    assert unexplained(row, "lr", "l2", checks.assign(l2=[3.0, 9.0])) == ""
    assert unexplained(row, "nn", "l2", checks) == ""
    assert unexplained_sentences(read_results(run)) == []


def test_the_papers_network_columns_are_compared_both_ways() -> None:
    """Under Adult the paper prints L1 costs that 13 columns cannot have; all its other ratios are possible."""
    for model, (dataset, width) in itertools.product(MODELS, WIDTHS.items()):
        ratios = [COSTS["l1"][model][m][dataset].mean / COSTS["l2"][model][m][dataset].mean for m in COSTS["l2"][model]]
        possible = [ratio <= math.sqrt(width) for ratio in ratios]
        assert possible == [(model, dataset) != ("nn", "adult")] * 4
    assert {3.61, 4.8, 7.0} <= set(figures_in(exchange_sentence()))
    printed = COSTS["l2"]["nn"]["cchvae"]
    row = cost_row(printed["adult"].mean, 0.3, dataset="german", method="cchvae", published_verdict="higher")
    row |= {"paper": printed["german"].mean, "paper_se": printed["german"].standard_error}
    assert (exchanged_verdict(row, "nn", "l2"), exchanged_verdict(row, "lr", "l2")) == ("within", "")
    assert "Against the 8.83 ± 0.31 printed under Adult" in cost_sentence(row, "nn", "l2")
    assert "Against" not in cost_sentence(row, "lr", "l2")
    table = pd.DataFrame([row])
    assert figures_in(cost_summary(table, "nn")) == [0, 1, 1, 0, 1, 1]  # within, of, above, below; exchanged
    assert figures_in(cost_summary(table)) == [0, 1, 1, 0]


def test_percent_never_hides_a_failure() -> None:
    assert percent(1.0) == "100.0\N{NO-BREAK SPACE}%"
    assert percent(0.99999) == "99.9\N{NO-BREAK SPACE}%"
    assert percent(0.0) == "0.0\N{NO-BREAK SPACE}%"
    assert percent(1e-6, 0) == "1\N{NO-BREAK SPACE}%"
    assert percent(math.nan) == "–"


def test_theorem_sentences_count(run: Path) -> None:
    table = read_results(run).theorem
    assert table is not None
    first, slope = theorem_sentences(table)
    assert figures_in(first) == [4.1, 8, 8, 12.5, 12.5, 1, 9]  # kept, of, the bound over the cost; without a bound
    assert figures_in(slope)[:2] == [9, 1.0]
    broken = table.assign(extra_cost=table["extra_cost"].where(table.index > 0, 99.0))
    assert figures_in(theorem_sentences(broken)[0])[:3] == [4.1, 7, 8]
