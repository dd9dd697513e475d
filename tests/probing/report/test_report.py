"""The page: what it holds, and that it holds together."""

import dataclasses
import math
import re
from html.parser import HTMLParser

import pytest
import torch

from probing.report import Example, ModelResult, Prediction, Report, write_report
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
    return Report("Empty", "", [], [], {}, "")


def test_trees_and_disks_have_all_their_edges(report, page):
    trees = disks = 0
    for example in report.examples:
        for prediction in example.predictions.values():
            trees += len(example.gold_edges) + len(prediction.edges)
            disks += len(prediction.edges) if prediction.distance_points is not None else 0
    roots = 2 * sum(len(example.predictions) for example in report.examples)
    assert page.count("path", "edge") == trees + roots + disks + 3  # three in the key
    assert page.count("svg", "arcs") == 12
    assert page.count("svg", "disk") == 8
    assert page.count("svg", "chart") == 4 + 2
    points = sum(2 * len(example.words) for example in report.examples)
    assert page.count("circle", "dot") == points


def test_page_names_no_other_resource(page):
    for tag, attributes in page.found:
        for name in ("src", "href", "srcset", "data", "action", "xlink:href"):
            assert re.match("#|data:,$", attributes.get(name) or "#"), (tag, attributes)
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
    policy = next(a["content"] for _, a in page.found if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


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
        {bad: [(0, 0.1)] * 9},
        bad,
    )
    text = render(hostile)
    page = Page(text)
    assert page.count("script") == 1
    assert page.count("img") == 0
    text.encode()
    shown = bad[:-3] + "\ufffd" * 3
    assert page.texts.count(shown) >= 8


def test_numbers_that_are_not_there_are_dashes(report):
    text = render(report)
    assert not re.search(r"\b(nan|inf|None)\b", "".join(Page(text).texts), re.IGNORECASE)
    (row,) = (row for row in rows(report.models) if row["model"].name == "random hybonet")
    assert [cell[0] for cell in row["cells"]] == ["0.330", *"\N{EN DASH}" * 3]


def test_curves_break_at_numbers_that_are_not_there():
    nan = {"uuas": math.nan, "dspr": math.nan, "root": math.nan, "nspr": math.nan}
    layers = [{"uuas": 0.2}, {"uuas": 0.3}, nan, {"uuas": 0.5}]
    model = ModelResult("m", "a", "lorentz", "lorentz", layers, 3, 0, nan)
    text = render(dataclasses.replace(nothing(), models=[model]))
    (path,) = re.findall(r'class="line m0" d="([^"]*)"', text)
    assert path.count("M") == 2
    assert text.count('class="chart"') == 1
    assert "nan" not in path


def test_best_leaves_baselines_out_and_marks_ties():
    def model(name, value, baseline=False):
        test = dict.fromkeys(("uuas", "dspr", "root", "nspr"), value)
        return ModelResult(name, "", "", "", [], 0, 0, test, baseline)

    made = rows([model("a", 0.50001), model("b", 0.50002), model("c", 0.4), model("d", 0.9, True)])
    assert [[best for _, best in row["cells"]] for row in made] == [
        [True] * 4,
        [True] * 4,
        [False] * 4,
        [False] * 4,
    ]


def test_page_without_anything_is_a_page():
    page = Page(render(nothing()))
    assert page.count("article") == 0
    assert page.count("select") == 0
    assert page.count("svg") == 0
    assert page.count("h1") == 1


@pytest.mark.parametrize("root", [0, -1])
def test_one_word_and_all_punctuation(root):
    point = torch.tensor([[math.sqrt(2.0), 1.0]])
    prediction = Prediction([], [0.5], root, point, point)
    example = Example(["!"], [], 0, [0], [root < 0], {"m": prediction})
    page = Page(render(dataclasses.replace(nothing(), examples=[example])))
    assert page.count("svg", "arcs") == 1
    assert page.count("svg", "disk") == 1
    assert any("no edge counts" in text for text in page.texts)


def test_report_is_written_whole_and_alike_each_time(report, tmp_path):
    path = tmp_path / "new" / "report.html"
    write_report(path, report)
    first = path.read_bytes()
    write_report(path, report)
    assert path.read_bytes() == first
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_size_of_ten_long_sentences_and_six_models(report):
    (example,) = report.examples[1:2]
    prediction = example.predictions["hybonet"]
    predictions = {f"model {i}": prediction for i in range(6)}
    many = [dataclasses.replace(example, predictions=predictions)] * 10
    assert len(render(dataclasses.replace(report, examples=many)).encode()) < 2e6
