"""What the report shows: plain values, so that it can be written without a model or a corpus."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from probing.geometry.layers import Layer
from probing.probes.significance import Comparison

Role = Literal["encoder", "fresh", "baseline"]
"""A trained encoder; one of fresh parameters; trees drawn without an encoder."""

Edge = tuple[int, int]


@dataclass(frozen=True)
class ModelResult:
    """The figures of one encoder and probe, or of a baseline.

    Metrics are between 0 and 1 (correlations from -1) under the keys of
    ``probing.probes.metrics.METRICS``; any may be NaN or absent. Of probes of several seeds they
    are means.
    """

    name: str
    architecture: str
    space: str
    probe: str
    layers: list[dict[str, float]]
    """On the development set, one entry per layer; the embeddings are layer 0."""
    distance_layer: int
    """The layer that is best on the development set, for UUAS and Dspr; of the first seed."""
    depth_layer: int
    """The same for Root and Nspr."""
    test: dict[str, float]
    """On the test set, of the layers chosen."""
    role: Role = "encoder"
    of: str = ""
    """The trained encoder that one of fresh parameters stands beside."""
    spread: dict[str, float] = field(default_factory=dict)
    """Standard deviations of ``test`` over seeds; empty where there was one."""
    chosen: list[tuple[int, int]] = field(default_factory=list)
    """The two layers of every seed."""
    undefined: dict[str, int] = field(default_factory=dict)
    """Sentences left out of a correlation, which one seed at least does not have."""

    @property
    def baseline(self) -> bool:
        """Not a trained encoder; it may have no layers."""
        return self.role != "encoder"

    @property
    def chosen_layers(self) -> list[tuple[int, int]]:
        """For distances and for depths, of every seed; none of a baseline without layers."""
        return self.chosen or [(self.distance_layer, self.depth_layer)] * bool(self.layers)


@dataclass(frozen=True)
class Vocabulary:
    """Shares of the test set's words that an encoder does not know as such."""

    unknown: float
    """With a piece that its vocabulary lacks."""
    split: float
    """Of several pieces."""
    unseen: float | None
    """Of tokens with a letter or digit, those that its training text does not have; None where that
    was not given."""


@dataclass(frozen=True)
class RankPoint:
    """The figures of one encoder with probes of one kind and size, means over seeds."""

    model: str
    probe: str
    dimensions: int
    """Of the probe's space; hyperbolic points have one more coordinate, their time."""
    test: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Arcs:
    """UUAS of the test set's gold edges by their length."""

    lengths: list[int]
    """The least of each class, in words."""
    counts: list[int]
    """Edges of each class."""
    uuas: dict[str, list[float]]
    """By model; NaN where there is no edge."""


@dataclass(frozen=True)
class Selectivity:
    """UUAS on gold trees and on control trees of probes of one size, a number for each seed."""

    model: str
    dimensions: int
    """Of the probe's space, as in :class:`RankPoint`."""
    real: list[float]
    control: list[float]


@dataclass(frozen=True)
class Prediction:
    """What the probes of one model say of one sentence of n words."""

    edges: list[Edge]
    """The predicted undirected tree over the words that are no punctuation."""
    depths: list[float]
    """One per word."""
    root: int
    """The shallowest word that is no punctuation; negative where there is none."""
    distance_points: Tensor | None
    """``[n, D]``, points of the Lorentz model of curvature -1 with the time first, as the distance
    probe made them; None for a Euclidean probe."""


@dataclass(frozen=True)
class Example:
    """A sentence, its gold tree and what each model predicts; lists have one entry per word."""

    words: list[str]
    gold_edges: list[Edge]
    gold_root: int
    gold_depths: list[int]
    punctuation: list[bool]
    predictions: dict[str, Prediction]
    """By the name of the model."""


@dataclass(frozen=True)
class Report:
    """All of ``report.html``."""

    title: str
    signature: str
    """The conventions of the metrics in one line."""
    models: list[ModelResult]
    examples: list[Example]
    radii: dict[str, list[tuple[int, float]]]
    """By the name of the model: gold depth of a word and geodesic distance of the depth probe's
    point from the origin, for words of the test set; empty for Euclidean probes."""
    table: str
    """The table in Markdown."""
    notes: list[str] = field(default_factory=list)
    """What else is to be known of the table, a sentence each."""
    about: list[tuple[str, list[str]]] = field(default_factory=list)
    """What the page was made from, and how: a name and one or more lines."""
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    """By model: the first encoder against it."""
    ranks: list[RankPoint] = field(default_factory=list)
    arcs: Arcs | None = None
    selectivities: list[Selectivity] = field(default_factory=list)
    vocabularies: dict[str, Vocabulary] = field(default_factory=dict)
    """By trained encoder."""
    spaces: dict[str, list[Layer]] = field(default_factory=dict)
    """By trained encoder: the figures of its layers."""

    @property
    def rank_models(self) -> list[str]:
        """The encoders that have rank curves."""
        return list(dict.fromkeys(point.model for point in self.ranks))
