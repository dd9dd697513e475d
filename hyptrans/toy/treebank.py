"""``hyptrans prepare toy``: parallel text of English and Tovari with gold trees for both sides.

The same options give the same bytes. ``valid`` and ``test`` are drawn first, so they are the same
for every size of ``train``; no English and no Tovari sentence occurs twice.
"""

import argparse
import sys
from collections.abc import Iterator

from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.support.flags import add_out, add_overwrite, add_seed, positive
from hyptrans.toy.grammar import Sampler
from hyptrans.toy.languages import Word, english, tovari

LANGUAGES = ("en", "qtv")  # qtv: a code of the range kept for private use
SIZES = {"valid": 400, "test": 500, "train": 20000}
MOST_WORDS = 12
"""Length of the longest sentence of either side, punctuation included."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_out(parser, "folder to write", folder=True, required=True)
    for split, size in SIZES.items():
        about = f"sentence pairs of the {split} set (default: %(default)s)"
        parser.add_argument(f"--{split}", type=positive, default=size, metavar="N", help=about)
    add_seed(parser, "seed of all sentences")
    add_overwrite(parser, "replace the files of an earlier run")


def main(args: argparse.Namespace) -> None:
    """Write the treebank.

    Raises:
        UserError: the folder already has a file of one of its names.
    """
    sides = [f"{language}{end}" for language in LANGUAGES for end in ("", ".conllu")]
    files = [args.out / f"{split}.{side}" for split in SIZES for side in sides]
    found = next((path for path in files if path.exists()), None)
    if found and not args.overwrite:
        raise UserError(f"{found} already exists: choose another --out, or --overwrite")
    drawn = pairs(args.seed)
    for split in SIZES:
        made = [next(drawn) for _ in range(getattr(args, split))]
        for language, trees in zip(LANGUAGES, zip(*made, strict=True), strict=True):
            path = args.out / f"{split}.{language}"
            write_whole(path, "".join(f"{text(tree)}\n" for tree in trees))
            blocks = (conllu(tree, f"{split}-{language}-{i}") for i, tree in enumerate(trees, 1))
            write_whole(path.with_name(f"{path.name}.conllu"), "".join(blocks))
    sys.stdout.write(f"{args.out}: written\n")


def pairs(seed: int = 1) -> Iterator[tuple[Word, Word]]:
    """Yield distinct sentences endlessly, in English and Tovari, in an order fixed by the seed."""
    sampler = Sampler(seed)
    seen: set[tuple[str, str]] = set()
    while True:
        meaning = sampler.sentence()
        pair = english(meaning), tovari(meaning)
        written = set(zip(LANGUAGES, map(text, pair), strict=True))
        words = max(len(list(tree.in_order())) for tree in pair)
        if words <= MOST_WORDS and not written & seen:
            seen |= written
            yield pair


def text(root: Word) -> str:
    """Return the sentence as it is written, without spaces before punctuation."""
    words = (word.form if word.upos == "PUNCT" else f" {word.form}" for word in root.in_order())
    return "".join(words)[1:]


def conllu(root: Word, sent_id: str) -> str:
    """Return the sentence in CoNLL-U, with an empty line at its end."""
    words = list(root.in_order())
    index = {id(word): i for i, word in enumerate(words, 1)}
    heads = {id(child): index[id(word)] for word in words for child in word.before + word.after}
    lines = [f"# sent_id = {sent_id}", f"# text = {text(root)}"]
    for i, word in enumerate(words, 1):
        columns = [str(i), word.form, word.lemma, word.upos, "_", "_"]
        glued = i < len(words) and words[i].upos == "PUNCT"
        columns += [str(heads.get(id(word), 0)), word.deprel, "_", "SpaceAfter=No" * glued or "_"]
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n\n"
