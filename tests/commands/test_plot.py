"""Learning curves, by what lies where in the files that ``hyptrans plot`` makes of logs."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hyptrans.commands.plot import draw, read_log
from tests.commands.conftest import call


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


def test_plot_uses_a_linear_axis_for_loss_and_a_log_axis_for_perplexity():
    values = {0: 80.0, 10: 40.0, 20: 20.0, 40: 10.0}
    course = {"train_inner loss": values, "valid ppl": values}
    (flat, _), (curved, _) = lines(draw({"a": course}, "svg"))
    for vertices in (flat, curved):
        x = [x for x, _ in vertices]
        assert [(one - x[0]) / (x[-1] - x[0]) for one in x] == pytest.approx([0, 0.25, 0.5, 1])
    for vertices, expected in ((flat, [0, 4 / 7, 6 / 7, 1]), (curved, [0, 1 / 3, 2 / 3, 1])):
        y = [y for _, y in vertices]
        # SVG counts from above
        assert y[-1] > y[0]
        assert [(one - y[0]) / (y[-1] - y[0]) for one in y] == pytest.approx(expected, abs=1e-4)


def test_thirty_plotted_lines_look_different():
    names = [f"_$run$ <{i}>" for i in range(30)]
    courses = {name: {"train_inner loss": {0: 1.0 + i, 9: 2.0}} for i, name in enumerate(names)}
    picture = draw(courses, "svg")
    assert set(texts(picture)) >= set(names)
    assert len({re.sub("clip.*", "", style) for _, style in lines(picture)}) == 30


LOG = """\
2026-01-01 | INFO | train_inner | epoch 001:     50 / 458 loss=9.5, nll_loss=9, ppl=512, num_updates=50, lr=1e-3
2026-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 4.6 | nll_loss 3 | ppl 10.2 | bleu 12.5 | num_updates 150 | best_loss 4
2026-01-01 | INFO | train | epoch 001 | loss 4.1 | ppl 9 | num_updates 150
2026-01-01 | INFO | train_inner | epoch 001:    100 / 458 loss=nan, num_updates=100
2026-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 4.5 | ppl 9.9 | bleu 13 | num_updates 150 | best_loss 4.5
"""  # noqa: E501
JSON = "\n".join(
    f"2026-01-01 | INFO | {name} | {json.dumps(values)}"
    for name, values in {
        "train_inner": {"epoch": 1, "loss": "9.5", "num_updates": "50", "clip": "x"},
        "valid": {"valid_loss": "4.5", "valid_ppl": "9.9", "valid_num_updates": "150"},
    }.items()
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def logs(here):
    paths = [Path(f"run{i}/train.log") for i in range(9)]
    for path in paths:
        path.parent.mkdir()
        path.write_text(LOG)
    return [str(path) for path in paths]


@pytest.mark.parametrize("text", [LOG, JSON], ids=["simple", "json"])
def test_plot_reads_every_log_format_and_keeps_later_values(here, text):
    Path("a.log").write_text(text)
    found = {(key, updates): value for key, updates, value in read_log(Path("a.log"))}
    wanted = {("train_inner loss", 50): 9.5, ("valid loss", 150): 4.5, ("valid ppl", 150): 9.9}
    assert found == wanted | ({("valid bleu", 150): 13.0} if text is LOG else {})


@pytest.mark.parametrize(
    "line",
    [
        'valid | {"num_updates": Infinity, "loss": 3}',
        'valid | {"num_updates": 1, "loss": ' + "9" * 400 + "}",
        "valid | loss 1.7e308 | num_updates 7",
        "valid | loss 1 | num_updates 1e300",
    ],
)
def test_plot_ignores_lines_that_no_training_prints(here, line):
    Path("a.log").write_text(f"{line}\nvalid | loss 2 | num_updates 7\n{line}\n")
    assert read_log(Path("a.log")) == [("valid loss", 7, 2.0)]


def test_newest_checkpoint_of_hyptrans_train_holds_the_full_history(here):
    history = [
        {"loss": 4.5, "grad_norm": 1.0, "step": 50},
        {"eval_ppl": 9.5, "eval_bleu": 12.34, "step": 350},
        {"eval_ppl": 5.25, "eval_bleu": 30.0, "step": 700},
    ]
    for saved, lines_of in {350: history[:2], 1400: history, 700: history[:1]}.items():
        Path(f"checkpoint-{saved}").mkdir()
        state = Path(f"checkpoint-{saved}/trainer_state.json")
        state.write_text(json.dumps({"global_step": saved, "log_history": lines_of}))
    assert sorted(read_log(here)) == [
        *(("train_inner loss", 50, 4.5), ("valid bleu", 350, 12.34), ("valid bleu", 700, 30.0)),
        *(("valid ppl", 350, 9.5), ("valid ppl", 700, 5.25)),
    ]


def test_plot_separates_logs_and_is_reproducible(logs, capsys):
    assert call(capsys, "plot", *logs)[:2] == (0, "curves.svg\n")
    picture = Path("curves.svg").read_bytes()
    shown = texts(picture)
    assert {"training loss", "validation loss", "validation perplexity"} <= set(shown)
    assert not [text for text in shown if "$" in text]
    assert [text for text in shown if text.startswith("run")] == [f"run{i}/train" for i in range(9)]
    assert call(capsys, "plot", *logs, "--out", "again.svg")[0] == 0
    assert Path("again.svg").read_bytes() == picture


def test_logs_with_one_name_form_one_training(here, capsys):
    for name, updates in {"1.log": (1, 2), "2.log": (2, 3)}.items():
        Path(name).write_text("".join(f"valid | loss 2 | num_updates {n}\n" for n in updates))
    assert call(capsys, "plot", "1.log", "2.log", "--names", "run", "run")[0] == 0
    picture = Path("curves.svg").read_bytes()
    assert texts(picture).count("run") == 1
    assert [len(vertices) for vertices, _ in lines(picture)] == [3]


@pytest.mark.parametrize(
    ("name", "begin"), [("c.pdf", b"%PDF-"), ("c.PNG", b"\x89PNG\r\n"), ("c.svg", b"<?xml")]
)
def test_plot_takes_its_format_from_the_file_ending(logs, name, begin, capsys):
    assert call(capsys, "plot", logs[0], "--out", name, "--names", "<twin> & co")[0] == 0
    assert Path(name).read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a.log", "--out", "c.jpg"], "--out c.jpg ends in none of .svg, .pdf and .png"),
        (["a.log", "--names", "a", "b"], "1 logs have 2 names: give --names one name per log"),
        (["a.log"], "a.log has no lines of a training"),
        (["none"], "none is neither a log nor a folder that hyptrans train wrote"),
        ([""], ". is neither a log nor a folder that hyptrans train wrote"),
    ],
)
def test_plot_refuses_what_it_cannot_draw(words, sentence, here, capsys):
    Path("a.log").write_text("hello\n")
    status, _, error = call(capsys, "plot", *words)
    assert (status, error.startswith(f"error: {sentence}")) == (2, True), error
