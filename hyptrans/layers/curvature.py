"""Learned curvatures, and the scale that moves points from one curvature to another."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.checks import check_curvature
from hyptrans.geometry.precision import at_least_float32
from hyptrans.layers.euclidean import inverse_softplus

LEAST_CURVATURE = 1e-12
"""Least learned ``c``; ``1/c`` and its square still fit in float32."""


class Curvature(nn.Module):
    """The ``c > 0`` of a space of curvature ``-c``, learned as ``softplus`` of a free parameter.

    Calling it returns ``c``: a 0-dimensional tensor if learned, else a number. On the CPU without
    gradients a learned ``c`` is a number too, so that what follows from it needs no operators.

    Args:
        c: the value, or the starting value if learned.
        learned: whether ``c`` is a parameter.

    Raises:
        ValueError: ``c`` is not above 0.
    """

    def __init__(self, c: float = 1.0, *, learned: bool = True) -> None:
        super().__init__()
        check_curvature(c)
        self.start = c
        self.raw = nn.Parameter(torch.tensor(inverse_softplus(c))) if learned else None

    def __call__(self) -> lorentz.CurvatureLike:
        # bypasses nn.Module's call and its hooks: a decoding step calls this a hundred times
        kept = _kept(self)
        return self.forward() if kept is None else kept

    def forward(self) -> lorentz.CurvatureLike:
        if self.raw is None:
            return self.start
        if _as_tensor(self.raw):
            return _of_raw(self.raw)
        raw = float(self.raw)
        return max(max(raw, 0.0) + math.log1p(math.exp(-abs(raw))), LEAST_CURVATURE)

    def extra_repr(self) -> str:
        return f"c={self.start}, learned={self.raw is not None}"


class Passage:
    """The change from the curvature of a block's input or memory to the block's own.

    Calling it returns :func:`scale_between` the two. This is not a module, so it does not register
    the curvatures: otherwise the input's curvature would have several names in a checkpoint.
    """

    def __init__(self, before: Curvature, own: Curvature) -> None:
        self.before, self.own = before, own

    def __call__(self) -> lorentz.CurvatureLike:
        kept = _kept(self)
        return scale_between(self.before(), self.own()) if kept is None else kept


def scale_between(
    c_in: lorentz.CurvatureLike, c_out: lorentz.CurvatureLike
) -> lorentz.CurvatureLike:
    """Return ``sqrt(c_in / c_out)``, by which a change of curvature multiplies space coordinates.

    This keeps distances in units of ``1/sqrt(c)``, hence their order. Source: Hypformer eq. 9.
    """
    return (c_in / c_out) ** 0.5


Kept = dict[Curvature | Passage | Tensor, lorentz.CurvatureLike]

_KEPT: ContextVar[Kept | None] = ContextVar("curvatures that are kept", default=None)
"""Not kept on the modules, as another thread may use the same model, with or without gradients."""


def _kept(part: Curvature | Passage) -> lorentz.CurvatureLike | None:
    if torch.compiler.is_compiling():
        return None
    kept = _KEPT.get()
    return None if kept is None else kept.get(part)


def derived(parameter: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Return ``compute(parameter)``; within a search, compute it only at the first step."""
    kept = _KEPT.get() if not (torch.is_grad_enabled() or torch.compiler.is_compiling()) else None
    if kept is None:
        return compute(parameter)
    found = kept.get(parameter)
    if not isinstance(found, Tensor):
        found = kept[parameter] = compute(parameter)
    return found


@contextmanager
def kept_curvatures(*models: nn.Module) -> Iterator[None]:
    """Compute the models' learned curvatures and the scales between them once and together.

    One by one they make up more than half of a training step's operators. Their values come from
    the parameters on entry to this context. Layers that run again after its end, as under
    :func:`torch.utils.checkpoint.checkpoint`, do not find them.
    """
    if torch.compiler.is_compiling():
        yield  # a compiler fuses operators by itself
        return
    modules = [module for model in models for module in model.modules()]
    curvatures = [m for m in modules if isinstance(m, Curvature) and m.raw is not None]
    parts = [part for m in modules if curvatures for part in vars(m).values()]
    found = [part for part in parts if isinstance(part, Passage)]
    passages = [p for p in found if p.before.raw is not None and p.own.raw is not None]
    kept: Kept = {}
    token = _KEPT.set(kept)
    try:
        _keep(kept, curvatures, passages)
        yield
    finally:
        _KEPT.reset(token)


def _keep(kept: Kept, curvatures: list[Curvature], passages: list[Passage]) -> None:
    raws: list[Tensor] = [part.raw for part in curvatures if part.raw is not None]
    if not raws or not _as_tensor(raws[0]):
        kept.update((part, part()) for part in curvatures)
        kept.update((part, part()) for part in passages)
        return
    together = _of_raw(torch.stack(raws))
    kept.update(zip(curvatures, together.unbind(), strict=True))
    if passages:
        before = torch.stack([torch.as_tensor(passage.before()) for passage in passages])
        own = torch.stack([torch.as_tensor(passage.own()) for passage in passages])
        scales = torch.as_tensor(scale_between(before, own)).unbind()
        kept.update(zip(passages, scales, strict=True))


def _of_raw(raw: Tensor) -> Tensor:
    """Return softplus, bounded from below: else it underflows far below 0 and ``1/c`` is inf."""
    return F.softplus(at_least_float32(raw)).clamp_min(LEAST_CURVATURE)


def _as_tensor(raw: Tensor) -> bool:
    """Return whether to compute with a curvature as a tensor; else as a Python number."""
    # a compiler would make a number part of its graph
    compiling = torch.compiler.is_compiling()
    return compiling or torch.is_grad_enabled() or raw.device.type != "cpu"
