"""Label-smoothed cross entropy of rows of logits in Triton, and its gradient over them.

What :mod:`~hyptrans.kernels.cpu.loss` is on the CPU; kernels as in
:mod:`~hyptrans.kernels.cuda.rows`.
"""

import triton  # type: ignore
import triton.language as tl  # type: ignore


@triton.jit(do_not_specialize=["size"])
def cross_entropy(
    logits: tl.tensor,
    targets: tl.tensor,
    numbers: tl.tensor,
    losses: tl.tensor,
    size: tl.tensor,
    GRADIENT: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """A row of ``logits`` ``[N, size]`` a program, ``WIDTH`` columns at a time.

    ``targets`` ``[N]``, ``losses`` ``[N, 2]``; ``numbers``: the target's share of the probability,
    that of every token.
    """
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * size
    column = tl.arange(0, WIDTH)
    of_target, of_all = tl.load(numbers), tl.load(numbers + 1)
    # largest and total of each lane: they are joined once, at the end
    largest = tl.full([WIDTH], float("-inf"), of_all.dtype)
    total = tl.zeros([WIDTH], of_all.dtype)
    plain = tl.zeros([WIDTH], of_all.dtype)
    for first in range(0, size, WIDTH):
        inside = first + column < size
        value = tl.load(start + first + column, mask=inside, other=float("-inf"))
        higher = tl.maximum(largest, value)
        # a lane that has seen nothing yet has no finite number to subtract
        known = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(largest - known) + tl.exp(value - known)
        plain += tl.where(inside, value, 0.0)
        largest = higher
    most = tl.max(largest, axis=0)
    normalizer = most + tl.log(tl.sum(total * tl.exp(largest - most), axis=0))
    target = tl.load(targets + row)
    chosen = tl.load(start + target)
    loss = of_target * (normalizer - chosen)
    loss += of_all * (size * normalizer - tl.sum(plain, axis=0))
    tl.store(losses + 2 * row, loss)
    tl.store(losses + 2 * row + 1, normalizer - chosen)
    if GRADIENT:
        for first in range(0, size, WIDTH):
            inside = first + column < size
            value = tl.load(start + first + column, mask=inside, other=0.0)
            gradient = tl.exp(value - normalizer) - of_all
            gradient -= tl.where(first + column == target, of_target, 0.0)
            tl.store(start + first + column, gradient, mask=inside)
