"""WordNet's living things: from a noun's words and definition to its path in the hierarchy.

The answers form a real tree. Two test sets hold out single leaves and whole subtrees.
"""

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines
from recipes.common import exact, options
from recipes.common.exact import TEST, TWINS, VALID, Flags, Training
from recipes.common.grid import Grid
from recipes.trees.__main__ import FLAGS

HERE = Path(__file__).resolve().parent
FOLDER, FILE = "wordnet", "data.noun"
ROOT = "living_thing"
DEPTH = 6
"""Most nodes of an answer, the root included."""
SUBTREES = "subtrees"
"""The test set of leaves below held-out nodes; their answers end at the node above."""
SIZES = {VALID: 1000, TEST: 2000, SUBTREES: 1000}
SEED = 383
CELL, MODELS = "d32", (*TWINS, "sphere", "hybonet_plus")
RATES, UPDATES, SEEDS = (3e-3, 1e-2, 3e-2), 2000, (1, 2, 3, 4, 5)
_FLAGS: Flags = {**exact.size_flags(width=32, heads=2), **FLAGS, "--dropout": "0.1"}
_LINE = re.compile(r"(\d{8}) \d\d n ([0-9a-f]{2}) (.+?) \| (.+)")
_PARENT, _CHILD = re.compile(r"@ (\d{8}) n 0000"), re.compile(r"~i? (\d{8}) n 0000")


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the table."""
    parser = options.recipe_parser(HERE, __doc__, "--data /usr/share/wordnet --out ~/wordnet_runs")
    options.add_data(parser, f"WordNet 3.0's {FILE} (Debian: wordnet-base)", name=FOLDER)
    args = parser.parse_args(argv)
    exact.experiment(
        HERE, args, GRID.trainings, lambda _: make_sets(read_tree(args.data)), table
    ).run()


@dataclass(frozen=True)
class Noun:
    """A synset of nouns.

    Attributes:
        words: the words of its names and of its definition, in lower case.
        node: its name in answers: its first name and its key.
        parent: the first hypernym's key, None for the root and for instances.
    """

    words: Sequence[str]
    node: str
    parent: str | None


def read_tree(data: Path | None) -> Mapping[str, Noun]:
    """Return the nouns of ``data.noun`` by their key, which is their place in the file.

    Raises:
        UserError: the file is missing or cut off, or a line does not have WordNet's form.
    """
    data = options.required(data, f"WordNet's {FILE}", "nltk/nltk_data")
    path = options.file(data, FILE)
    found: dict[str, Noun] = {}
    children: set[str] = set()
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith("  "):
            continue  # the licence
        parts = _LINE.fullmatch(line.strip())
        if parts is None:
            raise UserError(f"{path}, line {number} is not a noun of WordNet's database")
        key, count, fields, gloss = parts.groups()
        # each word is followed by a number
        names = fields.split()[: 2 * int(count, 16) : 2]
        # examples of use follow the definition
        told = " ".join([*names, gloss.partition('; "')[0]]).replace("_", " ")
        words = re.findall(r"\w+", told.lower())
        children.update(_CHILD.findall(fields))
        parent = _PARENT.search(fields)
        found[key] = Noun(words, f"{names[0]}#{key}", parent[1] if parent else None)
    if lost := children - found.keys():
        raise UserError(f"{path} is cut off: it lacks noun {min(lost)}, among others")
    return found


def make_sets(nouns: Mapping[str, Noun]) -> exact.Sets:
    """Return questions about the leaves below :data:`ROOT`.

    A question is a leaf's words; the answer is the path from the root to its parent, cut off after
    :data:`DEPTH` nodes. Words that occur once in the training set are left out everywhere. All
    answers of the other sets occur in it. No leaf is in two sets.
    """
    paths = dict(_paths(nouns))
    draw = random.Random(SEED)
    below = defaultdict[str, list[str]](list)
    for leaf, path in paths.items():
        if len(path) > DEPTH:
            below[path[DEPTH]].append(leaf)
    leaves, subtrees = sorted(paths), [key for key, several in below.items() if len(several) > 2]
    draw.shuffle(leaves)
    draw.shuffle(subtrees)
    held: list[str] = []
    while subtrees and len(held) < SIZES[SUBTREES]:
        held += below[subtrees.pop()]
    chosen = dict.fromkeys(held, SUBTREES)
    left = [leaf for leaf in leaves if leaf not in chosen]
    for name in (VALID, TEST):
        chosen |= dict.fromkeys(left[: SIZES[name]], name)
        del left[: SIZES[name]]
    chosen |= dict.fromkeys(left, "train")
    known = Counter(word for leaf in left for word in nouns[leaf].words)
    answered = {paths[leaf][:DEPTH] for leaf in left}
    found = {name: list[exact.Example]() for name in ("train", *SIZES)}
    for leaf in leaves:
        path = paths[leaf][:DEPTH]
        question = " ".join(word for word in nouns[leaf].words if known[word] > 1)
        if question and path in answered:
            answer = " ".join(nouns[key].node for key in path)
            found[chosen[leaf]].append((question, answer, f"level_{len(path) - 1}"))
    return found


def _paths(nouns: Mapping[str, Noun]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each leaf below the root with the keys from the root to the leaf's parent."""
    children = defaultdict[str | None, list[str]](list)
    for key, noun in nouns.items():
        children[noun.parent].append(key)
    roots = [key for key, noun in nouns.items() if noun.node.partition("#")[0] == ROOT]
    if not roots:
        raise UserError(f"{FILE} has no {ROOT}; it is not WordNet's whole file")
    left: list[tuple[str, tuple[str, ...]]] = [(roots[0], ())]
    while left:
        key, path = left.pop()
        left += [(child, (*path, key)) for child in children[key]]
        if not children[key]:
            yield key, path


def _training(model: str, cell: str, rate: float) -> Training:
    answers = (VALID, TEST, SUBTREES)
    return Training("wordnet", model, cell, rate, UPDATES, SEEDS[0], _FLAGS, answers)


_TESTS = {"leaves": TEST, "subtrees": SUBTREES}
GRID = Grid("width", (CELL,), RATES, SEEDS, _training, {CELL: MODELS}, tests=_TESTS)
table = GRID.table


if __name__ == "__main__":
    sys.exit(run_command(main))
