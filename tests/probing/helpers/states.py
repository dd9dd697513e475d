"""States in memory: any, and isometric embeddings of known trees, hidden by a rotation."""

import torch
from torch.nn.utils.rnn import pad_sequence

from hyptrans.geometry import poincare
from hyptrans.geometry.space import Space
from probing.probes.corpus import Corpus
from tests.probing.helpers.trees import random_heads, sentence_of


class MemoryStates:
    """Made of one tensor ``[layers, words, width]`` for every sentence."""

    architecture = "none"

    def __init__(self, states, spaces=None, kept=None):
        self.states = states
        self.layers, _, self.width = states[0].shape
        self.spaces = spaces or [Space("euclidean")] * self.layers
        self.kept = list(range(len(states))) if kept is None else kept
        self.lengths = [part.size(1) for part in states]

    def __len__(self):
        return len(self.states)

    def sentence(self, i):
        return self.states[i]

    def batch(self, indices):
        chosen = [self.states[i].transpose(0, 1) for i in indices]
        padded = pad_sequence(chosen, batch_first=True).permute(2, 0, 1, 3).contiguous()
        return padded, torch.tensor([len(part) for part in chosen])


LONGEST = 10
WIDTH = 16


def square_root_embedding(heads):
    """Vectors whose squared distances are those of the tree, and squared norms the depths.

    Every edge has a coordinate of its own, and a word has a one for each edge above it.
    """
    vectors = torch.zeros(len(heads), max(len(heads), WIDTH - 2))
    for word in range(len(heads)):
        at = word
        while heads[at] >= 0:
            vectors[word, at] = 1
            at = heads[at]
    return vectors


def horosphere(vectors):
    """Points of the Lorentz model with ``d2_L(p, q) = |v - w|^2`` and ``d2_L(p, o) = |v|^2``."""
    half = vectors.square().sum(-1, keepdim=True) / 2
    return torch.cat([1 + half, half, vectors], dim=-1)


def planted(count, kind, *, seed):
    """A corpus of random trees: layer 0 has planted states, layer 1 the same of shuffled words."""
    rng = torch.Generator().manual_seed(seed)
    # one rotation for every corpus
    square = torch.randn(WIDTH - 1, WIDTH - 1, generator=torch.Generator().manual_seed(7))
    rotation = torch.linalg.qr(square).Q
    sentences, states = [], []
    for i in range(count):
        n = int(torch.randint(5, LONGEST + 1, (1,), generator=rng))
        heads = random_heads(n, seed=seed * 100_000 + i)
        points = horosphere(square_root_embedding(heads))
        if kind == "euclidean":
            points = torch.nn.functional.pad(points[:, 2:], (0, 1))
        points = torch.cat([points[:, : -(WIDTH - 1)], points[:, -(WIDTH - 1) :] @ rotation], -1)
        if kind == "poincare":
            points = poincare.from_lorentz(points)
        sentences.append(sentence_of(heads))
        states.append(torch.stack([points, points[torch.randperm(n, generator=rng)]]))
    return Corpus(MemoryStates(states, [Space(kind)] * 2), sentences)
