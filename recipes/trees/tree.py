"""A random tree, and questions about it: which nodes are above both of two leaves?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recipes.common.exact import Example, Sets

LEVELS, CHILDREN = 6, (3, 5)
"""Levels of nodes, and fewest and most children of a node that is no leaf."""
SIZES = {"train": 20000, "valid": 1000, "test": 2000}
"""Questions of each set."""
SEED = 383
"""Of a tree of 1,590 nodes."""


@dataclass(frozen=True)
class Tree:
    """Nodes are numbers; the root is 0.

    Attributes:
        children: of each node.
        names: of each node, at random, so that they tell nothing of its place.
    """

    children: Sequence[Sequence[int]]
    names: Sequence[str]

    def leaves_below(self, node: int) -> list[int]:
        """The leaves of a node's subtree."""
        below = [leaf for child in self.children[node] for leaf in self.leaves_below(child)]
        return below or [node]

    def inner(self) -> list[list[tuple[int, ...]]]:
        """The paths from the root to all nodes that are no leaves, level by level."""
        levels: list[list[tuple[int, ...]]] = [[(0,)]]
        while any(self.children[path[-1]] for path in levels[-1]):
            levels.append([(*p, child) for p in levels[-1] for child in self.children[p[-1]]])
        return levels[:-1]


def make_tree(seed: int = SEED) -> Tree:
    """A tree whose leaves are all at the last level."""
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
    """Questions of two leaves, answered by the path from the root to their lowest common ancestor.

    The level of the ancestor is drawn first, all alike, then the ancestor, then the leaves below
    two of its children. No pair of leaves is in two sets, in whichever order; the training set may
    have one several times.
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
