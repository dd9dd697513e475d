"""Checks of a training: harmful flags, numbers that are not finite, checkpoints of other formulas.

A checkpoint's shapes may fit although its formulas or dictionaries differ.
"""

import os
import shlex
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fairseq.trainer
import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from hyptrans.fairseq.around import Function, around
from hyptrans.fairseq.checkpoint import COMMAND, DICTIONARIES, SIDES, check_dictionaries
from hyptrans.inference.dictionary import fingerprint
from hyptrans.layers.manifold import manifold_parameters
from hyptrans.support.errors import UserError

# fairseq's detector fails on modules that return dictionaries, as encoders do, and under torch 2
fairseq.trainer.NanDetector = nullcontext


def check_manifold_flags(cfg: Any, model: nn.Module) -> None:
    """Check a whole training configuration against a model's manifold parameters.

    Raises:
        ValueError: a flag would drop the manifold or move points off it; the message names the
            flag and an alternative.
    """
    names = manifold_parameters(model)
    if not names:
        return
    optimizer, backend = cfg.optimizer._name, cfg.distributed_training.ddp_backend
    averages = backend in ("slowmo", "slow_mo", "localsgd")
    half = "copies parameters to plain ones without their manifold: use --amp or float32"
    mean = "averages points arithmetically, which leaves the manifold: leave it out"
    off = "moves points off the manifold: use --optimizer riemannian_adam"
    flat = "flattens parameters into plain ones: use --ddp-backend pytorch_ddp"
    anew = "rebuilds the optimizer without the manifold: leave it out"
    refused = [
        (cfg.common.fp16, "--fp16", half),
        (cfg.common.bf16, "--bf16", half),
        (optimizer != "riemannian_adam", f"--optimizer {optimizer}", off),
        (cfg.ema.store_ema, "--store-ema", mean),
        (cfg.optimization.use_bmuf, "--use-bmuf", mean),
        (averages, f"--ddp-backend {backend}", mean),
        (backend == "fully_sharded", f"--ddp-backend {backend}", flat),
        (cfg.distributed_training.zero_sharding != "none", "--zero-sharding", anew),
    ]
    problems = [f"{flag} {why}" for given, flag, why in refused if given]
    if problems:
        raise ValueError(
            f"with {len(names)} manifold parameters ({names[0]}, …): "
            + "; ".join(problems)
            + " (or train with --embedding-storage space)"
        )


@around(Trainer, "_build_optimizer")
def _checked(build: Function, trainer: Any) -> None:
    check_manifold_flags(trainer.cfg, trainer._model)
    build(trainer)


@around(Trainer, "train_step")
def name_the_first(step: Function, trainer: Any, samples: Any, *args: Any, **kwargs: Any) -> Any:
    """Train on batches.

    Raises:
        FloatingPointError: something is not finite; the message names the first.
    """
    try:
        return step(trainer, samples, *args, **kwargs)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"update {trainer.get_num_updates() + 1}: {error}; first not finite: "
            f"{first_not_finite(trainer, samples)}; lower --lr or --clip-norm"
        ) from error


def first_not_finite(trainer: Any, samples: Sequence[Any]) -> str:
    """Run the same batches again and describe, for a message, what first is not finite.

    The order is: parameters, outputs of layers, gradients of these outputs from the last layer to
    the first, gradients of parameters.
    """
    model: nn.Module = trainer.get_model()
    found = [f"parameter {name}" for name, one in model.named_parameters() if not _finite(one)]

    def look(name: str, tensor: Tensor) -> None:
        if not _finite(tensor):
            found.append(name)

    def watch(name: str, output: Any) -> None:
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                # minus infinity may be intended: a masked score
                look(f"output of {name}", tensor.clamp_min(0))
                if tensor.requires_grad:
                    tensor.register_hook(partial(look, f"gradient of the output of {name}"))

    trainer._set_seed()
    trainer.zero_grad()
    with ExitStack() as hooks:
        for name, layer in model.named_modules(prefix="the model"):
            hook = layer.register_forward_hook(lambda _, __, output, name=name: watch(name, output))
            hooks.enter_context(hook)
        for sample in samples if not found else ():
            prepared, _ = trainer._prepare_sample(sample)
            more = (trainer.model, trainer.criterion, trainer.optimizer, trainer.get_num_updates())
            trainer.task.train_step(prepared, *more)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            look(f"gradient of parameter {name}", parameter.grad)
    first = found[0] if found else "the loss, or the norm of all gradients"
    return first.replace("the model.", "")


def _finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())


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
