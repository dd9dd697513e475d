"""Encoders of Hugging Face's ``transformers``: a folder of ``save_pretrained``, or a model's name.

Only configurations, tokenizers and safetensors are read: no pickle, and no code that a model
brings. A name is looked up in the cache of that library, and fetched where the network allows it;
for a folder nothing is fetched.
"""

import importlib
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from hyptrans.geometry.space import Space
from hyptrans.support import extras
from hyptrans.support.errors import UserError, out_of_memory, unquoted
from hyptrans.support.files import sha256
from probing.states.encoder import Tokens
from probing.text.pieces import Span

_UNUSED = "pooler"
"""A part of some models that no state goes through; files of other tasks leave it out."""
_SPACES = ("\u2581", "\u0120")
"""Tokens that stand for a space alone, of sentencepiece and of byte-level BPE."""
_OPTIONS = {"trust_remote_code": False, "attn_implementation": "eager"}
"""Whatever its configuration says, no code is fetched for a model.

None, the library's default, would ask on the terminal whether the model's own code may run.
"""
_LEAST_PARAMETERS = 1 << 24
"""That a configuration may ask for whatever its folder holds."""
_MOST_CHARACTERS = 240
"""Of a reason; some list all that would have been right."""


class HuggingFaceEncoder:
    """An encoder whose tokenizer knows the characters of its tokens; states are flat vectors.

    Args:
        name: folder or name.
        identity: of its files.
        model: of ``AutoModel``; of an encoder-decoder, the encoder.
        tokenizer: of ``AutoTokenizer``, a fast one.
    """

    def __init__(self, name: str, identity: str, model: Any, tokenizer: Any) -> None:
        self.module, self._tokenizer = model.float().eval().requires_grad_(False), tokenizer
        self.name, self.identity = name, identity
        self.architecture = str(model.config.model_type)
        self.max_tokens, self._numbers = _max_tokens(model, tokenizer), _numbers(model)
        self.pad = tokenizer.pad_token_id or 0
        if self.pad >= self._numbers:
            # one that was added without a row in the table; it is masked, and so any will do
            self.pad = 0
        self.unknown = tokenizer.unk_token_id
        first = torch.tensor([[number for number, _ in self.tokenize("a")]])
        states = self.states(first, torch.tensor([first.size(1)]))
        self.width = states.size(-1)
        self.spaces = [Space("euclidean")] * len(states)

    def tokenize(self, text: str) -> Tokens:
        """Tokens with the marks that the model was trained with.

        Raises:
            UserError: its tokenizer fails on the text, or knows pieces that the model does not.
        """
        with _failing(f"--hf {self.name}: its tokenizer fails on {text[:40]!r}"):
            found = self._tokenizer(text, return_offsets_mapping=True, verbose=False)
            numbers, spans = found["input_ids"], found["offset_mapping"]
            names = self._tokenizer.convert_ids_to_tokens(numbers)
        for number, name in zip(numbers, names, strict=True):
            if number >= self._numbers:
                raise UserError(
                    f"--hf {self.name}: its tokenizer has {str(name)[:40]!r} as number {number}, "
                    f"its model has no more than {self._numbers:,}; save the two that go together"
                )
        return [
            (number, self._characters(text, name, span))
            for number, name, span in zip(numbers, names, spans, strict=True)
        ]

    @staticmethod
    def _characters(text: str, name: str, span: Span) -> Span:
        """Of a token; the space that is put before a sentence says it has the first one's."""
        put_in = name in _SPACES and text[slice(*span)] != name
        return (0, 0) if put_in else span

    @torch.inference_mode()
    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """``hidden_states`` of the library, padding masked."""
        mask = torch.arange(tokens.size(1)) < lengths.unsqueeze(1)
        device = self.module.device
        out = self.module(
            input_ids=tokens.to(device),
            attention_mask=mask.long().to(device),
            output_hidden_states=True,
        )
        return torch.stack(tuple(out.hidden_states))


def library() -> ModuleType:
    """Hugging Face's library, quiet: what is wrong is told in an error."""
    transformers = extras.transformers()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


@contextmanager
def _failing(what: str, also: str = "") -> Iterator[None]:
    """Report whatever the library raises as an error of the user's files; full memory stays.

    Raises:
        UserError: ``what`` happened, why, and ``also``.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # what Rust ends with, no Exception; no class of it can be imported
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, Exception)) or out_of_memory(error):
            raise
        text = textwrap.shorten(unquoted(error), _MOST_CHARACTERS).rstrip(".")
        if not text or isinstance(error, KeyError):
            text = f"{type(error).__name__}: {text}".rstrip(": ")
        raise UserError(f"{what} ({text}){also}") from error


def from_hugging_face(name: str, *, random: bool = False, seed: int = 1) -> HuggingFaceEncoder:
    """The encoder of a folder that ``save_pretrained`` wrote, or of a model's name.

    Args:
        name: folder or name.
        random: take the architecture with fresh parameters.
        seed: of those.

    Raises:
        UserError: there is none, or it cannot be used; says why.
    """
    transformers, local = library(), Path(name).is_dir()
    where = {"local_files_only": local, "trust_remote_code": False}
    known = identity(name)
    if local:
        needed = {"config.json", "tokenizer.json", *(() if random else ("*.safetensors",))}
        missing = sorted(pattern for pattern in needed if not any(Path(name).glob(pattern)))
        if missing:
            raise UserError(f"--hf {name} lacks {missing[0]}: name what save_pretrained wrote")
    also = ": its files must be as save_pretrained writes them"
    with _failing(f"--hf {name} cannot be used", also), _without_network(local):
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **where)
        config = transformers.AutoConfig.from_pretrained(name, **where)
        if local:
            _check_size(name, config)
        model = _fresh(config, seed) if random else _trained(name, config, where)
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"--hf {name}: its tokenizer does not tell which characters a token has; save one of "
            "the tokenizers library (tokenizer.json) beside the model"
        )
    also = ": an encoder or decoder of text is needed"
    with _failing(f"--hf {name} gives no states of layers for text", also):
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        return HuggingFaceEncoder(name, known, model, tokenizer)


def _trained(name: str, config: Any, where: dict[str, bool]) -> Any:
    """A model with all of its parameters."""
    model, loading = library().AutoModel.from_pretrained(
        name, config=config, use_safetensors=True, output_loading_info=True, **where | _OPTIONS
    )
    missing = sorted(key for key in loading["missing_keys"] if _UNUSED not in key)
    if missing:
        raise UserError(
            f"--hf {name} lacks parameters of its own architecture ({missing[0]} and "
            f"{len(missing) - 1} more): its files are of another model"
        )
    return model


def _fresh(config: Any, seed: int) -> Any:
    """A model of fresh parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return library().AutoModel.from_config(config, **_OPTIONS)


def _check_size(name: str, config: Any) -> None:
    """Refuse a configuration of far more parameters than the folder's files can hold.

    Raises:
        UserError: it asks for more.
    """
    held = sum(file.stat().st_size for file in Path(name).glob("*.safetensors"))
    most, asked = max(held, _LEAST_PARAMETERS), 0

    def count(module: nn.Module, key: str, parameter: Tensor) -> None:
        nonlocal asked
        asked += parameter.numel()
        # as soon as there are too many: building layer after layer takes memory, too
        if asked > most:
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
def _without_network(local: bool) -> Iterator[None]:
    """Read a folder: parts that the library would take from the hub by itself are not fetched."""
    hub: Any = importlib.import_module("huggingface_hub.constants")
    before = hub.HF_HUB_OFFLINE
    hub.HF_HUB_OFFLINE = before or local
    try:
        yield
    finally:
        hub.HF_HUB_OFFLINE = before


def identity(name: str) -> str:
    """The hash of a folder's files, or the commit of a model that has a name.

    Raises:
        UserError: there is no such folder or model.
    """
    if Path(name).is_dir():
        return sha256(Path(name))
    with _failing(f"--hf {name} is neither a folder nor a model that can be fetched"):
        config = Path(library().utils.cached_file(name, "config.json"))
    # the cache has a folder for each commit
    return f"{name}@{config.parent.name}"


def _numbers(model: Any) -> int:
    """How many numbers of tokens its table has; without one, how many an extraction holds."""
    try:
        table = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        table = None
    return int(getattr(table, "num_embeddings", np.iinfo(np.int32).max))


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
