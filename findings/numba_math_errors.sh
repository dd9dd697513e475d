#!/usr/bin/env bash
# Guess: compiled code follows Python: where math.log(0), math.sqrt(-1) or math.cosh(1000) raise, so does numba.
# Seen: 1 / 0 raises ZeroDivisionError as in Python, for numpy's numbers too, and the functions of math are C's:
# -inf, NaN and inf without a word.
# Matters: a kernel checked in plain Python for domain errors loses its checks when it is compiled, and one
# written for numpy's 1 / 0 = inf stops.
# Versions: numba 0.68.1, numpy 2.4.6; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages numba==0.68.1 numpy==2.4.6
"$python" - <<'PY'
import math

import numba
import numpy
from finding import seen, versions

versions("numba", "numpy")


def result(function, *arguments) -> str:
    try:
        return str(float(function(*arguments)))
    except Exception as error:
        return type(error).__name__


def divide(x, y):
    return x / y


def log(x):
    return math.log(x)


def sqrt(x):
    return math.sqrt(x)


def cosh(x):
    return math.cosh(x)


for name, function, arguments, plain, compiled in (
    ("1 / 0", divide, (1.0, 0.0), "ZeroDivisionError", "ZeroDivisionError"),
    ("1 / 0 in numpy's numbers", divide, (numpy.float64(1), numpy.float64(0)), "inf", "ZeroDivisionError"),
    ("math.log(0)", log, (0.0,), "ValueError", "-inf"),
    ("math.sqrt(-1)", sqrt, (-1.0,), "ValueError", "nan"),
    ("math.cosh(1000)", cosh, (1000.0,), "OverflowError", "inf"),
):
    seen(name, (result(function, *arguments), result(numba.njit(function), *arguments)), (plain, compiled))
PY
