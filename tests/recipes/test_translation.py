"""The steps of a training and its translations."""

import argparse
import math
from dataclasses import replace

import pytest
from fairseq.logging.progress_bar import SimpleProgressBar

from probing.commands import options
from recipes.common import translation
from recipes.common.settings import Model
from recipes.common.translation import Run

MODEL = Model("m", {"--arch": "hybonet_tiny"})


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, "en", "de", seed=1, updates=1500, threads=1, cpu=True)


def value(step, flag):
    return step.command[step.command.index(flag) + 1]


def steps(run, **options):
    return translation.chain(run, MODEL, [(5, "test")], **options)


def test_without_an_average_the_last_or_the_best_checkpoint_is_translated_with(run):
    trained, translated = steps(run)
    assert "--save-interval-updates" not in trained.command
    assert "--best-checkpoint-metric" not in trained.command
    assert value(translated, "--path") == str(run.out / "m" / "checkpoint_last.pt")
    trained, translated = steps(replace(run, best=True, save_every=1000))
    assert value(trained, "--save-interval-updates") == "1000"
    assert value(trained, "--keep-interval-updates") == "1"
    assert value(trained, "--best-checkpoint-metric") == "nll_loss"
    assert value(translated, "--path") == str(run.out / "m" / "checkpoint_best.pt")


@pytest.mark.parametrize(("save_every", "every"), [(0, "30"), (1000, "30"), (20, "20")])
def test_an_average_is_of_checkpoints_that_the_training_keeps(run, save_every, every):
    trained, averaged, translated = steps(replace(run, averaged=5, save_every=save_every))
    assert value(trained, "--save-interval-updates") == every
    assert value(trained, "--keep-interval-updates") == "5"
    average = run.out / "m" / "average.pt"
    assert averaged.command[1:5] == ["-m", "hyptrans", "average", str(average.parent)]
    assert value(averaged, "--last") == "5"
    assert value(averaged, "--out") == value(translated, "--path") == str(average)
    assert averaged.outputs == [average]
    # one after the other
    assert averaged.after == [trained.name]
    assert translated.after == [averaged.name]


def test_probes_that_a_run_made_are_its_steps_to_clear(run, tmp_path):
    trees = {part: tmp_path / f"{part}.conllu" for part in ("train", "dev", "test")}
    encoders = {"a": tmp_path / "a.pt", "b": tmp_path / "b.pt"}
    flags = ["--seeds", "2"]
    step = translation.probe("p", encoders, run.data, trees, tmp_path / "p", flags, after=[])
    # all that it makes, and not only what it ends with
    assert step.work == [tmp_path / "p"]
    parser = argparse.ArgumentParser()
    options.run(parser)
    assert step.command[:4] == ["python", "-m", "probing", "run"]
    parsed = parser.parse_args(step.command[4:])
    assert (parsed.checkpoint, parsed.names) == ([*encoders.values()], [*encoders])
    assert (parsed.train, parsed.dev, parsed.test) == tuple(trees.values())
    assert (parsed.data, parsed.out, parsed.seeds) == ([run.data], tmp_path / "p", 2)


@pytest.mark.parametrize("perplexity", [9.25, 741455.0, 1.48291e6, math.inf])
def test_perplexities_are_read_as_fairseq_writes_them(tmp_path, caplog, perplexity):
    stats = {"loss": 5.0, "ppl": perplexity, "wps": 9.0, "num_updates": 150}
    with caplog.at_level("INFO"):
        SimpleProgressBar([], epoch=1).print(stats, tag="valid")
    log = tmp_path / "validate.log"
    log.write_text(f"2026-01-01 | INFO | {caplog.records[-1].name} | {caplog.messages[-1]}\n")
    assert translation.perplexity(log) == perplexity
    # JSON has no word for what is infinite, and a picture no place
    points = [(150, perplexity)] if math.isfinite(perplexity) else []
    assert translation.course(log)["curve"] == points


@pytest.mark.parametrize(
    ("last", "diverged"),
    [
        ("FloatingPointError: gradients are Nan/Inf", True),
        ("fairseq-train: error: gradients are NaN at update 7: lower --lr or", True),
        ("FloatingPointError: Minimum loss scale reached. Your loss is probably exploding.", True),
        ("fairseq-train: error: checkpoint a.pt cannot be written (No space left)", False),
    ],
)
def test_a_training_diverged_if_that_is_what_ended_it(tmp_path, last, diverged):
    log = tmp_path / "train.log"
    before = "| valid | epoch 001 | valid on 'valid' subset | loss 2000 | ppl inf | num_updates 150"
    log.write_text(f"{before}\n{last}\n\n", encoding="utf-8")
    assert translation.diverged(log) is diverged


def test_an_untrained_model_has_nothing_to_average(run):
    trained, translated = steps(replace(run, averaged=5), untrained=True)
    assert "--save-interval-updates" not in trained.command
    assert value(translated, "--path").endswith("untrained_m/checkpoint_last.pt")
