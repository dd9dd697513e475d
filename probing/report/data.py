"""The report's data as plain values, so that writing it needs no model and no corpus."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from probing.geometry.layers import Layer
from probing.probes.metrics import Scores
from probing.probes.significance import Comparison

Role = Literal["encoder", "fresh", "baseline"]
"""A trained encoder; an encoder with fresh parameters; trees made without an encoder."""

Edge = tuple[int, int]
"""Indices of two words, the smaller one first."""


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

    @property
    def chosen_layers(self) -> list[tuple[int, int]]:
        """Return every seed's distance and depth layer; empty for a baseline without layers."""
        return self.chosen or [(self.distance_layer, self.depth_layer)] * bool(self.layers)


Scored = tuple[ModelResult, Scores]
"""A result and the scores by sentence that it is computed from."""


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
    """UUAS of probes on gold trees and on control trees, one number per seed."""

    model: str
    real: list[float]
    control: list[float]


@dataclass(frozen=True)
class Prediction:
    """The predictions of one model's probes for one sentence of n words."""

    edges: list[Edge]
    """The predicted undirected tree over the words that are not punctuation."""
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
    punctuation: list[bool]
    predictions: dict[str, Prediction]
    """Predictions by name of the model."""


@dataclass(frozen=True)
class Report:
    """The contents of ``report.html``."""

    signature: str
    """The conventions of the metrics in one line."""
    models: list[ModelResult]
    examples: list[Example]
    notes: list[str] = field(default_factory=list)
    """Remarks on the table, one sentence each."""
    about: list[tuple[str, list[str]]] = field(default_factory=list)
    """The page's sources and command: names, each with one or more lines."""
    comparisons: dict[str, list[Comparison]] = field(default_factory=dict)
    """By model: comparisons of the first encoder with it."""
    arcs: Arcs | None = None
    selectivities: list[Selectivity] = field(default_factory=list)
    spaces: dict[str, list[Layer]] = field(default_factory=dict)
    """Figures of the layers by trained encoder."""
