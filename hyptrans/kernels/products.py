"""Matrix products in float32, through whichever of torch's two libraries is the faster one.

torch multiplies through MKL, which leaves the AVX-512 units of AMD's processors idle; oneDNN, which
torch has for convolutions, uses these units and is up to twice as fast, depending on the processor.
On other processors, under autocast and for small products, the product is torch's own.
"""

import functools
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import full_precision, matrix_product
from hyptrans.kernels.backend import backend

LEAST_PRODUCTS = 3 << 19
"""Fewer products of two numbers take less time than oneDNN's way to its kernel."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W^T + b``, as :func:`torch.nn.functional.linear`.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if not _in_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _onednn(x, weight, bias)
    out: Tensor = _Linear.apply(x, weight, bias)
    return out


def exact_linear(x: Tensor, weight: Tensor) -> Tensor:
    """``x W^T`` in float32 or better, under autocast and where torch may take TF32 too.

    Shapes: x ``[..., in]``, weight ``[out, in]`` -> ``[..., out]``.
    """
    with full_precision(x):
        return linear(x, weight) if _in_onednn(x, weight) else matrix_product(x, weight.t())


def scaled_linear(x: Tensor, weight: Tensor, bias: Tensor, scale: Tensor | float) -> Tensor:
    """``scale (x W^T + b)``; the scale, a tensor without dimensions, may have a gradient.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if isinstance(scale, Tensor) or _in_onednn(x, weight):
        # scaling the weights is cheaper than scaling what they give at every position
        return linear(x, weight * scale, bias * scale)
    flat = x.reshape(-1, x.size(-1))
    rows = torch.addmm(bias, flat, weight.t(), beta=scale, alpha=scale)
    return rows.view(*x.shape[:-1], len(bias))


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """``a b^T``, where no gradient is wanted by the faster library.

    ``a`` is copied where it is not contiguous. Shapes: a ``[N, K]``, b ``[M, K]`` -> ``[N, M]``.
    """
    in_onednn = not torch.is_grad_enabled() and _in_onednn(a, b)
    return _onednn(a, b) if in_onednn else a @ b.t()


def add_product_(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add ``a b^T`` in place, outside of autograd; shapes as of :func:`times_transposed`."""
    if _in_onednn(a, b):
        total += _onednn(a, b)
    else:
        total.addmm_(a, b.t())


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows, grad_rows = x.reshape(-1, x.size(-1)), grad.reshape(-1, weight.size(0))
        grad_weight = None
        if of_weight and grad_rows.size(1) < rows.size(1):
            grad_weight = times_transposed(grad_rows.t(), rows.t())
        elif of_weight:
            # the narrower factor is the one that is copied
            grad_weight = times_transposed(rows.t(), grad_rows.t()).t()
        grad_x = times_transposed(grad_rows, weight.t()).view(x.shape) if of_x else None
        return grad_x, grad_weight, grad_rows.sum(0) if of_bias else None


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, _dense(weight), bias, "none", [], "")
    return out


def _dense(matrix: Tensor) -> Tensor:
    """The matrix, copied where it is part of a wider one: oneDNN takes 1,000 times as long so."""
    return matrix if matrix.t().is_contiguous() else matrix.contiguous()


def _in_onednn(x: Tensor, weight: Tensor) -> bool:
    # a graph is for every batch and length: sizes must not decide anything in it
    if torch.compiler.is_compiling() or not x.dtype == weight.dtype == torch.float32:
        return False
    if x.numel() * weight.size(0) < LEAST_PRODUCTS:
        return False
    return backend(x) == "numba" and _faster() and not torch.is_autocast_enabled("cpu")


@functools.cache
def _faster() -> bool:
    """Whether oneDNN is there and right, and MKL without the code for this processor."""
    try:
        # numba comes with it
        from llvmlite import binding
    except ImportError:
        return False
    wide = binding.get_host_cpu_features().get("avx512f", False)
    slow_in_mkl = torch.backends.mkl.is_available() and wide
    return bool(slow_in_mkl and binding.get_host_cpu_name().startswith("znver") and _is_right())


def _is_right() -> bool:
    """Whether torch still has oneDNN's linear map, which is no public operator, as it was."""
    x, bias = torch.arange(35.0, device="cpu").sin().view(5, 7), torch.ones(5, device="cpu")
    try:
        with torch.inference_mode(False), full_precision(x):
            return torch.allclose(_onednn(x, x, bias), F.linear(x, x, bias), atol=1e-5)
    except (AttributeError, RuntimeError, TypeError):
        return False
