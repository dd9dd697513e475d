"""Ask whether words deep in WordNet lie far out: rank correlations of the radius, by layer."""

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch

from hyptrans.support import tables
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256, write_json
from hyptrans.support.lines import read_lines
from probing.commands.options import typed_command
from probing.commands.sources import of_checkpoint
from probing.geometry.radius import HEADER, LEGEND, WORD, cells, layers, mean_radii, one_token
from probing.report.results import versions
from probing.settings import LEAST_NOUNS
from probing.states.checkpoint import from_checkpoint
from probing.states.encoder import SegmentedEncoder, moved
from probing.text.wordnet import noun_depths


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing radius``.

    Raises:
        UserError: a file, flag or value that is wrong, or too few nouns.
    """
    depth = noun_depths(args.wordnet)
    counts = None if args.counts is None else _words_of(args.counts)
    source = of_checkpoint(args, args.checkpoint, args.data)
    encoder = from_checkpoint(
        args.checkpoint, data=args.data, user_dir=args.user_dir, pieces=source.pieces
    )
    moved(encoder.module, args.device)
    words = one_token(encoder, depth)
    lines = list(islice(read_lines(args.text), args.sentences))
    radii, times = mean_radii(encoder, lines, words, args.batch_tokens)
    there = times > 0
    nouns = {word: words[word] for word, one in zip(words, there.tolist(), strict=True) if one}
    if len(nouns) < LEAST_NOUNS:
        raise UserError(
            f"{len(nouns)} nouns of WordNet are one token and stand in {len(lines)} lines of "
            f"{args.text}, {LEAST_NOUNS} are needed: raise --sentences, or name more text"
        )
    if len({depth[noun] for noun in nouns}) == 1:
        raise UserError(f"--wordnet {args.wordnet} has all of these nouns at one depth")
    found = layers(
        encoder,
        torch.tensor([*nouns.values()]),
        radii[:, there],
        [depth[noun] for noun in nouns],
        _frequencies(nouns, encoder, counts, args.counts),
        args.seed,
    )
    if args.out is not None:
        figures = {
            "checkpoint_sha256": sha256(args.checkpoint),
            "architecture": encoder.architecture,
            "command": typed_command(),
            "nouns": len(nouns),
            "sentences": len(lines),
            "layers": [asdict(layer) for layer in found],
            "versions": versions(),
        }
        write_json(args.out, figures)
    print(tables.markdown(HEADER, [cells(layer) for layer in found], texts=2))
    print(f"\n{len(nouns)} nouns of one token, {len(lines)} lines of text. {LEGEND}")


def _words_of(text: Path) -> Counter[str]:
    return Counter(word for line in read_lines(text) for word in WORD.findall(line))


def _frequencies(
    nouns: Mapping[str, int],
    encoder: SegmentedEncoder,
    counts: Mapping[str, int] | None,
    text: Path | None,
) -> list[int]:
    """How often nouns stand in a text, or their tokens in that of the training."""
    if counts is None:
        found = [encoder.dictionary.count[token] for token in nouns.values()]
    else:
        found = [counts[noun] for noun in nouns]
    if len(set(found)) == 1:
        where = text or "the dictionary"
        raise UserError(f"{where} has all nouns equally often: name another text with --counts")
    return found
