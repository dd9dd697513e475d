"""Load models of this package and of fairseq: checkpoints and folders of ``hyptrans export``.

Reads only tensors, numbers and typed options, and calls nothing that a file holds.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyptrans.inference import architecture
from hyptrans.inference.contents import Contents
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.encoder import Tokens, device_of
from probing.text.pieces import place_pieces


def is_model_folder(place: Path) -> bool:
    """Return whether ``hyptrans export`` or this package's transformers classes wrote a folder."""
    try:
        folder.own_config(place)
    except UserError:
        return False
    return True


def build_model(contents: Contents, *, random: bool = False, seed: int = 1) -> Any:
    """Build the encoder-decoder in evaluation mode, with its own or fresh parameters.

    Raises:
        UserError: parameters and options do not fit together.
    """
    name, made_of = contents.architecture, (contents.dictionaries, contents.parameters)
    try:
        if not random:
            return architecture.build(name, contents.options, *made_of)
        architecture.outline(name, contents.options, *made_of)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = architecture.fresh(name, contents.options, contents.dictionaries)
            return model.eval().requires_grad_(False)
    except UserError as error:
        raise UserError(f"{contents.place} cannot be used: {error}") from error


class ModelEncoder:
    """The encoder of a translation model with end-of-sentence tokens; see ``WordEncoder``."""

    def __init__(self, contents: Contents, place: Path, *, random: bool, seed: int) -> None:
        self.module = build_model(contents, random=random, seed=seed).encoder
        self.name, self.identity = str(place), sha256(place)
        self.architecture = contents.architecture
        self.spaces = list(self.module.state_spaces())
        self.max_tokens = min(self.module.longest, sys.maxsize)
        words = contents.dictionaries[0]
        self._words, self.pad = words, words.pad()
        known = frozenset(words.symbols[words.nspecial :])
        self._cut: Callable[[str], list[str]] = contents.text.encoder(0, known)
        self._kind, self._escaped = contents.text.kind, contents.text.steps[0].tokenize
        self.width = self.states(torch.tensor([[words.eos()]]), torch.tensor([1])).size(-1)

    def tokenize(self, text: str) -> Tokens:
        """Return the subwords, each with its characters, and the end-of-sentence token."""
        pieces = self._cut(text)
        spans = place_pieces(text, pieces, self._kind, escaped=self._escaped)
        found = [(self._words.index(p), s) for p, s in zip(pieces, spans, strict=True)]
        return [*found, (self._words.eos(), (0, 0))]

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of all layers, on the device of the parameters."""
        return torch.stack(self.module(tokens.to(device_of(self.module))).states)
