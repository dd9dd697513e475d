"""Does a word's radius tell how deep its meaning lies in WordNet, or only how often it stands?"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata  # type: ignore[import-untyped]
from torch import Tensor

from hyptrans.geometry.space import Space, vectors
from hyptrans.inference.describe import embedding_radii, embedding_space
from hyptrans.support.progress import bar
from probing.geometry.measures import EQUAL
from probing.states.encoder import SegmentedEncoder, device_of
from probing.states.extract import Aligned, batches, states_of_words

RESAMPLES = 1000
"""Draws of words, with repetition, for an interval."""
INTERVAL = (0.025, 0.975)
WORD = re.compile(r"[\w'\u2019-]+")
"""A word of a text; of *dog's* and *well-known* no part is one."""
HEADER = (
    "layer",
    "radius",
    "mean",
    "spread",
    "with depth",
    "with frequency",
    "depth, given frequency",
)
LEGEND = (
    "Radius: distance from the origin in units of curvature -1, or norm; spread over words. "
    "Spearman's correlations, in brackets 95 % of resamples of words. Depth: edges from a noun's "
    "first sense to the root of WordNet."
)
ALL_EQUAL = "all radii are equal"

_SPACE = "\u2581"


@dataclass(frozen=True)
class Correlation:
    """A rank correlation, and the 95 % interval of its bootstrap over words."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Layer:
    """Radii of words in one layer, and what they go with; None where all radii are equal."""

    name: str
    """``embedding``, the row of the table, or the number of a layer, 0 with positions."""
    space: Space
    """Radii are distances from the origin in units of curvature -1; in a flat space, norms."""
    radius: float
    """Mean over words."""
    spread: float
    """Standard deviation over words."""
    with_depth: Correlation | None
    with_frequency: Correlation | None
    given_frequency: Correlation | None
    """With depth, the ranks of frequency held fixed."""


def one_token(encoder: SegmentedEncoder, words: Iterable[str]) -> dict[str, int]:
    """The tokens of those words that are one token at the start of a text."""
    known, symbols = frozenset(words), encoder.dictionary.symbols
    found = {}
    for token, symbol in enumerate(bar(symbols, "choose words", len(symbols), " tokens")):
        word = symbol.removeprefix(_SPACE)
        # the same letters inside or at the end of a word are another token
        if word in known and [own for own, _ in encoder.tokenize(word)[:-1]] == [token]:
            found[word] = token
    return found


def mean_radii(
    encoder: SegmentedEncoder, lines: Iterable[str], words: Mapping[str, int], batch_tokens: int
) -> tuple[Tensor, Tensor]:
    """The radius of each word in each layer, its mean over where it stands as a word of its own.

    Args:
        encoder: whose states; lines longer than it takes are left out.
        lines: of a text.
        words: with their tokens, from :func:`one_token`.
        batch_tokens: most tokens that the encoder takes at once.

    Returns:
        Radii ``[layers, W]``, NaN for a word that stands nowhere, and how often it stands ``[W]``.

    Raises:
        UserError: a state is not a finite number.
    """
    places = {token: place for place, token in enumerate(words.values())}
    found = [one for line in lines if (one := _occurrences(encoder, line, places)) is not None]
    totals = torch.zeros(len(encoder.spaces), len(words), dtype=torch.float64)
    counts = torch.zeros(len(words), dtype=torch.float64)
    order = list(batches(found, batch_tokens))
    for batch in bar(order, "encode", len(order), " batches"):
        states = states_of_words(encoder, [found[i] for i in batch])
        own = [places[token] for i in batch for token in found[i].tokens[found[i].pieces].tolist()]
        at = torch.tensor(own, dtype=torch.long)
        counts += torch.bincount(at, minlength=len(words))
        for total, points, space in zip(totals, states, encoder.spaces, strict=True):
            total.index_add_(0, at, vectors(points, space).norm(dim=-1))
    return totals / counts, counts


def _occurrences(encoder: SegmentedEncoder, line: str, places: Mapping[int, int]) -> Aligned | None:
    """A line whose words are those looked for, each a token; None without one, or too long."""
    found = encoder.tokenize(line)
    whole = {match.span() for match in WORD.finditer(line)}
    own = [
        i
        for i, (token, piece) in enumerate(found)
        # the space before a word belongs to its piece
        if token in places
        and (piece.end - len(line[piece.start : piece.end].lstrip()), piece.end) in whole
    ]
    if not own or len(found) > encoder.max_tokens:
        return None
    tokens = np.array([token for token, _ in found], np.int32)
    return Aligned(tokens, np.array(own), np.arange(len(own)), len(own), unknown=0, split=0)


def layers(
    encoder: SegmentedEncoder,
    tokens: Tensor,
    radii: Tensor,
    depths: Sequence[int],
    frequencies: Sequence[int],
    seed: int,
) -> list[Layer]:
    """The figures of the embeddings and of every layer.

    Args:
        encoder: whose embeddings.
        tokens: of the words, ``[W]``.
        radii: of the words in each layer, ``[layers, W]``.
        depths: of the words in WordNet.
        frequencies: of the words; only their order counts.
        seed: of the resamples, which are the same for all layers.
    """
    side = encoder.module
    rows = embedding_radii(side, tokens.to(device_of(side))).cpu()
    named = [("embedding", embedding_space(side), rows)]
    named += [(str(i), *one) for i, one in enumerate(zip(encoder.spaces, radii, strict=True))]
    # the words themselves, then the resamples
    drawn = np.random.default_rng(seed).integers(len(depths), size=(RESAMPLES, len(depths)))
    drawn = np.concatenate([np.arange(len(depths))[None], drawn])
    others = [centered_ranks(np.array(values)[drawn]) for values in (depths, frequencies)]
    return [
        _layer(name, space, own.numpy(), drawn, others)
        for name, space, own in bar(named, "resample", len(named), " layers")
    ]


def _layer(
    name: str, space: Space, radii: np.ndarray, drawn: np.ndarray, others: Sequence[np.ndarray]
) -> Layer:
    found: list[Correlation | None] = [None] * 3
    if np.ptp(radii) > EQUAL * radii.max():
        values = correlations(centered_ranks(radii[drawn]), *others)
        ends = np.quantile(values[:, 1:], INTERVAL, -1)
        found = [Correlation(*map(float, one)) for one in zip(values[:, 0], *ends, strict=True)]
    return Layer(name, space, float(radii.mean()), float(radii.std()), *found)


def centered_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks less their mean, those of equal values averaged: ``[..., W]`` -> ``[..., W]``."""
    ranks = rankdata(values, axis=-1)
    return ranks - ranks.mean(-1, keepdims=True)


def correlations(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Spearman's: radius with depth, with frequency, and with depth given frequency.

    Shapes: :func:`centered_ranks` of radii, depths and frequencies, ``[..., W]`` each -> ``[3,
    ...]``; NaN where one does not vary, or where frequency tells radius or depth exactly.
    Source: partial correlation of ranks, as Kendall (1942) has it of three variables.
    """

    def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))

    with np.errstate(invalid="ignore", divide="ignore"):
        xy, xz, yz = correlation(x, y), correlation(x, z), correlation(y, z)
        partial = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return np.stack([xy, xz, partial])


def cells(layer: Layer) -> list[str]:
    """What stands below :data:`HEADER`."""
    kind = "norm" if layer.space.kind == "euclidean" else "distance"
    found = (layer.with_depth, layer.with_frequency, layer.given_frequency)
    told = [f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" if one else "" for one in found]
    if not any(told):
        told[0] = ALL_EQUAL
    return [layer.name, kind, f"{layer.radius:.3f}", f"{layer.spread:.4f}", *told]
