"""Formulas of the three models at curvature -1 in as many digits as are wanted, point by point."""

import mpmath


def exactly(vector):
    """Floats as they are, with all their binary digits."""
    return [mpmath.mpf(float(one)) for one in vector]


def length(vector):
    return mpmath.sqrt(sum(one**2 for one in vector))


def lift(space):
    return [mpmath.sqrt(1 + sum(one**2 for one in space)), *space]


def inner(x, y):
    return sum(a * b for a, b in zip(x[1:], y[1:], strict=True)) - x[0] * y[0]


def dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def tangent_length(v):
    return mpmath.sqrt(abs(inner(v, v)))


def exp(x, v):
    """From a point and a tangent there."""
    size = tangent_length(v)
    ratio = mpmath.sinh(size) / size if size else 1
    return [mpmath.cosh(size) * a + ratio * b for a, b in zip(x, v, strict=True)]


def distance(x, y):
    """From the space coordinates of two points."""
    return mpmath.acosh(-inner(lift(x), lift(y)))


def exp_origin(u):
    size = length(u)
    return lift([mpmath.sinh(size) / size * one for one in u])


def log_origin(space):
    size = length(space)
    return [mpmath.asinh(size) / size * one for one in space]


def centroid(spaces, weights):
    total = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in zip(*map(lift, spaces), strict=True)]  # fmt: skip  # noqa: E501
    return [one / mpmath.sqrt(-inner(total, total)) for one in total]


def ball_distance(x, y):
    gaps = (1 - sum(one**2 for one in x)) * (1 - sum(one**2 for one in y))
    apart = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    return mpmath.acosh(1 + 2 * apart / gaps)


def to_lorentz(x):
    return lift([2 * one / (1 - sum(other**2 for other in x)) for one in x])


def polar(numbers, bound, epsilon):
    *vector, radius = numbers
    reach = mpmath.sinh(bound * mpmath.tanh(radius / bound)) / (length(vector) + epsilon)
    return lift([reach * one for one in vector])
