"""States in memory with the interface of a file of states."""

import torch
from torch.nn.utils.rnn import pad_sequence

from hyptrans.geometry.space import Space


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
