"""Learning curves, by what lies where in the files that ``hyptrans plot`` makes of logs."""

import importlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hyptrans.commands.cli import PROGRAM
from hyptrans.commands.plot import draw, names_of
from hyptrans.evaluation.curves import PERPLEXITY, Course, read_log
from hyptrans.support.errors import UserError


def texts(picture):
    return [text.text for text in ET.fromstring(picture).iter() if text.tag.endswith("text")]


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
    values = {0: 80.0, 10: 40.0, 20: 20.0, 40: 10.0}
    course = Course("a", {"training loss": values, PERPLEXITY: values})
    (flat, _), (curved, _) = lines(draw([course], "svg"))
    for vertices in (flat, curved):
        x = [x for x, _ in vertices]
        assert [(one - x[0]) / (x[-1] - x[0]) for one in x] == pytest.approx([0, 0.25, 0.5, 1])
    for vertices, expected in ((flat, [0, 4 / 7, 6 / 7, 1]), (curved, [0, 1 / 3, 2 / 3, 1])):
        y = [y for _, y in vertices]
        # SVG counts from above
        assert y[-1] > y[0]
        assert [(one - y[0]) / (y[-1] - y[0]) for one in y] == pytest.approx(expected, abs=1e-4)


def test_thirty_lines_look_different():
    names = [f"_$run$ <{i}>" for i in range(30)]
    courses = [
        Course(name, {"training loss": {0: 1.0 + i, 9: 2.0}}) for i, name in enumerate(names)
    ]
    picture = draw(courses, "svg")
    assert set(texts(picture)) >= set(names)
    assert len({re.sub("clip.*", "", style) for _, style in lines(picture)}) == 30


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
    assert not [text for text in shown if "$" in text]
    assert [text for text in shown if text.startswith("run")] == [f"run{i}/train" for i in range(9)]
    assert PROGRAM.run(["plot", *logs, "--out", "again.svg"]) == 0
    assert Path("again.svg").read_bytes() == picture


OWN = """\
train:  50%|#####     | 350/700 [00:10<00:10, 35.0 updates/s, loss 3.210, 9,876 tokens/s]\r\
update 350: validation perplexity 9.50, BLEU 12.34
update 700: validation perplexity 5.25, BLEU 30.00
"""
"""What ``hyptrans train`` prints."""


def test_plot_reads_what_hyptrans_train_prints_and_its_folder(tmp_path):
    (tmp_path / "a.log").write_text(OWN)
    printed = {PERPLEXITY: {350: 9.5, 700: 5.25}, "validation BLEU": {350: 12.34, 700: 30.0}}
    assert read_log(tmp_path / "a.log").curves == printed
    for saved in (350, 700):
        history = [
            {"loss": 4.5, "grad_norm": 1.0, "step": 50},
            {"eval_ppl": 9.5, "eval_bleu": 12.34, "step": 350},
            *([{"eval_ppl": 5.25, "eval_bleu": 30.0, "step": 700}] if saved > 350 else []),
        ]
        (tmp_path / f"checkpoint-{saved}").mkdir()
        state = tmp_path / f"checkpoint-{saved}" / "trainer_state.json"
        state.write_text(json.dumps({"global_step": saved, "log_history": history}))
    assert read_log(tmp_path).curves == {"training loss": {50: 4.5}, **printed}
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="none is not a file, nor the folder of a hyptrans train"):
        read_log(tmp_path / "none")


def test_logs_of_one_name_are_parts_of_one_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = OWN.splitlines(keepends=True)
    for name, text in {"1.log": parts[:2], "2.log": ["update 350: valid\n", parts[2]]}.items():
        Path(name).write_text("".join(text))
    assert PROGRAM.run(["plot", "1.log", "2.log", "--names", "run", "run"]) == 0
    picture = Path("curves.svg").read_bytes()
    assert texts(picture).count("run") == 1
    assert [len(vertices) for vertices, _ in lines(picture)] == [2, 2]


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
