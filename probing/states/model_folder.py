"""The encoder of a model folder that ``hyptrans export`` wrote; its states keep their spaces."""

from pathlib import Path

import torch
from torch import Tensor

from hyptrans.inference import architecture
from hyptrans.inference.contents import Contents
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.encoder import Tokens
from probing.text import segment
from probing.text.align import Piece


class ModelFolderEncoder:
    """The encoder of a model with its pieces.

    Args:
        contents: of the folder.
        random: the parameters are fresh ones, drawn with ``seed``.
        seed: of those.

    Raises:
        UserError: parts of the contents do not go together.
    """

    def __init__(self, contents: Contents, *, random: bool, seed: int) -> None:
        self.name, self.architecture = contents.place, contents.architecture
        self.identity, self.random, self.seed = sha256(Path(self.name)), random, seed
        made_of = (contents.dictionaries, contents.parameters)
        try:
            if random:
                cfg = architecture.checked(self.architecture, contents.options, *made_of)
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed)
                    model = architecture.fresh(self.architecture, cfg, *made_of)
            else:
                model = architecture.build(self.architecture, contents.options, *made_of)
        except UserError as error:
            raise UserError(f"--hf {self.name} cannot be used: {error}") from error
        self._encoder = model.encoder.eval().requires_grad_(False)
        self._words, text = contents.dictionaries[0], contents.text
        known = frozenset(self._words.symbols[self._words.nspecial :])
        self._segmenter = segment.Segmenter(
            text.steps[0],
            raw_text=text.raw_text,
            kind=text.kind,
            model=text.model,
            spell_out=lambda piece: piece not in known,
        )
        self.spaces, self.max_tokens = list(self._encoder.state_spaces()), self._encoder.longest
        self.pad, self.unknown = self._words.pad(), self._words.unk()
        end = torch.tensor([[self._words.eos()]])
        self.width = self.states(end, torch.tensor([1])).size(-1)

    def tokenize(self, text: str) -> Tokens:
        """The pieces and the end of sentence."""
        found = [(self._words.index(piece.text), piece) for piece in self._segmenter(text)]
        return [*found, (self._words.eos(), Piece("", 0, 0))]

    def to(self, device: str) -> None:
        """Move the parameters."""
        self._encoder.to(device)

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Of all layers; padding is seen in the tokens."""
        device = next(self._encoder.parameters()).device
        return torch.stack(self._encoder(tokens.to(device)).states)


def is_model_folder(place: Path) -> bool:
    """Whether ``hyptrans export`` or this package's door to transformers wrote a folder."""
    try:
        folder.own_config(place)
    except UserError:
        return False
    return True


def from_model_folder(place: Path, *, random: bool = False, seed: int = 1) -> ModelFolderEncoder:
    """The encoder of a folder, or its architecture with fresh parameters.

    Raises:
        UserError: a file is missing, damaged, or of another version.
    """
    return ModelFolderEncoder(folder.read(place), random=random, seed=seed)
