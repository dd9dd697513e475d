"""The page: what it holds, and that it holds together."""

import dataclasses
import math
import re
from html.parser import HTMLParser

import pytest
import torch

from probing.geometry.layers import verdict
from probing.report import (
    Example,
    ModelResult,
    Prediction,
    Report,
    charts,
    results,
)
from probing.report.data import Arcs
from probing.report.page import render, rows

VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """Elements of a page with their attributes and texts; tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def count(self, tag, kind=""):
        kinds = [(a.get("class") or "").split() for t, a in self.found if t == tag]
        return sum(not kind or kind in found for found in kinds)


@pytest.fixture(scope="module")
def page(report):
    return Page(render(report))


def nothing() -> Report:
    return Report("Empty", "", [], [], "")


def test_trees_and_disks_show_all_edges(report, page):
    trees = disks = 0
    for example in report.examples:
        for prediction in example.predictions.values():
            trees += len(example.gold_edges) + len(prediction.edges)
            disks += len(prediction.edges) if prediction.distance_points is not None else 0
    roots = 2 * sum(len(example.predictions) for example in report.examples)
    assert page.count("path", "edge") == trees + roots + disks + 3  # three in the key
    assert page.count("svg", "arcs") == 12
    assert page.count("svg", "disk") == 8
    assert page.count("svg", "chart") == 4
    assert page.count("svg", "swatch") == len(report.models)
    points = sum(2 * len(example.words) for example in report.examples)
    assert page.count("circle", "dot") == points


def test_page_loads_no_other_resource(page):
    for tag, attributes in page.found:
        for name in ("src", "href", "srcset", "data", "action", "xlink:href"):
            place = attributes.get(name) or "#"
            if tag == "a" and name == "href" and place.startswith("https://aclanthology.org/"):
                continue  # a link to read on, which loads nothing
            assert re.match("#|data:,$", place), (tag, attributes)
        assert not re.search(r"url\((?!#)", attributes.get("style") or "")
        assert not [name for name in attributes if name.startswith("on")]
    policy = next(a["content"] for _, a in page.found if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert policy.count("unsafe") == policy.count("style-src 'unsafe-inline'") == 1


def test_figures_and_controls_have_names(page):
    pictures = [a for tag, a in page.found if tag == "svg" and a.get("aria-hidden") != "true"]
    assert all(a["role"] == "img" and a["aria-label"] for a in pictures)
    labeled = {a["for"] for tag, a in page.found if tag == "label"}
    assert {a["id"] for tag, a in page.found if tag == "select"} == labeled
    regions = [a for _, a in page.found if a.get("role") == "region"]
    assert all(a.get("aria-label") or a.get("aria-labelledby") for a in regions)
    names = [a["id"] for _, a in page.found if "id" in a]
    assert len(names) == len(set(names))


def test_untrusted_texts_are_escaped(report):
    bad = "</script><script>alert(\"1\")</script><img src=x onerror='alert(2)'>&\x00\x1b\ud800"
    (example,) = report.examples[2:3]
    words = [bad, *example.words[1:]]
    predictions = {bad: example.predictions["hybonet"]}
    models = [dataclasses.replace(report.models[2], name=bad, space=bad, probe=bad)]
    hostile = Report(
        bad,
        bad,
        models,
        [dataclasses.replace(example, words=words, predictions=predictions)],
        bad,
    )
    text = render(hostile)
    page = Page(text)
    assert page.count("script") == 1
    assert page.count("img") == 0
    text.encode()
    shown = bad[:-3] + "\ufffd" * 3
    assert page.texts.count(shown) >= 6


def test_missing_numbers_are_dashes(report):
    text = render(report)
    assert not re.search(r"\b(nan|inf|None)\b", "".join(Page(text).texts), re.IGNORECASE)
    (row,) = (row for row in rows(report.models) if row["model"].name == "random hybonet")
    assert [cell[0] for cell in row["cells"]] == ["0.330", *"\N{EN DASH}" * 3]


def test_undefined_figures_have_no_deviation(report):
    nan = {"uuas": 0.5, "dspr": math.nan, "root": 0.5, "nspr": math.nan}
    model = dataclasses.replace(report.models[2], test=nan, spread=nan)
    (row,) = rows([model])
    assert [cell[:2] for cell in row["cells"]] == [("0.500", "0.500"), ("\N{EN DASH}", "")] * 2
    arcs = Arcs([1, 2], [3, 0], {model.name: [0.25, math.nan]})
    (table,) = results.beside(dataclasses.replace(nothing(), arcs=arcs))
    assert table.rows[1] == (model.name, "0.250", "\N{EN DASH}")


def test_curves_break_at_missing_numbers():
    nan = {"uuas": math.nan, "dspr": math.nan, "root": math.nan, "nspr": math.nan}
    layers = [{"uuas": 0.2}, {"uuas": 0.3}, nan, {"uuas": 0.5}]
    model = ModelResult("m", "a", "lorentz", "lorentz", layers, 3, 0, nan)
    text = render(dataclasses.replace(nothing(), models=[model]))
    (path,) = re.findall(r'class="line">\s*<path d="([^"]*)"', text)
    assert path.count("M") == 2
    assert text.count('class="chart"') == 1
    assert "nan" not in path


def test_a_model_and_its_fresh_twin_share_a_color_but_not_a_shape(report):
    found = charts.lines(report.models)
    colors = {"transformer": "m0", "han": "m1", "hybonet": "m2", "random hybonet": "m2"}
    assert {name: line.color for name, line in found.items()} == colors | {"linear chain": "soft"}
    assert [found[name].hollow for name in ("hybonet", "random hybonet")] == [False, True]
    uuas = str(charts.layer_charts(report.models)[0].picture)
    assert set(re.findall(r"--(m\d|soft)\b", uuas)) == {"m0", "m1", "m2", "soft"}
    keys = {name: str(picture) for name, picture in charts.key(report.models)}
    for name, color in colors.items():
        assert set(re.findall(r"--(m\d)\b", keys[name])) == {color}
    assert "stroke-dasharray" in keys["random hybonet"]


def test_charts_contain_all_their_values():
    chain = ModelResult("chain", "", "", "", [], 0, 0, {"uuas": 0.9}, role="baseline")
    undefined = dataclasses.replace(chain, name="rootless", test={})
    layers = [{"uuas": 0.3}, {"uuas": 0.35}]
    model = ModelResult("m", "a", "vectors", "lorentz", layers, 0, 0, {})
    (chart,) = charts.layer_charts([chain, undefined, model])
    text = str(chart.picture)
    assert text.count('class="flat"') == 1
    ticks = [float(tick) for tick in re.findall(r">(0\.\d+|1\.0)</text>", text)]
    assert min(ticks) <= 0.3
    assert max(ticks) >= 0.9
    assert chart.rows == [("m", "<strong>0.300</strong>", "0.350")]


def test_chart_rings_and_names_the_best_layer_of_every_seed(report):
    text = render(report)
    (uuas, *_) = re.findall(r"<svg(?=[^>]*over the layers).*?</svg>", text, re.DOTALL)
    # of the two seeds of one model, and of two models of one seed
    assert uuas.count('class="chosen"') == 2 + 1 + 1
    assert "<td>3\N{EN DASH}4 / 5</td>" in text
    (row,) = (row for row in rows(report.models) if row["model"].name == "hybonet")
    assert row["cells"][0] == ("0.680", "0.012", True)


def test_headers_link_to_the_definitions_of_metrics(page):
    names = [a["id"] for tag, a in page.found if tag == "dt" and "id" in a]
    assert names == [f"metric-{metric}" for metric in ("uuas", "dspr", "root", "nspr")]
    linked = [a["href"] for tag, a in page.found if tag == "a" and "title" in a]
    assert linked == [f"#{name}" for name in names]
    assert any("Undirected unlabeled attachment score" in text for text in page.texts)


def test_page_names_its_inputs(page, report):
    for _, found in report.about:
        assert set(found) <= set(page.texts)
    assert any("p < 0.001" in text.replace("\xa0", " ") for text in page.texts)
    assert "41.4\xa0%" in page.texts


def test_only_trained_encoders_above_the_baselines_are_marked_best():
    def model(name, value, role="encoder"):
        test = dict.fromkeys(("uuas", "dspr", "root", "nspr"), value)
        return ModelResult(name, "", "", "", [], 0, 0, test, role)

    four = [model("a", 0.50001), model("b", 0.50002), model("c", 0.4), model("d", 0.9, "fresh")]
    best = [[best for *_, best in row["cells"]] for row in rows(four)]
    assert best == [[True] * 4, [True] * 4, [False] * 4, [False] * 4]
    chain = [*four, model("e", 0.6, "baseline")]
    assert not any(best for row in rows(chain) for *_, best in row["cells"])


def test_page_without_results_is_valid():
    page = Page(render(nothing()))
    assert page.count("article") == 0
    assert page.count("select") == 0
    assert page.count("svg") == 0
    assert page.count("h1") == 1


@pytest.mark.parametrize("root", [0, -1])
def test_report_handles_one_word_and_all_punctuation(root):
    point = torch.tensor([[math.sqrt(2.0), 1.0]])
    prediction = Prediction([], root, point)
    example = Example(["!"], [], 0, [root < 0], {"m": prediction})
    model = ModelResult("m", "a", "lorentz", "lorentz", [], 0, 0, {})
    page = Page(render(dataclasses.replace(nothing(), models=[model], examples=[example])))
    assert page.count("svg", "arcs") == 1
    assert page.count("svg", "disk") == 1
    assert any("no edge counts" in text for text in page.texts)


def test_report_describes_and_draws_use_of_the_space(report):
    page = render(report)
    assert 'href="#space"' in page
    section = page[page.index('id="space"') : page.index('id="about"')]
    for name, layers in report.spaces.items():
        assert verdict(layers).replace(" %", "\xa0%") in section
        assert f"Figures of every layer, {name}" in section
    assert "0.0\xa0%" in section  # flat vectors
    assert "nan" not in section
    assert 'href="#space"' not in render(dataclasses.replace(report, spaces={}))
