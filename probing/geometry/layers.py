"""Measure how a model uses its space: figures of every layer and a sentence that sums them up."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from hyptrans.geometry.space import Space, vectors
from hyptrans.support.progress import bar
from probing.geometry import measures
from probing.geometry.measures import Estimate

STRESS_POINTS, DELTA_POINTS = 150, 48
"""Points per sample for measures over all pairs and over all quadruples."""
STRESS_SAMPLES, DELTA_SAMPLES = 3, 10
FLAT, CURVED = 0.01, 0.05
"""Stress of the best flat embedding: a layer is flat below the first, curved from the second on.
Kruskal (1964) calls a fit "good" up to the second."""


@dataclass(frozen=True)
class Layer:
    """The states of a layer; correlations are Spearman's, NaN where the radius does not vary."""

    side: str
    """``encoder`` or ``decoder``."""
    number: int
    """0 for the embeddings with positions."""
    space: Space
    radius: float
    """Mean over tokens: geodesic distance from the origin, in units of curvature -1."""
    spread: float
    """Standard deviation of the radius."""
    with_frequency: float
    """Correlation of the radius with the token's frequency in the training text or trees."""
    with_position: float
    """Correlation of the radius with the number of preceding tokens."""
    with_depth: float
    """Correlation of a word's radius with its depth in the gold tree; NaN without trees."""
    # these are of functions in measures: flat_stress, tangent_stress, gromov_delta
    flat_stress: Estimate
    tangent_stress: Estimate
    delta: Estimate


@dataclass(frozen=True)
class Cloud:
    """States of some tokens or words, with their frequencies, positions and depths."""

    side: str
    """``encoder`` or ``decoder``."""
    states: Tensor
    """``[layers, N, D]``."""
    spaces: Sequence[Space]
    """One per layer."""
    frequency: Tensor
    """``[N]``, how often each occurs in a text."""
    position: Tensor
    """``[N]``, number of preceding tokens or words in the sentence."""
    depth: Tensor | None = None
    """``[N]``, depth in the gold tree."""


def measure(cloud: Cloud, *, seed: int = 1) -> list[Layer]:
    """Compute the figures of every layer; ``seed`` draws the samples."""
    layers = zip(cloud.states, cloud.spaces, strict=True)
    numbered = bar(enumerate(layers), f"measure {cloud.side}", len(cloud.spaces), " layers")
    return [_measured(cloud, number, *layer, seed) for number, layer in numbered]


def _measured(cloud: Cloud, number: int, points: Tensor, where: Space, seed: int) -> Layer:
    # their lengths are radii at curvature -1
    tangents = vectors(points.double(), where)
    radii = tangents.norm(dim=-1)

    def delta(some: Tensor, where: Space) -> float:
        return measures.gromov_delta(measures.distances(some, where))

    def goes_with(values: Tensor | None) -> float:
        return math.nan if values is None else measures.rank_correlation(radii, values)

    def estimate(function: Callable[[Tensor, Space], float], size: int, samples: int) -> Estimate:
        return measures.over_samples(
            lambda some: function(some, where), tangents, size=size, samples=samples, seed=seed
        )

    return Layer(
        side=cloud.side,
        number=number,
        space=where,
        radius=float(radii.mean()),
        spread=float(radii.std()) if len(radii) > 1 else 0.0,
        with_frequency=goes_with(cloud.frequency),
        with_position=goes_with(cloud.position),
        with_depth=goes_with(cloud.depth),
        flat_stress=estimate(measures.flat_stress, STRESS_POINTS, STRESS_SAMPLES),
        tangent_stress=estimate(measures.tangent_stress, STRESS_POINTS, STRESS_SAMPLES),
        delta=estimate(delta, DELTA_POINTS, DELTA_SAMPLES),
    )


def verdict(layers: Sequence[Layer]) -> str:
    """Say in one sentence whether one side of a model uses the curvature of its space.

    Judges by the layers after the embeddings.
    """
    side = f"The {layers[0].side}"
    curved = [layer for layer in layers if layer.space.kind != "euclidean"]
    if not curved:
        return f"{side} has no curvature to use: its states are flat vectors, a control."
    behind = [layer for layer in curved if layer.number] or curved
    stresses = [layer.flat_stress.mean for layer in behind]
    stresses = sorted(stress for stress in stresses if not math.isnan(stress))
    if not stresses:
        return f"{side} does not show whether it uses the curvature: all states of a layer agree."
    least, most = (f"{100 * stress:.1f}" for stress in (stresses[0], stresses[-1]))
    size = f"{most} %" if least == most else f"{least} to {most} %"
    fit = f"the best flat embedding of the same dimension misses distances by {size}"
    used = sum(stress >= CURVED for stress in stresses)
    if used:
        use = f"uses the curvature in {used} of {len(behind)} layers"
        return f"{side} {use}: {fit}; at least {100 * CURVED:g} % counts as use."
    extent = "does not use" if stresses[-1] < FLAT else "hardly uses"
    return f"{side} {extent} the curvature: {fit}."


def _space(space: Space) -> str:
    return space.kind if space.kind == "euclidean" else f"{space.kind}, c = {space.c:.3g}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _estimate(found: Estimate, *, percent: bool = False) -> str:
    if math.isnan(found.mean):
        return ""
    scale, digits, unit = (100, 1, " %") if percent else (1, 3, "")
    error = "" if math.isnan(found.error) else f" ± {scale * found.error:.{digits}f}"
    return f"{scale * found.mean:.{digits}f}{error}{unit}"


COLUMNS: dict[str, Callable[[Layer], str]] = {
    "layer": lambda layer: f"{layer.side} {layer.number}",
    "space": lambda layer: _space(layer.space),
    "radius": lambda layer: f"{layer.radius:.3f}",
    "spread": lambda layer: f"{layer.spread:.4f}",
    "with frequency": lambda layer: _number(layer.with_frequency),
    "with position": lambda layer: _number(layer.with_position),
    "with depth": lambda layer: _number(layer.with_depth),
    "flat stress": lambda layer: _estimate(layer.flat_stress, percent=True),
    "tangents' stress": lambda layer: _estimate(layer.tangent_stress, percent=True),
    "Gromov's delta": lambda layer: _estimate(layer.delta),
}
"""Columns of a table of layers: heads, and what is below; empty where a number is undefined."""


def cells(layer: Layer) -> list[str]:
    """Return a layer's cells below :data:`COLUMNS`."""
    return [cell(layer) for cell in COLUMNS.values()]
