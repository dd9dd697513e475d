"""Kernels are checked at their first use: what is wrong is seen, told once, and left out."""

import json
import os
import subprocess
import sys
import warnings
from typing import get_args

import pytest
import torch

from hyptrans.geometry import lorentz, poincare
from hyptrans.kernels import backend, check, operators
from hyptrans.kernels.cpu import jobs, launch
from hyptrans.support.files import whole_file

CPU = torch.device("cpu")
# function of the launcher -> operator whose check sees that it is wrong
LAUNCHED = {
    "points_forward": "points with residual",
    "points_backward": "points with residual",
    "normalize_forward": "normalize",
    "normalize_backward": "normalize",
    "lift_forward": "lift",
    "lift_backward": "lift",
    "dropout_forward": "dropout",
    "dropout_backward": "dropout",
    "relu_dropout_backward": "dropout after ReLU",
    "cross_entropy": "cross entropy",
    "centroids": "centroids",
    "midpoints": "midpoints",
    "linear_step": "step of linear attention",
    "linear_read": "linear attention of sums",
    "add_forward": "sum of tangents",
    "add_backward": "sum of tangents",
    "radial_forward": "exponential map",
    "radial_backward": "exponential map",
    "lift_tangent_forward": "lifted heads",
    "lift_tangent_backward": "lifted heads",
    "centroid_forward": "mean of heads",
    "centroid_backward": "mean of heads",
    "norm_residual_forward": "residual with norm",
    "norm_residual_backward": "residual with norm",
    "polar_forward": "polar heads",
    "polar_backward": "polar heads",
    "midpoint_forward": "midpoint of heads",
    "midpoint_backward": "midpoint of heads",
    "norm_forward": "norm of points",
    "norm_backward": "norm of points",
    "relu_lift_forward": "lift after ReLU",
    "relu_lift_backward": "lift after ReLU",
    "focus_forward": "features",
    "focus_backward": "features",
    "weights_forward": "weights of distances",
    "weights_backward": "weights of distances",
}


PARTS = get_args(backend.Part)


def failure(dtype=torch.float32):
    """What is wrong with the kernels of the CPU, part by part."""
    return next(filter(None, (check.failure("numba", CPU, dtype, part) for part in PARTS)), None)


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """As at the first use by a user without notes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HYPTRANS_KERNELS", raising=False)
    backend._trusted.cache_clear()
    yield
    backend._trusted.cache_clear()


def spoil(monkeypatch, name, harm):
    """Let a function of the launcher do harm to what it has computed."""
    stock = getattr(launch, name)

    def spoiled(*args):
        returned = stock(*args)
        harm(args[-1])
        return returned

    monkeypatch.setattr(launch, name, spoiled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_of_the_cpu_pass(dtype):
    assert failure(dtype) is None


@pytest.mark.parametrize("harm", ["one number", "nan"])
@pytest.mark.parametrize("name", LAUNCHED)
def test_wrong_kernel_is_named(name, harm, monkeypatch):
    def one(out):
        out.view(-1)[-1] += 0.01 if harm == "one number" else float("nan")

    spoil(monkeypatch, name, one)
    assert failure().startswith(f"{LAUNCHED[name]} is off by ")


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_nearer_clamp_of_midpoints_is_named(way, monkeypatch):
    # as that of points was once taken for it: 0.996, which is distance 3.1
    stock = getattr(launch, f"centroid_{way}")

    def clamped(*args):
        *operands, (c, _, *others), out = args
        stock(*operands, (c, poincare.max_norm(torch.float32), *others), out)

    monkeypatch.setattr(launch, f"centroid_{way}", clamped)
    reason = check.failure("numba", CPU, torch.float32, "tangents")
    assert reason.startswith("mean of heads is off by ")


def test_kernel_that_does_not_compile_is_named(monkeypatch):
    def fail(*_):
        raise RuntimeError("out of\nregisters")

    monkeypatch.setattr(launch, "lift_forward", fail)
    reason = failure()
    assert reason == "lift ends with RuntimeError: out of registers"


def test_wrong_kernels_are_switched_off_with_one_sentence(monkeypatch):
    spoil(monkeypatch, "lift_forward", lambda out: out.mul_(2))
    space = torch.randn(40, 5)
    with pytest.warns(
        UserWarning, match="numba kernels of points are switched off on cpu .*lift is off by"
    ):
        lifted = operators.lift(space)
    torch.testing.assert_close(lifted, lorentz.lift(space))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.chosen(space) == "eager"
        assert backend.chosen(space, "dropout") == "numba"


def test_what_has_passed_is_noted_by_what_decides_it(monkeypatch, tmp_path):
    assert check.trusted("numba", CPU, torch.float32, "points")
    (key,) = json.loads((tmp_path / "cache" / "hyptrans" / "kernels.json").read_text())
    assert "numba" in key
    assert torch.__version__ in key

    def again(*_):
        raise AssertionError("checked again")

    with monkeypatch.context() as patched:
        patched.setattr(check, "failure", again)
        assert check.trusted("numba", CPU, torch.float32, "points")
        patched.setattr(check, "__version__", "9.9.9")
        with pytest.raises(AssertionError, match="checked again"):
            check.trusted("numba", CPU, torch.float32, "points")


@pytest.mark.parametrize("content", ["", "{", "3", "[]"])
def test_damaged_notes_are_made_anew(content, tmp_path):
    notes = tmp_path / "cache" / "hyptrans" / "kernels.json"
    notes.parent.mkdir(parents=True)
    notes.write_text(content)
    assert check.trusted("numba", CPU, torch.float32, "points")
    assert len(json.loads(notes.read_text())) == 1


def test_notes_that_another_process_writes_are_left_to_it(tmp_path):
    notes = check._notes()
    notes.parent.mkdir(parents=True)
    with whole_file(notes) as file:
        check._note("own")
        file.write(b'["of the other"]')
    assert check._passed() == ["of the other"]


def test_no_home_is_made_for_notes(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert check.trusted("numba", CPU, torch.float32, "points")
    assert not (tmp_path / "missing").exists()


def test_folder_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert check.trusted("numba", CPU, torch.float32, "points")


def test_check_leaves_random_numbers_and_modes_as_they_are():
    state = torch.get_rng_state()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert failure() is None
        assert torch.is_inference_mode_enabled()
    assert torch.equal(torch.get_rng_state(), state)


COMPILED = """
import torch
from hyptrans.kernels import klein
from hyptrans.kernels.cpu import jobs, launch
compiled, stock = [], jobs.compiled
def noted(kernel, *args, **options):
    compiled.append(f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}")
    return stock(kernel, *args, **options)
jobs.compiled = noted
klein.polar_heads(torch.ones(1, 2, 3, 8), 2, 1.0)
print(*sorted(compiled))
"""


@pytest.mark.slow
def test_nothing_is_compiled_that_belongs_to_other_architectures(tmp_path):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "jobs.work_off",
        "klein.midpoint_backward",
        "klein.midpoint_forward",
        "klein.polar_backward",
        "klein.polar_forward",
        "weights.midpoints",
    ]


@pytest.mark.parametrize("part", sorted({*PARTS} - {*backend.CUDA_PARTS}))
def test_what_cuda_has_no_kernels_for_is_eager_there_and_reads_no_memory_as_the_cpus(
    part, monkeypatch
):
    # what Triton interprets lies on the CPU, where a job of numba would find it
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("HYPTRANS_KERNELS", "triton")
    assert backend.possible(torch.ones(2, 3)) == "triton"
    assert backend.chosen(torch.ones(2, 3), part) == "eager"
    monkeypatch.setattr(jobs, "run", lambda *_, **__: pytest.fail("a kernel of the CPU was asked"))
    assert check.failure("triton", CPU, torch.float32, part) is None
