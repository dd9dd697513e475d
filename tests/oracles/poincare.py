"""The Poincare ball and the HVT's layers, one point at a time, in float64."""

import numpy as np


def mobius_add(x, y, c):
    """HVT eq. 3."""
    xy, x2, y2 = x @ y, x @ x, y @ y
    return ((1 + 2 * c * xy + c * y2) * x + (1 - c * x2) * y) / (1 + 2 * c * xy + c**2 * x2 * y2)


def exp_origin(u, c):
    norm = np.sqrt(c * u @ u)
    return u if norm == 0 else np.tanh(norm) * u / norm


def log_origin(x, c):
    norm = np.sqrt(c * x @ x)
    return x if norm == 0 else np.arctanh(norm) * x / norm


def distance(x, y, c):
    """The formula with arcosh, from the difference of the points."""
    gaps = (1 - c * x @ x) * (1 - c * y @ y)
    return np.arccosh(1 + 2 * c * (x - y) @ (x - y) / gaps) / np.sqrt(c)


def midpoint(points, weights, c):
    """Einstein midpoint: a mean in Klein coordinates, weighted by Lorentz factors."""
    klein = [2 * p / (1 + c * p @ p) for p in points]
    factors = [w / np.sqrt(1 - c * k @ k) for w, k in zip(weights, klein, strict=True)]
    mean = sum(f * k for f, k in zip(factors, klein, strict=True)) / sum(factors)
    return mean / (1 + np.sqrt(1 - c * mean @ mean))


def tangent_mean(points, weights, c):
    total = sum(w * log_origin(p, c) for w, p in zip(weights, points, strict=True))
    return exp_origin(total / sum(weights), c)


def linear(x, weight, bias, c):
    """HVT eq. 5 and 7; the bias is the exponential of a tangent."""
    mapped = weight @ x
    norm, mapped_norm = np.sqrt(c * x @ x), np.sqrt(c * mapped @ mapped)
    moved = np.tanh(mapped_norm / norm * np.arctanh(norm)) * mapped / mapped_norm
    return mobius_add(moved, exp_origin(bias, c), c)


def attention(queries, keys, values, alpha, c, aggregate, allowed=None):
    """HVT eq. 22 and 23 for one head: queries ``[T, D]``, keys and values ``[S, D]``."""
    out = []
    for i, q in enumerate(queries):
        seen = [j for j in range(len(keys)) if allowed is None or allowed[i, j]]
        scores = np.array([-(distance(q, keys[j], c) ** 2) for j in seen])
        weights = np.exp(scores / (alpha * np.sqrt(len(q))))
        out.append(aggregate([values[j] for j in seen], weights / weights.sum(), c))
    return np.array(out)


def layer_norm(u, gain, bias, epsilon):
    return (u - u.mean()) / np.sqrt(u.var() + epsilon) * gain + bias
