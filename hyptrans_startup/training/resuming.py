"""A training that goes on from a checkpoint: of another model, other data, or no training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from hyptrans_startup.checkpoints.sentences import misfit, reason_of, shown
from hyptrans_startup.errors import UserError
from hyptrans_startup.training.progress import check_progress
from hyptrans_startup.wrapping import Call, after, told


@told(RuntimeError)
def other_batches(error: Exception, *_: Any, **__: Any) -> str | None:
    """A traceback for an epoch that has fewer batches than the training has seen of it."""
    if not str(error).startswith("Cannot resume training due to dataloader mismatch"):
        return None
    return (
        "the checkpoint has seen more batches of its epoch than the data give: take the "
        "data and --max-tokens of its training, or begin the epoch anew by "
        "--reset-dataloader"
    )


@told(LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
def stored_training(error: Exception, trainer: Any, filename: str, *_: Any, **__: Any) -> str:
    """Tracebacks of many kinds for a state of the training that does not go together."""
    return (
        f"checkpoint {filename} does not hold the state of a training that fits this one "
        f"({reason_of(error)}); --reset-optimizer, --reset-meters and --reset-dataloader "
        "leave it out"
    )


@after
def stored_steps(_: Any, trainer: Any, *__: Any, **___: Any) -> None:
    """Tracebacks after an epoch for states of an optimizer that are none."""
    # built where its state was loaded
    if trainer._optimizer is not None:
        check_optimizer(trainer._optimizer.optimizer)


def other_architecture(
    load: Call,
    trainer: Any,
    filename: str,
    reset_optimizer: bool = False,
    reset_lr_scheduler: bool = False,
    optimizer_overrides: Any = None,
    reset_meters: bool = False,
) -> Any:
    """Going on from a checkpoint of another model: two tracebacks, or not a word.

    Counts and statistics that are none: a traceback, at times after an epoch.
    """
    from fairseq import checkpoint_utils

    read = checkpoint_utils.load_checkpoint_to_cpu

    def checked(path: str, *of: Any, **options: Any) -> Any:
        state = read(path, *of, **options)
        check_progress(state, meters=not reset_meters)
        # without the optimizer's state parameters are only a start
        if not reset_optimizer:
            check_formulas(path, state, trainer)
        return state

    try:
        checkpoint_utils.load_checkpoint_to_cpu = checked
        return load(
            trainer,
            filename,
            reset_optimizer,
            reset_lr_scheduler,
            optimizer_overrides,
            reset_meters,
        )
    except Exception as error:
        # fairseq raises a bare one while it handles what torch found
        if type(error) is not Exception or error.__context__ is None:
            raise
        way_on = ", or another --save-dir for a new training"
        raise UserError(misfit(filename, error.__context__, way_on)) from error
    finally:
        checkpoint_utils.load_checkpoint_to_cpu = read


def check_formulas(path: str, state: Mapping[str, Any], trainer: Any) -> None:
    """Refuse parameters that fit the model and were trained with other formulas.

    Options that parameters of the same shapes depend on have ``in_formula`` among the metadata of
    their field of the model's configuration.

    Raises:
        UserError: names the first option that differs.
    """
    config = getattr(type(trainer.get_model()), "__dataclass", None)
    model = (state.get("cfg") or {}).get("model") or state.get("args")
    stored = model if isinstance(model, Mapping) else vars(model or SimpleNamespace())
    for each in fields(config) if is_dataclass(config) else ():
        before, now = (_meant(each.name, values) for values in (stored, trainer.cfg.model))
        if not each.metadata.get("in_formula") or None in (before, now):
            continue
        if before != now:
            raise UserError(
                f"checkpoint {path} was trained with --{each.name.replace('_', '-')} {before} and "
                f"not {now}: name another --save-dir for a new training, or begin with its "
                "parameters by --finetune-from-model"
            )


def _meant(name: str, values: Any) -> Any:
    """An option's value; where the decoder has none of its own, the encoder's."""
    get = values.get if isinstance(values, Mapping) else partial(getattr, values)
    found = get(name, None)
    return get(name.replace("decoder_", "encoder_"), None) if found is None else found


def check_optimizer(optimizer: Any) -> None:
    """Check the state that an optimizer of torch's has loaded, which it looks at when it steps.

    Raises:
        ValueError: names what another optimizer has, or one of other parameters.
    """
    from torch import Tensor

    # one that is made of several has neither
    defaults, state = (getattr(optimizer, name, {}) for name in ("defaults", "state"))
    for group in optimizer.param_groups:
        for name, value in defaults.items():
            if not like(group.get(name, value), value):
                raise ValueError(f"its option {name} is {shown(group[name])}")
    of_parameters = {each: kept for each, kept in state.items() if isinstance(each, Tensor)}
    names: dict[bool, set[str]] = {}
    for parameter, kept in of_parameters.items():
        # Adafactor has other moments of matrices
        names.setdefault(parameter.dim() > 1, set()).update(kept)
    for parameter, kept in of_parameters.items():
        for name in names[parameter.dim() > 1]:
            check_moment(name, kept.get(name, "not there"), parameter.shape)


def check_moment(name: str, value: Any, shape: Sequence[int]) -> None:
    """Check what an optimizer keeps of one parameter: a count of steps, moments, numbers.

    Raises:
        ValueError: names what is none, or of another shape.
    """
    one = hasattr(value, "element_size") and value.numel() == 1
    if name == "step" and (one or isinstance(value, int | float)) and 0 <= value < math.inf:
        return
    moments = {"exp_avg_sq_row": shape[:-1], "exp_avg_sq_col": (*shape[:-2], *shape[-1:])}
    moments |= dict.fromkeys(("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), shape)
    if name in moments and hasattr(value, "element_size"):
        wanted = moments[name]
        # one number may be of a whole point
        pairs = zip(value.shape, wanted, strict=False)
        if value.dim() != len(wanted) or not all(a in (1, b) for a, b in pairs):
            raise ValueError(f"{name} is of another shape than its parameter")
        if value.is_complex():
            raise ValueError(f"{name} has complex numbers")
    elif name in (*moments, "step") or not (
        hasattr(value, "element_size") or isinstance(value, int | float | None)
    ):
        raise ValueError(f"{name} is {shown(value)}")


def like(value: Any, default: Any) -> bool:
    """Whether an option of an optimizer is of the kind of its default."""
    if isinstance(default, Sequence) and not isinstance(default, str):
        same = isinstance(value, list | tuple) and len(value) == len(default)
        return same and all(map(like, value, default))
    if isinstance(default, int | float):
        # a rate may be a tensor
        return isinstance(value, int | float) or hasattr(value, "element_size")
    return True
