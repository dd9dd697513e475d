"""Make a random tree and questions about it: which nodes are above both of two leaves?"""

from __future__ import annotations

import random
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
        children: children of each node.
        names: random names of the nodes, which reveal nothing about their place.
    """

    children: Sequence[Sequence[int]]
    names: Sequence[str]

    def leaves_below(self, node: int) -> list[int]:
        """Return the leaves of a node's subtree."""
        below = [leaf for child in self.children[node] for leaf in self.leaves_below(child)]
        return below or [node]

    def inner(self) -> list[list[tuple[int, ...]]]:
        """Return the paths from the root to all inner nodes, level by level."""
        levels: list[list[tuple[int, ...]]] = [[(0,)]]
        while any(self.children[path[-1]] for path in levels[-1]):
            levels.append([(*p, child) for p in levels[-1] for child in self.children[p[-1]]])
        return levels[:-1]


def make_tree(seed: int = SEED) -> Tree:
    """Draw a tree whose leaves are all at the last level."""
    draw = random.Random(seed)
    children: list[list[int]] = [[]]
    level = [0]
    for _ in range(LEVELS - 1):
        below = []
        for node in level:
            for _ in range(draw.randint(*CHILDREN)):
                children[node].append(len(children))
                below.append(len(children))
                children.append([])
        level = below
    names = [f"n{number}" for number in range(len(children))]
    draw.shuffle(names)
    return Tree(children, names)


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
    levels = tree.inner()
    below = [tree.leaves_below(node) for node in range(len(tree.children))]
    while True:
        level = draw.randrange(len(levels))
        path = draw.choice(levels[level])
        children = draw.sample(tree.children[path[-1]], 2)
        leaves = [draw.choice(below[child]) for child in children]
        question, answer = (" ".join(tree.names[node] for node in part) for part in (leaves, path))
        yield question, answer, f"level_{level}"
