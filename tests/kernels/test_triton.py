"""The Triton kernels without a GPU: in Triton's interpreter and through its compiler."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hyptrans.kernels import backend, cuda, lorentz
from tests.kernels.cases import CASES as OPERATORS
from tests.kernels.cases import ON_TRITON, Draw, results_of

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
    int: "i32",
}


def compile_for(capability, kernel, args, num_warps=4, **constants):
    """Compile a kernel for a GPU, from the arguments of a launch."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    kernel = getattr(kernel, "jitted", kernel)
    named = dict(zip(kernel.arg_names, args, strict=False))
    constants |= {name: None for name, value in named.items() if value is None}
    signature = {
        name: "constexpr"
        if name in constants
        else TYPES[getattr(named[name], "dtype", type(named[name]))]
        for name in kernel.arg_names
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    target = GPUTarget("cuda", capability, 32)
    made = compile(source, target=target, options={"num_warps": num_warps})
    assert made.asm["cubin"]


@pytest.mark.parametrize(
    ("capability", "dtype", "width"),
    [
        (80, torch.float32, 33),
        pytest.param(90, torch.float32, 500, marks=pytest.mark.slow),
        pytest.param(100, torch.float64, 33, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ON_TRITON)
def test_kernels_compile_for_a_gpu(name, capability, dtype, width, monkeypatch, tmp_path):
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("what is interpreted is not compiled")
    # older ones compile from another description
    pytest.importorskip("triton", minversion="3.3")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    done = set()

    def launch(kernel, grid, like, *args, **options):
        kinds = tuple(str(getattr(x, "dtype", x is None)) for x in args)
        if (key := (id(kernel), kinds, *sorted(options.items()))) not in done:
            compile_for(capability, kernel, args, **options)
        done.add(key)

    monkeypatch.setattr(cuda, "launch", launch)
    monkeypatch.setattr(lorentz, "backend", lambda *_, **__: "triton")
    results_of(OPERATORS[name](Draw(dtype, shape=(1, 5), width=width)), "triton", monkeypatch)
    assert done


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
def test_variable_selects_the_backend_on_the_cpu(wanted, interpreted, expected, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1" if interpreted else "0")
    monkeypatch.setattr(backend, "CHOSEN", wanted)
    half = torch.ones(2, dtype=torch.bfloat16)
    assert backend.backend(torch.ones(2), triton=True) == expected
    assert backend.backend(half, triton=True) == "eager"
    assert backend.backend(torch.ones(2)) == ("eager" if expected == "triton" else expected)


def test_no_backend_is_chosen_while_torch_compiles(monkeypatch):
    monkeypatch.setattr(backend, "CHOSEN", "no such backend")
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert backend.backend(torch.ones(2)) == "eager"
