"""An operator: a formula, kernels, the choice between both, and cases on which both must agree.

``HYPTRANS_KERNELS`` asks for one backend: ``auto`` (the default), ``eager`` (the formulas in plain
torch), ``numba`` (kernels for the CPU), ``triton`` (kernels for CUDA) or ``inductor`` (the formulas
through ``torch.compile``, on CUDA where there is no kernel of Triton).
"""

import functools
import importlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from hyptrans.geometry.lorentz import CurvatureLike
from hyptrans.geometry.precision import HALF
from hyptrans.kernels import cpu

Backend = Literal["eager", "numba", "triton", "inductor"]
Made = Tensor | tuple[Tensor, ...]
Kept = Sequence[Any]
Grads = tuple[Tensor | None, ...]
Verify = Callable[[Backend, torch.device, torch.dtype, str], bool]

VARIABLE = "HYPTRANS_KERNELS"
CHOICES = ("auto", "eager", "numba", "triton", "inductor")
FULL = (torch.float32, torch.float64)
MOST_PROJECTIONS = 4
"""Kernels take so many outputs at most; more are left to the formula."""


class Kernels(NamedTuple):
    """The kernels of an operator on one backend."""

    forward: Callable[..., tuple[Made, Kept]]
    """Takes the operands; returns the result and what the gradient needs."""
    backward: Callable[..., Grads] | None = None
    """Takes what ``forward`` kept and the gradients of the results; returns the gradients of the
    first operands. None: the kernel runs only where no gradient is wanted."""


class Draw:
    """Random numbers and sizes, from which an operator makes the cases for its check.

    Args:
        rng: a generator of the CPU.
        device: device of the drawn tensors.
        dtype: dtype of the drawn tensors.
        shape: leading dimensions.
        width: numbers of a row.
        c: for curvature ``-c``.
    """

    def __init__(
        self,
        rng: torch.Generator,
        device: torch.device,
        dtype: torch.dtype,
        *,
        shape: tuple[int, ...] = (6, 50),
        width: int = 9,
        c: float = 0.5,
    ) -> None:
        self.rng, self.device, self.dtype = rng, device, dtype
        self.shape, self.width, self.c = shape, width, c
        self.batch = shape[0], math.prod(shape[1:])
        """The leading dimensions as sentences and positions."""

    def __call__(self, *shape: int) -> Tensor:
        """Numbers from N(0, 1)."""
        drawn = torch.randn(shape, generator=self.rng, dtype=torch.float64, device="cpu")
        return drawn.to(self.device, self.dtype)

    def rows(self, *shape: int) -> Tensor:
        """Numbers ``[*leading dimensions, *shape]``, a row of ``width`` by default."""
        return self(*self.shape, *(shape or (self.width,)))

    def scalar(self, value: float) -> Tensor:
        """A tensor without dimensions."""
        return torch.tensor(value, dtype=self.dtype, device=self.device)


Case = tuple[str, tuple[Any, ...]]
"""The name and the operands of a small call, which kernels and formula must answer alike."""

REGISTRY: "dict[str, Operator]" = {}
"""All operators, by name."""


class Operator:
    """A formula in plain torch, and kernels that compute the same.

    Args:
        name: unique among operators.
        plain: the formula; its first operand is a tensor, whose device and dtype choose a backend.
        cases: what all kernels are checked with.
        cpu: kernels of numba, if there are any.
        cuda: kernels of Triton, if there are any.
        half: the kernels of Triton take half precision too.

    Raises:
        ValueError: another operator has the name.
    """

    def __init__(
        self,
        name: str,
        plain: Callable[..., Made],
        *,
        cases: Callable[[Draw], Iterable[Case]],
        cpu: Kernels | None = None,
        cuda: Kernels | None = None,
        half: bool = False,
    ) -> None:
        if name in REGISTRY:
            raise ValueError(f"there is an operator {name!r} already")
        self.name, self.plain, self.cases, self.half = name, plain, cases, half
        self.kernels: dict[Backend, Kernels | None] = {"numba": cpu, "triton": cuda}
        self.family = cases.__module__.removeprefix("hyptrans.kernels.")
        """Operators of one file are compiled and checked together."""
        self.differentiable = any(k and k.backward for k in self.kernels.values())
        """Whether a kernel has a gradient; if none has, gradients are left to the formula."""
        REGISTRY[name] = self

    @functools.cached_property
    def compiled(self) -> Callable[..., Made]:
        """The formula through ``torch.compile``, for tensors of any shape."""
        return torch.compile(self.plain, dynamic=True)

    def has(self, backend: Backend, dtype: torch.dtype) -> bool:
        """Whether a backend may compute the operator in this precision."""
        return (self.half or dtype not in HALF) and (
            backend == "inductor" or self.kernels.get(backend) is not None
        )

    def __call__(self, *operands: Any) -> Any:
        """The kernel's result where there is one to be trusted, else the formula's."""
        return self.run(self.backend(operands[0]), *operands)

    def run(self, backend: Backend, *operands: Any) -> Any:
        """What a backend makes of the operands."""
        kernels = self.kernels.get(backend)
        if kernels is None:
            return (self.compiled if backend == "inductor" else self.plain)(*operands)
        if torch.is_grad_enabled() and kernels.backward:
            return _Differentiable.apply(kernels, *operands)
        return kernels.forward(*operands)[0]

    def backend(self, x: Tensor) -> Backend:
        """The backend for a tensor: :func:`possible`, if it has kernels that can be trusted.

        Raises:
            ValueError: as of :func:`possible`.
        """
        if torch.compiler.is_compiling():
            return "eager"  # and what is kept cannot be traced
        kept = _KEPT.get()
        if kept is None:
            return self._backend(x)
        asked = (self.name, x.dtype, x.device, not (x.numel() and x.dim()), torch.is_grad_enabled())
        if asked not in kept:
            kept[asked] = self._backend(x)
        return kept[asked]

    def _backend(self, x: Tensor) -> Backend:
        backend = possible(x)
        if backend == "inductor" and x.is_cuda and self.kernels["triton"]:
            backend = "triton"
        if not self.has(backend, x.dtype) or not _loaded(backend):
            return "eager"
        if torch.is_grad_enabled() and not self.differentiable:
            return "eager"  # an operand after the first may want a gradient
        return backend if _trusted(backend, x.device, x.dtype, self.family) else "eager"


_KEPT: ContextVar[dict[Any, Backend] | None] = ContextVar("backends that are kept", default=None)


@contextmanager
def kept_backends() -> Iterator[None]:
    """Let each operator choose its backend once, as nothing that it depends on changes."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


class _Differentiable(torch.autograd.Function):
    """Kernels, forward and backward, of any operator."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, *operands: Any) -> Made:
        made, kept = kernels.forward(*operands)
        ctx.backward_kernel = kernels.backward
        ctx.save_for_backward(*(k if isinstance(k, Tensor) else None for k in kept))
        ctx.others = [None if isinstance(k, Tensor) else k for k in kept]
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Grads:
        refuse_second_derivative(f"set {VARIABLE}=eager, by which formulas are plain torch")
        kept = [
            other if tensor is None else tensor
            for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
        ]
        found = chain((None,), ctx.backward_kernel(kept, *grads), repeat(None))
        return tuple(
            grad if wanted else None
            for grad, wanted in zip(found, ctx.needs_input_grad, strict=False)
        )


def refuse_second_derivative(instead: str) -> None:
    """Stop a backward pass that torch cannot differentiate, where a second derivative is wanted.

    Kernels are no operators of torch. With torch's ``once_differentiable``,
    :func:`torch.autograd.grad` would leave them out of a second derivative without an error.

    Raises:
        RuntimeError: the gradient is to be differentiated itself, by ``create_graph=True``.
    """
    if torch.is_grad_enabled():
        raise RuntimeError(
            f"create_graph=True asks for a second derivative, which kernels do not have: {instead}"
        )


def possible(x: Tensor) -> Backend:
    """The backend for a tensor: numba on the CPU, Triton on CUDA, else eager, if none is asked for.

    ``HYPTRANS_KERNELS`` may ask for one of them; a kernel that does not run on the tensor's device
    leaves the tensor to eager, as do other dtypes, tensors without rows and ``torch.compile``.

    Raises:
        ValueError: ``HYPTRANS_KERNELS`` has another value than those of ``CHOICES``.
    """
    if torch.compiler.is_compiling():
        return "eager"
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        raise ValueError(f"{VARIABLE} must be one of {', '.join(CHOICES)}, got {wanted!r}")
    if wanted == "eager" or not x.numel() or not x.dim():
        return "eager"
    on_cpu = x.device.type == "cpu"
    if wanted == "inductor":
        known = (on_cpu or x.is_cuda) and x.dtype in (*FULL, *HALF)
        return "inductor" if known else "eager"
    if on_cpu and wanted in ("auto", "numba"):
        return "numba" if x.dtype in FULL else "eager"
    runs_triton = x.is_cuda or (on_cpu and os.environ.get("TRITON_INTERPRET") == "1")
    known = wanted in ("auto", "triton") and x.dtype in (*FULL, *HALF)
    return "triton" if runs_triton and known else "eager"


@functools.cache
def _loaded(backend: Backend) -> bool:
    """Whether a backend is installed; if not, a warning says so once."""
    try:
        if backend == "triton":
            importlib.import_module("triton")
        elif backend == "numba" and cpu.MISSING:
            raise cpu.MISSING
    except ImportError as error:
        warnings.warn(f"layers run slower without {backend} kernels: {error}", stacklevel=2)
        return False
    return True


def verify_with(verify: Verify) -> None:
    """Set the function that decides, once a family, whether kernels of the family are trusted."""
    global _trusted
    _trusted = functools.cache(verify)


_trusted: Verify


def as_scalar(c: CurvatureLike) -> CurvatureLike:
    """A curvature of one number without dimensions, as kernels give its gradient."""
    return c.reshape(()) if isinstance(c, Tensor) and c.numel() == 1 else c


def differs_by_row(c: CurvatureLike) -> bool:
    """Whether a curvature has more than the one number that kernels take."""
    return isinstance(c, Tensor) and c.numel() != 1
