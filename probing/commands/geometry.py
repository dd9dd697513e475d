"""Measure how a model uses its space: radii, stress and Gromov's delta of every layer."""

import argparse
from dataclasses import asdict
from typing import Any

from hyptrans.inference.load import locate, read
from hyptrans.support import tables
from hyptrans.support.files import sha256, write_json
from probing.geometry.layers import COLUMNS, measure, verdict
from probing.geometry.states import both_sides
from probing.report.results import origin
from probing.states.encoder import move
from probing.states.model import build_model


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe geometry``."""
    place = locate(args.checkpoint)
    # a data set has tokens already, so how text becomes tokens does not matter
    how: dict[str, Any] = {"data": args.data, "subword_models": {"none": None}}
    contents = read(place, **({} if place.is_dir() else how))
    model = build_model(contents)
    move(model, args.device)
    clouds = both_sides(model, contents, args.data, subset=args.subset, sentences=args.sentences)
    sides = [measure(cloud, seed=args.seed) for cloud in clouds]
    layers = [layer for side in sides for layer in side]
    sentence = " ".join(map(verdict, sides))
    if args.out is not None:
        figures = {
            "checkpoint_sha256": sha256(place),
            "architecture": contents.architecture,
            "layers": [asdict(layer) for layer in layers],
            "verdict": sentence,
            **origin(),
        }
        write_json(args.out, figures)
    # a data set has no trees, and so no depths
    shown = {name: cell for name, cell in COLUMNS.items() if name != "with depth"}
    rows = [[cell(layer) for cell in shown.values()] for layer in layers]
    print(tables.markdown(list(shown), rows, texts=2))
    print(f"\n{sentence}")
