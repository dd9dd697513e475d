"""The recipe's tables, out of its recorded results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hyptrans.support.tables import escaped
from probing.probes.significance import Comparison
from probing.report import results
from probing.report.data import Arcs, ModelResult, RankPoint, Selectivity, Vocabulary

PAPER = {
    "Transformer": (0.36, 0.30, 0.12, 0.88),
    "HAtt": (0.50, 0.64, 0.49, 0.88),
    "HyboNet": (0.59, 0.70, 0.64, 0.92),
}
"""Chen et al. 2022, sec. 4.2.2."""
SELECTIVITY = "selectivity"
"""Name of what ``results.json`` of a probing run with control trees says of them."""
CHECKPOINTS = "checkpoints"
"""Name of the results of checkpoints that the options name."""
KEPT = (
    "signature",
    "seeds",
    "notes",
    "comparisons",
    "vocabularies",
    "ranks",
    "selectivities",
    "arcs",
    "settings",
)
SETTINGS = {"parsed": "our settings", "paper": "the paper's rate and steps"}


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """What of ``results.json`` of a probing run the recipe records: all but single layers."""
    models = [model | {"layers": []} for model in found["models"]]
    # earlier records have wrong verdicts, by the spread of radii, under "spaces"
    curvature = {name: use["verdict"] for name, use in found["spaces"].items()}
    # of all who worked on it, where it was stopped and went on
    seconds = sum(sum(stages.values()) for stages in found["seconds"].values())
    kept = {key: found[key] for key in KEPT}
    return {"models": models, "curvature": curvature, "seconds": round(seconds, 1)} | kept


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    gold = found["probes"]["gold"]
    models = _models(gold)
    blocks = ["Gold trees of UD English EWT:", results.table(models), _about(gold), *_notes(gold)]
    if "parser" in found:
        blocks += _parsed(found)
    if "bleu" in found:
        scores = ", ".join(f"{name} {bleu:.1f}" for name, bleu in found["bleu"].items())
        blocks.append(
            f"Encoders: {found['updates']:,} updates; BLEU of their translations of the Tatoeba "
            f"test set: {scores}"
        )
    return "\n\n".join(blocks)


def selectivity(found: Mapping[str, Any]) -> str:
    """What one probing run says of long edges and of control trees, as Markdown."""
    several = [Selectivity(**one) for one in found["selectivities"]]
    tables = results.beside({}, {}, [], several, Arcs(**found["arcs"]), "")
    about = f"One training of each probe. {found['notes'][0]} Signature: `{found['signature']}`"
    return "\n\n".join([*(table.markdown() for table in tables), about])


def _models(probes: Mapping[str, Any]) -> list[ModelResult]:
    made = []
    for model in probes["models"]:
        figures = {key: _defined(model[key]) for key in ("test", "spread")}
        made.append(ModelResult(**model | figures))
    return made


def _defined(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {metric: value for metric, value in figures.items() if value is not None}


def _about(probes: Mapping[str, Any], *, legends: bool = True) -> str:
    seeds = probes["seeds"]
    runs = f"means and standard deviations over {seeds} probe seeds" if seeds > 1 else "one run"
    legend = (
        f"All from 0 to 1 (correlations from -1), {runs}; layers: of "
        "UUAS and Dspr. / of Root and Nspr., 0 = embeddings, each the best on the development set "
        "(from the lowest to the highest over seeds)."
    )
    said = [*probes["notes"], *([legend] if legends else [])]
    return f"{' '.join(said)} Signature: `{probes['signature']}`"


def _notes(probes: Mapping[str, Any]) -> list[str]:
    first = next(model["name"] for model in probes["models"] if model["role"] == "encoder")
    comparisons = {
        name: [Comparison(**one) for one in found] for name, found in probes["comparisons"].items()
    }
    words = {name: Vocabulary(**shares) for name, shares in probes["vocabularies"].items()}
    points = [
        RankPoint(**p | {key: _defined(p[key]) for key in ("test", "spread")})
        for p in probes["ranks"]
    ]
    # neither is of what was recorded earlier
    arcs = Arcs(**probes["arcs"]) if probes.get("arcs") else None
    selective = [Selectivity(**one) for one in probes.get("selectivities", [])]
    alike: dict[str, list[str]] = {}
    for name, verdict in probes.get("curvature", {}).items():
        alike.setdefault(verdict, []).append(escaped(name))
    told = [f"{', '.join(names)}: {verdict}" for verdict, names in alike.items()]
    also = results.beside(comparisons, words, points, selective, arcs, first)
    return [*(table.markdown() for table in also), *told]


def _parsed(found: Mapping[str, Any]) -> list[str]:
    """Both settings on parses, beside the paper's figures."""
    models = [model for model in _models(found["probes"]["parsed"]) if model.role == "baseline"]
    models += [
        replace(model, name=f"{model.name}, {settings}")
        for name, settings in SETTINGS.items()
        for model in _models(found["probes"][name])
        if model.role != "baseline"
    ]
    lines = [results.table(models)]
    for name, figures in PAPER.items():
        # with the two decimals that they are printed with
        cells = " | ".join(f"{value:.2f}" for value in figures)
        lines.append(f"| {name}, as Chen et al. print it | {cells} |  |")
    parser, parsed = found["parser"], found["probes"]["parsed"]
    about = "Parses of the encoders' own corpus, its parts kept as in the paper: probes learn from"
    about += " the training text and are scored on the test text, which no encoder has seen:"
    if not found.get("held_out"):
        # of their own training text they have seen every word
        parsed = parsed | {"vocabularies": {}}
        about = "Parses of the encoders' own training text, those of the test set too (the paper"
        about += " keeps the parts of its data, so its test sentences are new to its encoders):"
    quality = ", ".join(f"{key.upper()} {100 * parser[key]:.1f}" for key in ("las", "uas", "upos"))
    return [
        about,
        "\n".join(lines),
        f"Parser: stanza's, trained on EWT; on its test set, of gold words: {quality}.",
        _about(parsed, legends=False),
        *_notes(parsed),
        f"Signature of {SETTINGS['paper']}: `{found['probes']['paper']['signature']}`",
    ]
