"""How a model uses its space: the figures of every layer, and the sentence that sums them up."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from probing.geometry import measures
from probing.geometry.measures import EQUAL, Estimate
from probing.text.trees import Sentence

SHARE_POINTS, DELTA_POINTS = 200, 48
"""Points of a sample; all pairs of the first and all quadruples of the second are looked at."""
SAMPLES = 10
USED_SHARE = 0.95
"""Where directions alone explain less of the distances, the radius counts."""
FLAT_RADIUS = 0.3
"""Distances between points up to so far out, in units of curvature -1, are Euclidean to 1.5 %:
sinh(0.3) / 0.3."""

HEADER = (
    "layer",
    "space",
    "radius",
    "spread",
    "with frequency",
    "with position",
    "with depth",
    "directions explain",
    "radii shuffled",
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
    direction_share: Estimate
    """See :func:`probing.geometry.measures.direction_share`."""
    shuffled_share: Estimate
    """See :func:`probing.geometry.measures.shuffled_share`."""
    delta: Estimate
    """See :func:`probing.geometry.measures.gromov_delta`."""

    @property
    def varies(self) -> bool:
        """Whether there is more than one radius."""
        return self.spread > EQUAL * self.radius

    @property
    def used(self) -> bool:
        """Whether the radius says something that the direction does not."""
        return self.varies and self.direction_share.mean < USED_SHARE


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

    def sampled(function: Callable[[Tensor], float], size: int) -> Estimate:
        return measures.over_samples(function, tangents, size=size, samples=SAMPLES, seed=seed)

    return Layer(
        side=side,
        number=number,
        space=where,
        radius=float(radii.mean()),
        spread=float(radii.std()) if len(radii) > 1 else 0.0,
        with_frequency=measures.rank_correlation(radii, tokens.log_frequency),
        with_position=measures.rank_correlation(radii, tokens.position),
        with_depth=with_depth,
        direction_share=sampled(lambda some: measures.direction_share(some, where), SHARE_POINTS),
        shuffled_share=sampled(lambda some: measures.shuffled_share(some, where), SHARE_POINTS),
        delta=sampled(
            lambda some: measures.gromov_delta(measures.distances(some, where)), DELTA_POINTS
        ),
    )


def verdict(layers: Sequence[Layer]) -> str:
    """One sentence in plain words: does this model use the curvature of its space?"""
    curved = [layer for layer in layers if layer.space.kind != "euclidean"]
    if not curved:
        return "This model has no curvature to use: its states are flat vectors, a control."
    behind = [layer for layer in curved if layer.number] or curved
    if all(math.isnan(layer.direction_share.mean) for layer in behind):
        return (
            "Whether this model uses the curvature cannot be told: no layer has three states that "
            "differ."
        )
    of_all = f"of {len(behind)} layers"
    used = sum(layer.used for layer in behind)
    equal = sum(not layer.varies for layer in behind)
    if max(layer.radius for layer in behind) < FLAT_RADIUS:
        return (
            "This model does not use the curvature: all states lie so near the origin that the "
            "space is flat there."
        )
    if not used:
        cause = (
            f"in {equal} {of_all} all states have the same radius, so they lie on a sphere"
            if 2 * equal > len(behind)
            else "radii differ, but the distances between states are those of their directions"
        )
        return f"This model does not use the curvature: {cause}."
    extent = "uses" if 2 * used >= len(behind) else "hardly uses"
    return (
        f"This model {extent} the curvature: in {used} {of_all} the radius tells states apart that "
        f"the direction does not ({equal} have one radius for all states)."
    )


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
        _estimate(layer.direction_share, percent=True),
        _estimate(layer.shuffled_share, percent=True),
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
