#!/usr/bin/env bash
# Guess: a compiled function returns the same digits for equal numbers, wherever in memory they lie.
# Seen: with reassociation allowed, a C function whose inner loop stores and sums gives other last digits if the
#       array that it writes begins where the one that it reads ends: LLVM made two versions of the loop and its
#       check for overlap takes neighbours for one. A loop that only sums does not.
# Matters: equal inputs give unequal gradients about once in ten thousand calls, as the allocator places them.
# Versions: numba 0.68.1, numpy 2.4.6; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages numba==0.68.1 numpy==2.4.6
"$python" - <<'PY'
import numpy as np
from finding import seen, versions
from numba import carray, cfunc, types

versions("numba", "numpy")
POINTER = types.CPointer(types.float64)
SIGNATURE = types.void(POINTER, POINTER, POINTER, types.int64, types.int64)


def compiled(together):
    """A C function that stores a row's multiples and sums their squares, in one loop or in two."""

    @cfunc(SIGNATURE, fastmath={"reassoc"}, error_model="numpy")
    def function(given, made, sums, rows, width):
        x, y, total = carray(given, (rows, width)), carray(made, (rows, width)), carray(sums, (rows,))
        for i in range(rows):
            squares, factor = 0.0, 1.0 / x[i, 0]
            for j in range(1, width):
                y[i, j] = x[i, j] * factor
                if together:
                    squares += y[i, j] * y[i, j]
            if not together:
                for j in range(1, width):
                    squares += y[i, j] * y[i, j]
            total[i] = squares

    return function


def sums_of(function, numbers, gap):
    """The sums of squares where the written array lies ``gap`` numbers behind the read one."""
    rows, width = numbers.shape
    memory, total = np.zeros(2 * numbers.size + gap), np.zeros(rows)
    memory[: numbers.size] = numbers.ravel()
    parts = (memory, memory[numbers.size + gap :], total)
    function.ctypes(*(x.ctypes.data_as(kind) for x, kind in zip(parts, function.ctypes.argtypes)), rows, width)
    return total


draw = np.random.default_rng(0)
for name, function in (("one loop", compiled(True)), ("two loops", compiled(False))):
    apart, largest = 0, 0.0
    for width in range(4, 20):
        numbers = draw.standard_normal((3, width))
        near, far = (sums_of(function, numbers, gap) for gap in (0, 4096))
        apart += not np.array_equal(near, far)
        largest = max(largest, float(abs(near / far - 1).max()))
    print(f"{name}: {apart} of 16 widths differ, by {largest:.0e} at most")
    seen(f"{name}: neighbours change digits", apart > 0, name == "one loop")
    seen(f"{name}: only the last digits", largest < 1e-14, True)
PY
