"""The exponential function in kernels, in a form that the compiler turns into vector code."""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from hyptrans.kernels.cpu.jobs import intrinsic

_LEAST, _MOST = np.float32(-126), np.float32(127)
"""Exponents of two of ordinary float32 numbers."""
_PER_LOG2, _LOG2 = np.float32(1 / math.log(2)), np.float32(math.log(2))
_TAYLOR = tuple(np.float32(1 / math.factorial(i)) for i in range(7))


def exp(x: float) -> float:
    """``exp(x)``; in float32 within ``1e-7 (3 + |x|)`` of it, relatively, and 2^-126 to 2^127.

    What is left of the rounding is nothing to a sigmoid or a softmax, which are flat where
    ``|x|`` is large. NaN stays NaN.
    """
    return math.exp(x)


@extending.overload(exp)
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
