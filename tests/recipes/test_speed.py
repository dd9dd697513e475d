"""The tables of speed and of CPU time per token."""

import dataclasses
import itertools
import json
import sys
from functools import partial

import pytest
import torch

from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from recipes.benchmark import latency, speed, timing
from tests.recipes.scripts import run_script

run = partial(run_script, "benchmark.speed")


@pytest.mark.slow
@pytest.mark.parametrize("quick", [[], ["--quick"]], ids=["whole", "quick"])
def test_speed_prints_and_writes_the_chosen_rows(tmp_path, quick):
    out = tmp_path / "speed.json"
    done = run("--rows", "hybonet decode d=64", "--rounds", "1", *quick, "--json", str(out))
    assert done.returncode == 0, done.stderr[-2000:]
    (row,) = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert (row["arch"], row["phase"], row["dim"], row["length"]) == ("hybonet", "decode", 64, 32)
    assert row["seconds"] > 0
    assert (row["peak_mb"] is None) == bool(quick)
    shown = f"| fairseq's transformer | {row['ratio']:.2f} | {row['ratio_same']:.2f} |"
    assert shown in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "fast"], "--rows 'fast' is not part of any row's name"),
        pytest.param(
            ["--device", "cuda"],
            "--device cuda: torch finds no CUDA device here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_a_wrong_option_gives_a_one_sentence_error(monkeypatch, options, message):
    monkeypatch.setattr(sys, "argv", ["speed", *options])
    with pytest.raises(UserError, match=f"^{message}"):
        speed.main()


def test_models_have_every_option_that_a_benchmark_sets():
    # fairseq's build_model ignores others
    sizes = speed.SHORT.fields().keys()
    for arch in (*speed.ALL, *speed.VARIANTS):
        name, own = speed.VARIANTS.get(arch, (arch, {}))
        if name in ARCHITECTURES:
            known = {one.name for one in dataclasses.fields(ARCHITECTURES[name].config)}
            assert {*sizes, *own} <= known, arch


@pytest.mark.parametrize("training", [True, False])
def test_both_transformers_have_the_same_size(training):
    size = speed.Size("wmt_d64", 12, layers=2, dropout=0.0)
    theirs, ours = (
        speed.build(name, size, "cpu").train(training) for name in (speed.FAIRSEQ, speed.TWIN)
    )
    assert type(theirs).__module__.startswith("fairseq.")
    assert type(ours).__module__.startswith("hyptrans.")
    source, previous = torch.randint(4, speed.VOCABULARY, (2, 3, 12))
    lengths = torch.full((3,), 12)
    shapes = [model(source, lengths, previous)[0].shape for model in (theirs, ours)]
    assert shapes[0] == shapes[1] == (3, 12, speed.VOCABULARY)


def test_peak_memory_includes_what_a_step_allocates():
    def step():
        torch.ones(64 * 2**20 // 4)

    assert timing.peak_of(step, "cpu") == pytest.approx(64, abs=8)


def test_ratio_is_the_median_over_rounds_of_alternating_contenders():
    turns, clock = [], itertools.count(5.0, 2.0)
    steps = {name: partial(turns.append, name) for name in ("one", "other")}
    assert timing.in_turn(steps, 3, lambda: next(clock)) == {"one": [2.0] * 3, "other": [2.0] * 3}
    assert turns == ["one", "other"] * 3
    assert speed.ratio([2.0, 30.0, 4.0], [1.0, 3.0, 1.0]) == 4.0


@pytest.mark.parametrize("name", [speed.SOFTMAX, "hybonet, fairseq's loss"])
def test_both_sides_of_a_row_differ_only_as_its_name_says(name):
    size = speed.Size("tiny", 8, layers=1)
    if name == speed.SOFTMAX:
        model = speed.build(name, size, "cpu")
        found = {type(part).__name__ for part in model.modules()}
        assert found & {"LinearAttention", "SoftmaxAttention"} == {"SoftmaxAttention"}
    else:
        for each in (name, "hybonet"):
            speed.training_step(each, size, "cpu", updates=False)()


def test_latency_models_generate_equally_many_tokens(tmp_path):
    for arch in (latency.TWIN, "hybonet"):
        latency.make(arch, tmp_path / arch)
        translate = latency.ours(tmp_path / arch)
        for beam in (1, 2):
            assert translate([[4, 5, 6, 2], [7, 2]], beam) == latency.MADE


@pytest.mark.slow
def test_latency_prints_a_row_for_each_model():
    done = run_script("benchmark.latency", "--rounds", "1", "--sentences", "2")
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(f"| {name} |" in done.stdout for name in latency.OURS)
