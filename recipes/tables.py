"""Write the tables and pictures of all pages from recorded results; no score is typed."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import run_command
from recipes.benchmark import latency
from recipes.cogs.table import means
from recipes.common import results
from recipes.common.lines import RESULTS as LINES
from recipes.probing import radius as meaning
from recipes.probing.tables import CHECKPOINTS, SELECTIVITY, selectivity, table
from recipes.study.findings.finals import chosen
from recipes.study.findings.pictures import pictures
from recipes.study.findings.table import BARS, BY_WIDTH, forms, spread, summary
from recipes.trees import __main__ as task
from recipes.trees import radius

HERE = Path(__file__).resolve().parent
STUDY = HERE / "study"
PICTURES = HERE.parent / "docs" / "pictures"
README = HERE.parent / "README.md"
RESULTS = HERE.parent / "docs" / "results.md"
WHEN = {
    "hybonet_plus": "the best hyperbolic translator here, and the most tree in its encoder",
    "euclidean_prenorm": "the baseline: fairseq's Transformer, normalized before each block",
    "hybonet": "the published fully Lorentz Transformer",
    "han": "hyperbolic attention alone, in a Euclidean Transformer",
    "hvt": "the Poincaré ball",
    "hypformer": "texts of thousands of tokens: linear attention",
}
"""The models that a newcomer chooses from, and what for."""
SPEED_ROWS = (
    ("hybonet_plus", "train", 64, 32),
    ("hybonet_plus", "decode", 64, 32),
    ("hybonet", "train", 64, 32),
    ("hybonet", "decode", 64, 32),
    ("hypformer", "train", 512, 8192),
)
"""Of the table of speed, what is shown: architecture, step, width, length."""

SHOWN_WIDTHS = ("d8", "d16", "d32")
"""Of the table of paths in a tree, what is shown."""


def blocks() -> dict[tuple[Path, str], str]:
    """What belongs between the markers of pages, by page and name of the markers."""
    readmes = [path for path in sorted(HERE.glob("*/README.md")) if results.BEGIN in _text(path)]
    study, probed = _study(), HERE / "probing"
    probing = _read(probed / f"{results.RESULTS}.json")
    speed = _read(HERE / "benchmark" / f"{results.RESULTS}.json")
    task_lines = results.read_lines(HERE / "trees" / LINES)
    return {
        **{(readme, results.RESULTS): block_for(readme.parent) for readme in readmes},
        (README, "choices"): choices(study, probing, speed),
        (RESULTS, "study"): summary(study),
        (STUDY / "README.md", "forms"): forms(results.read_lines(STUDY / "forms.jsonl")),
        (RESULTS, "trees"): trees(probing),
        (RESULTS, "cogs"): means(results.read_lines(HERE / "cogs" / LINES)),
        (probed / "README.md", meaning.NAME): meaning.block(),
        (RESULTS, "speed"): speed_table(speed),
        (RESULTS, "task"): task.GRID.table(task_lines, SHOWN_WIDTHS),
        (HERE / "trees" / "README.md", radius.NAME): radius.block(),
        **{(HERE / "benchmark" / "README.md", name): block for name, block in gpu_tables().items()},
        (HERE / "benchmark" / "README.md", latency.NAME): latency.table(
            _read(HERE / "benchmark" / f"{latency.NAME}.json")
        ),
        (probed / "README.md", CHECKPOINTS): table(_read(probed / f"{CHECKPOINTS}.json")),
        (probed / "README.md", SELECTIVITY): selectivity(_read(probed / f"{SELECTIVITY}.json")),
    }


def gpu_tables() -> dict[str, str]:
    """What was measured on a GPU: losses by precision, and launches and busy time of a step."""
    found = _read(HERE / "benchmark" / "gpu.json")
    names = list(next(iter(found["precisions"].values())))
    losses = [
        [arch, *(f"{loss[name]:.2f}" for name in names)]
        for arch, loss in found["precisions"].items()
    ]
    steps = [
        [arch, size.removeprefix("d="), f"{launches:,}", f"{time:.1f}"]
        for arch, sizes in found["busy"].items()
        for size, (launches, time) in sizes.items()
    ]
    return {
        "precisions": tables.markdown(["architecture", *names], losses),
        "busy": tables.markdown(["architecture", "d", "launches", "the GPU works, ms"], steps),
    }


def block_for(folder: Path) -> str:
    """The table of a recipe."""
    recorded, lines = folder / "results.json", folder / LINES
    if not recorded.exists() and not lines.exists():
        return results.NOT_MEASURED
    found = results.read_lines(lines) if lines.exists() else _read(recorded)
    module = "speed" if folder.name == "benchmark" else "__main__"
    return str(importlib.import_module(f"recipes.{folder.name}.{module}").table(found))


def drawings() -> dict[Path, str]:
    """The pictures, SVG by file."""
    drawn = pictures(_study())
    shown = {PICTURES / Path(name).name: drawn[name] for name in (BARS, BY_WIDTH)}
    return {**{STUDY / name: text for name, text in drawn.items()}, **shown}


def choices(
    study: Sequence[Mapping[str, Any]], probing: Mapping[str, Any], speed: Mapping[str, Any]
) -> str:
    """A row for each model of ``WHEN``: how well it translates, holds trees, how fast it learns."""
    finals, found, ratios = chosen(study), _parsed(probing), _ratios(speed)
    rows = []
    for model, when in WHEN.items():
        scored = finals[model].finished
        seeds = f"{len(scored)} seeds" if len(scored) > 1 else "1 seed"
        tree = found.get(f"{model}_iwslt_d64")
        ratio = ratios.get((model, "train", 64, 32))
        rows.append(
            [
                f"`{model}`",
                when,
                f"{spread(scored, 'bleu')} ({seeds})",
                f"{tree['test']['uuas']:.3f}" if tree else "-",
                f"{ratio:.2f}" if ratio else "-",
            ]
        )
    header = ["model", "when", "BLEU", "trees", "speed"]
    return tables.markdown(header, rows, texts=2)


def trees(probing: Mapping[str, Any]) -> str:
    """Trees of the encoders' own text: what probes find in trained and in fresh encoders."""
    found = _parsed(probing)
    rows = [["chain of neighbouring words", f"{found['linear chain']['test']['uuas']:.3f}", "", ""]]
    for arch, bleu in probing["bleu"].items():
        fresh = found[f"{arch}, random"]["test"]["uuas"]
        trained = found[arch]["test"]["uuas"]
        rows.append([arch.partition("_iwslt")[0], f"{trained:.3f}", f"{fresh:.3f}", f"{bleu:.1f}"])
    return tables.markdown(["encoder", "UUAS", "UUAS, untrained", "BLEU"], rows)


def speed_table(found: Mapping[str, Any]) -> str:
    """The rows of ``SPEED_ROWS``."""
    ratios = _ratios(found)
    shown = [
        [
            f"{arch}, {step}, width {dim}, {length:,} tokens",
            f"{ratios[arch, step, dim, length]:.2f}",
        ]
        for arch, step, dim, length in SPEED_ROWS
    ]
    lines = tables.markdown(["step", "times as fast as `euclidean`"], shown)
    return f"{lines}\n\n{found['device']}; measured with version {found['versions']['hyptrans']}"


def _study() -> list[dict[str, Any]]:
    return results.read_lines(STUDY / LINES)


def _read(path: Path) -> Any:
    return json.loads(_text(path))


def _ratios(speed: Mapping[str, Any]) -> dict[tuple[str, str, int, int], float]:
    return {
        (row["arch"], row["phase"], row["dim"], row["length"]): row["ratio"]
        for row in speed["rows"]
    }


def _parsed(probing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {model["name"]: model for model in probing["probes"]["parsed"]["models"]}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main() -> None:
    """Write all tables and pictures."""
    argparse.ArgumentParser(
        description=__doc__, epilog="example: python -m recipes.tables", allow_abbrev=False
    ).parse_args()
    for (page, name), block in blocks().items():
        _tell(page, f", {name}", results.put_into(page, block, name))
    for path, text in drawings().items():
        _tell(path, "", results.write_changed(path, text))


def _tell(path: Path, part: str, changed: bool) -> None:
    state = "written" if changed else "up to date"
    print(f"{path.relative_to(HERE.parent)}{part}: {state}")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
