"""What the radius of a word goes with in the recipe's encoders: hyptrans probe radius of each.

Run it after ``python -m recipes.probing``, with the same --out: it reads the checkpoints there.
Those of ``python -m recipes.study`` are read alike, with --text and their names in --archs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_json
from probing.commands.cli import main as probing
from probing.settings import WORDNET
from recipes.common import options
from recipes.probing.__main__ import MODELS
from recipes.tatoeba_en_de.prepare import SPLIT

HERE = Path(__file__).resolve().parent
NAME = "radius"
"""Of the file of results beside this one, and of the block of the README."""
RECORDED = HERE / f"{NAME}.json"
FIGURES = ("with_depth", "with_frequency", "given_frequency")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, record and print the table.

    Raises:
        UserError: a checkpoint is missing.
    """
    parser = options.script_parser(__doc__, Path(__file__))
    add = parser.add_argument
    about = "folder of the trainings (default: %(default)s)"
    add("--out", type=Path, default=Path("runs/probing"), metavar="DIR", help=about)
    add("--archs", default=MODELS, metavar="A,B", help="trainings (default: %(default)s)")
    add("--text", type=Path, metavar="FILE", help="English (default: Tatoeba's training text)")
    add("--wordnet", type=Path, default=WORDNET, metavar="DIR", help="default: %(default)s")
    args = parser.parse_args(argv)
    checkpoints = {arch: args.out / arch / "checkpoint_last.pt" for arch in args.archs.split(",")}
    for checkpoint in checkpoints.values():
        if not checkpoint.is_file():
            raise UserError(f"{checkpoint} is missing: run python -m recipes.probing first")
    text = args.text or args.out / "data" / SPLIT / "train.en"
    found = {arch: measure(file, text, args) for arch, file in checkpoints.items()}
    write_json(RECORDED, recorded() | found)
    print(table(found))


def recorded() -> dict[str, Any]:
    """What earlier runs found, by training."""
    return json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}


def measure(checkpoint: Path, text: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The command's figures of one encoder, its words' states read in a text."""
    from hyptrans.fairseq.checkpoint import read_state, updates_of

    figures = args.out / NAME / f"{checkpoint.parent.name}.json"
    figures.parent.mkdir(exist_ok=True)
    words = [NAME, "--checkpoint", checkpoint, "--data", args.out / "data", "--text", text]
    words += ["--wordnet", args.wordnet, "--out", figures]
    if status := probing([str(word) for word in words]):
        sys.exit(status)
    found = json.loads(figures.read_text(encoding="utf-8"))
    kept = {key: found[key] for key in ("nouns", "sentences", "layers", "versions")}
    return {"updates": updates_of(read_state(checkpoint)), **kept}


def table(found: Mapping[str, Any]) -> str:
    """A row for each layer, and one for all layers of a model that have one radius each."""
    rows = []
    for arch, of in found.items():
        model = [_shown(arch), f"{of['updates']:,}"]
        equal = [layer["name"] for layer in of["layers"] if layer["with_depth"] is None]
        for layer in of["layers"]:
            if layer["name"] not in equal:
                radius = f"{layer['radius']:.2f} ± {layer['spread']:.3f}"
                rows.append([*model, layer["name"], radius, *map(_cell, map(layer.get, FIGURES))])
        if equal:
            rows.append([*model, ", ".join(equal), "all equal", "", "", ""])
    header = ["encoder", "updates", "layer", "radius", "depth", "frequency"]
    return tables.markdown([*header, "depth, given frequency"], rows)


def block() -> str:
    """The table of the recorded results, one seed of each."""
    # those of Tatoeba first
    found = sorted(recorded().items(), key=lambda one: "_iwslt" not in one[0])
    return table({name: of for name, of in found if name.endswith(("_iwslt_d64", "-seed1"))})


def _shown(name: str) -> str:
    """``d16, hybonet`` of a training of the study, which has rate and seed in its name."""
    stage, *rest = name.partition("_iwslt")[0].split("-")
    return f"{stage}, {rest[0]}" if rest else stage


def _cell(one: Mapping[str, float]) -> str:
    return f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]".replace("-", "\u2212")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=""))
