"""Make a random tree and questions about it: which nodes are above both of two leaves?"""

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recipes.common.exact import Example, Sets

LEVELS, CHILDREN = 6, (3, 5)
"""Number of levels; fewest and most children of an inner node."""
SIZES = {"train": 20000, "valid": 1000, "test": 2000}
"""Number of questions in each set."""
SEED = 383
"""Seed of a tree with 1,590 nodes."""


@dataclass(frozen=True)
class Tree:
    """A tree whose nodes are numbers; the root is 0.

    Attributes:
        levels: paths from the root to all nodes, level by level; the leaves are the last level.
        names: random names of the nodes, which reveal nothing about their place.
    """

    levels: Sequence[Sequence[tuple[int, ...]]]
    names: Sequence[str]


def make_tree(seed: int = SEED) -> Tree:
    """Draw a tree whose leaves are all at the last level."""
    draw, count = random.Random(seed), itertools.count(1)
    levels: list[list[tuple[int, ...]]] = [[(0,)]]
    for _ in range(LEVELS - 1):
        children = ((path, draw.randint(*CHILDREN)) for path in levels[-1])
        levels.append([(*path, next(count)) for path, several in children for _ in range(several)])
    names = [f"n{number}" for number in range(next(count))]
    draw.shuffle(names)
    return Tree(levels, names)


def make_sets(tree: Tree, seed: int = SEED) -> Sets:
    """Draw pairs of leaves, with the path from the root to their lowest common ancestor as answer.

    First the level of the ancestor is drawn uniformly, then the ancestor, then a leaf below each of
    two of its children. No pair of leaves, in either order, is in two sets; the training set may
    contain a pair several times.
    """
    questions = _questions(tree, random.Random(seed))
    found: dict[str, list[Example]] = {}
    others: set[frozenset[str]] = set()
    for name in reversed(SIZES):
        found[name], seen = [], set[frozenset[str]]()
        while len(found[name]) < SIZES[name]:
            example = next(questions)
            pair = frozenset(example[0].split())
            if pair not in others and (name == "train" or pair not in seen):
                seen.add(pair)
                found[name].append(example)
        others |= seen
    return {name: found[name] for name in SIZES}


def _questions(tree: Tree, draw: random.Random) -> Iterator[Example]:
    children, leaves = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for *_, parent, child in itertools.chain.from_iterable(tree.levels[1:]):
        children[parent].append(child)
    for path in tree.levels[-1]:
        for node in path:
            leaves[node].append(path[-1])
    while True:
        level = draw.randrange(len(tree.levels) - 1)
        path = draw.choice(tree.levels[level])
        pair = [draw.choice(leaves[child]) for child in draw.sample(children[path[-1]], 2)]
        question, answer = (" ".join(tree.names[node] for node in part) for part in (pair, path))
        yield question, answer, f"level_{level}"
