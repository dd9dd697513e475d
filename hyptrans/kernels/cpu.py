"""Functions for kernels on the CPU: reading a job, and exponentials that become vector code.

In float32 exponentials and logarithms are series and quotients, with a choice between two formulas:
a loop that calls the C library stays scalar. In float64 they call the C library. Gradients of
kernels are written by hand.

A loop over a row either stores numbers or sums them. The compiler would make two versions of a loop
that does both, and choose one by where the matrices lie: the digits of a sum would change with it.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, extending, njit, types

inlined: Callable[[Any], Any] = njit(inline="always")
intrinsic: Any = extending.intrinsic
"""Any, as its type in numba ignores that the compiler passes the first argument."""

INLINED: Any = {"forceinline": True}
"""A loop that still calls a function stays scalar; LLVM by itself does not inline all calls."""

_LEAST, _MOST = np.float32(-126), np.float32(127)
"""Least and largest exponent of 2 of normal float32 numbers."""
_PER_LOG2, _LOG2 = np.float32(1 / math.log(2)), np.float32(math.log(2))
_TAYLOR = tuple(np.float32(1 / math.factorial(i)) for i in range(7))
_ARTANH = tuple(np.float32(1 / (2 * i + 1)) for i in range(6))
"""Coefficients of ``artanh(z) / z`` in powers of ``z^2``."""
_FRACTION_BITS, _ZERO_EXPONENT = np.int32(23), np.int32(127)
_ROOT_HALF_BITS = np.int32(0x3F3504F3)
"""The bits of ``sqrt(1/2)`` as a float32."""
_LARGEST = np.float32(3e38)
_ONE, _TWO = np.float32(1), np.float32(2)


@inlined
def read(pointer: Any) -> Any:
    """Return the job at an address (:func:`hyptrans.kernels.backend.run`)."""
    return carray(pointer, 1)[0]


@inlined
def matrix(job: Any, i: int) -> Any:
    """Return a job's matrix as an array ``[rows, columns]``."""
    address, rows, columns = job.matrices[i, 0], job.matrices[i, 1], job.matrices[i, 2]
    return carray(_pointer(address, job.scalars[0]), (rows, columns))


@intrinsic
def _pointer(_context: Any, address: Any, number: Any) -> Any:
    """Turn an address into a pointer to numbers of the type of ``number``, which numba cannot."""
    pointer = types.CPointer(number)

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(pointer))

    return pointer(address, number), generate


def _in_float32(of_float64: Callable[[float], float]) -> Callable[[Any], Any]:
    """Make kernels call the decorated function instead of ``of_float64`` for a float32."""

    def noted(of_float32: Any) -> Any:
        @extending.overload(of_float64, jit_options=INLINED)
        def _chosen(x: float) -> Any:
            return of_float32 if x == types.float32 else of_float64

        return of_float32

    return noted


def exp(x: float) -> float:
    """Return ``exp(x)``; float32: relative error ``1e-7 (3 + |x|)``, clamped to 2^-126 to 2^127.

    This error does not matter to a sigmoid, which is flat where ``|x|`` is large. NaN stays NaN.
    """
    return math.exp(x)


@_in_float32(exp)
def _exp(x: float) -> float:
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
    bits = np.int32((np.int32(whole) + _ZERO_EXPONENT) << _FRACTION_BITS)
    return series * bits.view(np.float32)


def log1p(x: float) -> float:
    """Return ``log(1 + x)`` for ``x > -1``; float32: relative error 3e-7. NaN stays NaN."""
    return math.log1p(x)


@_in_float32(log1p)
def _log1p(x: float) -> float:
    # 1 + x = 2^power (1 + rest) with 1 + rest near 1; if the power is 0, x has more digits
    bits = np.float32(x + _ONE).view(np.int32)
    power = np.int32(np.int32(bits - _ROOT_HALF_BITS) >> _FRACTION_BITS)
    mantissa = np.int32(bits - np.int32(power << _FRACTION_BITS)).view(np.float32)
    rest = x if power == 0 else mantissa - _ONE
    z = rest / (rest + _TWO)
    square = z * z
    series = _ARTANH[5]
    series = series * square + _ARTANH[4]
    series = series * square + _ARTANH[3]
    series = series * square + _ARTANH[2]
    series = series * square + _ARTANH[1]
    series = series * square + _ARTANH[0]
    found = _TWO * z * series + np.float32(power) * _LOG2
    return found if x < _LARGEST else x


def tanh_ratio(x: float) -> float:
    """Return ``tanh(x) / x`` for ``x > 0``; float32: relative error at most 4e-7."""
    return math.tanh(x) / x


@_in_float32(tanh_ratio)
def _tanh_ratio(x: float) -> float:
    square = x * x
    # Lambert's continued fraction
    above = (square + np.float32(105)) * square + np.float32(945)
    below = (np.float32(15) * square + np.float32(420)) * square + np.float32(945)
    far = (_ONE - _TWO / (exp(_TWO * x) + _ONE)) / x
    return above / below if x < _ONE else far
