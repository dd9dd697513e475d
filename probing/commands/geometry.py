"""Look at how a model uses its space: radii, stress and Gromov's delta of every layer."""

import argparse
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from hyptrans.support import tables
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json
from hyptrans.support.progress import bar
from probing.commands.options import typed_command
from probing.commands.sources import of_checkpoint
from probing.geometry.layers import HEADER, Layer, Words, cells, measure, verdict
from probing.geometry.states import both_sides
from probing.geometry.words import words_of
from probing.report.results import versions
from probing.states.checkpoint import Loaded, load_model
from probing.states.encoder import moved
from probing.states.extract import extract
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing geometry``.

    Raises:
        UserError: a file, flag or value that is wrong.
    """
    if args.data is None and args.data_bin is None:
        raise UserError("the data are missing: name a folder with --data or --data-bin")
    data = args.data_bin or args.data
    loaded = load_model(args.checkpoint, data, user_dir=args.user_dir)
    moved(loaded.model, args.device)
    words = _words(args) if args.trees else None
    at_words = (words.states, words.depths) if words else None
    layers = look(loaded, data, at_words, args)
    sides = [[layer for layer in layers if layer.side == side] for side in ("encoder", "decoder")]
    sentence = " ".join(map(verdict, sides))
    if args.out is not None:
        figures = {
            "checkpoint_sha256": sha256(args.checkpoint),
            "architecture": loaded.architecture,
            "command": typed_command(),
            "layers": [asdict(layer) for layer in layers],
            "verdict": sentence,
            "versions": versions(),
        }
        write_json(args.out, figures)
    print(tables.markdown(HEADER, [cells(layer) for layer in layers], texts=2))
    print(f"\n{sentence}")


def look(
    loaded: Loaded,
    data: Path,
    words: tuple[Tensor, Tensor] | None,
    args: argparse.Namespace,
) -> list[Layer]:
    """The figures of all layers of both sides; ``words``: states ``[layers, W, D]``, depths."""
    sides = both_sides(loaded, data, subset=args.subset, sentences=args.sentences)
    every = [(side, number) for side in sides for number in range(len(side.spaces))]
    return [
        measure(
            side.states[number],
            side.tokens,
            side.spaces[number],
            side=side.name,
            number=number,
            words=(words[0][number], words[1]) if words and side.name == "encoder" else None,
            seed=args.seed,
        )
        for side, number in bar(every, "measure", unit=" layers")
    ]


def _words(args: argparse.Namespace) -> Words:
    """States of the words of trees that are one token, and their gold depths."""
    trees = read_conllu(args.trees)
    source = of_checkpoint(args, args.checkpoint, args.data)
    encoder = source.load(random=False, seed=args.seed)
    with TemporaryDirectory() as folder:
        states = extract(
            encoder,
            trees,
            Path(folder) / "states",
            trees=args.trees,
            batch_tokens=args.batch_tokens,
            device=args.device,
        )
        return words_of(states, trees, encoder, args.sentences)
