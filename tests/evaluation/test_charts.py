"""Charts, by what lies where in the files, and what ``hyptrans plot`` makes of logs."""

import importlib
import math
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hyptrans.commands.cli import PROGRAM
from hyptrans.commands.plot import names_of
from hyptrans.evaluation.charts import Curve, Panel, Row, learning_curves, scores

VALUES = [(0, 80.0), (10, 40.0), (20, 20.0), (40, 10.0)]


def texts(picture, style=""):
    found = [text for text in ET.fromstring(picture).iter() if text.tag.endswith("text")]
    return [text.text for text in found if style in text.get("style")]


def upwards(picture):
    """The numbers of the axis upwards, which alone stand at its left."""
    return [float(text) for text in texts(picture, "text-anchor: end")]


def lines(picture):
    """Vertices and style of each line of the charts, which alone are clipped and not filled."""
    found = []
    for path in ET.fromstring(picture).iter():
        style = path.get("style", "")
        if path.get("clip-path") and "stroke-width: 1.5" in style and "fill: none" in style:
            numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.get("d"))]
            found.append((list(zip(numbers[::2], numbers[1::2], strict=True)), style))
    return found


def test_numbers_lie_in_proportion_and_perplexities_by_their_ratios():
    even, ratios = Panel("loss", [Curve("a", VALUES)]), Panel("ppl", [Curve("a", VALUES)], True)
    (flat, _), (curved, _) = lines(learning_curves([even, ratios], "both"))
    for vertices in (flat, curved):
        x = [x for x, _ in vertices]
        assert [(one - x[0]) / (x[-1] - x[0]) for one in x] == pytest.approx([0, 0.25, 0.5, 1])
    for vertices, expected in ((flat, [0, 4 / 7, 6 / 7, 1]), (curved, [0, 1 / 3, 2 / 3, 1])):
        y = [y for _, y in vertices]
        # SVG counts from above
        assert y[-1] > y[0]
        assert [(one - y[0]) / (y[-1] - y[0]) for one in y] == pytest.approx(expected, abs=1e-4)


def test_sizes_lie_by_their_ratios_and_each_seed_is_a_dot():
    sizes = (16, 32, 128)
    curve = Curve("a", [(16, 8.0), (32, 4.0), (128, 2.0)], dots=[(16, 7.0), (16, 16.0), (32, 4.0)])
    picture = learning_curves([Panel("ppl", [curve], True, sizes=sizes, below="width")], "x")
    (vertices, _), *_ = lines(picture)
    x, y = zip(*vertices, strict=True)
    assert (x[1] - x[0]) * 2 == pytest.approx(x[2] - x[1])
    uses = [use for use in ET.fromstring(picture).iter() if "fill-opacity" in use.get("style", "")]
    dots = [(float(use.get("x")), float(use.get("y"))) for use in uses]
    assert [place for place, _ in dots] == pytest.approx([x[0], x[0], x[1]])
    # 16 lies as far above 8 as 8 above 4
    assert y[0] - dots[1][1] == pytest.approx(y[1] - y[0], abs=0.01)
    assert {"16", "32", "128", "width"} <= set(texts(picture))


@pytest.mark.parametrize("most", [math.inf, 4.0])
@pytest.mark.parametrize("values", [[0.0, 0.0], [-1.0, -3.0], [-2.0, 5.0], [7.0], [2.0, 2.0]])
def test_constant_negative_and_single_values_are_drawn_whole(values, most):
    curve = Curve("a", list(enumerate(values)), [(value, value) for value in values])
    picture = learning_curves([Panel("loss", [curve], most=most)], "x")
    (vertices, _), *_ = lines(picture)
    assert len(vertices) == len(values)
    assert "cut off" not in picture.decode()


@pytest.mark.parametrize(("most", "cut"), [(2.0, True), (8.0, False), (9.0, False)])
def test_an_axis_that_is_cut_says_so(most, cut):
    picture = learning_curves([Panel("ppl", [Curve("a", VALUES)], True, most)], "x")
    assert ("ppl (above 20 cut off)" in texts(picture)) == cut
    assert max(upwards(picture)) <= (20 if cut else 100)


def test_thirty_lines_look_different_and_alike_in_all_charts():
    names = [f"_$run$ <{i}>" for i in range(30)]
    curves = [Curve(name, [(0, 1.0 + i), (9, 2.0 + i)]) for i, name in enumerate(names)]
    picture = learning_curves([Panel("a", curves), Panel("b", curves[::-1])], "x")
    assert {text.replace("\u200b", "") for text in texts(picture)} >= set(names)
    looks = [re.sub("clip.*", "", style) for _, style in lines(picture)]
    # drawn from the last to the first
    assert looks[:30] == looks[:29:-1]
    assert len(set(looks)) == 30


def test_the_axis_holds_a_band():
    around = [(value / 2, 2 * value) for _, value in VALUES]
    low, high = (
        upwards(learning_curves([Panel("a", [Curve("a", VALUES, band)])], "x"))[-1]
        for band in ((), around)
    )
    assert low <= 80 < 120 <= high <= 180


def test_a_bar_is_as_long_as_the_mean_and_a_dot_lies_at_each_seed():
    picture = scores([Row("one", [10.0, 20.0], "15 ± 7"), Row("other", [30.0])], "BLEU")
    assert {"BLEU", "one", "15 ± 7", "other"} <= set(texts(picture))
    bars = re.findall(
        r'<path d="M ([\d.]+) [^"]*?L ([\d.]+)[^"]*"[^>]*opacity: 0.45', picture.decode()
    )
    (left, one), (_, other) = [tuple(map(float, bar)) for bar in bars]
    assert (other - left) / (one - left) == pytest.approx(2, abs=1e-4)
    dots = [
        float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"[^>]*fill: #1b1f24', picture.decode())
    ]
    assert [(x - left) / (one - left) for x in dots] == pytest.approx([2 / 3, 4 / 3, 2], abs=1e-4)


LOG = """\
2026-01-01 | INFO | train_inner | epoch 001:     50 / 458 loss=9.5, ppl=512, num_updates=50, lr=1e-3
2026-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 4 | ppl 9.9 | num_updates 15
2026-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 4 | ppl 0 | num_updates 160
"""


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [Path(f"run{i}/train.log") for i in range(9)]
    for path in paths:
        path.parent.mkdir()
        path.write_text(LOG)
    return [str(path) for path in paths]


def test_plot_draws_logs_of_one_name_apart_and_the_same_bytes_again(logs, capsys):
    assert PROGRAM.run(["plot", *logs]) == 0
    assert capsys.readouterr().out == "curves.svg\n"
    picture = Path("curves.svg").read_bytes()
    shown = texts(picture)
    assert {"training loss", "validation loss", "validation perplexity"} <= set(shown)
    assert [text for text in shown if text.startswith("run")] == [f"run{i}/train" for i in range(9)]
    assert PROGRAM.run(["plot", *logs, "--out", "again.svg"]) == 0
    assert Path("again.svg").read_bytes() == picture


@pytest.mark.parametrize(
    ("name", "begin"), [("c.pdf", b"%PDF-"), ("c.PNG", b"\x89PNG\r\n"), ("c.svg", b"<?xml")]
)
def test_plot_writes_what_the_ending_says(logs, name, begin):
    assert PROGRAM.run(["plot", logs[0], "--out", name, "--names", "<twin> & co"]) == 0
    assert Path(name).read_bytes().startswith(begin)


@pytest.mark.parametrize("name", ["c.jpg", "curves"])
def test_plot_refuses_another_ending(name, tmp_path, capsys):
    assert PROGRAM.run(["plot", "none.log", "--out", str(tmp_path / name)]) == 2
    wanted = f"error: --out {tmp_path / name} does not end in .svg or .pdf or .png, "
    assert capsys.readouterr().err.startswith(wanted)


@pytest.mark.parametrize(
    ("logs", "names"),
    [
        (["x/hybonet.log", "y/twin.log"], ["hybonet", "twin"]),
        (["x/a/train.log", "x/b/train.log"], ["a/train", "b/train"]),
        (["x/train.log", "x/train.txt"], ["train.log", "train.txt"]),
        (["train.log"], ["train"]),
    ],
)
def test_names_are_as_short_as_tells_them_apart(logs, names):
    assert names_of([Path(log) for log in logs]) == names


def test_without_matplotlib_the_extra_is_named(logs, monkeypatch, capsys):
    load = importlib.import_module

    def without(name):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name="matplotlib")
        return load(name)

    monkeypatch.setattr(importlib, "import_module", without)
    assert PROGRAM.run(["plot", logs[0]]) == 2
    assert "matplotlib is missing: pip install 'hyptrans[plot]'" in capsys.readouterr().err
