# ruff: noqa: T201, D103
"""Radii at which libraries of hyperbolic geometry are right: ``radii.py LIBRARY...``, a table.

Curvature is -1. Points are exact ones (mpmath, 60 digits), rounded to the library's numbers. Each
operation is held against mpmath at radii 1e-8 to 40; a cell is the stretch of radii around 1
whose relative error stays below 1 %.

* ``distance``: from the point at radius r on one axis to the point at r on another
* ``ray``: from r to 1.1 r on one axis
* ``exp``, ``log``: between the origin and r; ``exp`` is read off the coordinates in mpmath
* ``centroid``: of the two points of ``distance`` with equal weights
* ``transport``: the length of a unit vector after it goes from one of these points to the other
"""

import sys

from mpmath import acosh, asinh, atanh, cosh, mp, mpf, sinh, sqrt, tanh

mp.dps = 60
RADII = [
    "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", ".01", ".1", "1", "2", "3", "4", "5", "6",
    "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "18", "20", "22", "25", "30",
    "35", "40",
]  # fmt: skip
TOLERANCE = mpf("0.01")
OPERATIONS = ("distance", "ray", "exp", "log", "centroid", "transport")


class Hyperboloid:
    """Points (time, space); a tangent vector at the origin has time 0."""

    @staticmethod
    def point(axis: int, r) -> list:
        return [cosh(r), *(sinh(r) if k == axis else mpf(0) for k in range(2))]

    @staticmethod
    def tangent0(r) -> list:
        return [mpf(0), r, mpf(0)]

    @staticmethod
    def across(r) -> list:
        return [mpf(0), mpf(0), mpf(1)]

    @staticmethod
    def radius(point):
        return asinh(sqrt(sum(x * x for x in point[1:])))

    @staticmethod
    def length0(vector):
        return sqrt(sum(x * x for x in vector[1:]))

    @staticmethod
    def length(vector, r):
        time, *space = vector
        squared = sum(x * x for x in space) - time * time
        return sqrt(squared) if squared >= 0 else mpf("nan")


class Ball:
    """Points of the unit ball; lengths at a point are Euclidean ones times 2 / (1 - |x|^2)."""

    @staticmethod
    def point(axis: int, r) -> list:
        return [tanh(r / 2) if k == axis else mpf(0) for k in range(2)]

    @staticmethod
    def tangent0(r) -> list:
        return [r / 2, mpf(0)]

    @staticmethod
    def across(r) -> list:
        return [mpf(0), (1 - tanh(r / 2) ** 2) / 2]

    @staticmethod
    def radius(point):
        norm = sqrt(sum(x * x for x in point))
        return 2 * atanh(norm) if norm < 1 else mpf("inf")

    @staticmethod
    def length0(vector):
        return 2 * sqrt(sum(x * x for x in vector))

    @staticmethod
    def length(vector, r):
        return sqrt(sum(x * x for x in vector)) * 2 / (1 - tanh(r / 2) ** 2)


def geoopt_lorentz(dtype):
    import torch
    from geoopt import Lorentz

    space = Lorentz(k=torch.tensor(1.0, dtype=getattr(torch, dtype)))
    return Hyperboloid, _tensors(dtype), {
        "distance": space.dist, "exp": space.expmap0, "log": space.logmap0,
        "transport": space.transp,
    }  # fmt: skip


def geoopt_ball(dtype):
    import torch
    from geoopt import PoincareBall

    space = PoincareBall(c=torch.tensor(1.0, dtype=getattr(torch, dtype)))
    return Ball, _tensors(dtype), {
        "distance": space.dist, "exp": space.expmap0, "log": space.logmap0,
        "transport": space.transp,
        "centroid": lambda x, y: space.weighted_midpoint(torch.stack([x, y])),
    }  # fmt: skip


def hypll_ball(dtype):
    import torch
    from hypll.manifolds.poincare_ball import Curvature, PoincareBall
    from hypll.tensors import ManifoldTensor, TangentTensor

    space = PoincareBall(
        Curvature(1.0, constraining_strategy=lambda value: value.to(getattr(torch, dtype)))
    )

    def point(x):
        return ManifoldTensor(x, manifold=space)

    def vector(v, at=None):
        return TangentTensor(v, manifold_points=at, manifold=space)

    return Ball, _tensors(dtype), {
        "distance": lambda x, y: space.dist(point(x), point(y)),
        "exp": lambda v: space.expmap(vector(v)).tensor,
        "log": lambda x: space.logmap(None, point(x)).tensor,
        "transport": lambda x, y, v: space.transp(vector(v, point(x)), point(y)).tensor,
        "centroid": lambda x, y: space.midpoint(point(torch.stack([x, y]))).tensor,
    }  # fmt: skip


def hyptorch_ball(dtype):
    import torch
    from hyptorch import PoincareBall
    from hyptorch.nn import HyperbolicMean

    space = PoincareBall(1.0, dtype=getattr(torch, dtype))
    mean = HyperbolicMean(space)
    return Ball, _tensors(dtype), {
        "distance": space.distance,
        "exp": space.exponential_map_at_origin,
        "log": space.logarithmic_map_at_origin,
        "centroid": lambda x, y: mean(torch.stack([x, y]))[0],
    }  # fmt: skip


def geomstats_hyperboloid(dtype):
    import numpy as np
    from geomstats.geometry.hyperboloid import Hyperboloid as Space

    metric = Space(dim=2).metric
    origin = np.array([1.0, 0.0, 0.0], dtype)
    return Hyperboloid, lambda values: np.array([float(x) for x in values], dtype), {
        "distance": metric.dist,
        "exp": lambda v: metric.exp(v, origin),
        "log": lambda x: metric.log(x, origin),
        "transport": lambda x, y, v: metric.parallel_transport(v, x, end_point=y),
    }  # fmt: skip


def geomstats_ball(dtype):
    import numpy as np
    from geomstats.geometry.poincare_ball import PoincareBall as Space

    metric = Space(dim=2).metric
    origin = np.zeros(2, dtype)
    return Ball, lambda values: np.array([float(x) for x in values], dtype), {
        "distance": metric.dist,
        "exp": lambda v: metric.exp(v, origin),
        "log": lambda x: metric.log(x, origin),
    }  # fmt: skip


def _hyperbolix(dtype, name):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", dtype == "float64")
    from hyperbolix import manifolds

    space = getattr(manifolds, name)(dtype=getattr(jnp, dtype))
    return lambda values: jnp.array([float(x) for x in values], dtype), {
        "distance": lambda x, y: space.dist(x, y, 1.0),
        "exp": lambda v: space.expmap_0(v, 1.0),
        "log": lambda x: space.logmap_0(x, 1.0),
        "transport": lambda x, y, v: space.ptransp(v, x, y, 1.0),
    }


def hyperbolix_hyperboloid(dtype):
    import jax.numpy as jnp

    array, operations = _hyperbolix(dtype, "Hyperboloid")
    from hyperbolix.nn_layers.hyperboloid_core import lorentz_midpoint

    operations["centroid"] = lambda x, y: lorentz_midpoint(
        jnp.stack([x, y]), jnp.array([[0.5, 0.5]], dtype), 1.0
    )[0]
    return Hyperboloid, array, operations


def hyperbolix_ball(dtype):
    import jax.numpy as jnp

    array, operations = _hyperbolix(dtype, "Poincare")
    from hyperbolix import manifolds
    from hyperbolix.nn_layers.poincare_batchnorm import poincare_midpoint

    operations["centroid"] = lambda x, y: poincare_midpoint(
        jnp.stack([x, y]), manifolds.Poincare(dtype=getattr(jnp, dtype)), 1.0
    )
    return Ball, array, operations


def hyptrans_lorentz(dtype):
    import torch

    from hyptrans.geometry import lorentz, riemannian

    return Hyperboloid, _tensors(dtype), {
        "distance": lorentz.distance,
        "exp": lambda v: lorentz.exp_origin(v[1:]),
        "log": lambda x: torch.nn.functional.pad(lorentz.log_origin(x), (1, 0)),
        "transport": riemannian.transport,
        "centroid": lambda x, y: lorentz.centroid(torch.stack([x, y])),
    }  # fmt: skip


def hyptrans_poincare(dtype):
    import torch

    from hyptrans.geometry import poincare

    weights = torch.ones(1, 2, dtype=getattr(torch, dtype))
    return Ball, _tensors(dtype), {
        "distance": poincare.distance,
        "exp": poincare.exp_origin,
        "log": poincare.log_origin,
        "centroid": lambda x, y: poincare.midpoint(torch.stack([x, y]), weights),
    }  # fmt: skip


LIBRARIES = {
    "hyptrans lorentz": hyptrans_lorentz,
    "hyptrans poincare": hyptrans_poincare,
    "geoopt Lorentz": geoopt_lorentz,
    "geoopt PoincareBall": geoopt_ball,
    "hypll PoincareBall": hypll_ball,
    "hyptorch PoincareBall": hyptorch_ball,
    "geomstats Hyperboloid": geomstats_hyperboloid,
    "geomstats PoincareBall": geomstats_ball,
    "hyperbolix Hyperboloid": hyperbolix_hyperboloid,
    "hyperbolix Poincare": hyperbolix_ball,
}


def _tensors(dtype):
    import torch

    return lambda values: torch.tensor([float(x) for x in values], dtype=getattr(torch, dtype))


def error(model, array, operations, what: str, text: str):
    """The relative error of one operation at one radius, and what the library returned."""
    r = mpf(text)

    def numbers(result) -> list:
        return [mpf(float(x)) for x in result.reshape(-1).tolist()]

    x, y, beyond = (
        array(model.point(0, r)),
        array(model.point(1, r)),
        array(model.point(0, r * mpf("1.1"))),
    )
    if what == "distance":
        got, expected = numbers(operations[what](x, y))[0], acosh(cosh(r) ** 2)
    elif what == "ray":
        got, expected = numbers(operations["distance"](x, beyond))[0], r / 10
    elif what == "exp":
        got, expected = model.radius(numbers(operations[what](array(model.tangent0(r))))), r
    elif what == "log":
        got, expected = model.length0(numbers(operations[what](x))), r
    elif what == "centroid":
        expected = atanh(tanh(r) / sqrt(2))
        got = model.radius(numbers(operations[what](x, y)))
    else:
        got, expected = (
            model.length(numbers(operations[what](x, y, array(model.across(r)))), r),
            mpf(1),
        )
    return abs(got - expected) / expected, got


def stretch(model, array, operations, what: str) -> str:
    """The radii around 1 at which the operation is right.

    As text: ``.01 to 8``, ``none``, or ``-`` if the library has no such operation.
    """
    if ("distance" if what == "ray" else what) not in operations:
        return "-"
    right = [error(model, array, operations, what, text)[0] < TOLERANCE for text in RADII]
    first = last = RADII.index("1")
    if not right[first]:
        return "none"
    while first > 0 and right[first - 1]:
        first -= 1
    while last + 1 < len(RADII) and right[last + 1]:
        last += 1
    return f"{RADII[first]} to {RADII[last]}"


if __name__ == "__main__":
    print("| library | dtype |", " | ".join(OPERATIONS), "|")
    for library in sys.argv[1:]:
        for dtype in ("float32", "float64"):
            made = LIBRARIES[library](dtype)
            print(
                f"| {library} | {dtype} |",
                " | ".join(stretch(*made, what) for what in OPERATIONS),
                "|",
                flush=True,
            )
