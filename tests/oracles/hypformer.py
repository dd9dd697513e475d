"""Hypformer's blocks one point and one head at a time, in float64, from the paper's formulas."""

import numpy as np

from tests.oracles.lorentz import centroid, lift

EPSILON = 1e-6


def htc(x, weight, bias, c_in, c_out):
    """Eq. 9: the space part alone of the point that ``x`` is mapped to."""
    return np.sqrt(c_in / c_out) * (weight @ x + bias)


def layer_norm(space, weight, bias):
    """Without an epsilon, so that the scale of its input has no effect at all."""
    return (space - space.mean()) / space.std() * weight + bias


def focus(numbers, scale, power):
    """Eq. 19 as it is printed: the power first, its length afterwards."""
    u = (np.maximum(numbers, 0) + EPSILON) / (np.log1p(np.exp(scale)) + EPSILON)
    return np.linalg.norm(u) / np.linalg.norm(u**power) * u**power


def linear_attention(queries, keys, values, seen):
    """Eq. 16 for features ``[T, d]`` and values ``[S, e]``; ``seen(i, j)``: does ``i`` see ``j``.

    A query that sees nothing gives zeros.
    """
    out = np.zeros((len(queries), values.shape[1]))
    for i, q in enumerate(queries):
        weights = np.array([q @ k if seen(i, j) else 0.0 for j, k in enumerate(keys)])
        if weights.sum() > 0:
            out[i] = weights @ values / weights.sum()
    return out


def residual_norm(x, out, weight, bias, c_in, c_out):
    """The input moved to ``-c_out``, its centroid with the block's output, layer norm."""
    moved = lift(np.sqrt(c_in / c_out) * x[1:], c_out)
    middle = centroid([moved, lift(out, c_out)], [1.0, 1.0], c_out)
    return lift(layer_norm(middle[1:], weight, bias), c_out)
