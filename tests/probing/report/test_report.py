import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from probing.geometry.layers import verdict
from probing.report import charts, results
from probing.report.data import Arcs, Example, ModelResult, Prediction, Report, Selectivity
from probing.report.page import render, rows

VOID = {"meta", "link", "br", "img", "input"}
METRICS = ("uuas", "dspr", "root", "nspr")
DASH = "\N{EN DASH}"


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

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    def count(self, tag, kind=""):
        kinds = [(a.get("class") or "").split() for t, a in self.found if t == tag]
        return sum(not kind or kind in found for found in kinds)

    def values(self, tag, name):
        return [a[name] for t, a in self.found if t == tag and name in a]


@pytest.fixture(scope="module")
def page(report):
    return Page(render(report))


NOTHING = Report("", [], [])


def model(name="m", layers=(), test=(), role="encoder"):
    return ModelResult(name, "a", "lorentz", "lorentz", list(layers), 0, 0, dict(test), role)


def test_trees_and_disks_show_all_edges(report, page):
    trees = disks = 0
    for example in report.examples:
        for prediction in example.predictions.values():
            trees += len(example.gold_edges) + len(prediction.edges)
            disks += len(prediction.edges) if prediction.distance_points is not None else 0
    roots = 2 * sum(len(example.predictions) for example in report.examples)
    assert page.count("path", "edge") == trees + roots + disks + 3  # three in the key
    kinds = {"arcs": 12, "disk": 8, "chart": 4, "swatch": len(report.models)}
    assert {kind: page.count("svg", kind) for kind in kinds} == kinds
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
    (policy,) = (a["content"] for _, a in page.found if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert policy.count("unsafe") == policy.count("style-src 'unsafe-inline'") == 1


def test_figures_and_controls_have_names(page):
    pictures = [a for tag, a in page.found if tag == "svg" and a.get("aria-hidden") != "true"]
    assert all(a["role"] == "img" and a["aria-label"] for a in pictures)
    assert set(page.values("select", "id")) == set(page.values("label", "for"))
    regions = [a for _, a in page.found if a.get("role") == "region"]
    assert all(a.get("aria-label") or a.get("aria-labelledby") for a in regions)
    names = [a["id"] for _, a in page.found if "id" in a]
    assert len(names) == len(set(names))


def test_untrusted_texts_are_escaped(report):
    bad = "</script><script>alert(\"1\")</script><img src=x onerror='alert(2)'>&\x00\x1b\ud800"
    example = report.examples[2]
    predictions = {bad: example.predictions["hybonet"]}
    example = replace(example, words=[bad, *example.words[1:]], predictions=predictions)
    shown = replace(report.models[2], name=bad, space=bad, probe=bad)
    text = render(Report(bad, [shown], [example]))
    page = Page(text)
    assert (page.count("script"), page.count("img")) == (1, 0)
    text.encode()
    assert page.texts.count(bad[:-3] + "\ufffd" * 3) >= 4


def test_names_are_escaped_in_the_results_text():
    name = "<img src=x>"
    arcs, selective = Arcs([1], [1], {name: [0.5]}), [Selectivity(name, [0.5], [0.25])]
    one = model(name, test={"uuas": 0.5})
    report = replace(NOTHING, models=[one], comparisons={"b|c": []}, arcs=arcs)
    tables = results.beside(replace(report, selectivities=selective))
    text = results.markdown(
        [one, replace(one, name="b|c")], "", [table.markdown() for table in tables]
    )
    assert not re.search(r"(?<!\\)[<|]img|(?<!\\)<", text)
    assert text.count("src=x") == 5


def test_missing_numbers_are_dashes_without_deviation(report, page):
    assert not re.search(r"\b(nan|inf|None)\b", "".join(page.texts), re.IGNORECASE)
    nan = {"uuas": 0.5, "dspr": math.nan, "root": 0.5, "nspr": math.nan}
    (row,) = rows([replace(report.models[2], test=nan, spread=nan)])
    assert [cell[:2] for cell in row["cells"]] == [("0.500", "0.500"), (DASH, "")] * 2
    (table,) = results.beside(replace(NOTHING, arcs=Arcs([1, 2], [3, 0], {"m": [0.25, math.nan]})))
    assert table.rows[1] == ("m", "0.250", DASH)


def test_curves_break_at_missing_numbers():
    layers = [{"uuas": 0.2}, {"uuas": 0.3}, dict.fromkeys(METRICS, math.nan), {"uuas": 0.5}]
    text = render(replace(NOTHING, models=[model(layers=layers)]))
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
    assert {name: set(re.findall(r"--(m\d)\b", keys[name])) for name in colors} == {
        name: {color} for name, color in colors.items()
    }
    assert "stroke-dasharray" in keys["random hybonet"]


def test_charts_contain_all_their_values():
    chain = model("chain", test={"uuas": 0.9}, role="baseline")
    undefined = model("rootless", role="baseline")
    one = model(layers=[{"uuas": 0.3}, {"uuas": 0.35}])
    (chart,) = charts.layer_charts([chain, undefined, one])
    text = str(chart.picture)
    assert text.count('class="flat"') == 1
    ticks = [float(tick) for tick in re.findall(r">(0\.\d+|1\.0)</text>", text)]
    assert min(ticks) <= 0.3 < 0.9 <= max(ticks)
    assert chart.rows == [("m", "<strong>0.300</strong>", "0.350")]


def test_chart_rings_and_names_the_best_layer_of_every_seed(report):
    text = render(report)
    (uuas, *_) = re.findall(r"<svg(?=[^>]*over the layers).*?</svg>", text, re.DOTALL)
    # of the two seeds of one model, and of two models of one seed
    assert uuas.count('class="chosen"') == 2 + 1 + 1
    assert f"<td>3{DASH}4 / 5</td>" in text
    (row,) = (row for row in rows(report.models) if row["model"].name == "hybonet")
    assert row["cells"][0] == ("0.680", "0.012", True)


def test_page_defines_its_metrics_and_names_its_inputs(page, report):
    names = [f"metric-{metric}" for metric in METRICS]
    assert page.values("dt", "id") == names
    linked = [a["href"] for tag, a in page.found if tag == "a" and "title" in a]
    assert linked == [f"#{name}" for name in names]
    texts = [text.replace("\xa0", " ") for text in page.texts]
    for wanted in ("Undirected unlabeled attachment score", "p < 0.001", "41.4 %", "| hybonet |"):
        assert any(wanted in text for text in texts), wanted
    for _, found in report.about:
        assert set(found) <= set(texts)


def test_only_trained_encoders_above_the_baselines_are_marked_best():
    def of(name, value, role="encoder"):
        return model(name, test=dict.fromkeys(METRICS, value), role=role)

    four = [of("a", 0.50001), of("b", 0.50002), of("c", 0.4), of("d", 0.9, "fresh")]
    best = [[best for *_, best in row["cells"]] for row in rows(four)]
    assert best == [[True] * 4, [True] * 4, [False] * 4, [False] * 4]
    chain = [*four, of("e", 0.6, "baseline")]
    assert not any(best for row in rows(chain) for *_, best in row["cells"])


def test_page_without_results_is_valid():
    page = Page(render(NOTHING))
    found = [page.count(tag) for tag in ("article", "select", "svg", "h1")]
    assert found == [0, 0, 0, 1]


@pytest.mark.parametrize("root", [0, -1])
def test_report_handles_one_word_and_all_punctuation(root):
    prediction = Prediction([], root, torch.tensor([[math.sqrt(2.0), 1.0]]))
    example = Example(["!"], [], 0, [root < 0], {"m": prediction})
    page = Page(render(replace(NOTHING, models=[model()], examples=[example])))
    assert (page.count("svg", "arcs"), page.count("svg", "disk")) == (1, 1)
    assert any("no edge counts" in text for text in page.texts)


def test_report_describes_use_of_the_space(report):
    page = render(report)
    section = page[page.index('id="space"') : page.index('id="about"')]
    for name, layers in report.spaces.items():
        assert verdict(layers).replace(" %", "\xa0%") in section
        assert f"Figures of every layer, {name}" in section
    assert "0.0\xa0%" in section  # flat vectors
    assert "nan" not in section
    assert 'href="#space"' in page
    assert 'href="#space"' not in render(replace(report, spaces={}))
