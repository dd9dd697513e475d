"""Load encoders of Hugging Face's ``transformers`` from a folder of ``save_pretrained`` or by name.

Reads only configurations, tokenizers and safetensors: no pickle, and no code that comes with a
model. The hub's library finds a name in its cache, or fetches it; nothing is fetched for a folder.
"""

import importlib
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError, out_of_memory, unquoted
from hyptrans.support.extras import require
from hyptrans.support.files import sha256
from probing.states.encoder import Tokens

_UNUSED = "pooler"
"""A part of some models that no state depends on; models of other tasks lack its parameters."""
_SPACES = ("\u2581", "\u0120")
"""Tokens of a lone space in sentencepiece and in byte-level BPE."""
_FILES = ("*.json", "*.txt", "*.model", "*.codes", "model*.safetensors")
"""Files of a model on the hub that are fetched: configuration, tokenizer and parameters."""
_OPTIONS = {"trust_remote_code": False, "attn_implementation": "eager"}
"""Fetch no code for a model, nor a kernel for its attention, whatever its configuration says.

None, the library's default for ``trust_remote_code``, would ask on the terminal for permission.
"""
_LEAST_PARAMETERS = 1 << 24
"""Parameters that a configuration may always ask for, however small its folder's files are."""
_MOST_CHARACTERS = 240
"""Most characters of a reason; some list every valid value."""


class HuggingFaceEncoder:
    """An encoder of ``AutoModel`` with a fast tokenizer, which knows the characters of its tokens.

    Its states are flat vectors. Messages call it ``name``.
    """

    pad = 0  # padding is masked, so any token will do

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        self.module, self._tokenizer = model.float().eval().requires_grad_(False), tokenizer
        self.name, self.identity = name, identity
        self.architecture = str(model.config.model_type)
        self.max_tokens = _max_tokens(model, tokenizer)
        first = torch.tensor([[number for number, _ in self.tokenize("a")]])
        states = self.states(first, torch.tensor([first.size(1)]))
        self.width = states.size(-1)
        self.spaces = [Space("euclidean")] * len(states)

    def tokenize(self, text: str) -> Tokens:
        """Tokenize a text, with the special tokens that the model was trained with.

        A space that the tokenizer adds gets no characters, although the tokenizer assigns it the
        first.

        Raises:
            UserError: the tokenizer fails on the text.
        """
        with _failing(f"--hf {self.name}: its tokenizer fails on {text[:40]!r}"):
            found = self._tokenizer(text, return_offsets_mapping=True, verbose=False)
            numbers, spans = found["input_ids"], found["offset_mapping"]
            names = self._tokenizer.convert_ids_to_tokens(numbers)
        return [
            (number, (0, 0) if name in _SPACES and text[slice(*span)] != name else span)
            for number, name, span in zip(numbers, names, spans, strict=True)
        ]

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the library's ``hidden_states`` of all layers, with padding masked.

        Raises:
            UserError: the model fails, as on more tokens than it has positions for, or on a token
                that only its tokenizer has.
        """
        mask = torch.arange(tokens.size(1)) < lengths.unsqueeze(1)
        device = self.module.device
        with _failing(f"--hf {self.name} gives no states of layers for text"):
            out = self.module(
                input_ids=tokens.to(device),
                attention_mask=mask.long().to(device),
                output_hidden_states=True,
            )
            return torch.stack(tuple(out.hidden_states))


def library() -> ModuleType:
    """Import Hugging Face's library and silence its messages; errors report what is wrong."""
    transformers = require("transformers", "transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Say ``what`` failed, and why, in place of whatever the library raises but lack of memory."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # a panic of Rust code is not an Exception, and its class cannot be imported
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, Exception)) or out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {unquoted(error)}"
        raise UserError(f"{what} ({textwrap.shorten(reason, _MOST_CHARACTERS)})") from error


def folder_of(name: str) -> Path:
    """Return a model's folder; that of a name on the hub lies in the cache of the hub's library.

    Raises:
        UserError: there is no such folder or model.
    """
    if Path(name).is_dir():
        return Path(name)
    hub = require("huggingface_hub", "transformers")
    with _failing(f"--hf {name} is neither a folder nor a model that can be fetched"):
        # models on the hub keep other formats in folders
        found = hub.snapshot_download(name, allow_patterns=_FILES, ignore_patterns="*/*")
    return Path(found)


def from_hugging_face(
    folder: Path, *, name: str = "", random: bool = False, seed: int = 1
) -> HuggingFaceEncoder:
    """Load the encoder from a folder that ``save_pretrained`` wrote, by default called like it.

    If it is to be ``random``, it gets fresh parameters, drawn with ``seed``.

    Raises:
        UserError: the encoder cannot be used; says why.
    """
    transformers, name = library(), name or str(folder)
    with _failing(f"--hf {name} cannot be used"), _without_network():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        _check_size(name, folder, config)
        if random:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = transformers.AutoModel.from_config(config, **_OPTIONS)
        else:
            model, loading = transformers.AutoModel.from_pretrained(
                folder, config=config, use_safetensors=True, output_loading_info=True, **_OPTIONS
            )
            missing = sorted(key for key in loading["missing_keys"] if _UNUSED not in key)
            if missing:
                raise UserError(
                    f"--hf {name} lacks parameters of its own architecture ({missing[0]} and "
                    f"{len(missing) - 1} more): its files are of another model"
                )
        if not getattr(tokenizer, "is_fast", False):
            raise UserError(
                f"--hf {name}: its tokenizer does not tell which characters a token has; save one "
                "of the tokenizers library (tokenizer.json) beside the model"
            )
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        return HuggingFaceEncoder(name, identity(folder), model, tokenizer)


def identity(folder: Path) -> str:
    """Return the hash of a folder's files, or the commit of a model in the hub's cache."""
    # the cache has a folder for each commit
    return folder.name if folder.parent.name == "snapshots" else sha256(folder)


def _check_size(name: str, folder: Path, config: Any) -> None:
    """Refuse a configuration that asks for more parameters than its folder's files have bytes."""
    held = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    most, built = max(held, _LEAST_PARAMETERS), 0

    def count(module: nn.Module, key: str, parameter: Tensor) -> None:
        nonlocal built
        built += parameter.numel()
        # stop at the first excess: building further layers takes memory, too
        if built > most:
            raise UserError(
                f"--hf {name} cannot be used: its config.json asks for more parameters than the "
                f"{held:,} bytes of its safetensors files hold; save the two that go together"
            )

    watching = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            library().AutoModel.from_config(config, **_OPTIONS)
    finally:
        watching.remove()


@contextmanager
def _without_network() -> Iterator[None]:
    """Keep the library from fetching parts from the hub by itself while it reads a folder."""
    hub: Any = importlib.import_module("huggingface_hub.constants")
    before, hub.HF_HUB_OFFLINE = hub.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        hub.HF_HUB_OFFLINE = before


def _max_tokens(model: nn.Module, tokenizer: Any) -> int:
    """Return the least length that tokenizer, configuration and position table allow."""
    places = getattr(model.config, "max_position_embeddings", None) or sys.maxsize
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(table, nn.Embedding):
            # positions start after that of padding, if there is one
            used = 0 if table.padding_idx is None else table.padding_idx + 1
            places = min(places, table.num_embeddings - used)
    return int(min(tokenizer.model_max_length, places))
