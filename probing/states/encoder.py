"""What an extraction asks of an encoder, and the encoders of fairseq checkpoints as such."""

from pathlib import Path
from typing import Protocol, TypeVar

from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.inference.states import all_states
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.checkpoint import LoadedEncoder, load_encoder
from probing.text import segment
from probing.text.align import Piece

Tokens = list[tuple[int, Piece]]
"""Numbers of tokens, each with its characters of the text; a mark of the end has none."""


class WordEncoder(Protocol):
    """An encoder in evaluation mode and its own way from text to tokens."""

    @property
    def name(self) -> str:
        """As the user named it."""

    @property
    def identity(self) -> str:
        """Another one where its parameters are others; a hash for files."""

    @property
    def architecture(self) -> str: ...
    @property
    def spaces(self) -> list[Space]:
        """Of each layer's states, the embeddings first."""

    @property
    def width(self) -> int:
        """Numbers per state."""

    @property
    def max_tokens(self) -> int:
        """Of a sentence, marks of its start and end included."""

    @property
    def pad(self) -> int:
        """Number of the token that fills up shorter sentences."""

    @property
    def unknown(self) -> int | None:
        """Number of the token that stands for what the vocabulary lacks."""

    @property
    def random(self) -> bool:
        """Parameters are fresh ones, drawn with ``seed``."""

    @property
    def seed(self) -> int: ...
    def tokenize(self, text: str) -> Tokens:
        """All tokens of a sentence, as the encoder takes them."""

    def to(self, device: str) -> None:
        """Move to a device, as torch names it."""

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Shapes: tokens ``[B, T]``, padded, lengths ``[B]`` -> ``[layers, B, T, width]``."""


Movable = TypeVar("Movable", WordEncoder, nn.Module)


class CheckpointEncoder:
    """An encoder of :func:`probing.states.checkpoint.load_encoder` with its pieces."""

    def __init__(self, loaded: LoadedEncoder, segmenter: segment.Segmenter) -> None:
        self._loaded, self._segmenter = loaded, segmenter
        self.name, self.identity = str(loaded.path), sha256(loaded.path)
        self.architecture, self.spaces = loaded.architecture, loaded.spaces
        self.width, self.max_tokens = loaded.width, loaded.max_positions
        self.pad, self.unknown = loaded.dictionary.pad(), loaded.dictionary.unk()
        self.random, self.seed = loaded.random, loaded.seed

    def tokenize(self, text: str) -> Tokens:
        """The pieces and the end of sentence."""
        dictionary = self._loaded.dictionary
        found = [(dictionary.index(piece.text), piece) for piece in self._segmenter(text)]
        return [*found, (dictionary.eos(), Piece("", 0, 0))]

    def to(self, device: str) -> None:
        """Move the parameters."""
        self._loaded.encoder.to(device)

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """As :func:`hyptrans.inference.states.all_states`, which counts lengths itself."""
        device = next(self._loaded.encoder.parameters()).device
        return all_states(self._loaded.encoder, tokens.to(device))


def from_checkpoint(
    checkpoint: Path,
    *,
    data: Path | None = None,
    random: bool = False,
    seed: int = 1,
    user_dir: str | None = None,
    pieces: segment.Options | None = None,
) -> CheckpointEncoder:
    """The encoder of a checkpoint of fairseq.

    Args:
        checkpoint: file that ``fairseq-train`` wrote.
        data: folder that ``data-prep/`` wrote for the checkpoint.
        random: take the architecture with fresh parameters.
        seed: of those.
        user_dir: plug-in that has the architecture.
        pieces: how text becomes pieces, in place of what ``data`` says.

    Raises:
        UserError: a file, flag or value that is wrong.
    """
    options = pieces or segment.Options()
    dictionaries = options.data_bin or data
    if dictionaries is None:
        raise UserError("the dictionaries are missing: name a folder with --data or --data-bin")
    loaded = load_encoder(checkpoint, dictionaries, random=random, seed=seed, user_dir=user_dir)
    if options.sentencepiece_model or options.bpe_codes or data is None:
        segmenter = segment.from_options(options, loaded.dictionary)
    else:
        segmenter = segment.from_prepared(data, loaded.language, loaded.dictionary)
    return CheckpointEncoder(loaded, segmenter)


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
