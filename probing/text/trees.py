"""Read and check dependency trees in CoNLL-U, and compute distances in them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import conllu
import numpy as np
from conllu.exceptions import ParseException
from scipy.sparse import coo_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import (  # type: ignore[import-untyped]
    connected_components,
    minimum_spanning_tree,
)

from hyptrans.support.errors import UserError
from hyptrans.support.lines import read_lines

MOST_LINES = 100_000
"""Most lines of a sentence; sentences of corpora have hundreds at most."""
LONGEST_LINE = 100_000
"""Most characters of a line; the parser needs two thousand times as much memory."""


@dataclass(frozen=True)
class Token:
    """A token as written; it has one or more words (CoNLL-U's ``1-2``: *don't* = *do* + *n't*)."""

    form: str
    first: int
    """Index of its first word, from 0."""
    last: int
    """Index of its last word."""
    space_after: bool


@dataclass(frozen=True)
class Sentence:
    """A sentence and its tree, without empty nodes (``1.1``)."""

    id: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    """Index of the head of every word, from 0; -1 for the root."""
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    """``_`` where the file has none."""
    tokens: tuple[Token, ...]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def root(self) -> int:
        """Return the index of the word without a head."""
        return self.heads.index(-1)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Return the undirected edges ``(i, j)``, ``i < j``."""
        return [(min(i, h), max(i, h)) for i, h in enumerate(self.heads) if h >= 0]


def read_conllu(path: Path) -> list[Sentence]:
    """Read a CoNLL-U file, plain or gzipped.

    Raises:
        UserError: the file or one of its trees is unusable; names the sentence and its line.
    """
    sentences = [_sentence(block, f"{path}, line {line}") for line, block in _blocks(path)]
    if not sentences:
        raise UserError(f"{path} has no sentences, a file in CoNLL-U is needed")
    return sentences


def _blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each sentence's first line, and its text."""
    start, lines = 1, list[str]()
    for number, line in enumerate(chain(read_lines(path, may_be_empty=True), [""]), 1):
        if len(line) > LONGEST_LINE or len(lines) > MOST_LINES:
            raise UserError(
                f"{path}, line {number}: a sentence has at most {MOST_LINES:,} lines of at most "
                f"{LONGEST_LINE:,} characters: leave it out"
            )
        if line.strip():
            lines.append(line)
            continue
        if any(not line.startswith("#") for line in lines):
            yield start, "\n".join(lines) + "\n"
        start, lines = number + 1, []


def _sentence(block: str, where: str) -> Sentence:
    try:
        (rows,) = conllu.parse(block)
    except (ParseException, ValueError) as error:
        # after a colon the message quotes the input
        reason = str(error).partition("\n")[0].partition(":")[0].rstrip(".")
        raise UserError(f"{where}: not CoNLL-U ({reason})") from error
    name = rows.metadata.get("sent_id") or where
    where = f"{where} (sentence {name})" if name != where else where
    if not all(row.keys() >= {"id", "form", "upos", "xpos", "head", "misc"} for row in rows):
        raise UserError(f"{where}: a line has fewer than the ten columns of CoNLL-U")
    words = [row for row in rows if isinstance(row["id"], int)]
    if not words or [row["id"] for row in words] != list(range(1, len(words) + 1)):
        raise UserError(f"{where}: words must be numbered 1, 2, 3 and so on")
    return Sentence(
        id=name,
        words=tuple(row["form"] for row in words),
        heads=_heads([row["head"] for row in words], where),
        upos=tuple(row["upos"] or "_" for row in words),
        xpos=tuple(row["xpos"] or "_" for row in words),
        tokens=tuple(_tokens(rows, len(words), where)),
    )


def _tokens(rows: Any, words: int, where: str) -> Iterator[Token]:
    glued = {row["id"] for row in rows if (row["misc"] or {}).get("SpaceAfter") == "No"}
    covered = 0
    for row in rows:
        number = row["id"]
        if isinstance(number, int):
            first = last = number
        elif number[1] == "-":
            first, last = number[0], number[2]
            if not covered < first <= last <= words:
                raise UserError(f"{where}: the multiword token {first}-{last} has no such words")
        else:
            continue
        if last > covered:
            # some treebanks put SpaceAfter on the multiword token, others on its last word
            yield Token(row["form"], first - 1, last - 1, not glued & {number, last})
            covered = last


def _heads(numbers: list[int | None], where: str) -> tuple[int, ...]:
    """Check that the heads, numbered from 1, form a tree; return them numbered from 0."""
    for i, head in enumerate(numbers, 1):
        if head is None:
            raise UserError(f"{where}: word {i} has no head; gold or parsed trees are needed")
        if not 0 <= head <= len(numbers):
            raise UserError(f"{where}: word {i} has head {head} in {len(numbers)} words")
    heads = tuple(head - 1 for head in numbers if head is not None)
    roots = [i for i, head in enumerate(heads, 1) if head < 0]
    if len(roots) != 1:
        found = f"{len(roots)} roots (words {', '.join(map(str, roots))})" if roots else "no root"
        raise UserError(f"{where}: the tree has {found}, one is needed")
    dependents = [i for i, head in enumerate(heads) if head >= 0]
    edges = (np.ones(len(dependents)), (dependents, [heads[i] for i in dependents]))
    graph = coo_array(edges, shape=(len(heads), len(heads)))
    parts, part_of = connected_components(graph, directed=False)
    if parts > 1:
        # each part but the root's has as many edges as words
        word = int(np.argmax(part_of != part_of[heads.index(-1)])) + 1
        raise UserError(f"{where}: from word {word}, the heads go round in a cycle")
    return heads


def distance_matrix(heads: tuple[int, ...]) -> np.ndarray:
    """Return the number of edges between every two words of a tree, ``[n, n]``, int64.

    Two words are as far apart as their depths minus twice that of their lowest common ancestor.
    """
    n = len(heads)
    # marks each word and its ancestors; the last column absorbs the root's head, -1
    path = np.zeros((n, n + 1), dtype=np.float32)
    rows, parents = np.arange(n), np.array([*heads, -1])
    above = rows
    while above.max() >= 0:
        path[rows, above] = 1
        above = parents[above]
    shared = path[:, :n] @ path[:, :n].T
    lengths = shared.diagonal()
    return (lengths[:, None] + lengths - 2 * shared).astype(np.int64)


def minimum_spanning_edges(distances: np.ndarray, keep: np.ndarray) -> set[tuple[int, int]]:
    """Return the minimum spanning tree over the words to keep; the first pair of a tie wins.

    Only the order of distances matters, so ranks replace them: no zero distance counts as a missing
    edge, and no two edges tie. Hewitt and Manning's code breaks ties in the same way.

    Shapes: distances ``[n, n]``, only the upper triangle is read; keep ``[n]``, bool
    -> pairs ``(i, j)``, ``i < j``.
    """
    kept = np.flatnonzero(keep)
    i, j = np.triu_indices(len(kept), k=1)
    if not len(i):
        return set()
    ranks = np.empty(len(i))
    ranks[np.argsort(distances[kept[i], kept[j]], kind="stable")] = np.arange(1, len(i) + 1)
    graph = np.zeros((len(kept), len(kept)))
    graph[i, j] = ranks
    tree = minimum_spanning_tree(graph, overwrite=True).tocoo()
    pairs = np.sort(kept[np.stack([tree.row, tree.col], axis=1)], axis=1)
    return {(int(a), int(b)) for a, b in pairs}
