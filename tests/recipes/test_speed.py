"""The table of speed beside the twin."""

import itertools
import json
from functools import partial

import pytest
import torch

from hyptrans.inference import describe
from hyptrans.kernels import operator
from recipes.benchmark import contenders, timing
from tests.recipes.scripts import run_script

run = partial(run_script, "benchmark.speed")


@pytest.mark.slow
@pytest.mark.parametrize("quick", [[], ["--quick"]], ids=["whole", "quick"])
def test_script_prints_and_writes_the_rows_asked_for(tmp_path, quick):
    out = tmp_path / "speed.json"
    done = run("--rows", "hybonet decode d=64", "--rounds", "1", *quick, "--json", str(out))
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    (row,) = found["rows"]
    assert (row["arch"], row["phase"], row["dim"], row["length"]) == ("hybonet", "decode", 64, 32)
    assert row["seconds"] > 0
    assert (row["peak_mb"] is None) == bool(quick)
    assert f"| euclidean | {row['ratio']:.2f} | 0.95 |" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rounds", "-1"], "error: at least 1 is needed: --rounds -1"),
        (
            ["--rows", "decode", "--write-readme"],
            "error: --write-readme takes all rows on --device cpu, those of --checkpoint and "
            "--data too: the table is of those",
        ),
        (["--rows", "fast"], "error: --rows 'fast' is in the name of no row"),
        pytest.param(
            ["--device", "cuda"],
            "error: --device cuda: torch finds no CUDA device here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
    ],
)
def test_a_wrong_option_is_one_sentence(options, message):
    done = run(*options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == message


def test_the_ending_of_a_name_says_how_a_contender_runs(monkeypatch):
    monkeypatch.setenv("HYPTRANS_KERNELS", "numba")
    size, asked = contenders.Size("wmt_d64", 4, layers=1, target_tokens=8), []
    chosen = operator.possible
    monkeypatch.setattr(operator, "possible", lambda x: asked.append(chosen(x)) or asked[-1])
    for ending, backend in {contenders.EAGER: "eager", contenders.FOREACH: "numba"}.items():
        asked.clear()
        contenders.training_step(f"hybonet_plus{ending}", size, "cpu")()
        assert set(asked) == {backend}


@pytest.mark.parametrize("training", [True, False])
def test_the_twin_through_fused_attention_computes_what_the_twin_does(training):
    fields = contenders.Size("wmt_d64", 12, layers=2, dropout=0.0).fields()
    names = (contenders.TWIN, contenders.TWIN_SDPA)
    twins = [contenders.build(name, "cpu", fields) for name in names]
    source, previous = torch.randint(4, contenders.VOCABULARY, (2, 3, 12))
    lengths = torch.full((3,), 12)
    out = [twin.train(training)(source, lengths, previous)[0] for twin in twins]
    torch.testing.assert_close(*out, rtol=0, atol=1e-4)


def test_the_floor_has_the_matrix_products_of_the_twin():
    fields = contenders.Size("wmt_d64", 12, layers=2).fields()
    names = (contenders.TWIN, contenders.FLOOR)
    twin, floor = (contenders.build(name, "cpu", fields) for name in names)
    ours = sum(
        p.numel()
        for n, p in floor.named_parameters()
        if p.dim() == 2 and "embed_positions" not in n
    )
    theirs = sum(
        p.numel()
        for n, p in twin.named_parameters()
        if p.dim() == 2 and "embed_positions" not in n and not describe._COPIES.match(n)
    )
    assert ours == theirs


def test_peak_of_memory_sees_what_a_step_takes():
    def step():
        torch.ones(64 * 2**20 // 4)

    assert timing.peak_of(step, "cpu") == pytest.approx(64, abs=8)


def test_a_field_that_a_configuration_lacks_is_an_error():
    with pytest.raises(ValueError, match=r"HypformerConfigTiny has no field attention$"):
        contenders.build("hypformer_tiny", "cpu", {"attention": "softmax"})


def test_contenders_take_turns_and_a_ratio_is_the_median_over_the_rounds(monkeypatch):
    turns, clock = [], itertools.count(5.0, 2.0)
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    steps = {name: partial(turns.append, name) for name in ("one", "other")}
    assert timing.in_turn(steps, 3, "cpu") == {"one": [2.0] * 3, "other": [2.0] * 3}
    assert turns == ["one", "other"] * 3
    assert timing.ratio([2.0, 30.0, 4.0], [1.0, 3.0, 1.0]) == 4.0


@pytest.mark.parametrize("name", [contenders.SOFTMAX, "hybonet, fairseq's loss"])
def test_the_two_sides_of_a_row_differ_in_what_it_says(name):
    size = contenders.Size("tiny", 8, layers=1)
    if name == contenders.SOFTMAX:
        model = contenders.build(name, "cpu", size.fields())
        found = {type(part).__name__ for part in model.modules()}
        assert found & {"LinearAttention", "SoftmaxAttention"} == {"SoftmaxAttention"}
    else:
        for each in (name, "hybonet"):
            contenders.training_step(each, size, "cpu", updates=False)()
