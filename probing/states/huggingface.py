"""Encoders of Hugging Face's ``transformers``: a folder of ``save_pretrained``, or a model's name.

Only configurations, tokenizers and safetensors are read: no pickle, and no code that a model
brings. A name is looked up in the cache of that library, and fetched where the network allows it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError, out_of_memory
from hyptrans.support.extras import require
from hyptrans.support.files import sha256
from hyptrans_startup.guards.building import within_bytes
from probing.states import folder
from probing.states.encoder import Tokens
from probing.text.align import Piece, Span

_UNUSED = "pooler"
"""A part of some models that no state goes through; files of other tasks leave it out."""
_SPACES = ("\u2581", "\u0120")
"""Tokens that stand for a space alone, of sentencepiece and of byte-level BPE."""
_FAILURES = (OSError, ValueError, LookupError, TypeError, RuntimeError, ImportError, AttributeError)
"""What the library raises for files that it cannot use."""


class HuggingFaceEncoder:
    """An encoder whose tokenizer knows the characters of its tokens; states are flat vectors.

    Args:
        name: folder or name.
        identity: of its files.
        model: of ``AutoModel``; of an encoder-decoder, the encoder.
        tokenizer: of ``AutoTokenizer``, a fast one.
        random: the parameters are fresh ones.
        seed: of those.
    """

    def __init__(
        self, name: str, identity: str, model: Any, tokenizer: Any, *, random: bool, seed: int
    ) -> None:
        self._model, self._tokenizer = model.float().eval().requires_grad_(False), tokenizer
        self.name, self.identity, self.random, self.seed = name, identity, random, seed
        self.architecture = str(model.config.model_type)
        self.max_tokens = _max_tokens(model, tokenizer)
        self.pad = tokenizer.pad_token_id or 0
        self.unknown = tokenizer.unk_token_id
        first = torch.tensor([[number for number, _ in self.tokenize("a")]])
        states = self.states(first, torch.tensor([first.size(1)]))
        self.width = states.size(-1)
        self.spaces = [Space("euclidean")] * len(states)

    def tokenize(self, text: str) -> Tokens:
        """Tokens with the marks that the model was trained with.

        Raises:
            UserError: its tokenizer fails on the text.
        """
        try:
            found = self._tokenizer(text, return_offsets_mapping=True, verbose=False)
        except BaseException as error:
            # what its rules end with where they try too much; no class of it can be imported
            if type(error).__name__ != "PanicException":
                raise
            raise UserError(
                f"--hf {self.name}: its tokenizer fails on {text[:40]!r} ({error})"
            ) from error
        numbers, spans = found["input_ids"], found["offset_mapping"]
        names = self._tokenizer.convert_ids_to_tokens(numbers)
        return [
            (number, Piece(name, *self._characters(text, name, span)))
            for number, name, span in zip(numbers, names, spans, strict=True)
        ]

    @staticmethod
    def _characters(text: str, name: str, span: Span) -> Span:
        """Of a token; the space that is put before a sentence says it has the first one's."""
        put_in = name in _SPACES and text[slice(*span)] != name
        return (0, 0) if put_in else span

    def to(self, device: str) -> None:
        """Move the parameters."""
        self._model.to(device)

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """``hidden_states`` of the library, padding masked."""
        mask = torch.arange(tokens.size(1)) < lengths.unsqueeze(1)
        device = self._model.device
        out = self._model(
            input_ids=tokens.to(device),
            attention_mask=mask.long().to(device),
            output_hidden_states=True,
        )
        return torch.stack(tuple(out.hidden_states))


def library() -> ModuleType:
    """Hugging Face's library, quiet: what is wrong is told in an error."""
    try:
        importlib.import_module("torchaudio")
    except (ImportError, OSError):
        # fairseq brings it in a build that may not fit torch's, and the library, which would import
        # it for models of speech, takes one that is None for one that is not installed
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
    transformers = require("transformers", "transformers")
    # what it found, where it was imported before; some releases look once and for all
    getattr(transformers.utils.import_utils.is_torchaudio_available, "cache_clear", lambda: None)()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def from_hugging_face(name: str, *, random: bool = False, seed: int = 1) -> HuggingFaceEncoder:
    """The encoder of a folder that ``save_pretrained`` wrote, or of a model's name.

    Args:
        name: folder or name.
        random: take the architecture with fresh parameters.
        seed: of those.

    Raises:
        UserError: there is none, or it cannot be used; says why.
    """
    transformers = library()
    if Path(name).is_dir():
        folder.check(Path(name))
    # None would ask on the terminal whether the model's own code may run
    where = {"local_files_only": Path(name).is_dir(), "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **where)
        if random:
            config = transformers.AutoConfig.from_pretrained(name, **where)
            with torch.device("meta"), _within_parameters(name):
                # takes no memory, whatever the configuration says
                transformers.AutoModel.from_config(config, trust_remote_code=False)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = transformers.AutoModel.from_config(config, trust_remote_code=False)
            missing = set()
        else:
            with _within_parameters(name):
                model, loading = transformers.AutoModel.from_pretrained(
                    name, use_safetensors=True, output_loading_info=True, **where
                )
            missing = {key for key in loading["missing_keys"] if _UNUSED not in key}
    except _FAILURES as error:
        if out_of_memory(error):
            raise
        raise _unusable(name, error) from error
    if missing:
        raise UserError(
            f"--hf {name} lacks parameters of its own architecture ({sorted(missing)[0]} and "
            f"{len(missing) - 1} more): its files are of another model"
        )
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"--hf {name}: its tokenizer does not tell which characters a token has; save one of "
            "the tokenizers library (tokenizer.json) beside the model"
        )
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    known = identity(name)
    try:
        return HuggingFaceEncoder(name, known, model, tokenizer, random=random, seed=seed)
    except _FAILURES as error:
        if out_of_memory(error):
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"--hf {name} gives no states of layers for text ({reason}): an encoder or decoder of "
            "text is needed"
        ) from error


@contextmanager
def _within_parameters(name: str) -> Iterator[None]:
    """Build the model of a folder within what its parameters account for, if it has any.

    Raises:
        UserError: its configuration asks for more.
    """
    size = sum(file.stat().st_size for file in Path(name).glob("*.safetensors"))
    if not size:
        yield
        return
    try:
        with within_bytes(size):
            yield
    except UserError as error:
        raise UserError(f"--hf {name} cannot be used: {error}") from error


def identity(name: str) -> str:
    """The hash of a folder's files, or the commit of a model that has a name.

    Raises:
        UserError: there is no such folder or model.
    """
    if Path(name).is_dir():
        return sha256(Path(name))
    try:
        config = Path(library().utils.cached_file(name, "config.json"))
    except _FAILURES as error:
        raise _unusable(name, error) from error
    # the cache has a folder for each commit
    return f"{name}@{config.parent.name}"


def _unusable(name: str, error: Exception) -> UserError:
    reason = " ".join(str(error).split())
    return UserError(
        f"--hf {name} is neither a folder with config.json, tokenizer.json and model.safetensors "
        f"nor a model that can be fetched ({reason.rstrip('.')})"
    )


def _max_tokens(model: nn.Module, tokenizer: Any) -> int:
    """The least of what tokenizer, configuration and table of positions allow."""
    limits = [tokenizer.model_max_length]
    limits.append(getattr(model.config, "max_position_embeddings", None) or sys.maxsize)
    for place, table in model.named_modules():
        if place.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            # positions begin after that of padding, where it has one
            used = 0 if table.padding_idx is None else table.padding_idx + 1
            limits.append(table.num_embeddings - used)
    return int(min(limits))
