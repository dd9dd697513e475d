"""Refuse checkpoints whose shapes fit but whose formulas or dictionaries differ."""

import os
import shlex
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer

from hyptrans.fairseq.around import Function, around
from hyptrans.fairseq.checkpoint import COMMAND, DICTIONARIES, SIDES, check_dictionaries
from hyptrans.inference.dictionary import fingerprint
from hyptrans.support.errors import UserError


@around(Trainer, "state_dict")
def with_origin(state_dict: Function, trainer: Any) -> dict[str, Any]:
    """Return the content of a checkpoint, with its command and its dictionaries' fingerprints."""
    found = {side: fingerprint(one) for side, one in _dictionaries(trainer.task).items()}
    return {**state_dict(trainer), DICTIONARIES: found, COMMAND: _command(sys.argv)}


def _command(words: Sequence[str]) -> str:
    """Return the typed command with ``PATH`` in place of each local file or folder."""
    program, *options = words
    shown = ("PATH" if one != "hyptrans" and Path(one).exists() else one for one in options)
    return shlex.join([Path(program).name, *shown])


@around(Trainer, "load_checkpoint")
def like_the_stored(
    load: Function,
    trainer: Any,
    filename: str,
    reset_optimizer: bool = False,
    *args: Any,
    **kw: Any,
) -> Any:
    """Resume from a checkpoint, or start with its parameters.

    Raises:
        UserError: its dictionaries differ or, if the training is resumed, its formulas do.
    """
    if os.path.isfile(filename):
        state = _parts(filename)
        check_dictionaries(filename, state, _dictionaries(trainer.task))
        # without the optimizer's state the parameters only start a new training
        if not reset_optimizer:
            check_formulas(filename, state, trainer)
    return load(trainer, filename, reset_optimizer, *args, **kw)


@around(checkpoint_utils, "load_model_ensemble_and_task")
def of_the_same_dictionaries(
    load: Function, filenames: Sequence[str], *args: Any, **kw: Any
) -> Any:
    """Load models, for all fairseq commands that translate or validate.

    Raises:
        UserError: a model's dictionaries differ from those that its task now has.
    """
    models, cfg, task = load(filenames, *args, **kw)
    for filename in filter(os.path.isfile, filenames):
        check_dictionaries(filename, _parts(filename), _dictionaries(task))
    return models, cfg, task


def _parts(filename: str) -> dict[str, Any]:
    """Return the parts of a checkpoint; its tensors stay on disk."""
    mapped = zipfile.is_zipfile(filename)
    state: dict[str, Any] = torch.load(filename, "cpu", weights_only=True, mmap=mapped)
    return state


def _dictionaries(task: Any) -> dict[str, Any]:
    """Return the dictionaries of a task, by side."""
    found = {side: getattr(task, f"{side}_dictionary", None) for side in SIDES}
    return {side: one for side, one in found.items() if hasattr(one, "symbols")}


def check_formulas(filename: str, state: Mapping[str, Any], trainer: Any) -> None:
    """Refuse parameters that fit the model but were trained with other formulas.

    Options that change the formulas but not the shapes have ``in_formula`` in the metadata of their
    field in the model's configuration.

    Raises:
        UserError: names the first option that differs.
    """
    config = getattr(type(trainer.get_model()), "__dataclass", None)
    stored, now = (state.get("cfg") or {}).get("model") or state.get("args"), trainer.cfg.model
    for each in fields(config) if is_dataclass(config) else ():
        was, is_ = _option(each.name, stored), _option(each.name, now)
        if each.metadata.get("in_formula") and None not in (was, is_) and was != is_:
            raise UserError(
                f"checkpoint {filename} was trained with --{each.name.replace('_', '-')} {was} and "
                f"not {is_}: name another --save-dir for a new training, or begin with its "
                "parameters by --finetune-from-model"
            )


def _option(name: str, options: Any) -> Any:
    """Return an option's value; if the decoder has none of its own, the encoder's."""
    values = options if isinstance(options, Mapping) else vars(options)
    found = values.get(name)
    return values.get(name.replace("decoder_", "encoder_")) if found is None else found
