"""The report's data as plain values, so that writing it needs no model and no corpus."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from probing.geometry.layers import Layer
from probing.probes.significance import Comparison

Role = Literal["encoder", "fresh", "baseline"]
"""A trained encoder; an encoder with fresh parameters; trees made without an encoder."""

Edge = tuple[int, int]


@dataclass(frozen=True)
class ModelResult:
    """The figures of one encoder and probe, or of a baseline.

    Metrics are between 0 and 1 (correlations from -1) under the keys of
    ``probing.probes.metrics.METRICS``; any may be NaN or absent. With several seeds they are means.
    """

    name: str
    architecture: str
    space: str
    probe: str
    layers: list[dict[str, float]]
    """Metrics on the development set, one entry per layer; the embeddings are layer 0."""
    distance_layer: int
    """The first seed's best layer on the development set, for UUAS and Dspr."""
    depth_layer: int
    """The same for Root and Nspr."""
    test: dict[str, float]
    """Metrics of the chosen layers on the test set."""
    role: Role = "encoder"
    of: str = ""
    """For an encoder with fresh parameters, its trained twin."""
    spread: dict[str, float] = field(default_factory=dict)
    """Standard deviations of ``test`` over seeds; empty for one seed."""
    chosen: list[tuple[int, int]] = field(default_factory=list)
    """Distance and depth layer of every seed."""
    undefined: dict[str, int] = field(default_factory=dict)
    """Sentences left out of a correlation because it is undefined for at least one seed."""

    @property
    def baseline(self) -> bool:
        """Return whether this is not a trained encoder; it may have no layers then."""
        return self.role != "encoder"

    @property
    def chosen_layers(self) -> list[tuple[int, int]]:
        """Return every seed's distance and depth layer; empty for a baseline without layers."""
        return self.chosen or [(self.distance_layer, self.depth_layer)] * bool(self.layers)


@dataclass(frozen=True)
class Vocabulary:
    """Shares of the test set's words that an encoder does not know as whole words."""

    unknown: float
    """Share of words with a piece that the vocabulary lacks."""
    split: float
    """Share of words split into several pieces."""
    unseen: float | None
    """Share of tokens with a letter or digit that the training text lacks; None if no text was
    given."""


@dataclass(frozen=True)
class RankPoint:
    """The figures of one encoder with probes of one kind and size; means over seeds."""

    model: str
    probe: str
    dimensions: int
    """Dimensions of the probe's space; hyperbolic points have one more coordinate, their time."""
    test: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Arcs:
    """UUAS of the test set's gold edges by their length."""

    lengths: list[int]
    """Least length of each class, in words."""
    counts: list[int]
    """Number of edges in each class."""
    uuas: dict[str, list[float]]
    """UUAS of each class by model; NaN for a class without edges."""


@dataclass(frozen=True)
class Selectivity:
    """UUAS of probes of one size on gold trees and on control trees, one number per seed."""

    model: str
    dimensions: int
    """Dimensions of the probe's space, as in :class:`RankPoint`."""
    real: list[float]
    control: list[float]


@dataclass(frozen=True)
class Prediction:
    """What the probes of one model predict for one sentence of n words."""

    edges: list[Edge]
    """The predicted undirected tree over the words that are not punctuation."""
    depths: list[float]
    """Predicted depths, one per word."""
    root: int
    """The shallowest word that is not punctuation; negative if there is none."""
    distance_points: Tensor | None
    """The distance probe's points ``[n, D]`` in the Lorentz model of curvature -1, time first; None
    for a Euclidean probe."""


@dataclass(frozen=True)
class Example:
    """A sentence, its gold tree and what each model predicts; lists have one entry per word."""

    words: list[str]
    gold_edges: list[Edge]
    gold_root: int
    gold_depths: list[int]
    punctuation: list[bool]
    predictions: dict[str, Prediction]
    """Predictions by name of the model."""


@dataclass(frozen=True)
class Report:
    """The contents of ``report.html``."""

    title: str
    signature: str
    """The conventions of the metrics in one line."""
    models: list[ModelResult]
    examples: list[Example]
    radii: dict[str, list[tuple[int, float]]]
    """By name of the model, for words of the test set: gold depth and geodesic distance of the
    depth probe's point from the origin; empty for Euclidean probes."""
    table: str
    """The table in Markdown."""
    notes: list[str] = field(default_factory=list)
    """Remarks on the table, one sentence each."""
    about: list[tuple[str, list[str]]] = field(default_factory=list)
    """What the page was made from and how: names, each with one or more lines."""
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    """By model: comparisons of the first encoder with it."""
    ranks: list[RankPoint] = field(default_factory=list)
    arcs: Arcs | None = None
    selectivities: list[Selectivity] = field(default_factory=list)
    vocabularies: dict[str, Vocabulary] = field(default_factory=dict)
    """Vocabulary shares by trained encoder."""
    spaces: dict[str, list[Layer]] = field(default_factory=dict)
    """Figures of the layers by trained encoder."""

    @property
    def rank_models(self) -> list[str]:
        """Return the encoders that have rank curves."""
        return list(dict.fromkeys(point.model for point in self.ranks))
