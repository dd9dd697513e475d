"""Which implementation of the operators runs."""

import functools
import importlib
import os
import warnings
from contextvars import ContextVar
from types import ModuleType
from typing import Literal

import torch
from torch import Tensor

Backend = Literal["eager", "numba", "triton"]
Part = Literal["points", "dropout", "loss", "tangents", "klein", "hypformer", "weights"]
"""Kernels that are compiled and checked together: an architecture needs a few of these."""

VARIABLE = "HYPTRANS_KERNELS"
CHOICES = ("auto", "eager", "numba", "triton")
KERNEL_DTYPES: dict[Backend, tuple[torch.dtype, ...]] = {
    "numba": (torch.float32, torch.float64),
    # half precision reaches only dropout: the other operators make it float32 before they choose
    "triton": (torch.float32, torch.float64, torch.float16, torch.bfloat16),
}
CUDA_PARTS: tuple[Part, ...] = ("points", "dropout", "loss")
"""What has kernels of Triton; the other parts have them for the CPU alone."""
under_check: ContextVar[bool] = ContextVar("under_check", default=False)
"""Whether kernels are chosen to see if they can be trusted."""
_MODULES = {"numba": "hyptrans.kernels.cpu.launch", "triton": "hyptrans.kernels.cuda.launch"}


def chosen(x: Tensor, part: Part = "points", *, c: float | Tensor = 1.0) -> Backend:
    """The backend for a tensor: :func:`possible`, if its kernels of the part give what they should.

    Those that do not give the formulas' results here (:mod:`hyptrans.kernels.check`) leave the
    tensor to eager.

    Raises:
        ValueError: as of :func:`possible`.
    """
    backend = possible(x, c=c)
    if backend == "triton" and part not in CUDA_PARTS:
        return "eager"
    if backend == "eager" or not _loaded(backend):
        return "eager"
    trusted = under_check.get() or _trusted(backend, x.device, x.dtype, part)
    return backend if trusted else "eager"


def possible(x: Tensor, *, c: float | Tensor = 1.0) -> Backend:
    """The backend that is made for a tensor: numba on the CPU, Triton on CUDA, else eager.

    ``HYPTRANS_KERNELS`` may ask for one of them; a kernel that does not run on the tensor's device
    leaves it to eager, as do other dtypes, tensors without rows and curvatures that differ by row.

    Raises:
        ValueError: ``HYPTRANS_KERNELS`` has another value than those of ``CHOICES``.
    """
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(CHOICES)}, got {wanted!r}")
    if wanted == "eager" or not x.numel() or not x.dim():
        return "eager"
    if torch.compiler.is_compiling() or (isinstance(c, Tensor) and c.numel() != 1):
        return "eager"
    backend = _for_device(x, wanted)
    return backend if x.dtype in KERNEL_DTYPES.get(backend, ()) else "eager"


def _for_device(x: Tensor, wanted: str) -> Backend:
    """What runs where the tensor lies, if it is wanted or all are."""
    on_cpu = x.device.type == "cpu"
    if on_cpu and wanted in ("auto", "numba"):
        return "numba"
    if wanted in ("auto", "triton") and (x.is_cuda or (on_cpu and _interpreted())):
        return "triton"
    return "eager"


def launcher(backend: Backend) -> ModuleType:
    """The module that runs a backend's kernels on tensors."""
    module = _loaded(backend)
    assert module is not None, "only a backend that could be loaded is chosen"
    return module


@functools.cache
def _loaded(backend: Backend) -> ModuleType | None:
    try:
        return importlib.import_module(_MODULES[backend])
    except ImportError as error:
        warnings.warn(f"layers run slower without {backend} kernels: {error}", stacklevel=2)
        return None


@functools.cache
def _trusted(backend: Backend, device: torch.device, dtype: torch.dtype, part: Part) -> bool:
    # it is made of the operators, which choose by this module
    from hyptrans.kernels import check

    return check.trusted(backend, device, dtype, part)


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
