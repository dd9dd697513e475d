"""Write the tables and pictures of all pages from recorded results; no score is typed by hand."""

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hyptrans.support import tables
from hyptrans.support.errors import run_command
from recipes.benchmark import latency
from recipes.benchmark import speed as speeds
from recipes.cogs import __main__ as cogs
from recipes.common import results, seeds
from recipes.common.exact import MODELS, TEST, right
from recipes.common.results import LINES
from recipes.probing.tables import CHECKPOINTS, table
from recipes.study.pictures import Scores, by_place, dots, norms, pictures
from recipes.study.table import NORMS, SCORED, WIDE, chosen, summary
from recipes.trees import curvatures
from recipes.trees.__main__ import CELLS, FOREST_CELLS, GRID, LEVELS

HERE = Path(__file__).resolve().parent
STUDY, PROBING, BENCHMARK = HERE / "study", HERE / "probing", HERE / "benchmark"
DOCS = HERE.parent / "docs"
README, RESULTS = HERE.parent / "README.md", DOCS / "results.md"
WHEN = {
    "hybonet_plus": "highest BLEU of the hyperbolic models; probes recover most from its encoder",
    "euclidean_prenorm": "the baseline: fairseq's Transformer, normalized before each block",
    "euclidean_postnorm": "a Transformer with the norms of `hybonet_plus`",
    "hypformer": "texts of thousands of tokens: linear attention",
}
"""The models that a newcomer chooses from, and when to choose each one."""
LEVEL = "level of the lowest common ancestor (root: 0)"
LAYER = "layer (0 to 2: encoder, 3 to 5: decoder; 0 and 3: embeddings)"
CURVED = "curvature (times -1)"
SAME = "same-products"
"""Name of the record, and of its block, that compares with the package's own twin, too."""


def blocks() -> dict[tuple[Path, str], str]:
    """Return the text between markers, by page and name of the markers."""
    readmes = [
        path
        for path in sorted(HERE.glob("*/README.md"))
        if results.BEGIN in path.read_text(encoding="utf-8")
    ]
    study, probing = results.read_lines(STUDY / LINES), results.read_json(PROBING / "results.json")
    names = ("gpu-speed", latency.NAME, SAME)
    gpu, latencies, same = (results.read_json(BENCHMARK / f"{name}.json") for name in names)
    ratios = {
        row["arch"]: row["ratio_same"]
        for row in same["rows"]
        if (row["phase"], row["dim"], row["length"]) == ("train", 64, 32)
    }
    page, probed = BENCHMARK / "README.md", PROBING / "README.md"
    return {
        **{(readme, results.RESULTS): block_for(readme.parent) for readme in readmes},
        (HERE / "trees" / "README.md", "curvatures"): curvatures.table(),
        (README, "choices"): choices(study, _parsed(probing), ratios),
        (RESULTS, "study"): summary(study),
        (RESULTS, "trees"): trees(probing),
        (RESULTS, "cogs"): cogs.means(results.read_lines(HERE / "cogs" / LINES)),
        (RESULTS, "speed"): speed_table(same),
        (page, "gpu"): speeds.table(gpu),
        (page, latency.NAME): latency.table(latencies),
        (probed, CHECKPOINTS): table(results.read_json(PROBING / f"{CHECKPOINTS}.json")),
    }


def block_for(folder: Path) -> str:
    """Write a recipe's table."""
    recorded, lines = folder / "results.json", folder / LINES
    if not recorded.exists() and not lines.exists():
        return results.NOT_MEASURED
    found = results.read_lines(lines) if lines.exists() else results.read_json(recorded)
    name = "speed" if folder.name == "benchmark" else "__main__"
    return str(importlib.import_module(f"recipes.{folder.name}.{name}").table(found))


def drawings() -> dict[Path, str]:
    """Return the pictures as SVG, by file."""
    drawn = pictures(results.read_lines(STUDY / LINES))
    drawn[NORMS] = norms(results.read_lines(STUDY / "norms.jsonl"))
    shown = {DOCS / "pictures" / Path(name).name: drawn[name] for name in (SCORED, WIDE)}
    about = "a dot for each seed, a line through the means"
    for name, found, title, axis, scale in (
        ("trees", by_width(), "Exact matches in % by width", "width", "log"),
        ("levels", by_level(), "Exact matches in % by depth, width 16", LEVEL, "linear"),
        ("stress", by_layer(), "Stress of the best flat embedding in %", LAYER, "linear"),
        ("curvature", by_curvature(), "Exact matches in % by curvature, width 16", CURVED, "log"),
        ("updates", by_updates(), "Exact matches on gen_dev of COGS in %", "updates", "log"),
    ):
        shown[DOCS / "pictures" / f"{name}.svg"] = dots(found, f"{title}: {about}", axis, scale)
    return {**{STUDY / name: text for name, text in drawn.items()}, **shown}


def by_width() -> Scores:
    """Return exact matches in the tree of ``recipes/trees``, by model and width, at best rates."""
    lines = results.read_lines(HERE / "trees" / LINES)
    return by_place(
        (line["model"], CELLS[cell][0], right(line, TEST))
        for cell in FOREST_CELLS
        for line in GRID.finals(lines, cell)
    )


def by_level() -> Scores:
    """Return the same at width 16, by model and level of the lowest common ancestor."""
    finals = GRID.finals(results.read_lines(HERE / "trees" / LINES), "d16")
    levels = range(LEVELS - 1)
    return by_place((x["model"], n, right(x, TEST, f"level_{n}")) for n in levels for x in finals)


def by_layer() -> Scores:
    """Return how far states are from flat in models of width 16, by model and layer."""
    return by_place(
        (line.get("form") or line["model"], layer, percent)
        for name in ("stress", "forms")
        for line in results.read_lines(HERE / "trees" / f"{name}.jsonl")
        for layer, percent in enumerate(line.get("flat_stress_percent", ()))
    )


def by_curvature() -> Scores:
    """Return exact matches at fixed curvatures in models of width 16, each at its best rate."""
    found = curvatures.trained()
    return by_place((model, c, right(x, TEST)) for (model, c), xs in found.items() for x in xs)


def by_updates() -> Scores:
    """Return exact matches on COGS's selection set, by model and number of updates."""
    lines = sorted(results.read_lines(HERE / "cogs" / LINES), key=lambda x: x.get("updates", 0))
    best = {model: one.rate for model in MODELS if (one := cogs.rates(lines, model).best)}
    tuned = [x for x in lines if x["stage"] in ("rates", "final", "longer", "long")]
    at_best = [x for x in tuned if x["rate"] == best.get(x["model"])]
    found = by_place((x["model"], x["updates"], right(x, cogs.DEV)) for x in at_best)
    return {model: of for model, of in found.items() if len(of) > 1}


def choices(
    study: Sequence[Mapping[str, Any]],
    parsed: Mapping[str, Mapping[str, Any]],
    ratios: Mapping[str, float],
) -> str:
    """Write a row for each model in ``WHEN``: BLEU, trees in its encoder, training speed."""
    finals, rows = chosen(study), []
    for model, when in WHEN.items():
        if model in finals:
            scores = finals[model].values("bleu")
            bleu = f"{seeds.spread(scores)} ({len(scores)})"
            tree, ratio = parsed.get(f"{model}_iwslt_d64"), ratios.get(model)
            uuas = f"{tree['test']['uuas']:.3f}" if tree else "-"
            rows.append([f"`{model}`", when, bleu, uuas, f"{ratio:.2f}" if ratio else "-"])
    return tables.markdown(["model", "when", "BLEU (seeds)", "trees", "speed"], rows, texts=2)


def trees(probing: Mapping[str, Any]) -> str:
    """Write how well probes recover trees of the encoders' own text, trained and untrained."""
    found = _parsed(probing)
    rows = [["chain of neighbouring words", f"{found['linear chain']['test']['uuas']:.3f}", "", ""]]
    for arch, bleu in probing["bleu"].items():
        fresh, trained = (found[name]["test"]["uuas"] for name in (f"{arch}, random", arch))
        rows.append([arch.partition("_iwslt")[0], f"{trained:.3f}", f"{fresh:.3f}", f"{bleu:.1f}"])
    return tables.markdown(["encoder", "UUAS", "UUAS, untrained", "BLEU"], rows)


def speed_table(found: Mapping[str, Any]) -> str:
    """Write training and decoding against fairseq's Transformer and against equal products."""
    rows = pd.DataFrame([row for row in found["rows"] if row["phase"] in ("train", "decode")])
    theirs, same = f"times as fast as {rows['against'][0]}", "as the package's twin"
    titles = {"arch": "architecture", "phase": "step", "ratio": theirs, "ratio_same": same}
    frame = rows[[*titles]].rename(columns=titles)
    lines = results.markdown(frame, {theirs: ".2f", same: ".2f"}, texts=2)
    return f"{lines}\n\n{found['device']}; measured with version {found['versions']['hyptrans']}"


def _parsed(probing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {model["name"]: model for model in probing["probes"]["parsed"]["models"]}


def main() -> None:
    """Write all tables and pictures."""
    argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m recipes.tables", allow_abbrev=False
    ).parse_args()
    changed: dict[tuple[Any, ...], bool] = {
        (page, name): results.put_into(page, block, name)
        for (page, name), block in blocks().items()
    }
    changed |= {(path,): results.write_changed(path, text) for path, text in drawings().items()}
    for (path, *block), written in changed.items():
        part = ", ".join([str(path.relative_to(HERE.parent)), *block])
        print(f"{part}: {'written' if written else 'up to date'}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
