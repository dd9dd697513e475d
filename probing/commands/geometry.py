"""Measure how a model uses its space: radii, stress and Gromov's delta of every layer."""

import argparse
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from hyptrans.commands.text_options import subword_models
from hyptrans.inference.contents import Contents
from hyptrans.inference.load import read
from hyptrans.support import tables
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json
from probing.commands.options import typed_command
from probing.geometry.layers import HEADER, Cloud, cells, measure, verdict
from probing.geometry.states import both_sides
from probing.geometry.words import word_counts, words_of
from probing.report.results import versions
from probing.states.encoder import moved
from probing.states.extract import extract
from probing.states.model import ModelEncoder, build_model, place_of
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``hyptrans probe geometry``.

    Raises:
        UserError: a file, flag or value is wrong.
    """
    place = place_of(args.checkpoint)
    text = {"data": None if place.is_dir() else args.data, "moses": args.moses}
    contents = read(place, **text, subword_models=subword_models(args))
    model = moved(build_model(contents), args.device)
    wanted = {"subset": args.subset, "sentences": args.sentences}
    of_trees = _words(contents, place, args) if args.trees else None
    encoder, decoder = both_sides(model, contents, args.data, **wanted)
    clouds = [encoder if of_trees is None else of_trees, decoder]
    sides = [measure(cloud, seed=args.seed) for cloud in clouds]
    layers = [layer for side in sides for layer in side]
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


def _words(contents: Contents, place: Path, args: argparse.Namespace) -> Cloud:
    """Return the states of the trees' single-token words, as in the report of a run."""
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
        words = words_of(states, trees, encoder, word_counts(trees), args.sentences)
    if not len(words.position):
        raise UserError(f"--trees {args.trees}: no word is one token of the model")
    return words
