"""The Triton kernels where no GPU is: in Triton's interpreter, and through Triton's compiler."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hyptrans.kernels import backend, functions

CASES = Path(__file__).with_name("test_triton_kernels.py")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


@pytest.mark.slow
@needs_triton
def test_kernels_agree_with_the_eager_operators_in_the_interpreter():
    """A process of its own: triton is told to interpret before it is imported, or never."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", CASES]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "HYPTRANS_KERNELS": "triton"}
    # of the run that this test belongs to
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    done = subprocess.run(
        command, cwd=CASES.parents[2], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


TYPES = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    int: "i32",
}


class Compiled:
    """In place of a kernel: compiles it for a GPU, from the arguments of a launch."""

    def __init__(self, kernel, capability):
        self.kernel, self.capability = kernel, capability

    def __getitem__(self, grid):
        return self.launch

    def launch(self, *args, num_warps=4, **constants):
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource, compile

        named = dict(zip(self.kernel.arg_names, args, strict=False))
        constants |= {name: None for name, value in named.items() if value is None}
        signature = {
            name: "constexpr"
            if name in constants
            else TYPES[getattr(named[name], "dtype", type(named[name]))]
            for name in self.kernel.arg_names
        }
        source = ASTSource(fn=self.kernel, signature=signature, constexprs=constants)
        target = GPUTarget("cuda", self.capability, 32)
        made = compile(source, target=target, options={"num_warps": num_warps})
        assert made.asm["cubin"]


@pytest.fixture(params=[80, 90])
def compiler(request, monkeypatch, tmp_path):
    """Have every launch compile the kernel for a capability instead of running it."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("what is interpreted is not compiled")
    # older ones compile from another description
    pytest.importorskip("triton", minversion="3.3")
    rows = importlib.import_module("hyptrans.kernels.cuda.rows")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    for name in ("points", "normalize", "lift"):
        for kernel in (f"{name}_forward", f"{name}_backward"):
            monkeypatch.setattr(rows, kernel, Compiled(getattr(rows, kernel), request.param))
    monkeypatch.setattr(rows, "dropout", Compiled(rows.dropout, request.param))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_row_kernels_compile_for_a_gpu(dtype, compiler):
    z = torch.ones(5, 3, 2, 33, dtype=dtype, requires_grad=True)
    scales, number = torch.ones(3, dtype=dtype), torch.ones((), dtype=dtype)
    functions.points("triton", z, scales, None, number, 1.0, True)[0].sum().backward()
    one, residual = z[:, :1, :1], torch.ones(5, 33, dtype=dtype)
    for residual_time in (True, False):
        (made,) = functions.points("triton", one, scales[:1], residual, None, 1.0, residual_time)
        made.sum().backward()
    functions.normalize("triton", z, number).sum().backward()
    functions.lift("triton", z, number).sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_dropout_compiles_for_a_gpu(dtype, compiler):
    x = torch.ones(5, 33, dtype=dtype, requires_grad=True)
    for relu in (False, True):
        functions.relu_dropout("triton", x, 0.1, relu, 2**40 + 1).sum().backward()


@pytest.mark.parametrize(
    ("wanted", "interpreted", "expected"),
    [
        ("auto", False, "numba"),
        ("auto", True, "numba"),
        ("numba", True, "numba"),
        ("triton", False, "eager"),
        ("triton", True, "triton"),
    ],
)
def test_choice_for_the_cpu(wanted, interpreted, expected, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1" if interpreted else "0")
    monkeypatch.setenv("HYPTRANS_KERNELS", wanted)
    # nothing is imported here, and so nothing can be checked
    monkeypatch.setattr(backend, "_loaded", lambda name: name)
    monkeypatch.setattr("hyptrans.kernels.check.trusted", lambda *_: True)
    assert backend.chosen(torch.ones(2)) == expected
    half = backend.chosen(torch.ones(2, dtype=torch.bfloat16))
    assert half == ("triton" if expected == "triton" else "eager")
