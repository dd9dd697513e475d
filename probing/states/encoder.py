"""What an extraction asks of an encoder."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.text.align import Piece

Tokens = list[tuple[int, Piece]]
"""Numbers of tokens, each with its characters of the text; a mark of the end has none."""


class WordEncoder(Protocol):
    """An encoder in evaluation mode and its own way from text to tokens.

    Attributes:
        name: as the user named it.
        identity: another one where its parameters are others; a hash for files.
        architecture: name.
        spaces: of each layer's states, the embeddings first.
        width: numbers per state.
        max_tokens: of a sentence, marks of its start and end included.
        pad: number of the token that fills up shorter sentences.
        unknown: number of the token that stands for what the vocabulary lacks.
        random: parameters are fresh ones, drawn with ``seed``.
        seed: of those.
        module: has the parameters; where these are, states are computed.
    """

    name: str
    identity: str
    architecture: str
    spaces: list[Space]
    width: int
    max_tokens: int
    pad: int
    unknown: Any
    random: bool
    seed: int
    module: nn.Module

    def tokenize(self, text: str) -> Tokens:
        """All tokens of a sentence, as the encoder takes them."""

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Shapes: tokens ``[B, T]``, padded, lengths ``[B]`` -> ``[layers, B, T, width]``."""


@dataclass
class SegmentedEncoder:
    """A :class:`WordEncoder` of a dictionary's pieces, whose sentences have a mark at their end.

    Attributes:
        dictionary: numbers of the pieces.
        segmenter: text to pieces.
        run: tokens ``[B, T]``, where padding is seen, to states ``[layers, B, T, width]``.
    """

    name: str
    identity: str
    architecture: str
    spaces: list[Space]
    max_tokens: int
    random: bool
    seed: int
    module: nn.Module
    dictionary: Any
    segmenter: Callable[[str], list[Piece]]
    run: Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        self.pad, self.unknown = self.dictionary.pad(), self.dictionary.unk()
        end = torch.tensor([[self.dictionary.eos()]])
        self.width = self.states(end, torch.tensor([1])).size(-1)

    def tokenize(self, text: str) -> Tokens:
        """The pieces and the end of sentence."""
        found = [(self.dictionary.index(piece.text), piece) for piece in self.segmenter(text)]
        return [*found, (self.dictionary.eos(), Piece("", 0, 0))]

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Of all layers, on the device of the parameters."""
        return self.run(tokens.to(device_of(self.module)))


def device_of(part: nn.Module) -> torch.device:
    """Where the parameters of a model are."""
    return next(part.parameters()).device


Part = TypeVar("Part", bound=nn.Module)


def moved(part: Part, device: str) -> Part:
    """A model, or a part of one, on a device as torch names it.

    Raises:
        UserError: torch cannot use it.
    """
    try:
        part.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"--device {device} cannot be used ({reason})") from error
    return part
