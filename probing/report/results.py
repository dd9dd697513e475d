"""Figures of models as a table and a line of conventions; no figure is typed by hand."""

import math
from collections.abc import Sequence

from hyptrans import __version__
from hyptrans.geometry.space import Space
from hyptrans.support import provenance
from probing.probes.evaluation import SELECTED_BY
from probing.probes.metrics import LONGEST, SHORTEST, Punctuation
from probing.probes.training import Settings
from probing.report.data import METRICS, ModelResult

_HEADER = ("model", "UUAS", "Dspr.", "Root%", "Nspr.", "layers")


def signature(settings: Settings, punct: Punctuation) -> str:
    """What the figures depend on besides model and data, in one line in the way of sacreBLEU."""
    parts = {
        "probe": settings.probe,
        "rank": settings.rank,
        "steps": settings.steps,
        "batch": settings.batch_size,
        "lr": f"{settings.lr:g}",
        "wd": f"{settings.weight_decay:g}",
        "seed": settings.seed,
        "punct": punct,
        "uuas": "micro",
        "spearman": f"word-sentence-length{SHORTEST}to{LONGEST}",
        "layer": f"dev-{SELECTED_BY['distance']}-{SELECTED_BY['depth']}",
        "version": __version__,
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def describe(spaces: Sequence[Space]) -> str:
    """The space of an encoder's states in a few words."""
    kind = spaces[0].kind
    if kind == "euclidean":
        return kind
    curvatures = sorted({space.c for space in spaces})
    if len(curvatures) == 1:
        return f"{kind}, c = {curvatures[0]:g}"
    return f"{kind}, c = {curvatures[0]:.2g} to {curvatures[-1]:.2g}"


def table(models: Sequence[ModelResult]) -> str:
    """The paper's table in Markdown: figures on the test set and the layers they are of."""
    lines = [_HEADER, ("---", *["---:"] * (len(_HEADER) - 1))]
    for model in models:
        layers = f"{model.distance_layer} / {model.depth_layer}" if model.layers else ""
        figures = [_figure(name, model.test.get(name, math.nan)) for name in METRICS]
        lines.append((model.name, *figures, layers))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(name: str, value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{100 * value:.1f}" if name == "root" else f"{value:.3f}"


def markdown(models: Sequence[ModelResult], line: str, notes: Sequence[str] = ()) -> str:
    """The table, what its columns are, and the signature."""
    return "\n\n".join(
        [
            table(models),
            "Test set; layers: of UUAS and Dspr. / of Root% and Nspr., 0 = embeddings, each the "
            "best on the development set.",
            *notes,
            f"Signature: `{line}`",
            "",
        ]
    )


def versions() -> dict[str, str]:
    """Of the packages that figures depend on."""
    return provenance.versions("torch", "fairseq", "numpy", "scipy")
