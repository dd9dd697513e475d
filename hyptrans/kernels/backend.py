"""The choice of an operator's backend: numba kernels on the CPU, Triton on CUDA, or the formula.

The environment variable ``HYPTRANS_KERNELS`` makes the choice; this module reads it on import:
``auto`` (the default, also for an empty value), ``eager`` (the formulas in plain torch), ``numba``
or ``triton``.
"""

import functools
import importlib
import os
import warnings
from typing import Any, Literal

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.kernels import cpu

Backend = Literal["eager", "numba", "triton"]

VARIABLE = "HYPTRANS_KERNELS"
CHOICES = ("auto", "eager", "numba", "triton")
CHOSEN = os.environ.get(VARIABLE) or "auto"
"""One of ``CHOICES``; any other value raises an error at the first operator."""
FULL = (torch.float32, torch.float64)


def backend(x: Tensor, *, triton: bool = False) -> Backend:
    """Return the backend that computes an operator of ``x``.

    It is ``eager``, the formula, for empty or 0-dimensional tensors, for dtypes or devices without
    a kernel, and while torch compiles or exports a graph, which cannot contain kernels.

    Args:
        x: the operator's first operand.
        triton: the operator has Triton kernels.

    Raises:
        ValueError: ``HYPTRANS_KERNELS`` is none of ``CHOICES``.
    """
    if torch.compiler.is_compiling():
        return "eager"
    if CHOSEN not in CHOICES:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(CHOICES)}, got {CHOSEN!r}")
    if CHOSEN == "eager" or not x.numel() or not x.dim():
        return "eager"
    if x.is_cpu and CHOSEN != "triton":
        return "numba" if x.dtype in FULL and _installed("numba") else "eager"
    on_device = x.is_cuda or (x.is_cpu and os.environ.get("TRITON_INTERPRET") == "1")
    known = triton and on_device and CHOSEN != "numba" and x.dtype in FULL
    return "triton" if known and _installed("triton") else "eager"


@functools.cache
def _installed(name: Backend) -> bool:
    """Return whether a backend can be imported; if not, warn once."""
    try:
        if name == "numba" and cpu.MISSING:
            raise cpu.MISSING
        importlib.import_module(name)
    except ImportError as error:
        warnings.warn(f"layers run slower without {name} kernels: {error}", stacklevel=2)
        return False
    return True


class _NoGraph:
    """Stand-in for the context of an autograd function that needs no gradient."""

    def save_for_backward(self, *_: Any) -> None:
        """Save nothing."""


def apply(function: Any, *inputs: Any) -> Any:
    """Apply an autograd function; call only its ``forward`` if torch records no gradient.

    torch's own ``apply`` takes as long as a kernel does for the few rows of a decoding step.
    """
    if torch.is_grad_enabled():
        return function.apply(*inputs)
    return function.forward(_NoGraph(), *inputs)


def no_second_derivative(
    instead: str = f"set {VARIABLE}=eager, by which formulas are plain torch",
) -> RuntimeError:
    """Return the error to raise in a backward pass that runs with ``create_graph=True``.

    Kernels are not torch operators. With torch's ``once_differentiable``,
    :func:`torch.autograd.grad` would leave them out of a second derivative without an error.
    """
    return RuntimeError(
        f"create_graph=True asks for a second derivative, which kernels do not have: {instead}"
    )


def one_number(c: CurvatureLike) -> bool:
    """Return whether a curvature is a single number, as kernels need, and not one per row."""
    return not isinstance(c, Tensor) or c.numel() == 1
