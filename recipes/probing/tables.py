"""Write the recipe's tables from its recorded results."""

import math
from collections.abc import Mapping
from typing import Any

from hyptrans.support.tables import escaped, markdown

PAPER = {
    "Transformer": (0.36, 0.30, 0.12, 0.88),
    "HAtt": (0.50, 0.64, 0.49, 0.88),
    "HyboNet": (0.59, 0.70, 0.64, 0.92),
}
"""Chen et al. 2022, sec. 4.2.2."""
CHECKPOINTS = "checkpoints"
"""Name of the results of the study's encoders."""
METRICS = {"uuas": "UUAS", "dspr": "Dspr.", "root": "Root", "nspr": "Nspr."}
SETTINGS = {"parsed": "our settings", "paper": "the paper's rate and steps"}
KEPT = ("signature", "seeds", "notes", "comparisons", "selectivities", "arcs")


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the recipe records of a run's ``results.json``: all but single layers."""
    models = [model | {"layers": []} for model in found["models"]]
    # "spaces" of version 0.2.0 had wrong verdicts, based on the spread of radii
    curvature = {name: use["verdict"] for name, use in found["spaces"].items()}
    return {"models": models, "curvature": curvature} | {key: found.get(key) for key in KEPT}


def table(found: Mapping[str, Any]) -> str:
    """Return the figures on gold trees and on parses, beside the paper's, in Markdown."""
    gold = found["probes"]["gold"]
    blocks = ["Gold trees of UD English EWT:", _figures({"": gold}), _about(gold)]
    if "parsed" in found["probes"]:
        text = "their test text, which no encoder has seen"
        if not found.get("held_out"):
            text = "their own training text, those of the test set too"
        several = {f", {name}": found["probes"][key] for key, name in SETTINGS.items()}
        blocks += [f"Parses of {text}:", _figures(several, paper=True)]
        blocks += [_about(one) for one in several.values()]
    if "parser" in found:
        scores = (
            f"{key.upper()} {100 * found['parser'][key]:.1f}" for key in ("las", "uas", "upos")
        )
        blocks.append(f"Parser: stanza's, trained on EWT; on its test set: {', '.join(scores)}.")
    if "bleu" in found:
        scores = (f"{name} {bleu:.1f}" for name, bleu in found["bleu"].items())
        blocks.append(f"Encoders: {found['updates']:,} updates; BLEU: {', '.join(scores)}.")
    return "\n\n".join(blocks)


def _figures(several: Mapping[str, Mapping[str, Any]], *, paper: bool = False) -> str:
    """Return a row for each model; baselines are equal in all settings and appear only once."""
    rows = [
        [
            escaped(model["name"]) + ("" if model["role"] == "baseline" else settings),
            *(_cell(model["test"].get(key), model["spread"].get(key)) for key in METRICS),
        ]
        for place, (settings, probes) in enumerate(several.items())
        for model in probes["models"]
        if model["role"] != "baseline" or place == 0
    ]
    for name, figures in PAPER.items() if paper else ():
        rows.append([f"{name}, as Chen et al. print it", *(f"{value:.2f}" for value in figures)])
    return markdown(["model", *METRICS.values()], rows)


def _cell(value: float | None, deviation: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _about(probes: Mapping[str, Any]) -> str:
    seeds = probes["seeds"]
    runs = f"Means ± standard deviations over {seeds} probe seeds" if seeds > 1 else "One probe"
    by_verdict: dict[str, list[str]] = {}
    for name, verdict in (probes.get("curvature") or {}).items():
        by_verdict.setdefault(verdict, []).append(escaped(name))
    verdicts = [f"{', '.join(names)}: {verdict}" for verdict, names in by_verdict.items()]
    about = f"{runs} of one encoder each."
    return " ".join([*probes["notes"], about, *verdicts, f"Signature: `{probes['signature']}`"])
