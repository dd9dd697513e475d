"""What an extraction asks of an encoder."""

from typing import Any, Protocol, TypeVar

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

    def tokenize(self, text: str) -> Tokens:
        """All tokens of a sentence, as the encoder takes them."""

    def to(self, device: str) -> None:
        """Move to a device, as torch names it."""

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Shapes: tokens ``[B, T]``, padded, lengths ``[B]`` -> ``[layers, B, T, width]``."""


Movable = TypeVar("Movable", bound=WordEncoder | nn.Module)


def moved(part: Movable, device: str) -> Movable:
    """A model or encoder on a device.

    Raises:
        UserError: torch cannot use it.
    """
    try:
        part.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"--device {device} cannot be used ({reason})") from error
    return part
