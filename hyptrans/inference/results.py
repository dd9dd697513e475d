"""The results that a translation model returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from hyptrans.geometry.space import Space


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: raw text.
        score: the score that beam search ranks by: ``log_probability`` divided by ``n ** lenpen``
            for ``n`` subwords, the end of the sentence included.
        log_probability: log-probability of the whole translation, base e.
        subwords: subwords of the text.
        log_probabilities: those of each subword and of the end of the sentence.
    """

    text: str
    score: float
    log_probability: float
    subwords: tuple[str, ...]
    log_probabilities: tuple[float, ...] = ()

    def as_json(self) -> dict[str, str | float]:
        """Return what the server sends: text, score and log-probability."""
        return {name: getattr(self, name) for name in ("text", "score", "log_probability")}


@dataclass(frozen=True)
class Encoding:
    """The encoder's states of one sentence.

    Attributes:
        subwords: ``T`` subwords, the last one the end of the sentence, ``</s>``.
        states: ``[layers + 1, T, D]``, on the CPU; first the embeddings with positions, last the
            states that the decoder attends to.
        spaces: the space of each layer's states, for ``hyptrans.geometry``.
    """

    subwords: tuple[str, ...]
    states: "Tensor"
    spaces: "tuple[Space, ...]"


@dataclass(frozen=True)
class Alignment:
    """A source aligned with a given translation.

    Attributes:
        source: ``S`` subwords, the last one the end of the sentence, ``</s>``.
        target: ``T`` subwords, likewise.
        weights: ``[T, S]``, attention of the decoder's last layer to the source for each subword,
            averaged over its heads and over the models of an ensemble.
        log_probabilities: those of each subword of the target, base e.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: "Tensor"
    log_probabilities: tuple[float, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs (source, target) of indices: each target's source of largest weight; no ends."""
        if not len(self.source) > 1:
            return []
        best = self.weights[:-1, :-1].argmax(1).tolist()
        return list(zip(best, range(len(best)), strict=True))
