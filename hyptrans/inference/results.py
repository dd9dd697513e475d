"""What a translation model answers with."""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from hyptrans.geometry.space import Space


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: raw text.
        score: what beam search ranks by, ``log_probability`` over the number of subwords, the end
            of the sentence included, to the power of ``lenpen``.
        log_probability: of the whole translation, base e.
        subwords: of the text.
        log_probabilities: of each subword, and of the end of the sentence.
    """

    text: str
    score: float
    log_probability: float
    subwords: tuple[str, ...]
    log_probabilities: tuple[float, ...] = ()

    def as_json(self) -> dict[str, str | float]:
        """Return what a server answers: text, score and log-probability."""
        return {name: getattr(self, name) for name in ("text", "score", "log_probability")}


@dataclass(frozen=True)
class Encoding:
    """The encoder's states of one sentence.

    Attributes:
        subwords: ``T`` of them, the last the end of the sentence, ``</s>``.
        states: ``[layers + 1, T, D]``; first the embeddings with positions, last what the decoder
            attends to.
        spaces: the space that the states of each layer are points of, for ``hyptrans.geometry``.
    """

    subwords: tuple[str, ...]
    states: "Tensor"
    spaces: "tuple[Space, ...]"

    def to(self, device: "str | torch.device") -> "Encoding":
        """The same with its states on a device; they are made on the CPU."""
        return dataclasses.replace(self, states=self.states.to(device))


@dataclass(frozen=True)
class Alignment:
    """A source beside a given translation.

    Attributes:
        source: ``S`` subwords, the last the end of the sentence, ``</s>``.
        target: ``T`` subwords, likewise.
        weights: ``[T, S]``, what the decoder's last layer looks at as it writes each subword: a
            mean over its heads, and over the models of an ensemble.
        log_probabilities: of each subword of the target, base e.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: "Tensor"
    log_probabilities: tuple[float, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Each subword of the target with that of the source of the greatest weight, ends apart."""
        if not len(self.source) > 1:
            return []
        best = self.weights[:-1, :-1].argmax(1).tolist()
        return list(zip(best, range(len(best)), strict=True))
