"""Label-smoothed cross entropy of rows of logits on the CPU, and its gradient over them.

Kernels as in :mod:`~hyptrans.kernels.cpu.rows`.
"""

import math
from typing import Any

from hyptrans.kernels.cpu.exponential import exp, largest_of
from hyptrans.kernels.cpu.jobs import indices, matrix, read

ROWS = 8
"""Rows that are one thread's at a time: a row of logits is long."""


def cross_entropy(block: int, pointer: Any) -> None:
    """Losses of rows of logits ``[N, V]``, over which their gradients are written if wanted.

    Matrices: logits, targets ``[N, 1]`` of int64, losses ``[N, 2]`` (smoothed; of the target
    alone). Numbers: the target's share of the probability, that of every token. Integers: whether
    gradients are wanted.
    """
    job = read(pointer)
    logits, targets, losses = matrix(job, 0), indices(job, 1), matrix(job, 2)
    of_target, of_all = job.numbers[0], job.numbers[1]
    wanted = job.integers[0] != 0
    rows, size = logits.shape
    zero, one = logits.dtype.type(0), logits.dtype.type(1)
    for n in range(block * ROWS, min((block + 1) * ROWS, rows)):
        target = targets[n, 0]
        chosen, largest, plain = logits[n, target], largest_of(logits[n]), zero
        for j in range(size):
            plain += logits[n, j]
        total = zero
        if wanted:
            for j in range(size):
                power = exp(logits[n, j] - largest)
                logits[n, j] = power
                total += power
            scale = one / total
            for j in range(size):
                logits[n, j] = logits[n, j] * scale - of_all
            logits[n, target] -= of_target
        else:
            for j in range(size):
                total += exp(logits[n, j] - largest)
        normalizer = largest + math.log(total)
        losses[n, 0] = of_target * (normalizer - chosen) + of_all * (size * normalizer - plain)
        losses[n, 1] = normalizer - chosen
