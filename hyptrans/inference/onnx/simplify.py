"""Make graphs smaller: export torch's operators as few nodes, then rewrite the nodes.

Layers join the time and the space of a point, and take them apart where they need only one of them.
A graph has both before it joins them, so a part of a point needs no node.
"""
# mypy: disable-error-code=override
# a rule names the values of its pattern, which its base class cannot know

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from onnxscript import ir, opset20, optimizer
from onnxscript.rewriter import RewriteRuleClassBase, RewriteRuleSet

op: Any = opset20
_FOLDED = 1 << 26
"""Most elements of a constant that the export folds; no table of tokens has that many."""


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``softmax(scale q k^T + mask) v``; every query may look at one key at least."""
    if is_causal or dropout_p or enable_gqa:
        raise NotImplementedError("attention of a graph looks at all keys that its mask allows")
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if scale != 1:
        query = op.Mul(query, op.Constant(value_float=scale))
    scores = op.MatMul(query, op.Transpose(key, perm=[0, 1, 3, 2]))
    if attn_mask is not None:
        barred = op.Constant(value_float=float(torch.finfo(torch.float32).min))
        scores = op.Add(scores, op.Where(attn_mask, op.Constant(value_float=0.0), barred))
    return op.MatMul(op.Softmax(scores, axis=-1), value)


def _unbind(x: Any, dim: int = 0) -> Any:
    count, axes = x.shape[dim], op.Constant(value_ints=[dim])
    parts = [x] if count == 1 else op.Split(x, axis=dim, num_outputs=count)
    return [op.Squeeze(part, axes) for part in parts]


TRANSLATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    torch.ops.aten.scaled_dot_product_attention.default: _attention,
    torch.ops.aten.unbind.int: _unbind,
}
"""Operators with an export of our own, which makes fewer nodes than torch's."""


def simplify(model: ir.Model) -> None:
    """Fold constants and drop what nothing needs, in place."""
    before = -1
    while before != (before := model.graph.num_nodes()):
        optimizer.optimize_ir(model, input_size_limit=_FOLDED, output_size_limit=_FOLDED)
        _RULES.apply_to_model(model)


def _numbers(value: ir.Value) -> list[Any] | None:
    """Return a constant's numbers, or None if it is not constant."""
    constant = ir.convenience.get_const_tensor(value)
    return None if constant is None else constant.numpy().reshape(-1).tolist()


def _size(value: ir.Value) -> int:
    """Return the size of the last dimension, or 0 if it is not known."""
    size = None if value.shape is None else value.shape[-1]
    return size if isinstance(size, int) else 0


def _same_sizes(one: Any, other: Any) -> bool:
    """Return whether the sizes of two shapes, or of parts of shapes, are known to be equal."""
    # unknown sizes compare equal, too
    known = all(isinstance(size, int) or size.value is not None for size in one)
    return known and [*one] == [*other]


def _taken(x: ir.Value, start: Any, end: Any, axes: Any, steps: Any) -> range | None:
    """Return the part of the last dimension that a slice takes; None if it slices another one."""
    first, last = _numbers(start), _numbers(end)
    of_last = _numbers(axes) in ([-1], [len(x.shape or ()) - 1]) and _numbers(steps) == [1]
    if not of_last or first is None or last is None:
        return None
    return range(_size(x))[first[0] : last[0]]


class _Part(RewriteRuleClassBase):
    """Replace the slice of a point's time or space by the tensor that was joined into it."""

    def __init__(self) -> None:
        super().__init__(remove_nodes=False)

    def pattern(self, op: Any, a: Any, b: Any, start: Any, end: Any, axes: Any, steps: Any) -> Any:
        joined = op.Concat(a, b, axis=-1, _outputs=["joined"])
        return op.Slice(joined, start, end, axes, steps)

    def check(self, context: Any, a: Any, b: Any, joined: Any, **bounds: Any) -> bool:
        first, every = range(_size(a)), range(_size(a) + _size(b))
        taken = _taken(joined, **bounds)
        self.part = a if taken == first else b if taken == every[len(first) :] else None
        return self.part is not None and 0 < len(first) < len(every)

    def rewrite(self, op: Any, **_: Any) -> Any:
        return op.Identity(self.part)


class _PartOfMoved(_Part):
    """Do the same for a point that was transposed in between."""

    def pattern(
        self, op: Any, a: Any, b: Any, perm: Any, start: Any, end: Any, axes: Any, steps: Any
    ) -> Any:
        joined = op.Concat(a, b, axis=-1, _outputs=["joined"])
        return op.Slice(op.Transpose(joined, perm=perm), start, end, axes, steps)

    def check(self, context: Any, perm: Any, **match: Any) -> bool:
        order = perm.as_ints()
        return order[-1] == len(order) - 1 and super().check(context, **match)

    def rewrite(self, op: Any, perm: Any, **_: Any) -> Any:
        return op.Transpose(self.part, perm=perm.as_ints())


class _Slope(RewriteRuleClassBase):
    """Take time and space of a vector with one split where the space is divided by the time."""

    def pattern(self, op: Any, x: Any, one: Any, end: Any, zero: Any, axes: Any, steps: Any) -> Any:
        return op.Div(op.Slice(x, one, end, axes, steps), op.Slice(x, zero, one, axes, steps))

    def check(self, context: Any, x: Any, zero: Any, one: Any, end: Any, **which: Any) -> bool:
        return _numbers(zero) == [0] and _taken(x, one, end, **which) == range(1, _size(x))

    def rewrite(self, op: Any, x: Any, **_: Any) -> Any:
        sizes = op.Constant(value_ints=[1, _size(x) - 1])
        time, space = op.Split(x, sizes, axis=-1, _outputs=2)
        return op.Div(space, time)


class _SquaredLength(RewriteRuleClassBase):
    """Replace the square of a root of a sum of squares by the sum."""

    def pattern(self, op: Any, x: Any, axes: Any, two: Any) -> Any:
        return op.Pow(op.ReduceL2(x, axes, keepdims=1), two)

    def check(self, context: Any, two: Any, **_: Any) -> bool:
        return _numbers(two) == [2.0]

    def rewrite(self, op: Any, x: Any, axes: Any, **_: Any) -> Any:
        return op.ReduceSumSquare(x, axes, keepdims=1)


class _SumOfSquares(_SquaredLength):
    def pattern(self, op: Any, x: Any, axes: Any, two: Any) -> Any:
        return op.ReduceSum(op.Pow(x, two), axes, keepdims=1)


class _Reshaped(RewriteRuleClassBase):
    """Drop a reshape before another whose shape copies no sizes from it."""

    def pattern(self, op: Any, x: Any, before: Any, shape: Any) -> Any:
        return op.Reshape(op.Reshape(x, before), shape, allowzero=1)

    def rewrite(self, op: Any, x: Any, shape: Any, **_: Any) -> Any:
        return op.Reshape(x, shape, allowzero=1)


class _SqueezedThenReshaped(_Reshaped):
    def pattern(self, op: Any, x: Any, before: Any, shape: Any) -> Any:
        return op.Reshape(op.Squeeze(x, before), shape, allowzero=1)


class _ScaledThenReshaped(RewriteRuleClassBase):
    """Multiply before a squeeze, so that the squeeze and a reshape become one."""

    def pattern(self, op: Any, x: Any, axes: Any, factor: Any) -> Any:
        return op.Mul(op.Squeeze(x, axes), factor)

    def check(self, context: Any, factor: Any, **_: Any) -> bool:
        return factor.shape is not None and len(factor.shape) == 1

    def rewrite(self, op: Any, x: Any, axes: Any, factor: Any) -> Any:
        return op.Squeeze(op.Mul(x, factor), axes)


class _Product(RewriteRuleClassBase):
    """Drop the reshapes around a matrix product, which only join the dimensions before the last."""

    def pattern(self, op: Any, x: Any, rows: Any, weight: Any, shape: Any) -> Any:
        made = op.Gemm(op.Reshape(x, rows), weight, transA=0, transB=0, alpha=1.0, beta=1.0)
        return op.Reshape(made, shape, _outputs=["out"])

    def check(self, context: Any, x: Any, out: Any, **_: Any) -> bool:
        known = x.shape is not None and out.shape is not None
        return known and _same_sizes(x.shape[:-1], out.shape[:-1])

    def rewrite(self, op: Any, x: Any, weight: Any, **_: Any) -> Any:
        return op.MatMul(x, weight)


_KINDS: list[type[RewriteRuleClassBase]] = [
    *(_Part, _PartOfMoved, _Slope, _SquaredLength, _SumOfSquares),
    *(_ScaledThenReshaped, _Reshaped, _SqueezedThenReshaped, _Product),
]
_RULES = RewriteRuleSet([kind.rule() for kind in _KINDS])
