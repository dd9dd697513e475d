"""The Triton kernels against the eager operators: on a CUDA device, or in Triton's interpreter.

The interpreter must be asked for before triton is imported: ``test_triton.py`` runs this file in a
process of its own with ``TRITON_INTERPRET=1``, on CPU tensors.
"""

import os

import pytest
import torch

from hyptrans.kernels import backend
from hyptrans.kernels.lorentz import normalize
from tests.kernels.cases import CASES, ON_TRITON, TOLERANCE, Draw, assert_agree, results_of
from tests.kernels.contract import KernelContract, both_of

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"

pytestmark = pytest.mark.gpu
device_only = pytest.mark.skipif(INTERPRETED, reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def _on_device(monkeypatch):
    if DEVICE == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1")
    monkeypatch.setattr(backend, "CHOSEN", "triton")
    with torch.device(DEVICE):
        yield


@pytest.fixture
def rng():
    return torch.Generator(DEVICE).manual_seed(0)


class TestTriton(KernelContract):
    kernels = "triton"
    fast_gradcheck = True
    # float32: what two orders of summation differ by in a sum close to light-like
    tolerance = TOLERANCE | {torch.float32: 5e-5}


def test_triton_handles_only_float32_and_float64():
    for dtype in (torch.float64, torch.float32):
        assert backend.backend(torch.ones(2, dtype=dtype), triton=True) == "triton"
    for dtype in (torch.bfloat16, torch.float16, torch.int64):
        assert backend.backend(torch.ones(2, dtype=dtype), triton=True) == "eager"
    assert backend.backend(torch.ones(0), triton=True) == "eager"


# what only a device can show


@device_only
@pytest.mark.parametrize("name", ON_TRITON)
def test_the_host_never_waits_for_the_device(name, monkeypatch):
    case = CASES[name](Draw(torch.float32, shape=(50, 1)))

    def run():
        results_of(case, "triton", monkeypatch)

    run()
    before = torch.cuda.get_sync_debug_mode()
    try:
        torch.cuda.set_sync_debug_mode("error")
        run()
    finally:
        torch.cuda.set_sync_debug_mode(before)


@device_only
def test_kernels_index_beyond_32_bits():
    if torch.cuda.mem_get_info()[0] < 20 * 2**30:
        pytest.skip("needs 20 GiB of free GPU memory")
    v = torch.ones(2**20 + 3, 2048)
    v[:, 0] = 2048
    torch.testing.assert_close(normalize(v)[-1], normalize(v[:1])[0])


@device_only
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize("name", ON_TRITON)
def test_kernels_run_where_their_tensors_lie(name, monkeypatch):
    draw = Draw(torch.float32, shape=(5, 1), device="cuda:1")
    results = both_of(name, draw, "triton", monkeypatch)
    assert_agree(*results, TestTriton.tolerance[torch.float32])
