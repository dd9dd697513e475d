"""Write the states of an encoder for the words of a tree file."""

import argparse
from collections import Counter
from pathlib import Path

from hyptrans.support.errors import clean
from hyptrans.support.flags import add_device, add_out, add_seed
from probing.commands.options import check_counts
from probing.commands.sources import add_source_arguments, only_source, reading_of
from probing.states.extract import BATCH_TOKENS, extract
from probing.states.file import States
from probing.text.trees import read_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing extract``."""
    add_source_arguments(parser, several=False)
    add = parser.add_argument
    add(
        "--trees",
        type=Path,
        required=True,
        metavar="CONLLU",
        help="sentences, in CoNLL-U, plain or gzipped",
    )
    add_out(parser, "states to write, safetensors", required=True)
    add(
        "--random",
        action="store_true",
        help="the same architecture with fresh parameters, a baseline",
    )
    add_seed(parser, "of the fresh parameters")
    add_model_arguments(parser)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a checkpoint reads text."""
    add = parser.add_argument
    add(
        "--data-bin",
        type=Path,
        metavar="DIR",
        help="folder of the dictionaries, where it is not DIR/data-bin of --data",
    )
    add(
        "--sentencepiece-model",
        type=Path,
        metavar="FILE",
        help="sentencepiece model, where --data does not say how text becomes pieces",
    )
    add("--bpe-codes", type=Path, metavar="FILE", help="subword-nmt codes, likewise")
    add("--moses", action="store_true", help="tokenize and escape as Moses before, likewise")
    add("--lowercase", action="store_true", help="lower-case before, likewise")
    add(
        "--language",
        default="en",
        metavar="LANG",
        help="language of the Moses rules (default: %(default)s)",
    )
    add(
        "--user-dir",
        metavar="DIR",
        help="fairseq plug-in with the checkpoint's architecture, if it is not hyptrans",
    )
    add(
        "--batch-tokens",
        type=int,
        default=BATCH_TOKENS,
        metavar="N",
        help="most tokens that the encoder takes at once (default: %(default)s)",
    )
    add_device(parser)


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing extract``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    check_counts(args, "batch_tokens")
    source = only_source(args)
    sentences = read_conllu(args.trees)
    encoder = source.load(reading_of(args), random=args.random, seed=args.seed)
    states = extract(
        encoder,
        sentences,
        args.out,
        trees=args.trees,
        batch_tokens=args.batch_tokens,
        device=args.device,
    )
    print(summary(states))


def summary(states: States) -> str:
    """What a file of states holds, in lines for the terminal; sentences left out are listed."""
    words, layers = sum(states.lengths), states.layers
    left_out = states.contents.left_out
    total = len(states.kept) + len(left_out)
    lines = [
        f"{states.path}: {words} words of {len(states.kept)} of {total} sentences, {layers} layers "
        f"of {states.architecture}, width {states.width}"
    ]
    lines.append(
        f"words with a piece that the vocabulary lacks: {_share(states.contents.unknown, words)}; "
        f"of several pieces: {_share(states.contents.split, words)}"
    )
    if left_out:
        reasons = Counter(left.reason for left in left_out)
        lines.append(f"left out: {', '.join(f'{count} ({why})' for why, count in reasons.items())}")
        lines += [f"  {clean(left.id)} (sentence {left.index + 1})" for left in left_out]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / max(whole, 1):.1f} %)"
