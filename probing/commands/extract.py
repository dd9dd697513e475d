"""Write the states of an encoder for the words of a tree file."""

import argparse
from collections import Counter

from hyptrans.support.errors import clean
from probing.commands.sources import only_source
from probing.states.extract import extract
from probing.states.file import States
from probing.text.trees import read_conllu


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing extract``.

    Raises:
        UserError: an option or what it names cannot be used.
    """
    source = only_source(args)
    sentences = read_conllu(args.trees)
    encoder = source.load(random=args.random, seed=args.seed)
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
