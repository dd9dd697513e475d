"""Turn results over seeds into tables and a signature of the conventions."""

import math
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from hyptrans import __version__
from hyptrans.geometry.space import Space
from hyptrans.support import provenance, tables
from hyptrans.support.tables import escaped
from probing.probes.evaluation import SELECTED_BY
from probing.probes.metrics import LONGEST, METRICS, SHORTEST, mean_scores
from probing.probes.significance import TOSSES, Comparison
from probing.report.data import Arcs, ModelResult, Report, Scored, Selectivity
from probing.settings import Punctuation, Settings

TITLES = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root", "nspr": "Nspr."}
_HEADER = ("model", *TITLES.values(), "layers")
NOTHING = "\N{EN DASH}"
"""Printed for a missing number."""
_SURE = 0.001
"""Smaller p-values are printed as ``p <`` this."""
_SELECTIVE = (
    "Selectivity: UUAS on gold trees minus UUAS on control trees, in which a random draw for each "
    "word type decides whether its words depend on the previous word, the next or the first (after "
    "Hewitt and Liang 2019). Each probe uses its best layer on the development set."
)
_COLUMNS = (
    "Test set. Layers: the best on the development set for UUAS and Dspr. / for Root and Nspr.; "
    "0 is the embeddings."
)
_DEVIATION = "±: standard deviation over probe seeds."


def over_seeds(several: Sequence[Scored]) -> Scored:
    """Combine an encoder's results with several seeds.

    Returns:
        The figures of the scores averaged by sentence, with their standard deviations over seeds,
        the layers' mean figures and the layers that each seed chose; and these scores.
    """
    results, scores = zip(*several, strict=True)
    mean = mean_scores(scores)
    layers = np.array([[list(layer.values()) for layer in one.layers] for one in results])
    tests = np.array([list(result.test.values()) for result in results])
    spread = tests.std(0, ddof=1).tolist() if len(results) > 1 else []
    combined = replace(
        results[0],
        layers=[dict(zip(METRICS, row, strict=True)) for row in layers.mean(0).tolist()],
        test=mean.metrics()[0],
        spread=dict(zip(METRICS, spread, strict=False)),
        chosen=[(result.distance_layer, result.depth_layer) for result in results],
    )
    return combined, mean


def signature(settings: Settings, punct: Punctuation, seeds: int = 1) -> str:
    """Return, in one line like sacreBLEU's, what figures depend on besides model and data."""
    last = f"to{settings.seed + seeds - 1}" if seeds > 1 else ""
    parts = {
        "probe": settings.probe,
        "rank": settings.rank,
        "steps": settings.steps,
        "batch": settings.batch_size,
        "lr": f"{settings.lr:g}",
        "wd": f"{settings.weight_decay:g}",
        "look": settings.evaluate_every,
        "patience": settings.patience,
        "seed": f"{settings.seed}{last}",
        "punct": punct,
        "uuas": "micro",
        "spearman": f"word-sentence-length{SHORTEST}to{LONGEST}",
        "layer": f"dev-{SELECTED_BY['distance']}-{SELECTED_BY['depth']}",
        "version": __version__,
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())


def describe(spaces: Sequence[Space]) -> str:
    """Describe the space of an encoder's states in a few words."""
    kind, curvatures = spaces[0].kind, [space.c for space in spaces]
    if kind == "euclidean":
        return kind
    least, most = min(curvatures), max(curvatures)
    return f"{kind}, c = {least:g}" if least == most else f"{kind}, c = {least:.2g} to {most:.2g}"


def table(models: Sequence[ModelResult]) -> str:
    """Return the paper's table in Markdown: figures on the test set and the chosen layers."""
    rows = []
    for model in models:
        figures = [figure(model.test.get(one), model.spread.get(one)) for one in METRICS]
        rows.append((escaped(model.name), *figures, layers_of(model)))
    return tables.markdown(_HEADER, rows)


def _selectivity(one: Selectivity) -> str:
    """Format both figures and their difference, with its deviation if there are several seeds."""
    differences = [real - control for real, control in zip(one.real, one.control, strict=True)]
    spread = f" ± {statistics.stdev(differences):.3f}" if len(differences) > 1 else ""
    real, control, mean = map(statistics.fmean, (one.real, one.control, differences))
    return f"{real:.3f} - {control:.3f} = {mean:.3f}".replace("-", "\N{MINUS SIGN}") + spread


def figure(value: float | None, deviation: float | None = None) -> str:
    """Format a figure with three decimals, and its deviation if given; a missing one as a dash."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def layers_of(model: ModelResult) -> str:
    """Format the range of layers that the seeds chose, for distances and for depths."""
    if not model.chosen_layers:
        return ""
    pairs = zip(*model.chosen_layers, strict=True)
    return " / ".join(_range(sorted(set(layers))) for layers in pairs)


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}\N{EN DASH}{numbers[-1]}"


def _difference(comparison: Comparison | None) -> str:
    """Format a difference and its p-value, or return a dash."""
    if comparison is None:
        return NOTHING
    sure = f"p < {_SURE}" if comparison.p < _SURE else f"p = {comparison.p:.3f}"
    return f"{comparison.difference:+.3f} ({sure})".replace("-", "\N{MINUS SIGN}")


def markdown(models: Sequence[ModelResult], line: str, notes: Sequence[str] = ()) -> str:
    """Return the table, an explanation of its columns, notes and the signature in Markdown."""
    spread = [_DEVIATION] if any(model.spread for model in models) else []
    return "\n\n".join([table(models), _COLUMNS, *spread, *notes, f"Signature: `{line}`", ""])


@dataclass(frozen=True)
class Table:
    """A further table beside the main one; its first column may hold names that users chose."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """Return the table and the note below it in Markdown."""
        named = [(escaped(name), *cells) for name, *cells in (self.header, *self.rows)]
        text = tables.markdown(named[0], named[1:])
        return f"{text}\n\n{self.note}" if self.note else text


def beside(report: Report) -> list[Table]:
    """Return the tables beside the main one."""
    first = next((model.name for model in report.models if model.role == "encoder"), "")
    found = [_comparisons(report.comparisons, first)] if report.comparisons else []
    if report.arcs:
        found.append(_arcs(report.arcs))
    if report.selectivities:
        rows = [(one.model, _selectivity(one)) for one in report.selectivities]
        header = ("probes of", "gold minus control")
        found.append(Table("The trees, or the probe?", header, rows, _SELECTIVE))
    return found


def _comparisons(comparisons: Mapping[str, Sequence[Comparison]], first: str) -> Table:
    """Return the table of the first encoder's differences from all others, with p-values."""
    rows = []
    for name, found in comparisons.items():
        at = {comparison.metric: comparison for comparison in found}
        rows.append((name, *(_difference(at.get(metric)) for metric in METRICS)))
    note = (
        f"{escaped(first)} minus each other row, with the two-sided p-value of approximate "
        f"randomization over sentences ({TOSSES:,} tosses, seeds averaged, not corrected for the "
        "number of comparisons)."
    )
    title = "Is the difference more than chance?"
    return Table(title, (f"{first} minus", *TITLES.values()), rows, note)


def _arcs(arcs: Arcs) -> Table:
    """Return UUAS by length of edges: a chain finds all between neighbours and no others."""
    names = [_range(range(first, longer)) for first, longer in pairwise(arcs.lengths)]
    total = sum(arcs.counts)
    rows = [("share of the edges", *(f"{100 * count / total:.1f} %" for count in arcs.counts))]
    rows += [(name, *map(figure, shares)) for name, shares in arcs.uuas.items()]
    header = ("UUAS by length of an edge in words", *names, f"{arcs.lengths[-1]} or more")
    return Table("Long edges", header, rows)


def origin() -> dict[str, Any]:
    """Return this process's command as one could type it again, and its packages' versions."""
    words = sys.argv[1:]
    command = shlex.join(["hyptrans", *([] if words[:1] == ["probe"] else ["probe"]), *words])
    versions = provenance.versions("torch", "fairseq", "numpy", "scipy")
    return {"versions": versions, "command": command}
