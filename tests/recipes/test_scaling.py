"""The table of memory and time against the length."""

import re

import pytest

from recipes.benchmark import scaling
from tests.recipes.scripts import run_script

SCRIPT = "benchmark.scaling"


@pytest.mark.slow
def test_script_prints_a_row_for_every_length_and_position():
    done = run_script(SCRIPT, "--lengths", "32", "--positions", "5")
    assert done.returncode == 0, done.stderr[-2000:]
    rows = re.findall(r"^ +(\d+) +[\d.]+", done.stdout, flags=re.M)
    assert rows == ["32", "5"] * 2  # linear and softmax


@pytest.mark.slow
def test_script_says_which_measurement_failed():
    done = run_script(SCRIPT, "--lengths", "0", "--positions", "2")
    assert done.returncode == 2
    assert done.stderr.endswith("\nerror: measuring training at 0 failed with exit code 1\n")


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_the_attention_asked_for_is_the_one_measured(attention):
    model = scaling.build("hypformer_tiny", 32, attention, "cpu")
    found = {type(part).__name__ for part in model.modules()}
    assert found & {"LinearAttention", "SoftmaxAttention"} == {f"{attention.title()}Attention"}
