"""What half precision costs: accuracy of attention, and loss curves."""

import re

import pytest

from recipes.benchmark import contenders, half_precision
from tests.recipes.scripts import run_script


def test_accuracy_of_attention_is_printed_beside_that_of_casting():
    done = run_script("benchmark.half_attention", "--times", "3")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[:3] for row in rows] == [
        [f"| {values}", "3", precision]
        for values in ("close", "groups", "spread")
        for precision in ("bfloat16", "float16")
    ]
    for row in rows:
        half, cast, in_float32 = (float(cell) for cell in row[3:6])
        assert in_float32 < half < cast < 0.1


@pytest.mark.slow
def test_speed_is_printed_by_length():
    done = run_script("benchmark.half_attention", "--speed")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["32", "512", "2,048"]
    assert all(len(row) == 3 and float(cell) > 0 for row in rows for cell in row[1:])


@pytest.mark.slow
def test_curves_start_at_the_same_loss_in_every_precision():
    options = ["--updates", "2", "--models", "hybonet", "--device", "cpu"]
    done = run_script("benchmark.half_precision", *options)
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = re.findall(r"^ +2  (.*)$", done.stdout, re.MULTILINE)
    losses = [float(number) for number in line.split()]
    assert len(losses) == 5
    assert losses == pytest.approx([losses[0]] * 5, abs=0.01)
    assert done.stdout.count("largest difference") == 4


@pytest.mark.parametrize("name", half_precision.MODELS)
def test_every_model_can_be_built_in_every_precision(name):
    for _, (arch, given, _) in half_precision.trainings(name):
        model = contenders.build(arch, "cpu", {**half_precision.TINY.fields(), **given})
        assert len(model.encoder.layers) == len(model.decoder.layers) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        ("half_attention", ["--width", "1"], "--width must be at least 2"),
        ("half_attention", ["--times", "x"], "--times must be numbers"),
        ("half_attention", ["--times", "0.5"], "--times must be at least 1"),
        ("half_precision", ["--models", "bert"], "--models bert: there are hybonet, han"),
    ],
)
def test_wrong_options_are_one_sentence(script, options, message):
    done = run_script(f"benchmark.{script}", *options)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines()[-1].startswith(f"error: {message}")
    assert "Traceback" not in done.stderr
