"""The model of a fairseq checkpoint, or its encoder, without running code that the file brings."""

import contextlib
import inspect
import io
import sys
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

import hyptrans.fairseq  # noqa: F401 - registers the architectures
from hyptrans.fairseq.checkpoint import (
    data_bin,
    dictionaries,
    dictionary_file,
    language_pair,
    parameters_of,
    read_state,
)
from hyptrans.fairseq.states import all_states, spaces_of
from hyptrans.inference.allowance import stored_bytes, within_bytes
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.encoder import SegmentedEncoder
from probing.text import segment

_EMBEDDING = "encoder.embed_tokens.weight"


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode.

    Attributes:
        path: the checkpoint.
        model: fairseq's encoder-decoder, in float32.
        languages: source and target.
        architecture: name, as of ``--arch``.
        dictionary: fairseq's dictionary of the source language.
    """

    path: Path
    model: Any
    languages: tuple[str, str]
    architecture: str
    dictionary: Any


def from_checkpoint(
    checkpoint: Path,
    *,
    data: Path | None = None,
    random: bool = False,
    seed: int = 1,
    user_dir: str | None = None,
    pieces: segment.Options | None = None,
) -> SegmentedEncoder:
    """The encoder of a checkpoint with the pieces that it was trained on.

    Args:
        checkpoint: as :func:`load_model` takes it, and so are the others.
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
    loaded = load_model(checkpoint, dictionaries, random=random, seed=seed, user_dir=user_dir)
    if options.sentencepiece_model or options.bpe_codes or data is None:
        segmenter = segment.from_options(options, loaded.dictionary)
    else:
        segmenter = segment.from_prepared(data, loaded.languages[0], loaded.dictionary)
    encoder = loaded.model.encoder
    return SegmentedEncoder(
        name=str(checkpoint),
        identity=sha256(checkpoint),
        architecture=loaded.architecture,
        spaces=spaces_of(encoder),
        max_tokens=int(encoder.max_positions() or sys.maxsize),
        random=random,
        seed=seed,
        module=encoder,
        dictionary=loaded.dictionary,
        segmenter=segmenter,
        run=partial(all_states, encoder),
    )


def load_model(
    path: Path,
    data: Path,
    *,
    random: bool = False,
    seed: int = 1,
    user_dir: str | None = None,
) -> Loaded:
    """Load the model of a checkpoint.

    Read are tensors, numbers and options, and nothing in the file is called.

    Args:
        path: file that ``fairseq-train`` wrote.
        data: folder of the dictionaries, ``data-bin`` or one that holds it.
        random: keep the architecture and its options, and draw the parameters anew.
        seed: of those.
        user_dir: plug-in of fairseq that has the architecture, where it is not one of ours.

    Raises:
        UserError: not a checkpoint, an unknown architecture, or dictionaries of other data.
    """
    if user_dir is not None:
        _import_user_dir(user_dir)
    state = read_state(path)
    cfg, parameters = state["cfg"], parameters_of(path, state)
    architecture = _architecture(path, cfg)
    binary = data_bin(data)
    languages = language_pair(cfg.task, binary)
    source, target = dictionaries(binary, languages)
    with within_bytes(stored_bytes(parameters.values())):
        model = _build(path, cfg, architecture, source, target, seed)
    try:
        model.upgrade_state_dict(parameters)
    except UserError as error:
        raise UserError(f"checkpoint {path} cannot be used: {error}") from error
    if not _shows_states(getattr(model, "encoder", None)):
        raise UserError(
            f"checkpoint {path}: the encoder of {architecture} does not hand out its layers' "
            "states; take a Transformer of fairseq or of hyptrans"
        )
    _check_dictionary(path, parameters, source, dictionary_file(binary, languages[0]))
    model.float().eval().requires_grad_(False)
    if not random:
        _fill(path, model, parameters)
    return Loaded(path, model, languages, architecture, source)


def _import_user_dir(user_dir: str) -> None:
    from fairseq.utils import import_user_module

    try:
        import_user_module(Namespace(user_dir=user_dir))
    except (UserError, OSError, ImportError) as error:
        raise UserError(f"--user-dir {user_dir} cannot be imported ({error})") from error


def _architecture(path: Path, cfg: Any) -> str:
    """Name of the architecture, which must be registered."""
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

    options = cfg.model
    # a configuration of flags says both, and --arch is the more precise one
    name = getattr(options, "arch", None) or getattr(options, "_name", None)
    if name not in ARCH_MODEL_REGISTRY and name not in MODEL_DATACLASS_REGISTRY:
        trained = getattr(cfg.common, "user_dir", None)
        where = f"with --user-dir {trained}" if trained else "without --user-dir"
        raise UserError(
            f"checkpoint {path}: its architecture {name} is neither fairseq's nor hyptrans'; it "
            f"was trained {where}: name the folder that registers it with --user-dir"
        )
    return str(name)


def _build(path: Path, cfg: Any, architecture: str, source: Any, target: Any, seed: int) -> Any:
    """The model with fresh parameters; torch's own generator stays as it was."""
    from fairseq.models import build_model

    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    # old configurations make fairseq print what it fills in
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()):
        torch.manual_seed(seed)
        try:
            model = build_model(cfg.model, task, from_checkpoint=True)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"checkpoint {path}: {architecture} cannot be built for this --data ({reason})"
            ) from error
    return model


def _shows_states(encoder: Any) -> bool:
    if not isinstance(encoder, nn.Module) or not hasattr(encoder, "layers"):
        return False
    return "return_all_hiddens" in inspect.signature(encoder.forward).parameters


def _check_dictionary(path: Path, parameters: Any, source: Any, file: Path) -> None:
    table = parameters.get(_EMBEDDING)
    if table is None:
        return
    if table.dim() != 2:
        raise UserError(f"checkpoint {path}: its {_EMBEDDING} is no table of vectors")
    if len(table) != len(source):
        raise UserError(
            f"{file} has {len(source)} symbols and the embedding of checkpoint {path} has "
            f"{len(table)}: name the data folder that it was trained on with --data"
        )


def _fill(path: Path, model: nn.Module, parameters: Any) -> None:
    try:
        model.load_state_dict(parameters)
    except (RuntimeError, KeyError) as error:
        lines = str(error).splitlines()
        reason = " ".join((lines[1] if len(lines) > 1 else lines[0]).split())
        raise UserError(f"checkpoint {path} does not fit its architecture ({reason})") from error
