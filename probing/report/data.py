"""What the report shows: plain values, so that it can be written without a model or a corpus."""

from dataclasses import dataclass

from torch import Tensor

METRICS = ("uuas", "dspr", "root", "nspr")
"""Keys of the metrics, in the order of the table; the first two are of the distance probe, the
others of the depth probe."""

Edge = tuple[int, int]


@dataclass(frozen=True)
class ModelResult:
    """The figures of one encoder and probe, or of a baseline.

    Metrics are between 0 and 1 under the keys of :data:`METRICS`; any may be NaN or absent.
    """

    name: str
    architecture: str
    space: str
    probe: str
    layers: list[dict[str, float]]
    """On the development set, one entry per layer; the embeddings are layer 0."""
    distance_layer: int
    """The layer that is best on the development set, for UUAS and Dspr."""
    depth_layer: int
    """The layer that is best on the development set, for Root and Nspr."""
    test: dict[str, float]
    """On the test set, of the layers chosen."""
    baseline: bool = False
    """Needs no trained encoder, as the linear chain; it may have no layers."""


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
    depth_points: Tensor | None
    """The same of the depth probe."""


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
