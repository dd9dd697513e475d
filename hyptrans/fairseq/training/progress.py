"""Whether a training learns anything: its loss beside that of guessing."""

import math
from collections import Counter
from typing import Any

LEAST_UPDATES = 500
"""Before so many updates nothing is said."""
MEAN_OVER = 100
"""Updates whose losses are averaged."""
SAMPLE = 10_000
"""Sentences whose words are counted where a joined dictionary does not tell the languages apart."""
MARGIN = 0.1
"""In bits per token: a loss that is nearer than that to a guess is no better."""


class Progress:
    """Compares a training's loss with that of guessing words by how frequent they are.

    It speaks at twice as many updates as the learning rate has grown for, and each time their
    number has doubled.

    Args:
        guess: the entropy of the target words, in bits.
    """

    def __init__(self, guess: float) -> None:
        self.guess = guess
        self._top_rate = 0.0
        self._look_at = LEAST_UPDATES
        self._losses: list[float] = []

    def update(self, updates: int, rate: float, loss: float) -> str | None:
        """Take the loss of an update, in bits per token; return what is to be said, or None."""
        if rate > self._top_rate:
            self._top_rate = rate
            self._look_at = max(LEAST_UPDATES, 2 * updates)
        if updates <= self._look_at - MEAN_OVER:
            return None
        self._losses.append(loss)
        if updates < self._look_at:
            return None
        mean = sum(self._losses) / len(self._losses)
        self._losses.clear()
        self._look_at = 2 * updates
        if mean < self.guess - MARGIN:
            return None
        return (
            f"nothing is learned: after {updates} updates the loss, {mean:.2f} bits per token, is "
            f"no better than that of guessing words by how frequent they are ({self.guess:.2f}); "
            "another --lr may help, most often a lower one"
        )


def entropy(counts: list[int]) -> float:
    """Entropy in bits of drawing by these counts."""
    total = sum(counts)
    return -sum(n / total * math.log2(n / total) for n in counts if n)


def of_trainer(trainer: Any) -> Progress | None:
    """What watches a trainer, None where a task has no target words or no number of sentences."""
    words = getattr(trainer.task, "target_dictionary", None)
    sentences = trainer.task.datasets.get("train")
    if words is None or not hasattr(sentences, "__len__"):
        return None
    if words == getattr(trainer.task, "source_dictionary", None):
        # its counts are of both languages
        counts = _counted(sentences)
        return Progress(entropy(counts)) if counts else None
    counts = [n for n in words.count[words.nspecial :] if n > 0]
    # each sentence has one end, which the dictionary does not count
    return Progress(entropy([*counts, len(sentences)])) if counts else None


def _counted(sentences: Any) -> list[int]:
    """How often each target word is in sentences drawn evenly; none where they have no target."""
    targets = getattr(sentences, "tgt", None)
    if targets is None or not len(targets):
        return []
    counts: Counter[int] = Counter()
    for i in range(0, len(targets), -(-len(targets) // SAMPLE)):
        counts.update(targets[i].tolist())
    return list(counts.values())
