"""The Lorentz model and HyboNet's layers, one point at a time, in float64."""

import numpy as np


def inner(x, y):
    return -x[..., 0] * y[..., 0] + (x[..., 1:] * y[..., 1:]).sum(-1)


def lift(space, c):
    return np.concatenate([np.sqrt((space**2).sum(-1, keepdims=True) + 1 / c), space], axis=-1)


def poincare_distance(x, y, c):
    """Distance through the Poincare ball, from the space coordinates of two points."""
    x, y = x * c**0.5, y * c**0.5
    tx, ty = (np.sqrt(1 + (p**2).sum(-1)) for p in (x, y))
    delta = ((x / (1 + tx)[:, None] - y / (1 + ty)[:, None]) ** 2).sum(-1) * (1 + tx) * (1 + ty) / 2
    return np.log1p(delta + np.sqrt(delta * (delta + 2))) / c**0.5


def squared_distance(x, y, c):
    """|x - y|_L^2 as the product of the difference with itself."""
    return inner(x - y, x - y)


def centroid(points, weights, c):
    """HyboNet eq. 4, one weighted sum."""
    total = sum(w * p for w, p in zip(weights, points, strict=True))
    return total / (np.sqrt(c) * np.sqrt(abs(inner(total, total))))


def linear(x, weight, bias, log_scale, c, residual=None, mode="full", eps=0.0, weight_of_own=1.0):
    """HyboNet eq. 3 for one point ``x``, and the other forms of its residual."""
    z = weight @ x + bias
    least, scale = 1 / np.sqrt(c) + 0.1, np.exp(log_scale)
    argument, space = z[0], z[1:]
    if residual is not None and mode == "centroid":
        return centroid([residual, linear(x, weight, bias, log_scale, c)], [1.0, weight_of_own], c)
    if residual is not None:
        space = space + residual[1:]
        share = np.clip((residual[0] - least) / scale, 1e-4, 1 - 1e-4)
        argument += {
            "full": residual[0],
            "space": 0.0,
            "logit": np.log(share / (1 - share)),
            "sphere": np.inf,
        }[mode]
    z = np.concatenate([[argument], space])
    time = scale / (1 + np.exp(-z[0])) + least
    space = z[1:] * np.sqrt((time**2 - 1 / c) / ((z[1:] ** 2).sum() + eps))
    return lift(space, c)


def attention(queries, keys, values, tau, c, allowed=None):
    """HyboNet eq. 5 for one head: queries ``[T, d]``, keys and values ``[S, d]``."""
    out = []
    for i, q in enumerate(queries):
        seen = [j for j in range(len(keys)) if allowed is None or allowed[i, j]]
        scores = np.array([-squared_distance(q, keys[j], c) / tau for j in seen])
        weights = np.exp(scores - scores.max())
        out.append(centroid([values[j] for j in seen], weights / weights.sum(), c))
    return np.array(out)
