"""How a model uses its space: the figures of every layer, and the sentence that sums them up."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from probing.geometry import measures
from probing.geometry.measures import Estimate
from probing.text.trees import Sentence

STRESS_POINTS, DELTA_POINTS = 150, 48
"""Points of a sample, for all pairs and for all quadruples."""
STRESS_SAMPLES, DELTA_SAMPLES = 3, 10
FLAT, CURVED = 0.01, 0.05
"""Stresses of the best flat embedding: below the first a layer is flat, from the second on curved.
Kruskal (1964) calls a fit "good" up to the second."""

HEADER = (
    "layer",
    "space",
    "radius",
    "spread",
    "with frequency",
    "with position",
    "with depth",
    "flat stress",
    "tangents' stress",
    "Gromov's delta",
)


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
    """Of the radius with the log frequency of the token in the text or trees of training."""
    with_position: float
    """Of the radius with the number of tokens before."""
    with_depth: float
    """Of the radius of a word with its depth in the gold tree; NaN without trees."""
    flat_stress: Estimate
    """See :func:`probing.geometry.measures.flat_stress`."""
    tangent_stress: Estimate
    """See :func:`probing.geometry.measures.tangent_stress`."""
    delta: Estimate
    """See :func:`probing.geometry.measures.gromov_delta`."""


@dataclass(frozen=True)
class Tokens:
    """What is known of the tokens whose states are looked at; each is ``[N]``."""

    log_frequency: Tensor
    position: Tensor


def measure(
    points: Tensor,
    tokens: Tokens,
    where: Space,
    *,
    side: str,
    number: int,
    words: tuple[Tensor, Tensor] | None = None,
    seed: int = 1,
) -> Layer:
    """The figures of one layer.

    Shapes: points ``[N, D]``; ``words``: points ``[W, D]`` of words and their depths ``[W]``.
    """
    tangents = measures.vectors(points, where)
    radii = tangents.norm(dim=-1)
    with_depth = math.nan
    if words is not None:
        word_radii = measures.vectors(words[0], where).norm(dim=-1)
        with_depth = measures.rank_correlation(word_radii, words[1])

    def stress(function: Callable[[Tensor, Space], float]) -> Estimate:
        return measures.over_samples(
            lambda some: function(some, where),
            tangents,
            size=STRESS_POINTS,
            samples=STRESS_SAMPLES,
            seed=seed,
        )

    return Layer(
        side=side,
        number=number,
        space=where,
        radius=float(radii.mean()),
        spread=float(radii.std()) if len(radii) > 1 else 0.0,
        with_frequency=measures.rank_correlation(radii, tokens.log_frequency),
        with_position=measures.rank_correlation(radii, tokens.position),
        with_depth=with_depth,
        flat_stress=stress(measures.flat_stress),
        tangent_stress=stress(measures.tangent_stress),
        delta=measures.over_samples(
            lambda some: measures.gromov_delta(measures.distances(some, where)),
            tangents,
            size=DELTA_POINTS,
            samples=DELTA_SAMPLES,
            seed=seed,
        ),
    )


def verdict(layers: Sequence[Layer]) -> str:
    """One sentence in plain words: does one side of a model use the curvature of its space?

    It goes by the layers behind the embeddings.
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
    fit = f"the best flat embedding in as many dimensions misses distances by {size}"
    used = sum(stress >= CURVED for stress in stresses)
    if used:
        where = f"in {used} of {len(behind)} layers"
        return f"{side} uses the curvature {where}: {fit}, and {100 * CURVED:g} % count as use."
    extent = "does not use" if stresses[-1] < FLAT else "hardly uses"
    return f"{side} {extent} the curvature: {fit}."


@dataclass(frozen=True)
class SpaceUse:
    """The figures of every layer of an encoder, and the sentence that sums them up."""

    layers: list[Layer]
    verdict: str


@dataclass(frozen=True)
class Words:
    """Words of one token each, and what is known of them."""

    states: Tensor
    """``[layers, W, D]``."""
    words: list[str]
    positions: Tensor
    """``[W]``, words before in the sentence."""
    depths: Tensor
    """``[W]``, in the gold tree."""

    def __len__(self) -> int:
        return len(self.words)


def word_counts(sentences: Sequence[Sentence]) -> Counter[str]:
    """How often each word stands in some trees, in lower case."""
    return Counter(word.lower() for sentence in sentences for word in sentence.words)


def space_use(
    words: Words, spaces: Sequence[Space], counts: Counter[str], *, seed: int
) -> SpaceUse:
    """The figures of an encoder.

    Args:
        words: one at least.
        spaces: of the layers.
        counts: how often words stand in a text, for their frequency.
        seed: of samples.
    """
    often = [counts[word.lower()] for word in words.words]
    tokens = Tokens(torch.tensor(often, dtype=torch.float64).log1p(), words.positions)
    layers = [
        measure(
            one, tokens, space, side="encoder", number=number, words=(one, words.depths), seed=seed
        )
        for number, (one, space) in enumerate(zip(words.states, spaces, strict=True))
    ]
    return SpaceUse(layers, verdict(layers))


def cells(layer: Layer) -> list[str]:
    """What stands below :data:`HEADER`; nothing for a number that there is not."""
    space = layer.space
    curvature = "" if space.kind == "euclidean" else f", c = {space.c:.3g}"
    return [
        f"{layer.side} {layer.number}",
        f"{space.kind}{curvature}",
        f"{layer.radius:.3f}",
        f"{layer.spread:.4f}",
        _number(layer.with_frequency),
        _number(layer.with_position),
        _number(layer.with_depth),
        _estimate(layer.flat_stress, percent=True),
        _estimate(layer.tangent_stress, percent=True),
        _estimate(layer.delta),
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _estimate(found: Estimate, *, percent: bool = False) -> str:
    if math.isnan(found.mean):
        return ""
    scale, digits, unit = (100, 1, " %") if percent else (1, 3, "")
    error = "" if math.isnan(found.error) else f" ± {scale * found.error:.{digits}f}"
    return f"{scale * found.mean:.{digits}f}{error}{unit}"
