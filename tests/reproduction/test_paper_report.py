"""The report of the reproduction, on a synthetic run: exact numbers, figures that can be read, a page that is whole."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paper_runs import ALPHAS, build, method_row, write
from rocerf.errors import FileFormatError
from rocerf.evaluation.methods import METHODS as RUN
from rocerf.evaluation.plots import COLOURS, MARKERS
from rocerf.html import Details, Figure, Paragraph, Part, Points, Section, Table
from rocerf.reproduction.figures import (
    SHADES,
    _shade,
    binomial_interval,
    draw_sensitivity,
    draw_worst_case,
    look,
    worst_case_points,
)
from rocerf.reproduction.findings import ABOUT_THE_PAPER
from rocerf.reproduction.published import ACCURACY, BASELINES, COSTS, DATASETS, METHODS, MODELS, OURS, SETTINGS
from rocerf.reproduction.report import sections, write_report
from rocerf.reproduction.run_facts import SITTINGS, facts
from rocerf.reproduction.tables import pareto_table, read_results, validity_curves_of, write_tables
from rocerf.reproduction.words import pareto_sentences, percent

pytestmark = pytest.mark.slow  # minutes of retraining and of commands

PAPER = sorted((Path(__file__).parents[3] / "shared" / "paper").glob("*.txt"))
FIGURES = ("validity_lr.svg", "validity_nn.svg", "sensitivity.svg", "worst_case.svg", "theorem.svg")
TABLES = ("accuracy", "cost_l2_lr", "cost_l2_nn", "cost_l1_lr", "cost_l1_nn", "pareto", "validity")
OKABE_ITO = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
#: Elements of HTML and SVG that are never closed in what we write.
VOID = {"meta", "br", "hr", "img", "link", "input"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = build(tmp_path_factory.mktemp("full"))
    assert write_report(folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def shown(run: Path) -> dict[str, Section]:
    return report_of(run)


def report_of(folder: Path) -> dict[str, Section]:
    """What the report of a run shows, by the sections' titles; its figures are empty."""
    results = read_results(folder)
    drawings = dict.fromkeys(FIGURES, "<svg ></svg>")
    return {section.title: section for section in sections(results, write_tables(results, folder), drawings)}


def parts_of(section: Section, kind: type[Part]) -> list[Any]:
    """The parts of one kind, those that are folded away too."""
    folded = [part for details in section.parts if isinstance(details, Details) for part in details.parts]
    return [part for part in (*section.parts, *folded) if isinstance(part, kind)]


def test_the_papers_values_are_complete() -> None:
    for norm, model in itertools.product(("l2", "l1"), MODELS):
        assert set(COSTS[norm][model]) == {*BASELINES, "rocerf"}
        for values in COSTS[norm][model].values():
            assert list(values) == list(DATASETS)
            assert all(value.standard_error > 0 for value in values.values())
    assert COSTS["l2"]["lr"]["rocerf"]["adult"].mean == 1.14
    assert COSTS["l1"]["nn"]["cchvae"]["adult"].standard_error == 1.88
    assert ACCURACY["lr"]["german"] == 0.722


@pytest.mark.skipif(not PAPER, reason="the paper's LaTeX is not beside this repository (../shared/paper)")
def test_the_papers_values_are_those_of_its_source() -> None:
    """Every mean and standard error of the four cost tables, and the accuracies, read from the LaTeX."""
    text = PAPER[0].read_text("utf-8")
    names = {"SCFE": "scfe", "C-CHVAE": "cchvae", "ROAR": "roar"}
    rows = re.findall(r"^(SCFE|C-CHVAE|ROAR|\\ours \(ours\))\s*&(.*?)\\\\", text, re.MULTILINE)
    tables = [(norm, model) for norm in ("l2", "l1") for model in ("lr", "nn")]
    assert len(rows) == 4 * len(tables)
    for place, (name, cells) in enumerate(rows):
        norm, model = tables[place // 4]
        values = COSTS[norm][model][names.get(name, "rocerf")].values()
        printed = [tuple(map(float, re.findall(r"[\d.]+", cell))) for cell in cells.split("&")]
        assert [(value.mean, value.standard_error) for value in values] == printed
    for model in MODELS:
        for share in ACCURACY[model].values():
            assert f"{100 * share:.1f}" in text


# Tables.


@pytest.mark.slow
def test_tables_have_their_shape_and_carry_numbers_over_exactly(run: Path) -> None:
    assert all((run / f"{name}.csv").is_file() for name in TABLES)
    accuracy = pd.read_csv(run / "accuracy.csv")
    assert len(accuracy) == 6
    assert (accuracy["published"] == 0.7).all()
    measured = pd.read_csv(run / "methods.csv").set_index(["setting", "dataset", "model", "method"])
    for norm, model in itertools.product(("l2", "l1"), MODELS):
        table = pd.read_csv(run / f"cost_{norm}_{model}.csv")
        assert len(table) == 3 * len(RUN["corrected", model])
        for row in table.to_dict("records"):
            for setting in SETTINGS:
                key = (setting, row["dataset"], model, row["method"])
                if key in measured.index:
                    assert row[setting] == measured.loc[key, norm]
                    assert row[f"{setting}_se"] == measured.loc[key, f"{norm}_se"]
                else:
                    assert math.isnan(row[setting])
            paper = COSTS[norm][model].get(row["method"], {}).get(row["dataset"])
            if paper:
                assert (row["paper"], row["paper_se"]) == (paper.mean, paper.standard_error)
            else:
                assert math.isnan(row["paper"])


@pytest.mark.slow
def test_curves_are_means_and_standard_errors_over_trials(run: Path) -> None:
    results = read_results(run)
    table = results.results
    curves = validity_curves_of(results)
    assert len(curves) == 3 * sum(map(len, RUN.values()))
    for curve in curves[::5]:
        rows = table[(table["setting"] == curve.setting) & (table["dataset"] == curve.dataset)]
        rows = rows[(rows["model"] == curve.model) & (rows["method"] == curve.method)]
        assert curve.alphas == list(ALPHAS)
        for alpha, mean, error in zip(curve.alphas, curve.means, curve.errors, strict=True):
            shares = rows[rows["alpha"] == alpha]["validity"].to_numpy()
            assert mean == pytest.approx(shares.mean(), abs=1e-11)
            expected = shares.std(ddof=1) / math.sqrt(len(shares)) if len(shares) > 1 else 0.0
            assert error == pytest.approx(expected, abs=1e-15)
        assert curve.worst == (min(curve.means), curve.alphas[curve.means.index(min(curve.means))])


def dominated(validity: float, cost: float, our_validity: float, our_cost: float) -> str:
    if any(math.isnan(value) for value in (validity, cost, our_validity, our_cost)):
        return ""
    as_good = validity >= our_validity and cost <= our_cost
    return "yes" if as_good and (validity, cost) != (our_validity, our_cost) else "no"


def pareto_of(folder: Path, points: dict[str, tuple[float | None, float]], **rows_of: dict[str, Any]) -> pd.DataFrame:
    """The Pareto table of German, logistic regression, for methods with these (validity, cost)."""
    folder.mkdir()
    build(folder, ("german",))
    where = ("corrected", "german", "lr")
    made = [method_row(*where, m, l2=cost, l2_se=0.01) | rows_of.get(m, {}) for m, (_, cost) in points.items()]
    write(folder, "methods", made)
    shares = {m: (1.0, share) for m, (share, _) in points.items() if share is not None}
    case = dict(zip(("setting", "dataset", "model"), where, strict=True))
    rows = [
        {**case, "method": method, "alpha": alpha, "trial": trial, "validity": share}
        for method, pair in shares.items()
        for alpha, share in zip((0.0, 0.05), pair, strict=True)
        for trial in range(3)
    ]
    write(folder, "results", rows)
    return pareto_table(read_results(folder))


def test_dominance_by_brute_force_with_ties(tmp_path: Path) -> None:
    values = [(v, c) for v in (0.9, 0.95, 1.0) for c in (0.8, 1.0, 1.2)]
    for place, (first, second) in enumerate(itertools.product(values, [(0.95, 1.0), (1.0, 0.8)])):
        points = {"scfe": first, "roar": second, "cchvae": (1.0, 1.2)} | dict.fromkeys(
            ("rocerf", "retrained"), (0.95, 1.0)
        )
        table = pareto_of(tmp_path / str(place), points)
        found = dict(zip(table["method"], table["dominates_ours"], strict=True))
        for method, point in points.items():
            expected = "" if method == "retrained" else dominated(*point, *points["retrained"])
            assert found[method] == expected
        assert (table["worst_validity"] == [points[m][0] for m in table["method"]]).all()
        winners = [m for m in BASELINES if found[m] == "yes"]
        _, (sentence,) = pareto_sentences(table)
        assert all(
            (f"{METHODS[m]} has validity {percent(points[m][0])}" in sentence) == (m in winners) for m in BASELINES
        )


def test_what_was_not_measured_is_not_judged(tmp_path: Path) -> None:
    no_validity = pareto_of(tmp_path / "a", {"scfe": (None, 0.1), "retrained": (1.0, 1.0)})
    without_ours = pareto_of(tmp_path / "b", {"scfe": (1.0, 0.1), "rocerf": (1.0, 0.2)})
    for table in (no_validity, without_ours):
        assert list(table["dominates_ours"]) == ["", ""]
        assert pareto_sentences(table)[0].startswith("Nothing can be judged")
    one = pareto_of(tmp_path / "c", {"roar": (0.9, 1.0), "retrained": (1.0, 1.0)})
    whole, sentences = pareto_sentences(one)
    assert "the one case" in whole
    assert "Not judged: SCFE, C-CHVAE." in sentences[0]


def test_first_order_points_that_look_better_are_named_with_the_worst_case(tmp_path: Path) -> None:
    table = pareto_of(tmp_path / "a", {"scfe": (0.5, 0.5), "rocerf": (1.0, 0.9), "retrained": (1.0, 1.0)})
    assert list(table["dominates_ours"]) == ["no", "yes", ""]
    whole, sentences = pareto_sentences(table)
    assert "In 1 of 1 the paper's own first-order constraint" in whole
    assert (
        f"Of its points {percent(0.0, 0)} survive the worst deletion found, of ours {percent(1.0, 0)}" in sentences[0]
    )


def test_few_who_are_answered_well_are_no_validity(tmp_path: Path) -> None:
    """The paper divides by all denied people: cheap and valid for a few beats nobody."""
    points = {"roar": (1.0, 0.5), "retrained": (0.99, 1.0)}
    table = pareto_of(tmp_path / "a", points, roar={"answered": 10, "people": 40})
    found = table.set_index("method").loc["roar"]
    assert (found["worst_validity"], found["worst_validity_answered"], found["dominates_ours"]) == (0.25, 1.0, "no")
    shown = report_of(tmp_path / "a")["Validity when rows are deleted at random"]
    assert (
        list(pd.read_csv(tmp_path / "a" / "validity.csv").set_index("method").loc["roar"]["validity_all"]) == [0.25] * 2
    )
    caption = next(figure.caption for figure in parts_of(shown, Figure) if figure.name == "validity_lr")
    assert "ROAR 10 of 40 (German Credit, corrected)" in caption
    (numbers,) = parts_of(shown, Table)
    assert numbers.rows[1:3] == [
        ["ROAR", "10 of 40", percent(0.25), percent(0.25)],
        ["of those answered", "", percent(1.0), percent(1.0)],
    ]


def test_a_packed_table_is_read_too(run: Path, tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / "results.csv.gz").write_bytes(gzip.compress((tmp_path / "results.csv").read_bytes()))
    (tmp_path / "results.csv").unlink()
    assert read_results(tmp_path).results.equals(read_results(run).results)


# Figures.


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]


def test_every_figure_has_labels_and_all_its_methods(run: Path) -> None:
    said = {name: texts((run / name).read_text("utf-8")) for name in FIGURES}
    for model in MODELS:
        words = said[f"validity_{model}.svg"]
        assert {"average validity (%)", "training rows deleted, α (%)", "0", "0.5", "5"} <= set(words)
        assert {METHODS[method] for method in RUN["corrected", model]} <= set(words)
        panels = {f"{name}, {setting}" for name in DATASETS.values() for setting in SETTINGS.values()}
        assert panels <= set(words)
    assert {"average validity (%)", "training rows deleted, α (%)", "k = 0.5 %", "k = 5 %"} <= set(
        said["sensitivity.svg"]
    )
    worst = said["worst_case.svg"]
    assert {"survive the worst k found (%)", "mean cost (L2, log scale)"} <= set(worst)
    assert {METHODS[method] for method in RUN["corrected", "lr"]} <= set(worst)
    assert {"training rows deleted, k/n (%, log scale)", "measured, n = 16,000"} <= set(said["theorem.svg"])
    assert any(word.startswith("extra cost over the plain optimum") for word in said["theorem.svg"])


@pytest.mark.slow
def test_a_method_has_one_colour_and_marker_everywhere(run: Path) -> None:
    for method in METHODS:
        assert COLOURS[method] in OKABE_ITO
        assert (look(method)["color"], look(method)["marker"]) == (COLOURS[method], MARKERS[method])
    assert COLOURS["scfe"] == COLOURS["plain"]
    assert COLOURS["rocerf"] == COLOURS["first_order"]
    for model, methods in OURS.items():
        shown = RUN["corrected", model]
        looks = {(look(m)["color"], look(m)["marker"], str(look(m)["linestyle"])) for m in shown}
        assert len(looks) == len(shown)
        assert methods in shown
    for name, methods in (("validity_lr", RUN["corrected", "lr"]), ("validity_nn", RUN["corrected", "nn"])):
        assert line_colours(run / f"{name}.svg") == {COLOURS[method].lower() for method in methods}
    assert line_colours(run / "worst_case.svg") == {COLOURS[method].lower() for method in RUN["corrected", "lr"]}


def line_colours(path: Path) -> set[str]:
    """Colours of strokes but the greys of grid and axes; black is C-CHVAE's and the axes'."""
    found = {colour.lower() for colour in re.findall(r"stroke: (#[0-9a-fA-F]{6})", path.read_text("utf-8"))}
    return found - {"#b0b0b0", "#ffffff"}


def test_the_same_results_give_the_same_files(run: Path, tmp_path: Path) -> None:
    results = read_results(run)
    write_tables(results, tmp_path)
    (tmp_path / "worst_case.svg").write_text(draw_worst_case(worst_case_points(results)), "utf-8")
    for name in ("worst_case.svg", *(f"{table}.csv" for table in TABLES)):
        assert (tmp_path / name).read_bytes() == (run / name).read_bytes()


def lightness(colour: str) -> float:
    """CIE L* of a colour, 0 to 100."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def test_shades_can_be_told_apart_and_are_no_methods_colour() -> None:
    steps = [lightness(light) - lightness(dark) for light, dark in itertools.pairwise(SHADES)]
    assert min(steps) > 9
    for shade, colour in itertools.product(SHADES, COLOURS.values()):
        parts = [(int(shade[i : i + 2], 16), int(colour[i : i + 2], 16)) for i in (1, 3, 5)]
        assert math.dist(*zip(*parts, strict=True)) > 60, (shade, colour)
    used = [_shade(place, 5) for place in range(5)]  # the five k of the sensitivity figure
    assert len({style["marker"] for style in used}) == 5
    assert all(one["markerfacecolor"] != two["markerfacecolor"] for one, two in itertools.pairwise(used))


def test_intervals_for_a_share() -> None:
    assert binomial_interval(0.0, 40) == (0.0, pytest.approx(0.0881, abs=1e-4))
    low, high = binomial_interval(0.5, 40)
    assert (low, high) == (pytest.approx(0.338, abs=1e-3), pytest.approx(0.662, abs=1e-3))
    assert binomial_interval(1.0, 0) == (1.0, 1.0)


# The page.


class Page(HTMLParser):
    """Fails on tags that do not match; gathers ids, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "xlink:href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_the_page_is_well_formed_and_self_contained(run: Path) -> None:
    text = (run / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.tags.count("svg") == len(FIGURES) == page.tags.count("figcaption")
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
    assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


@pytest.mark.slow
def test_the_sections_show_every_number(shown: dict[str, Section]) -> None:
    """The numbers of the report, as data: tables cell by cell, not the words around them."""
    assert all(section.parts for section in shown.values())
    (accuracy,) = parts_of(shown["Accuracy"], Table)
    assert accuracy.rows[0] == MODELS["lr"]
    numbers = [percent(0.722), percent(0.7), percent(0.7), "45", "45"]
    assert accuracy.rows[1] == [DATASETS["german"], *numbers]
    costs = parts_of(shown["Cost"], Table)
    assert len(costs) == 4
    adult = costs[0].rows.index(DATASETS["adult"])
    cells = ["SCFE", "1.04 ± 0.006", "1.04 ± 0.01", "1.04 ± 0.01", "+0.00, within the spread"]
    assert costs[0].rows[adult + 1] == cells  # the paper's digit for digit
    assert [len(table.rows) for table in costs] == [3 + 3 * len(RUN["corrected", model]) for model in MODELS] * 2
    validity = parts_of(shown["Validity when rows are deleted at random"], Table)
    scfe = ["SCFE", "40 of 40", percent(1.0), *[percent(0.501)] * 5]
    assert [table.rows[:2] for table in validity] == [[f"{DATASETS['german']}, as published", scfe]] * 2
    (sensitivity,) = parts_of(shown["Sensitivity to k"], Table)
    assert sensitivity.rows[:2] == [DATASETS["german"], ["0.5 % (5 rows)", "0.90", percent(0.995)]]
    (pareto,) = parts_of(shown["Is any baseline better in both validity and cost?"], Table)
    ours = next(row for row in pareto.rows if row[0] == METHODS["retrained"])
    assert ours == [METHODS["retrained"], percent(1.0, 2), "0.95 ± 0.01", "40 of 40", percent(1.0, 0), "ours"]
    (measures,) = parts_of(shown["Further measures"], Table)
    assert measures.rows[1] == ["SCFE", percent(0.0), "1.20", "5.0", "1.50", "10 ms"]
    assert len(measures.rows) == sum(3 * (1 + len(methods)) for methods in RUN.values())


def test_the_page_says_everything_that_the_sections_hold(run: Path, shown: dict[str, Section]) -> None:
    said = "".join(Page((run / "report.html").read_text("utf-8")).said)
    for section in shown.values():
        assert section.title in said
        for table in parts_of(section, Table):
            assert all(cell in said for row in table.rows for cell in ([row] if isinstance(row, str) else row))
        for points in parts_of(section, Points):
            assert all(re.sub(r"<[^>]*>", "", text) in said for text in points.texts if "&" not in text)
    for title, words in ABOUT_THE_PAPER.items():
        assert title in said
        assert words in said
    assert dict(facts(read_results(run).run, []))["wall time"] == "90 min"
    assert "numpy 9.9" in said
    assert "trials: 3" in said
    for word in ("proven", "guarantee", "proves"):
        assert word not in said.lower()


@pytest.mark.slow
def test_sittings_on_several_machines_are_listed(tmp_path: Path) -> None:
    build(tmp_path, ("german",))
    record = json.loads((tmp_path / "run.json").read_text("utf-8"))
    gpu = {"machine": "a <large> one", "device": "cuda", "workers": 10, "wall_seconds": 810, "note": "entered by hand"}
    record["sessions"] = [gpu, {"wall_seconds": 60.0, "workers": 1, "device": "cpu", "jobs_run": 3}]
    (tmp_path / "run.json").write_text(json.dumps(record), "utf-8")
    _, table = parts_of(report_of(tmp_path)["What was run"], Table)
    assert table.head == ["", *SITTINGS.values()]
    assert table.rows == [
        ["1", "a <large> one", "cuda", "10", "14 min", "–", "entered by hand"],
        ["2", "not recorded", "cpu", "1", "60 s", "3", ""],
    ]
    # Of neither the versions are known, and the last session's are not taken for all.
    assert dict(facts(record, []))["versions"] == "not recorded"
    record["sessions"][0]["versions"] = {"numpy": "1"}
    record["sessions"][1] |= {"versions": {"numpy": "2", "torch": "3"}, "wall_seconds": "?"}
    found = dict(facts(record, []))
    assert found["versions of sitting 1"] == "numpy 1, torch not recorded"
    assert found["versions of sitting 2"] == "numpy 2, torch 3"


@pytest.mark.slow
def test_a_missing_data_set_is_named_and_left_out(tmp_path: Path) -> None:
    build(tmp_path, ("german", "adult"))
    missing = ["COMPAS: no file <compas> & none could be fetched"]
    assert read_results(tmp_path).missing() == missing
    assert missing in [points.texts for points in parts_of(report_of(tmp_path)["What was run"], Points)]
    for name in TABLES:
        assert set(pd.read_csv(tmp_path / f"{name}.csv")["dataset"]) == {"german", "adult"}
    results = read_results(tmp_path)
    for drawing in (draw_sensitivity(results.sensitivity), draw_worst_case(worst_case_points(results))):
        assert {DATASETS["german"], DATASETS["adult"]} <= {word.partition(",")[0] for word in texts(drawing)}
        assert not any("COMPAS" in word for word in texts(drawing))


def test_a_run_with_hardly_anything_still_gives_a_page(tmp_path: Path) -> None:
    build(tmp_path, ("german",))
    rows = [method_row("published", "german", "nn", "scfe", people=0, answered=0, l2="", l2_se="", l1="", l1_se="")]
    write(tmp_path, "methods", rows)
    (tmp_path / "results.csv").write_text("setting,dataset,model,method,alpha,trial,validity,people,seed\n")
    (tmp_path / "theorem.csv").write_text("n,k,k_over_n,extra_cost,bound\n")
    for name in ("sensitivity.csv", "run.json", "settings.yaml"):
        (tmp_path / name).unlink()
    said = "".join(Page(write_report(tmp_path).read_text("utf-8")).said)
    assert all(f"No figure {name}" in said for name in FIGURES)
    missing = read_results(tmp_path).missing()
    assert all(words in said for words in missing)
    assert {"sensitivity.csv: no results in this run", "theorem.csv: no results in this run"} <= set(missing)
    lost = ", ".join(METHODS[method] for method in RUN["corrected", "lr"])
    assert f"German Credit, logistic regression, corrected: {lost}" in missing
    validity = report_of(tmp_path)["Validity when rows are deleted at random"]
    nobody = [part.text for part in parts_of(validity, Paragraph) if "SCFE (German Credit, neural network" in part.text]
    assert len(nobody) == 1


def test_broken_files_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"Expected results\.csv .* run `rocerf reproduce` first"):
        write_report(tmp_path)
    build(tmp_path, ("german",))
    write(tmp_path, "models", [{"setting": "published", "dataset": "german"}])
    with pytest.raises(FileFormatError, match="model, train_rows, test_rows, denied, accuracy not found"):
        write_report(tmp_path)
    build(tmp_path, ("german",))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"Expected JSON in .*run\.json"):
        write_report(tmp_path)
    build(tmp_path, ("german",))
    write(tmp_path, "methods", [method_row("published", "german", "lr", "scfe")] * 2)
    with pytest.raises(FileFormatError, match="Expected one row for published, german, lr, scfe, got 2"):
        write_report(tmp_path)
