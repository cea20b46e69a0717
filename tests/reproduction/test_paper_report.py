"""The report of the reproduction, on a synthetic run: exact numbers, figures that can be read, a page that is whole."""

from __future__ import annotations

import itertools
import json
import lzma
import math
import re
import xml.etree.ElementTree as ET
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paper_runs import ALPHAS, build, cases, method_row, write
from rocerf.drawing import COLOURS, MARKERS
from rocerf.errors import FileFormatError
from rocerf.evaluation.methods import METHODS as RUN
from rocerf.html import Details, Figure, Paragraph, Part, Points, Section, Table
from rocerf.reproduction.curve_figures import draw_curves, panel_words, panels_of
from rocerf.reproduction.figures import SHADES, _shade, draw_sensitivity, look
from rocerf.reproduction.findings import ABOUT_THE_PAPER
from rocerf.reproduction.frontier import frontiers_of
from rocerf.reproduction.intervals import binomial_interval
from rocerf.reproduction.markdown_page import answers_text, page
from rocerf.reproduction.published import (
    ACCURACY,
    BASELINES,
    COSTS,
    DATASETS,
    METHODS,
    MODELS,
    OURS,
    SETTINGS,
    is_run,
    printed,
)
from rocerf.reproduction.published import (
    TABLES as THREE,
)
from rocerf.reproduction.report import Panels, sections, write_report
from rocerf.reproduction.report_tables import write_tables
from rocerf.reproduction.run_facts import SITTINGS, facts
from rocerf.reproduction.scales import LANE, TOP, Shares, height
from rocerf.reproduction.tables import read_results, validity_curves_of
from rocerf.reproduction.words import percent

pytestmark = pytest.mark.slow  # minutes of retraining and of commands

PAPER = sorted((Path(__file__).parents[3] / "shared" / "paper").glob("*.txt"))
FIGURES = ("validity_lr.svg", "validity_nn.svg", "sensitivity.svg", "theorem.svg")
CURVES = ("curves_lr.svg", "curves_nn.svg")
TABLES = ("accuracy", "cost_l2_lr", "cost_l2_nn", "cost_l1_lr", "cost_l1_nn", "beaten", "validity")
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
            assert tuple(values) == THREE
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
    assert len(accuracy) == 10  # four tables with each model, and two variants with logistic regression
    assert (accuracy["published"] == 0.7).all()
    measured = pd.read_csv(run / "methods.csv").groupby(["setting", "dataset", "model", "method"]).mean(True)
    for norm, model in itertools.product(("l2", "l1"), MODELS):
        table = pd.read_csv(run / f"cost_{norm}_{model}.csv")
        kinds = {(d, m) for s in SETTINGS for d in DATASETS for m in RUN[s, model] if is_run(s, d, model, m)}
        assert {(row["dataset"], row["method"]) for row in table.to_dict("records")} == kinds
        assert len(table) == len(kinds)
        for row in table.to_dict("records"):
            for setting in SETTINGS:
                key = (setting, row["dataset"], model, row["method"])
                if key in measured.index:
                    assert row[setting] == pytest.approx(measured.loc[key, norm], rel=1e-12)
                    assert row[f"{setting}_se"] == pytest.approx(measured.loc[key, f"{norm}_se"], rel=1e-12)
                else:
                    assert math.isnan(row[setting])
            paper = printed(norm, model, row["method"], row["dataset"])
            if paper:
                assert (row["paper"], row["paper_se"]) == (paper.mean, paper.standard_error)
            else:
                assert math.isnan(row["paper"])


@pytest.mark.slow
def test_curves_are_means_and_standard_errors_over_trials(run: Path) -> None:
    results = read_results(run)
    table = results.results
    curves = validity_curves_of(results)
    assert len(curves) == len(cases(tuple(DATASETS)))
    for curve in [curve for curve in curves if not curve.by_seed][::5]:
        rows = table[(table["setting"] == curve.setting) & (table["dataset"] == curve.dataset)]
        rows = rows[(rows["model"] == curve.model) & (rows["method"] == curve.method)]
        assert curve.alphas == list(ALPHAS)
        for alpha, mean, error in zip(curve.alphas, curve.means, curve.errors, strict=True):
            shares = rows[rows["alpha"] == alpha]["validity"].to_numpy()
            assert mean == pytest.approx(shares.mean(), abs=1e-11)
            expected = shares.std(ddof=1) / math.sqrt(len(shares)) if len(shares) > 1 else 0.0
            assert error == pytest.approx(expected, abs=1e-15)
        assert curve.worst == (min(curve.means), curve.alphas[curve.means.index(min(curve.means))])


def test_few_who_are_answered_well_are_no_validity(tmp_path: Path) -> None:
    """The paper divides by all denied people: valid for a few is not valid."""
    build(tmp_path, ("german",))
    methods = pd.read_csv(tmp_path / "methods.csv")
    few = (methods["method"] == "roar") & (methods["setting"] == "corrected") & (methods["model"] == "lr")
    methods.loc[few, "answered"] = 10
    write(tmp_path, "methods", methods.to_dict("records"))
    shown = report_of(tmp_path)["Validity as more rows are deleted at random"]
    table = pd.read_csv(tmp_path / "validity.csv")
    mine = table[(table["method"] == "roar") & (table["setting"] == "corrected") & (table["model"] == "lr")]
    assert list(mine["validity_all"]) == pytest.approx([0.25 * share for share in mine["validity"]])
    caption = next(figure.caption for figure in parts_of(shown, Figure) if figure.name == "validity_lr")
    assert "ROAR 10 of 40 (German Credit, corrected)" in caption
    numbers = parts_of(shown, Table)[0].rows
    place = next(place for place, row in enumerate(numbers) if row[:2] == ["ROAR", "10 of 40"])
    assert numbers[place + 1][:3] == ["of those answered", "", percent(1.0)]


def test_a_packed_table_is_read_too(run: Path, tmp_path: Path) -> None:
    build(tmp_path)
    (tmp_path / "results.csv.xz").write_bytes(lzma.compress((tmp_path / "results.csv").read_bytes()))
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
        panels = {f"{DATASETS[name]}, {setting}" for name in THREE for setting in SETTINGS.values()}
        assert panels <= set(words)
    assert {"average validity (%)", "training rows deleted, α (%)", "k = 0.5 %", "k = 5 %"} <= set(
        said["sensitivity.svg"]
    )
    assert {"training rows deleted, k/n (%, log scale)", "measured, n = 16,000"} <= set(said["theorem.svg"])
    assert any(word.startswith("extra cost over the plain optimum") for word in said["theorem.svg"])


@pytest.mark.slow
def test_a_method_has_one_colour_and_marker_everywhere(run: Path) -> None:
    for method in METHODS:
        assert COLOURS[method] in OKABE_ITO
        assert (look(method)["color"], look(method)["marker"]) == (COLOURS[method], MARKERS[method])
    assert COLOURS["scfe"] == COLOURS["plain"]
    assert COLOURS["rocerf"] == COLOURS["first_order"]
    for model, ours in OURS.items():
        shown = RUN["corrected", model]
        looks = {(look(m)["color"], look(m)["marker"], str(look(m)["linestyle"])) for m in shown}
        assert len(looks) == len(shown)
        assert set(ours) <= set(shown)
    for model in MODELS:
        methods = {*RUN["corrected", model], *RUN["published", model]}
        own = {COLOURS[method].lower() for method in methods}
        assert line_colours(run / f"validity_{model}.svg") - {"#000000"} == own - {"#000000"}
        shown = {COLOURS[method].lower() for method in RUN["corrected", model]}
        assert line_colours(run / f"curves_{model}.svg") - {"#000000"} == shown - {"#000000"}


def test_every_panel_of_curves_names_its_methods_and_keeps_labels_apart(run: Path) -> None:
    frontiers = frontiers_of(read_results(run))
    for model in MODELS:
        assert panels_of(frontiers, model) == [(d, kind) for d in THREE for kind in ("random", "picked")]
        drawing = draw_curves(frontiers, model, [("german", "picked")])
        words = texts(drawing)
        assert {"mean cost (L2, log scale)", "answers still valid (%)", "99.9", "100"} <= set(words)
        assert {"constant margin", "ROCERF", "retrained", "ROAR", "SCFE", "C-CHVAE at 7.0"} <= set(words)
        told = panel_words(frontiers, model, "german", "picked")
        assert f"retrained (ours) {percent(1.0)} at a cost of 1.00" in told


def test_96_and_99_6_are_far_apart_and_nobody_at_100_hides_another() -> None:
    assert height(0.996) - height(0.96) == pytest.approx(1.0)
    methods = [*RUN["corrected", "nn"]]
    scale = Shares(methods, methods[:2])
    full = [scale.place(1.0, method) for method in methods]
    assert min(abs(a - b) for a, b in itertools.combinations(full, 2)) == pytest.approx(LANE)
    assert min(full) > TOP > scale.place(0.9985, methods[0])
    none = [scale.place(0.0, method) for method in methods[:2]]
    assert none[0] - none[1] == pytest.approx(LANE)
    assert max(none) < 0
    low, high = scale.limits
    assert all(low < place < high for place in full + none)


def line_colours(path: Path) -> set[str]:
    """Colours of strokes but the greys of grid and axes; black is C-CHVAE's and the axes'."""
    found = {colour.lower() for colour in re.findall(r"stroke: (#[0-9a-fA-F]{6})", path.read_text("utf-8"))}
    return found - {"#b0b0b0", "#ffffff"}


def test_the_same_results_give_the_same_files(run: Path, tmp_path: Path) -> None:
    results = read_results(run)
    write_tables(results, tmp_path)
    (tmp_path / "curves_lr.svg").write_text(draw_curves(frontiers_of(results), "lr"), "utf-8")
    for name in ("curves_lr.svg", *(f"{table}.csv" for table in TABLES)):
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
    assert page.tags.count("svg") == len(FIGURES) + 2 * len(MODELS) * len(THREE)  # a panel a table and way of deletion
    assert page.tags.count("figcaption") == len(FIGURES) + len(MODELS)
    assert text.count('role="img" aria-label="') == page.tags.count("svg")
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
def test_the_answer_comes_first_and_what_was_run_last(run: Path, shown: dict[str, Section]) -> None:
    titles = list(shown)
    assert titles[:2] == ["", "Validity against cost"]
    assert titles[-1] == "What was run"
    verdicts, figures = parts_of(shown[""], Points)
    assert len(verdicts.texts) == len(figures.texts) == 3
    assert "but a constant margin does as well for less" in verdicts.texts[0]
    assert len(parts_of(shown["Validity against cost"], Panels)) == len(MODELS)
    said = answers_text(read_results(run))
    whole = page(read_results(run), "figures")
    assert whole.startswith(said.strip())
    bare = re.sub(r"[*`]", "", whole)
    for line, first, second in zip(said.splitlines(), verdicts.texts, figures.texts, strict=True):
        plain = [unescape(re.sub(r"<[^>]*>", "", text)) for text in (first, second)]
        assert re.sub(r"[*`]", "", line[2:]) == plain[0]
        assert f"- {plain[1]}" in bare
    assert "(figures/curves_lr.svg)" in whole
    assert "<span" not in whole


@pytest.mark.slow
def test_the_sections_show_every_number(shown: dict[str, Section]) -> None:
    """The numbers of the report, as data: tables cell by cell, not the words around them."""
    assert all(section.parts for section in shown.values())
    (accuracy,) = parts_of(shown["Accuracy"], Table)
    assert accuracy.rows[0] == MODELS["lr"]
    numbers = [percent(0.722), percent(0.7), percent(0.7), "45", "45"]
    assert accuracy.rows[1] == [DATASETS["german"], *numbers]
    costs = parts_of(shown["Cost, beside the paper's"], Table)
    assert len(costs) == 4
    adult = costs[0].rows.index(DATASETS["adult"])
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in costs[0].rows[adult + 1]]
    within = f"✓ +0.00 (+0{percent(0)[-2:]}), within ±0.02"
    assert cells == ["SCFE", "1.04 ± 0.006", "1.04 ± 0.01", within, "1.04 ± 0.01"]  # the paper's digit for digit
    assert 'class="in"' in costs[0].rows[adult + 1][3]
    validity = parts_of(shown["Validity as more rows are deleted at random"], Table)
    scfe = ["SCFE", "40 of 40", percent(1.0), *[percent(0.501)] * 5]
    assert validity[0].rows[:2] == [f"{DATASETS['german']}, as published", scfe]
    assert validity[1].rows[2][0] == "range over 2 seeds"
    (sensitivity,) = parts_of(shown["Sensitivity to k"], Table)
    assert sensitivity.rows[:2] == [DATASETS["german"], ["0.5 % (5 rows)", "1.00", percent(0.995)]]
    beaten = parts_of(shown["Validity against cost"], Table)[0]  # what is folded away comes last
    assert beaten.rows[1][0] == f"ROCERF, random: {percent(0.999)} at 0.90"
    assert beaten.rows[1][1] == f"<b>● 0.80 (−11{percent(0)[-2:]})</b>"
    assert beaten.rows[4][2] == f"– ({percent(0.9)})"  # retrained, picked: ROAR never keeps as many
    (worst,) = parts_of(shown["The worst deletions"], Table)
    rocerf = next(row for row in worst.rows if row[0] == METHODS["rocerf"])
    assert rocerf[1:3] == ["4", "10 of 40 [13\N{NO-BREAK SPACE}%–41\N{NO-BREAK SPACE}%]"]
    (measures,) = parts_of(shown["Further measures"], Table)
    assert measures.rows[1] == ["SCFE", percent(0.0), "1.20", "5.0", "1.50", "10 ms"]
    (claims,) = parts_of(shown["The paper's claims, one by one"], Table)
    assert len(claims.rows) > 20


def test_the_page_says_everything_that_the_sections_hold(run: Path, shown: dict[str, Section]) -> None:
    said = "".join(Page((run / "report.html").read_text("utf-8")).said)
    for section in shown.values():
        assert section.title in said
        for table in parts_of(section, Table):
            cells = [cell for row in table.rows for cell in ([row] if isinstance(row, str) else row)]
            assert all(unescape(re.sub(r"<[^>]*>", "", cell)) in said for cell in cells)
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
    gpu = {"machine": "a <large> one", "device": "cuda", "gpu": "A GPU", "workers": 10, "wall_seconds": 810}
    gpu |= {"started": "2024-05-01T12:00:00.000+00:00", "threads": 1, "commit": "0123456789abcdef", "dirty": True}
    record["sessions"] = [gpu, {"wall_seconds": 60.0, "workers": 1, "device": "cpu", "jobs_run": 3}]
    (tmp_path / "run.json").write_text(json.dumps(record), "utf-8")
    _, table = parts_of(report_of(tmp_path)["What was run"], Table)
    assert table.head == ["", *SITTINGS.values()]
    assert table.rows == [
        [
            "1",
            "2024-05-01 12:00",
            "a <large> one",
            "cuda: A GPU",
            "10",
            "1",
            "14 min",
            "–",
            "0123456789ab, changed since",
        ],
        ["2", "–", "not recorded", "cpu", "1", "–", "60 s", "3", "–"],
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
    missing = [f"{DATASETS[key]}: no file <{key}> & none could be fetched" for key in DATASETS if "compas" in key]
    assert read_results(tmp_path).missing() == missing
    assert missing in [points.texts for points in parts_of(report_of(tmp_path)["What was run"], Points)]
    for name in TABLES:
        assert set(pd.read_csv(tmp_path / f"{name}.csv")["dataset"]) == {"german", "adult"}
    results = read_results(tmp_path)
    for drawing in (draw_sensitivity(results.sensitivity), draw_curves(frontiers_of(results), "lr")):
        assert {DATASETS["german"], DATASETS["adult"]} <= {re.split(r"[,:]", word)[0] for word in texts(drawing)}
        assert not any("COMPAS" in word for word in texts(drawing))


def test_a_run_with_hardly_anything_still_gives_a_page(tmp_path: Path) -> None:
    build(tmp_path, ("german",))
    rows = [method_row("published", "german", "nn", "scfe", people=0, answered=0, l2="", l2_se="", l1="", l1_se="")]
    write(tmp_path, "methods", rows)
    (tmp_path / "results.csv").write_text("setting,dataset,model,method,alpha,trial,validity,people,seed\n")
    (tmp_path / "theorem.csv").write_text("n,k,k_over_n,extra_cost,bound\n")
    for name in ("sensitivity.csv", "sweeps.csv", "worst.csv", "run.json", "settings.yaml"):
        (tmp_path / name).unlink()
    said = "".join(Page(write_report(tmp_path).read_text("utf-8")).said)
    assert all(f"No figure {name}" in said for name in FIGURES)
    missing = read_results(tmp_path).missing()
    assert all(words in said for words in missing)
    assert {"sensitivity.csv: no results in this run", "theorem.csv: no results in this run"} <= set(missing)
    lost = ", ".join(METHODS[method] for method in RUN["corrected", "nn"])
    assert f"German Credit, neural network, corrected: {lost}" in missing
    assert "Logistic regression: no results in this run" in missing
    validity = report_of(tmp_path)["Validity as more rows are deleted at random"]
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
    with pytest.raises(FileFormatError, match="Expected one row for published, german, lr, scfe and a seed, got more"):
        write_report(tmp_path)
