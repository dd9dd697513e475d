"""Does a node's radius tell how deep it lies? Rank correlations, of the models of the table.

Run it after ``python -m recipes.trees``, with the same --out: it reads the checkpoints there.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_json
from recipes.common import options, results
from recipes.common.exact import MODELS
from recipes.trees.tree import Tree, make_tree

HERE = Path(__file__).resolve().parent
NAME = "radius"
"""Of the file of results beside this one, and of the block of the README."""


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, record and write the table.

    Raises:
        UserError: there is no finished training.
    """
    parser = options.script_parser(__doc__, HERE)
    parser.add_argument("--out", type=Path, default=Path("runs/trees"), help="of the trainings")
    args = parser.parse_args(argv)
    lines = results.read_lines(args.out / "results.jsonl")
    found = [measure(line, args.out, make_tree()) for line in chosen(lines)]
    if not found:
        raise UserError(f"{args.out} has no finished training: run python -m recipes.trees first")
    write_json(HERE / f"{NAME}.json", found)
    results.put_into(HERE / "README.md", table(found), NAME)
    print(table(found))


def chosen(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The trainings at each model's best rate, where several seeds are finished."""
    kept: list[Mapping[str, Any]] = []
    for key in dict.fromkeys((line["setting"], line["model"]) for line in lines):
        of = [x for x in lines if (x["setting"], x["model"]) == key and x["exact"]]
        rates = {x["rate"] for x in of if x["seed"] != 1}
        kept += [x for x in of if x["rate"] in rates]
    return kept


def measure(line: Mapping[str, Any], out: Path, tree: Tree) -> dict[str, Any]:
    """Spearman's correlation of radius and level over a model's vectors of the tree's nodes.

    The vectors are those that answers are read out by; leaves stand in no answer and are left out.
    """
    import torch

    import hyptrans
    import recipes.study.candidates  # noqa: F401 - registers those that the study tries
    from hyptrans.inference.describe import embedding_radii

    place = out / "data" / line["name"] / "checkpoint_last.pt"
    model = hyptrans.load(place, data=out / "data" / "data", subword_models={"none": None})
    side = model.model.decoder
    level = {node: depth for depth, paths in enumerate(tree.inner()) for *_, node in paths}
    words = torch.tensor([side.dictionary.index(tree.names[node]) for node in level])
    radius = embedding_radii(side, words)
    correlation = require("scipy.stats", "probing").spearmanr(radius, [*level.values()]).statistic
    named = {key: line[key] for key in ("model", "setting", "seed")}
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


def block() -> str:
    """The table of the recorded results."""
    return table(json.loads((HERE / f"{NAME}.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
