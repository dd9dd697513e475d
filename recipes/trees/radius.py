"""Does a node's radius tell how deep it lies? Rank correlations, of the models of the table.

Run it after ``python -m recipes.trees``, with the same --out: it reads the checkpoints there.
What it finds takes the place of earlier figures of the same seed, or of another rate.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from recipes.common import options, results
from recipes.common.exact import MODELS
from recipes.common.lines import RESULTS
from recipes.trees.__main__ import GRID
from recipes.trees.tree import Tree, make_tree

HERE = Path(__file__).resolve().parent
NAME = "radius"
"""Of the file of results beside this one, and of the block of the README."""
RECORDED = HERE / f"{NAME}.json"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, record and write the table.

    Raises:
        UserError: there is no finished training.
    """
    parser = options.script_parser(__doc__, Path(__file__))
    add = parser.add_argument
    about = "folder of the trainings (default: %(default)s)"
    add("--out", type=Path, default=Path("runs/trees"), metavar="DIR", help=about)
    args = parser.parse_args(argv)
    own = args.out / RESULTS
    lines = results.read_lines(own if own.exists() else HERE / RESULTS)
    here = [line for line in chosen(lines) if checkpoint(line, args.out).exists()]
    if not here:
        raise UserError(f"{args.out} has no finished training: run python -m recipes.trees first")
    found = [measure(line, args.out, make_tree()) for line in tqdm(here, unit="model")]
    write_json(RECORDED, merged(recorded(), found))
    results.put_into(HERE / "README.md", block(), NAME)
    print(block())


def chosen(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The trainings at each model's best rate, all seeds, as the table has them."""
    best = [
        one.name
        for cell in GRID.cells
        for model in GRID.models(cell)
        for one in GRID.best(lines, cell, model)
    ]
    known = {line["name"]: line for line in lines if line["exact"]}
    return [known[name] for name in best if name in known]


def merged(earlier: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures of a model in a width are of one rate: the newest, with all its seeds."""
    rates = {(one["setting"], one["model"]): one["rate"] for one in found}
    seeds = {(one["setting"], one["model"], one["seed"]) for one in found}
    kept = [
        one
        for one in earlier
        if (key := (one["setting"], one["model"])) not in rates
        or (rates[key] == one["rate"] and (*key, one["seed"]) not in seeds)
    ]
    return [*kept, *found]


def checkpoint(line: Mapping[str, Any], out: Path) -> Path:
    """The last one of a training."""
    return out / "data" / str(line["name"]) / "checkpoint_last.pt"


def measure(line: Mapping[str, Any], out: Path, tree: Tree) -> dict[str, Any]:
    """Spearman's correlation of radius and level over a model's vectors of the tree's nodes.

    The vectors are those that answers are read out by; leaves stand in no answer and are left out.
    """
    import torch

    import hyptrans
    import recipes.study.candidates  # noqa: F401 - registers those that the study tries
    from hyptrans.inference.describe import embedding_radii

    place = checkpoint(line, out)
    model = hyptrans.load(place, data=out / "data" / "data", subword_models={"none": None})
    side = model.model.decoder
    level = {node: depth for depth, paths in enumerate(tree.inner()) for *_, node in paths}
    words = torch.tensor([side.dictionary.index(tree.names[node]) for node in level])
    radius = embedding_radii(side, words)
    correlation = require("scipy.stats", "probing").spearmanr(radius, [*level.values()]).statistic
    named = {key: line[key] for key in ("model", "setting", "rate", "seed")}
    return {**named, "right": line["exact"]["test"]["all"], "correlation": float(correlation)}


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """A row for each model and size."""
    rows = []
    for setting in dict.fromkeys(line["setting"] for line in found):
        for model in MODELS:
            of = [x["correlation"] for x in found if (x["setting"], x["model"]) == (setting, model)]
            if of:
                row = f"{statistics.fmean(of):.2f}", f"{min(of):.2f} to {max(of):.2f}"
                rows.append([setting, model, len(of), *row])
    header = ["width", "model", "seeds", "correlation", "from lowest to highest"]
    return tables.markdown(header, rows, texts=2)


def recorded() -> list[dict[str, Any]]:
    """What earlier runs found."""
    return json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else []


def block() -> str:
    """The table of the recorded results."""
    return table(recorded())


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
