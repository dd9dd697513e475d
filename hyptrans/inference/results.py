"""What a translation model answers with."""

from dataclasses import dataclass

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
    """

    text: str
    score: float
    log_probability: float
    subwords: tuple[str, ...]


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
    states: Tensor
    spaces: tuple[Space, ...]
