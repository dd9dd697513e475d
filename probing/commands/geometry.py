"""Look at how a model uses its space: radii, stress and Gromov's delta of every layer."""

import argparse
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from hyptrans.inference.contents import Contents
from hyptrans.support import tables
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json
from hyptrans.support.progress import bar
from probing.commands.options import typed_command
from probing.commands.sources import text_options
from probing.geometry.layers import HEADER, Layer, Words, cells, measure, verdict
from probing.geometry.states import both_sides
from probing.geometry.words import words_of
from probing.report.results import versions
from probing.states.encoder import moved
from probing.states.extract import extract
from probing.states.model import ModelEncoder, build_model, place_of, read_model
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe geometry``.

    Raises:
        UserError: a file, flag or value that is wrong.
    """
    if args.data is None:
        raise UserError("the data are missing: name a folder with --data")
    place = place_of(args.checkpoint)
    own_data = None if place.is_dir() else args.data
    contents = read_model(place, own_data, text_options(args), args.user_dir)
    model = moved(build_model(contents), args.device)
    words = _words(contents, place, args) if args.trees else None
    layers = look(model, contents, words, args)
    sides = [[layer for layer in layers if layer.side == side] for side in ("encoder", "decoder")]
    sentence = " ".join(map(verdict, sides))
    if args.out is not None:
        figures = {
            "checkpoint_sha256": sha256(place),
            "architecture": contents.architecture,
            "command": typed_command(),
            "layers": [asdict(layer) for layer in layers],
            "verdict": sentence,
            "versions": versions(),
        }
        write_json(args.out, figures)
    print(tables.markdown(HEADER, [cells(layer) for layer in layers], texts=2))
    print(f"\n{sentence}")


def look(
    model: Any, contents: Contents, words: Words | None, args: argparse.Namespace
) -> list[Layer]:
    """The figures of all layers of both sides; radii and depths of ``words`` for the encoder's."""
    wanted = {"subset": args.subset, "sentences": args.sentences}
    sides = both_sides(model, contents, args.data, **wanted)
    every = [(side, number) for side in sides for number in range(len(side.spaces))]
    return [
        measure(
            side.states[number],
            side.tokens,
            side.spaces[number],
            side=side.name,
            number=number,
            words=_of_layer(words, number) if side.name == "encoder" else None,
            seed=args.seed,
        )
        for side, number in bar(every, "measure", unit=" layers")
    ]


def _of_layer(words: Words | None, number: int) -> tuple[Tensor, Tensor] | None:
    return None if words is None else (words.states[number], words.depths)


def _words(contents: Contents, place: Path, args: argparse.Namespace) -> Words:
    """States of the words of trees that are one token, and their gold depths."""
    trees = read_conllu(args.trees)
    encoder = ModelEncoder(contents, place, random=False, seed=args.seed)
    with TemporaryDirectory() as folder:
        states = extract(
            encoder,
            trees,
            Path(folder) / "states.npy",
            trees=args.trees,
            batch_tokens=args.batch_tokens,
            device=args.device,
        )
        return words_of(states, trees, encoder, args.sentences)
