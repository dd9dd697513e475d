"""Load models of this package and of fairseq: checkpoints and folders of ``hyptrans export``.

Reads only tensors, numbers and typed options, and calls nothing that a file holds.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyptrans.inference import architecture
from hyptrans.inference.contents import Contents
from hyptrans.inference.load import SHIPPED, read, shipped
from hyptrans.inference.plugin import import_plugin
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.encoder import Tokens, device_of
from probing.text.pieces import place_pieces


@dataclass(frozen=True)
class TextOptions:
    """How text becomes subwords if the data folder of a checkpoint does not say so.

    Attributes:
        sentencepiece_model: file of a sentencepiece model.
        bpe_codes: file of subword-nmt codes.
        moses: whether to tokenize and escape as Moses does.
        lowercase: whether to lower-case the text.
    """

    sentencepiece_model: Path | None = None
    bpe_codes: Path | None = None
    moses: bool = False
    lowercase: bool = False


def read_model(
    place: Path,
    data: Path | None = None,
    options: TextOptions | None = None,
    user_dir: str | None = None,
) -> Contents:
    """Read the parts that a model is built from.

    Args:
        place: checkpoint of ``fairseq-train``, or model folder.
        data: for a checkpoint, the folder that ``hyptrans prepare`` wrote, or its ``data-bin``.
        options: how text becomes subwords.
        user_dir: plug-in that registers the architecture.

    Raises:
        UserError: a part is missing or damaged, or parts do not fit together.
    """
    options = options or TextOptions()
    if user_dir is not None:
        import_plugin(user_dir)
    models = {"sentencepiece": options.sentencepiece_model, "subword-nmt": options.bpe_codes}
    named = {kind: model for kind, model in models.items() if model is not None}
    if options.lowercase and not named:
        raise UserError(
            "--lowercase goes with --sentencepiece-model or --bpe-codes: a prepared folder itself "
            "says what happens to text before subwords"
        )
    contents = read(place, data=data, subword_models=named, moses=options.moses)
    if options.lowercase:
        source, target = contents.text.steps
        steps = (replace(source, lowercase=True), target)
        contents = replace(contents, text=replace(contents.text, steps=steps))
    return contents


def place_of(name: str | Path) -> Path:
    """Return the file or folder of a name, which may be one of a model shipped in the package."""
    place = Path(name)
    return place if place.exists() or str(name) not in shipped() else SHIPPED / place


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
        self._words, self.pad, self.unknown = words, words.pad(), words.unk()
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
