"""What an extraction asks of an encoder."""

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.text.pieces import Span

Tokens = list[tuple[int, Span]]
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
    module: nn.Module

    def tokenize(self, text: str) -> Tokens:
        """All tokens of a sentence, as the encoder takes them."""

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Shapes: tokens ``[B, T]``, padded, lengths ``[B]`` -> ``[layers, B, T, width]``."""


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
