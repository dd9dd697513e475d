"""Kernels are checked at their first use: what is wrong is seen, told once, and left out."""

import json
import warnings

import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.kernels import backend, check, operators
from hyptrans.kernels.cpu import launch

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
    "add_forward": "sum of tangents",
    "add_backward": "sum of tangents",
    "radial_forward": "exponential map",
    "radial_backward": "exponential map",
    "lift_tangent_forward": "lifted heads",
    "lift_tangent_backward": "lifted heads",
    "centroid_forward": "mean of heads",
    "centroid_backward": "mean of heads",
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
    assert check.failure("numba", CPU, dtype) is None


@pytest.mark.parametrize("harm", ["one number", "nan"])
@pytest.mark.parametrize("name", LAUNCHED)
def test_wrong_kernel_is_named(name, harm, monkeypatch):
    def one(out):
        out.view(-1)[-1] += 0.01 if harm == "one number" else float("nan")

    spoil(monkeypatch, name, one)
    assert check.failure("numba", CPU, torch.float32).startswith(f"{LAUNCHED[name]} is off by ")


def test_kernel_that_does_not_compile_is_named(monkeypatch):
    def fail(*_):
        raise RuntimeError("out of\nregisters")

    monkeypatch.setattr(launch, "lift_forward", fail)
    reason = check.failure("numba", CPU, torch.float32)
    assert reason == "lift ends with RuntimeError: out of registers"


def test_wrong_kernels_are_switched_off_with_one_sentence(monkeypatch):
    spoil(monkeypatch, "lift_forward", lambda out: out.mul_(2))
    space = torch.randn(40, 5)
    with pytest.warns(UserWarning, match="numba kernels are switched off on cpu .*lift is off by"):
        lifted = operators.lift(space)
    torch.testing.assert_close(lifted, lorentz.lift(space))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.chosen(space) == "eager"


def test_what_has_passed_is_noted_by_what_decides_it(monkeypatch, tmp_path):
    assert check.trusted("numba", CPU, torch.float32)
    (key,) = json.loads((tmp_path / "cache" / "hyptrans" / "kernels.json").read_text())
    assert "numba" in key
    assert torch.__version__ in key

    def again(*_):
        raise AssertionError("checked again")

    with monkeypatch.context() as patched:
        patched.setattr(check, "failure", again)
        assert check.trusted("numba", CPU, torch.float32)
        patched.setattr(check, "__version__", "9.9.9")
        with pytest.raises(AssertionError, match="checked again"):
            check.trusted("numba", CPU, torch.float32)


@pytest.mark.parametrize("content", ["", "{", "3", "[]"])
def test_damaged_notes_are_made_anew(content, tmp_path):
    notes = tmp_path / "cache" / "hyptrans" / "kernels.json"
    notes.parent.mkdir(parents=True)
    notes.write_text(content)
    assert check.trusted("numba", CPU, torch.float32)
    assert len(json.loads(notes.read_text())) == 1


def test_no_home_is_made_for_notes(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    assert check.trusted("numba", CPU, torch.float32)
    assert not (tmp_path / "missing").exists()


def test_folder_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert check.trusted("numba", CPU, torch.float32)


def test_check_leaves_random_numbers_and_modes_as_they_are():
    state = torch.get_rng_state()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert check.failure("numba", CPU, torch.float32) is None
        assert torch.is_inference_mode_enabled()
    assert torch.equal(torch.get_rng_state(), state)
