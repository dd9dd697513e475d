"""Exponential functions and logarithms in kernels, in a form that becomes vector code.

In float32 they are series and quotients with a choice between two of them, as a call of the C
library would keep a loop scalar; in float64 they are the library's.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, njit, types

from hyptrans.kernels.cpu.jobs import intrinsic

INLINED: Any = {"forceinline": True}
"""A loop that still calls a function stays scalar, and with some calls LLVM leaves others alone."""

_LEAST, _MOST = np.float32(-126), np.float32(127)
"""Exponents of two of ordinary float32 numbers."""
_PER_LOG2, _LOG2 = np.float32(1 / math.log(2)), np.float32(math.log(2))
_TAYLOR = tuple(np.float32(1 / math.factorial(i)) for i in range(7))
_ODD = tuple(np.float32(1 / (2 * i + 1)) for i in range(6))
"""Of ``artanh(z) / z`` by powers of ``z^2``."""
_ROOT_HALF_BITS = 0x3F3504F3
"""The bits of ``sqrt(1/2)`` as a float32."""
_LARGEST = np.float32(3e38)
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)


def exp(x: float) -> float:
    """``exp(x)``; in float32 within ``1e-7 (3 + |x|)`` of it, relatively, and 2^-126 to 2^127.

    What is left of the rounding is nothing to a sigmoid or a softmax, which are flat where
    ``|x|`` is large. NaN stays NaN.
    """
    return math.exp(x)


@extending.overload(exp, jit_options=INLINED)
def _compiled(x: Any) -> Any:
    if x != types.float32:

        def of_float64(x: Any) -> Any:
            return math.exp(x)

        return of_float64

    def of_float32(x: Any) -> Any:
        power = x * _PER_LOG2
        power = _LEAST if power < _LEAST else power
        power = _MOST if power > _MOST else power
        whole = np.rint(power)
        rest = (power - whole) * _LOG2
        series = _TAYLOR[6]
        series = series * rest + _TAYLOR[5]
        series = series * rest + _TAYLOR[4]
        series = series * rest + _TAYLOR[3]
        series = series * rest + _TAYLOR[2]
        series = series * rest + _TAYLOR[1]
        series = series * rest + _TAYLOR[0]
        return series * _power_of_two(np.int32(whole))

    return of_float32


@intrinsic
def _power_of_two(_context: Any, exponent: Any) -> Any:
    """``2^exponent``, written as the bits of a float32.

    ``view(np.float32)`` of an int32 does the same, and made kernels two percent slower.
    """

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        biased = builder.add(args[0], ir.Constant(ir.IntType(32), 127))
        bits = builder.shl(biased, ir.Constant(ir.IntType(32), 23))
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.int32), generate


# masked keys are -inf, so infinities count
@njit(fastmath={"nnan", "nsz"}, error_model="numpy")
def largest_of(row: Any) -> Any:
    """The largest number of a row that has one; any number where one is NaN.

    Unlike kernels it is compiled as if there was no NaN, which makes it vector code; the difference
    from it is NaN where a number is.
    """
    largest = row[0]
    for j in range(row.size):
        largest = max(largest, row[j])
    return largest


def log1p(x: float) -> float:
    """``log(1 + x)`` for ``x > -1``; in float32 within 3e-7 of it, relatively. NaN stays NaN."""
    return math.log1p(x)


@extending.overload(log1p, jit_options=INLINED)
def _compiled_log1p(x: Any) -> Any:
    if x != types.float32:

        def of_float64(x: Any) -> Any:
            return math.log1p(x)

        return of_float64

    def of_float32(x: Any) -> Any:
        # 1 + x = 2^power (1 + rest) with 1 + rest near 1; where the power is 0, x has more digits
        power = _power_in(x + _ONE)
        rest = x if power == 0 else _mantissa_of(x + _ONE, power) - _ONE
        z = rest / (rest + _TWO)
        square = z * z
        series = _ODD[5]
        series = series * square + _ODD[4]
        series = series * square + _ODD[3]
        series = series * square + _ODD[2]
        series = series * square + _ODD[1]
        series = series * square + _ODD[0]
        found = _TWO * z * series + np.float32(power) * _LOG2
        return found if x < _LARGEST else x

    return of_float32


def tanh_ratio(x: float) -> float:
    """``tanh(x) / x`` for ``x > 0``; in float32 within 4e-7 of it, relatively."""
    return math.tanh(x) / x


@extending.overload(tanh_ratio, jit_options=INLINED)
def _compiled_tanh_ratio(x: Any) -> Any:
    if x != types.float32:

        def of_float64(x: Any) -> Any:
            return math.tanh(x) / x

        return of_float64

    def of_float32(x: Any) -> Any:
        square = x * x
        # Lambert's continued fraction
        above = (square + np.float32(105)) * square + np.float32(945)
        below = (np.float32(15) * square + np.float32(420)) * square + np.float32(945)
        far = (_ONE - _TWO / (exp(_TWO * x) + _ONE)) / x
        return above / below if x < _ONE else far

    return of_float32


def sinh_ratio(x: float) -> float:
    """``sinh(x) / x`` for ``x > 0``; in float32 within ``4e-7 (1 + x)`` of it, relatively."""
    return math.sinh(x) / x


@extending.overload(sinh_ratio, jit_options=INLINED)
def _compiled_sinh_ratio(x: Any) -> Any:
    if x != types.float32:

        def of_float64(x: Any) -> Any:
            return math.sinh(x) / x

        return of_float64

    def of_float32(x: Any) -> Any:
        square = x * x
        series = square * np.float32(1 / 362880) + np.float32(1 / 5040)
        series = series * square + np.float32(1 / 120)
        series = series * square + np.float32(1 / 6)
        power = exp(x)
        far = _HALF * (power - _ONE / power) / x
        return series * square + _ONE if x < _ONE else far

    return of_float32


@intrinsic
def _power_in(_context: Any, number: Any) -> Any:
    """The ``n`` with ``number / 2^n`` between ``sqrt(1/2)`` and ``sqrt(2)``."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(32))
        above = builder.sub(bits, ir.Constant(ir.IntType(32), _ROOT_HALF_BITS))
        return builder.ashr(above, ir.Constant(ir.IntType(32), 23))

    return types.int32(types.float32), generate


@intrinsic
def _mantissa_of(_context: Any, number: Any, power: Any) -> Any:
    """``number / 2^power``."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(32))
        shifted = builder.shl(args[1], ir.Constant(ir.IntType(32), 23))
        return builder.bitcast(builder.sub(bits, shifted), ir.FloatType())

    return types.float32(types.float32, types.int32), generate
