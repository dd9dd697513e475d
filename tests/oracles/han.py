"""Hyperbolic attention in Klein coordinates, as the HAN paper writes it, one query at a time."""

import numpy as np


def lorentz_factor(v):
    return 1 / np.sqrt(1 - (v**2).sum(-1))


def polar(numbers, max_radius):
    """Klein coordinates of a direction and, last, a radius, bounded smoothly."""
    direction, radius = numbers[..., :-1], numbers[..., -1:]
    length = np.sqrt((direction**2).sum(-1, keepdims=True))
    return np.tanh(max_radius * np.tanh(radius / max_radius)) * direction / length


def cartesian(numbers, max_radius):
    """Klein coordinates of the point above space coordinates, which end at a radius."""
    length = np.sqrt((numbers**2).sum(-1, keepdims=True))
    space = numbers * np.minimum(1, np.sinh(max_radius) / length)
    return space / np.sqrt(1 + (space**2).sum(-1, keepdims=True))


def distance(u, v):
    """Distance of two points in Klein coordinates."""
    return np.arccosh((1 - (u * v).sum(-1)) * lorentz_factor(u) * lorentz_factor(v))


def weights(scores, kind):
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-scores))
    shifted = np.exp(scores - scores.max())
    return shifted / shifted.sum()


def midpoint(a, v):
    """HAN eq. 3: weights ``[S]``, Klein coordinates ``[S, n]``."""
    g = lorentz_factor(v)
    return (a * g) @ v / (a * g).sum()


def attention(queries, keys, values, beta, c, kind, allowed=None):
    """HAN eq. 2 and 3 for one head: queries ``[T, n]``, keys and values ``[S, n]``, Klein."""
    out = []
    for i, q in enumerate(queries):
        seen = [j for j in range(len(keys)) if allowed is None or allowed[i, j]]
        a = weights(-beta * distance(q, keys[seen]) - c, kind)
        out.append(midpoint(a, values[seen]))
    return np.array(out)
