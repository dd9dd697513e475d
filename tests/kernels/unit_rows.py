"""A new operator, rows shortened to length one: its formula, kernels and cases are this file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hyptrans.kernels import cpu, cuda
from hyptrans.kernels.cpu import BLOCK, matrix, read
from hyptrans.kernels.cuda import lanes
from hyptrans.kernels.operator import Kernels, Operator

if TYPE_CHECKING:
    import triton.language as tl


def plain(x):
    return x / (x.square().sum(-1, keepdim=True) + 1).sqrt()


def rows(block, pointer):
    job = read(pointer)
    x, grad, out, back = matrix(job, 0), matrix(job, 1), matrix(job, 2), job.integers[0]
    for n in range(block * BLOCK, min((block + 1) * BLOCK, len(x))):
        squared, along = x.dtype.type(1), x.dtype.type(0)
        for j in range(x.shape[1]):
            squared += x[n, j] * x[n, j]
            along += x[n, j] * grad[n, j] * back
        for j in range(x.shape[1]):
            out[n, j] = (grad[n, j] - along / squared * x[n, j]) / squared**0.5


@cuda.kernel("rows")
def rows_cuda(x, grad, out, rows, BACK: tl.constexpr, D: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip  # noqa: E501
    _, _, at, _, inside = lanes(rows, D, WIDTH, ROWS)
    value, given = tl.load(x + at, inside, 0.0), tl.load(grad + at, inside, 0.0)
    squared = tl.sum(value * value, axis=1)[:, None] + 1
    given -= tl.sum(value * given, axis=1)[:, None] * BACK / squared * value
    tl.store(out + at, given / tl.sqrt(squared), inside)


def on_cpu(x, grad, out, back):
    cpu.run(rows, cpu.blocks_of(x), (x, grad, out), integers=(back,))


def on_cuda(x, grad, out, back):
    cuda.launch_rows(rows_cuda, n := x.numel() // x.size(-1), x, x, grad, out, n, BACK=back)


def kernels(launch):
    def run(x, grad, back):
        launch(x, grad.contiguous(), out := torch.empty_like(x), back)
        return out, (x,)

    return Kernels(lambda x: run(x.contiguous(), x, 0), lambda kept, grad: run(*kept, grad, 1)[:1])


BOTH = {"cpu": kernels(on_cpu), "cuda": kernels(on_cuda)}
Operator("unit rows", plain, cases=lambda draw: [("unit rows", [draw.rows()])], **BOTH)
