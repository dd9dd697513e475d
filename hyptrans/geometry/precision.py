"""One rule of precision for every manifold: float32 or better, whatever the inputs' dtype."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)
DEFAULT_MAX_RADIUS = 6.0
"""A radius in units of ``1/sqrt(c)``. Farther out, a float32 product of two points lacks three
digits: the distance between two equal points is off by 0.04 at radius 5, by 0.7 at 8."""
LARGEST_MAX_RADIUS = 20.0
"""The square of the product of two times at this radius, 1e34, still fits in float32."""

_PRODUCTS: dict[str, Any] = {
    "cuda": torch.backends.cuda.matmul,
    "cpu": getattr(torch.backends.mkldnn, "matmul", None),
}
"""The objects in which torch keeps the precision of float32 products."""
_EXACT = {"fp32_precision": "ieee", "allow_tf32": False}
_SETTING = next(name for name in _EXACT if hasattr(torch.backends.cuda.matmul, name))
_MADE_EXACT = ContextVar("made exact", default=False)
"""Whether :func:`full_precision` has changed a setting; gradients run after it is restored."""


def at_least_float32(x: Tensor) -> Tensor:
    """Return ``x``, converted to float32 if it is in half precision.

    At time 11, a point violates its hyperboloid's constraint by 0.5 in bfloat16, 0.06 in float16.
    """
    return x.float() if x.dtype in HALF else x


def full_precision(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which no operation on the device of ``x`` loses digits of float32.

    Autocast is off, and products use neither TF32 nor bfloat16, whatever torch's settings allow.
    Gradients are computed after the context ends, but those of :func:`matrix_product` are exact,
    too. Under ``torch.compile``, products follow torch's settings.
    """
    device = x.device.type
    # checked first: entering autocast's context takes ten times as long, and meta has no autocast
    autocast = device != "meta" and torch.is_autocast_enabled(device)
    no_cast = torch.autocast(device, enabled=False) if autocast else nullcontext()
    return _exact_products(device, no_cast) if _products_are_short(device) else no_cast


@contextmanager
def _exact_products(device: str, no_cast: AbstractContextManager[object]) -> Iterator[None]:
    products = _PRODUCTS[device]
    before, inside = getattr(products, _SETTING), _MADE_EXACT.set(True)
    setattr(products, _SETTING, _EXACT[_SETTING])
    try:
        with no_cast:
            yield
    finally:
        setattr(products, _SETTING, before)
        _MADE_EXACT.reset(inside)


def _products_are_short(device: str) -> bool:
    """Return whether torch may round the factors of float32 matrix products."""
    if torch.compiler.is_compiling():  # checked first: a compiler cannot trace the rest
        return False
    return getattr(_PRODUCTS.get(device), _SETTING, None) in ("tf32", "bf16", True)


def with_gradient(function: Any, x: Tensor, *options: Any) -> Any:
    """Apply an autograd function, or only its ``forward`` if no gradient is needed.

    At every call torch binds the arguments of a function with ``setup_context`` by name, which
    takes as long as twenty small operators; decoding avoids that.
    """
    plain = not torch.compiler.is_compiling() and not torch._C._are_functorch_transforms_active()
    if plain and not (torch.is_grad_enabled() and x.requires_grad):
        return function.forward(x, *options)
    return function.apply(x, *options)


def matrix_product(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x @ y`` in float32 or better, with gradients of the same precision.

    This holds under autocast and where torch's settings allow TF32.

    Shapes: x ``[..., N, K]``, y ``[..., K, M]`` -> ``[..., N, M]``.
    """
    if x.dtype != y.dtype:
        common = torch.promote_types(x.dtype, y.dtype)
        x, y = x.to(common), y.to(common)
    x, y = at_least_float32(x), at_least_float32(y)
    made_exact = not torch.compiler.is_compiling() and _MADE_EXACT.get()
    if torch.is_grad_enabled() and (made_exact or _products_are_short(x.device.type)):
        if y.dim() == 2 and x.dim() > 2:  # flat, because gradients then need no sum over batches
            return matrix_product(x.flatten(0, -2), y).unflatten(0, x.shape[:-1])
        return _Product.apply(x, y)
    with full_precision(x):
        return x @ y


class _Product(torch.autograd.Function):
    """A matrix product whose gradients use :func:`matrix_product`, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return matrix_product(x, y)  # records no gradient here

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y = ctx.saved_tensors
        of_x, of_y = ctx.needs_input_grad
        return (
            matrix_product(grad, y.mT).sum_to_size(x.shape) if of_x else None,
            matrix_product(x.mT, grad).sum_to_size(y.shape) if of_y else None,
        )
