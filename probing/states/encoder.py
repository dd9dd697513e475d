"""The interface that an encoder offers to an extraction of states."""

from typing import Protocol

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from probing.text.pieces import Span

Tokens = list[tuple[int, Span]]
"""Token indices, each with its span of the text; an end-of-sentence token has no characters."""


class WordEncoder(Protocol):
    """An encoder in evaluation mode with its own tokenization.

    Attributes:
        name: name that the user gave.
        identity: differs if the parameters differ; a hash for files.
        architecture: name of the architecture.
        spaces: space of each layer's states, the embeddings first.
        width: numbers per state.
        max_tokens: most tokens of a sentence, including those of its start and end.
        pad: index of the padding token.
        module: holds the parameters; computes states on their device.
    """

    name: str
    identity: str
    architecture: str
    spaces: list[Space]
    width: int
    max_tokens: int
    pad: int
    module: nn.Module

    def tokenize(self, text: str) -> Tokens:
        """Return all tokens of a sentence as the encoder takes them."""

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return states: padded tokens ``[B, T]``, lengths ``[B]`` -> ``[layers, B, T, width]``."""


def device_of(part: nn.Module) -> torch.device:
    """Return the device of a model's parameters."""
    return next(part.parameters()).device


def move(part: nn.Module, device: str) -> None:
    """Move a model, or a part of one, to a device named as in torch.

    Raises:
        UserError: torch cannot use the device.
    """
    try:
        part.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"--device {device} cannot be used ({reason})") from error
