"""Matrix products in float32, by the faster of torch's two libraries.

torch multiplies with MKL, which leaves the AVX-512 units of AMD processors idle. oneDNN, which
torch includes for convolutions, uses them: on Zen 5 it makes whole training steps up to 1.6 times
as fast. Zen 4, whose units are half as wide, gains a tenth with wide matrices and loses with narrow
ones. On other processors, under autocast and for small products, torch multiplies as usual.
"""

from typing import Any

import torch
from llvmlite import binding
from torch import Tensor
from torch.nn import functional as F

from hyptrans.geometry.precision import full_precision, matrix_product
from hyptrans.kernels.backend import backend

LEAST_WEIGHT = 1 << 17 if binding.get_host_cpu_name() == "znver4" else 0
"""Smaller matrices of weights are multiplied by MKL."""
LEAST_PRODUCTS = 3 << 19
"""With fewer multiplications, oneDNN's overhead takes longer than the product itself."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x W^T + b``, like :func:`torch.nn.functional.linear`.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if not _in_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _onednn(x, weight, bias)
    return _Linear.apply(x, weight, bias)


def exact_linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x W^T`` in float32 or better, even under autocast and where torch may use TF32.

    Shapes: x ``[..., in]``, weight ``[out, in]`` -> ``[..., out]``.
    """
    with full_precision(x):
        return linear(x, weight) if _in_onednn(x, weight) else matrix_product(x, weight.t())


def scaled_linear(x: Tensor, weight: Tensor, bias: Tensor, scale: Tensor | float) -> Tensor:
    """Return ``scale (x W^T + b)``; a scale that is a 0-dimensional tensor may have a gradient.

    Shapes: x ``[..., in]``, weight ``[out, in]``, bias ``[out]`` -> ``[..., out]``.
    """
    if isinstance(scale, Tensor) or _in_onednn(x, weight):
        # scaling the weights is cheaper than scaling the results of all positions
        return linear(x, weight * scale, bias * scale)
    flat = x.reshape(-1, x.size(-1))
    rows = torch.addmm(bias, flat, weight.t(), beta=scale, alpha=scale)
    return rows.view(*x.shape[:-1], len(bias))


def times_transposed(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a b^T``, by the faster library if no gradient is wanted.

    This copies ``a`` if it is not contiguous. Shapes: a ``[N, K]``, b ``[M, K]`` -> ``[N, M]``.
    """
    in_onednn = not torch.is_grad_enabled() and _in_onednn(a, b)
    return _onednn(a, b) if in_onednn else a @ b.t()


def add_product_(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add ``a b^T`` in place, outside autograd; shapes as in :func:`times_transposed`."""
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
        # a second derivative needs operators that have a gradient
        product = F.linear if torch.is_grad_enabled() else _onednn
        rows, grad_rows = x.reshape(-1, x.size(-1)), grad.reshape(-1, weight.size(0))
        grad_weight = None
        if of_weight and grad_rows.size(1) < rows.size(1):
            grad_weight = product(grad_rows.t(), rows.t())
        elif of_weight:
            # this way the copy is of the narrower factor
            grad_weight = product(rows.t(), grad_rows.t()).t()
        grad_x = product(grad_rows, weight.t()).view(x.shape) if of_x else None
        return grad_x, grad_weight, grad_rows.sum(0) if of_bias else None


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # for a part of a wider matrix, oneDNN would take 1,000 times as long
    dense = weight if weight.t().is_contiguous() else weight.contiguous()
    return torch.ops.mkldnn._linear_pointwise(x, dense, bias, "none", [], "")


def _in_onednn(x: Tensor, weight: Tensor) -> bool:
    # while torch compiles, no backend of ours runs: a graph serves every batch and length, so
    # the size of x must not decide anything in it
    return (
        FASTER
        and backend(x) == "numba"
        and weight.numel() >= LEAST_WEIGHT
        and x.dtype == weight.dtype == torch.float32
        and x.numel() * weight.size(0) >= LEAST_PRODUCTS
        and not torch.is_autocast_enabled("cpu")
    )


def _is_right() -> bool:
    """Return whether oneDNN's linear map, not a public operator of torch, still works as before."""
    x, bias = torch.arange(35.0, device="cpu").sin().view(5, 7), torch.ones(5, device="cpu")
    try:
        with torch.inference_mode(False), full_precision(x):
            return torch.allclose(_onednn(x, x, bias), F.linear(x, x, bias), atol=1e-5)
    except (AttributeError, RuntimeError, TypeError):
        return False


FASTER = (
    torch.backends.mkl.is_available()
    and binding.get_host_cpu_name().startswith("znver")
    and binding.get_host_cpu_features().get("avx512f", False)
    and _is_right()
)
"""Whether oneDNN is faster than MKL on this processor, and present and correct."""
