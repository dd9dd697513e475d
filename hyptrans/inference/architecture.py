"""Build a model from options and parameters, both of which may come from a stranger.

All checks of them are here and run before memory is allocated: options must have the types of their
fields; the model that they describe is laid out on torch's meta device, which takes no memory; and
each parameter must be finite and have the shape and type of this layout.
"""

import contextlib
import dataclasses
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import hyptrans.models  # noqa: F401 - names the architectures
from hyptrans.layers.curvature import Curvature
from hyptrans.models.euclidean import ABSENT, INERT, TransformerConfig
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.seq2seq.config import CURVATURES, REMOVED_OPTIONS
from hyptrans.seq2seq.model import EncoderDecoder, Words
from hyptrans.seq2seq.version import check_version
from hyptrans.support.errors import UserError

Option = bool | int | float | str | None

MOST_COMPUTED = 1 << 24
"""Most numbers in tables that a model computes and no file stores, such as sinusoidal positions:
four times as many as 4,096 positions of width 1,024 need."""
STORED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Types in which a file may store parameters."""
_ERRORS = (ValueError, RuntimeError, LookupError, TypeError, OverflowError, AssertionError)
"""Errors of torch for options and parameters that do not fit, AssertionError for some sizes."""
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")
_FLAG = re.compile(r"--([a-z][a-z-]+)")


def require_known(architecture: object) -> str:
    """Return the name of an architecture that this package can build.

    Raises:
        UserError: this package cannot build it.
    """
    if not (isinstance(architecture, str) and architecture in ARCHITECTURES):
        raise UserError(
            f"hyptrans knows no architecture {str(architecture)[:80]!r}: check the name, or give "
            "the plug-in whose __init__.py imports the file that registers it (--user-dir)"
        )
    return architecture


def _fields(architecture: str) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return the type and choices of each option."""
    config = ARCHITECTURES[architecture].config
    found = {f.name: (f.type, f.metadata.get("choices", ())) for f in dataclasses.fields(config)}
    if issubclass(config, TransformerConfig):
        found |= {name: (type(value), ()) for name, value in {**INERT, **ABSENT}.items()}
    return found


def choose_options(architecture: str, given: Mapping[str, Any]) -> dict[str, Option]:
    """Return those options of a training that describe its model.

    Raises:
        UserError: a model folder cannot hold one of them.
    """
    chosen = {name: given[name] for name in _fields(architecture) if given.get(name) is not None}
    return check_options(architecture, chosen)


def check_options(architecture: str, given: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options, checked against the names, types and choices of the architecture.

    Options of earlier versions that match what the code now does are dropped.

    Raises:
        UserError: an option is wrong; the message names the first.
    """
    fields = _fields(architecture)
    # drop a removed option whose value means what the code now does
    given = {n: v for n, v in given.items() if n in fields or REMOVED_OPTIONS.get(n, ...) != v}
    of_fairseq = issubclass(ARCHITECTURES[architecture].config, TransformerConfig)
    for name, value in given.items():
        if name not in fields:
            raise UserError(f"{architecture} has no option {name[:80]!r}")
        if not _fits(name, *fields[name], value):
            raise UserError(f"its option {name} cannot be {str(value)[:80]!r}")
        if of_fairseq and ABSENT.get(name, value) != value:
            raise UserError(
                f"its option {name} is {value}, which only fairseq's Transformer has: "
                "fairseq-generate translates with it"
            )
    return dict(given)


def _fits(name: str, kind: Any, choices: tuple[str, ...], value: Any) -> bool:
    kinds = typing.get_args(kind) or (kind,)
    if value is None:
        return True
    if choices:
        return isinstance(value, str) and value in choices
    if isinstance(value, bool) or bool in kinds:
        return isinstance(value, bool) and bool in kinds
    if float in kinds:
        most = 1.0 if name.endswith(("dropout", "layerdrop")) else sys.float_info.max
        # false for NaN, too
        return isinstance(value, int | float) and (0 if most == 1 else -most) <= value <= most
    return int in kinds and isinstance(value, int)


def configuration(architecture: str, options: Mapping[str, Option]) -> Any:
    """Return the architecture's configuration; an option that is None gets its default."""
    config = ARCHITECTURES[architecture].config
    names = {f.name for f in dataclasses.fields(config)}
    return config(**{k: v for k, v in options.items() if k in names and v is not None})


def fresh(
    architecture: str, options: Mapping[str, Option], dictionaries: tuple[Words, Words]
) -> EncoderDecoder:
    """Build an untrained model, whose parameters torch's random generator draws.

    Raises:
        UserError: options contradict each other.
    """
    cfg = configuration(architecture, options)
    with one_sentence():
        return ARCHITECTURES[architecture].build(cfg, *dictionaries)


class _Unfilled(TorchFunctionMode):
    """Skips random initialization: on the meta device torch would import its compiler for it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        of_init = getattr(func, "__module__", "") == "torch.nn.init"
        draws = of_init or getattr(func, "__name__", "") in ("normal_", "uniform_")
        kwargs = kwargs or {}
        return (args[0] if args else kwargs["tensor"]) if draws else func(*args, **kwargs)


def outline(
    architecture: str,
    options: Mapping[str, Option],
    dictionaries: tuple[Words, Words],
    parameters: Mapping[str, Tensor],
) -> tuple[EncoderDecoder, dict[str, Tensor]]:
    """Return the model that the options describe, without memory, and parameters by its names.

    ``options`` are as :func:`check_options` returns them, ``parameters`` by name, as in a file.

    Raises:
        UserError: something does not fit; the message is to follow the model's name.
    """
    with one_sentence():
        state = ARCHITECTURES[architecture].parts.current_names(parameters)
        check_version(state)
        _check_layers(configuration(architecture, options), state)
        with torch.device("meta"), _Unfilled(), torch.random.fork_rng(devices=[]):
            model = fresh(architecture, options, dictionaries)
    stored = model.state_dict(keep_vars=True)
    computed = [part for name, part in model.named_buffers() if name not in stored]
    if sum(part.numel() for part in computed) > MOST_COMPUTED:
        raise UserError(
            "its options max_source_positions and max_target_positions ask for tables of more "
            f"than {MOST_COMPUTED:,} numbers"
        )
    # a file stores only once what two parts share
    given = {id(stored[name]): tensor for name, tensor in state.items() if name in stored}
    shared = {name: given[id(own)] for name, own in stored.items() if id(own) in given}
    state = {**shared, **state}
    _check_parameters(stored, state)
    return model, state


def _check_layers(cfg: Any, parameters: Mapping[str, Tensor]) -> None:
    """Check the number of layers before the model is laid out, which takes time for each."""
    found = {match.groups() for match in map(_LAYER.match, parameters) if match}
    for side in ("encoder", "decoder"):
        layers, stated = sum(s == side for s, _ in found), getattr(cfg, f"{side}_layers")
        if layers != stated:
            raise UserError(f"it has {layers} {side} layers and its {side}_layers is {stated}")


def _check_parameters(model: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    """Raise UserError for the first parameter that differs from those of a model without memory."""
    for name in model.keys() ^ given.keys():
        what = "is missing" if name in model else "belongs to no part of the model"
        raise UserError(f"its parameters and options do not go together ({name[:80]} {what})")
    for name, tensor in given.items():
        wanted, shape = model[name], tuple(tensor.shape)
        if shape != wanted.shape:
            raise UserError(
                f"its {name} is {shape}, and {tuple(wanted.shape)} by its options and "
                "dictionaries: take those that it was trained with"
            )
        if tensor.dtype not in (STORED if wanted.is_floating_point() else (torch.long,)):
            kind = str(tensor.dtype).removeprefix("torch.")
            raise UserError(f"its {name} is stored as {kind}, which no training writes")
        if not bool(tensor.isfinite().all()):
            raise UserError(f"its {name} has numbers that are not finite: take an earlier one")


def build(
    architecture: str,
    options: Mapping[str, Option],
    dictionaries: tuple[Words, Words],
    parameters: Mapping[str, Tensor],
) -> EncoderDecoder:
    """Build the model with its parameters, in float32 and evaluation mode.

    Raises:
        UserError: something does not fit; the message is to follow the model's name.
    """
    _, state = outline(architecture, options, dictionaries, parameters)
    # loading draws nothing from the caller's generator
    with torch.random.fork_rng(devices=[]):
        # convert to float32 before copying parameters, whatever torch's default dtype is
        model = fresh(architecture, options, dictionaries).float()
    with one_sentence():
        model.load_state_dict(state)
    model.eval().requires_grad_(False)
    least, most = CURVATURES
    for name, part in model.named_modules():
        if isinstance(part, Curvature) and not least <= (c := float(part())) <= most:
            raise UserError(f"its {name} is {c:g}, and curvatures are from {least:g} to {most:g}")
    return model


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Turn errors of options and parameters into a UserError; name options as in Python."""
    try:
        yield
    except _ERRORS as error:
        lines = str(error).splitlines() or [type(error).__name__]
        reason = " ".join((lines[1] if len(lines) > 1 else lines[0]).split())
        reason = _FLAG.sub(lambda flag: flag[1].replace("-", "_"), reason)
        raise UserError(f"its parameters and options do not go together ({reason})") from error
