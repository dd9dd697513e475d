"""Architectures by name: the options that one takes, checked, and the model that they make."""

import contextlib
import dataclasses
import math
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

import hyptrans.models  # noqa: F401 - names the architectures
from hyptrans.inference.allowance import stored_bytes, within_bytes
from hyptrans.inference.bounds import MOST_POSITIONS_TIMES_WIDTH, check_number
from hyptrans.models.euclidean import ABSENT, INERT, TransformerConfig
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.seq2seq.config import REMOVED_OPTIONS
from hyptrans.seq2seq.model import EncoderDecoder, Words
from hyptrans.support.errors import UserError

Option = bool | int | float | str | None

_LANGUAGE_OF = {"encoder": "source", "decoder": "target"}
_SIZES = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads")
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d{1,6})\.")


def require_known(architecture: object) -> str:
    """The name of an architecture.

    Raises:
        UserError: it is none that this package can build.
    """
    if not (isinstance(architecture, str) and architecture in ARCHITECTURES):
        raise UserError(
            f"its architecture {str(architecture)[:80]!r} is neither one of hyptrans nor fairseq's "
            "transformer; fairseq-generate translates with others"
        )
    return architecture


def _fields(architecture: str) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Type and choices of each option."""
    known = ARCHITECTURES[architecture]
    found = {
        f.name: (f.type, f.metadata.get("choices", ())) for f in dataclasses.fields(known.config)
    }
    if issubclass(known.config, TransformerConfig):
        found |= {name: (type(value), ()) for name, value in {**INERT, **ABSENT}.items()}
    return found


def choose_options(architecture: str, given: Mapping[str, Any]) -> dict[str, Option]:
    """Of a training's configuration, what makes the model.

    Raises:
        UserError: a value that a model folder cannot hold.
    """
    chosen = {name: given[name] for name in _fields(architecture) if given.get(name) is not None}
    return check_options(architecture, chosen)


def check_options(architecture: str, given: Mapping[str, Any]) -> dict[str, Option]:
    """Options as they may be handed to the architecture: known names, right types, nothing else.

    Text is taken only where there is a list of what it may be: fairseq evaluates some strings.

    Raises:
        UserError: names the first option that is wrong.
    """
    fields = _fields(architecture)
    # an option of an earlier version may stay where it means what is done now
    given = {n: v for n, v in given.items() if n in fields or REMOVED_OPTIONS.get(n, ...) != v}
    for name, value in given.items():
        if name not in fields:
            raise UserError(f"{architecture} has no option {name[:80]!r}")
        if not _fits(*fields[name], value):
            raise UserError(f"its option {name} cannot be {str(value)[:80]!r}")
        of_fairseq = issubclass(ARCHITECTURES[architecture].config, TransformerConfig)
        if of_fairseq and ABSENT.get(name, value) != value:
            raise UserError(
                f"its option {name} is {value}, which is of fairseq's Transformer alone: "
                "fairseq-generate translates with it"
            )
        if isinstance(value, int | float):
            check_number(name, value)
    return dict(given)


def _fits(kind: Any, choices: tuple[str, ...], value: Any) -> bool:
    kinds = typing.get_args(kind) or (kind,)
    if value is None:
        return True
    if choices:
        return isinstance(value, str) and value in choices
    if isinstance(value, bool) or bool in kinds:
        return isinstance(value, bool) and bool in kinds
    if float in kinds:
        return isinstance(value, (int, float)) and _is_finite(value)
    return int in kinds and isinstance(value, int)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more digits than a float has
        return False


def check_sizes(
    options: Mapping[str, Option], sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Hold the sizes that options ask for against parameters, before any memory is taken.

    Args:
        options: of the architecture, defaults filled in.
        sizes: symbols of the dictionary of each side.
        shapes: of the parameters, by name.

    Raises:
        UserError: names the first size that the parameters do not bear out.
    """
    numbers = sum(math.prod(shape) for shape in shapes.values())
    for side, symbols in sizes.items():
        widths: dict[str, int] = {}
        for size in _SIZES:
            value = options.get(f"{side}_{size}")
            if value is None:
                # the decoder's default is the encoder's
                value = options[f"encoder_{size}"]
            if not isinstance(value, int) or not 0 < value <= numbers:
                raise UserError(f"its option {side}_{size} cannot be {value}")
            widths[size] = value
        width = widths["embed_dim"]
        found = {int(n) for s, n in map(_layer_of, shapes) if s == side}
        if widths["layers"] != len(found):
            said = widths["layers"]
            raise UserError(f"it has {len(found)} {side} layers, its options say {said}")
        if width * max(width, widths["ffn_embed_dim"]) > numbers:
            raise UserError(f"its options ask for {side} layers wider than its parameters")
        table = shapes.get(f"{side}.embed_tokens.weight", (symbols, width))
        if table[:1] != (symbols,):
            raise UserError(
                f"its {side} dictionary has {symbols:,} symbols and its embedding "
                f"{table[0] if table else 0:,}: "
                "take the dictionaries that it was trained with"
            )
        # a point's time may be left out of what is stored of it
        if symbols * max(width - 1, 1) > numbers:
            raise UserError(f"its options ask for a larger {side} embedding than its parameters")
        longest = options.get(f"max_{_LANGUAGE_OF[side]}_positions") or 0
        most = max(numbers, MOST_POSITIONS_TIMES_WIDTH)
        if not isinstance(longest, int) or not 0 <= longest * width <= most:
            raise UserError(f"its option max_{_LANGUAGE_OF[side]}_positions cannot be {longest}")


def _layer_of(name: str) -> tuple[str, str]:
    found = _LAYER.match(name)
    return (found[1], found[2]) if found else ("", "-1")


def configuration(architecture: str, options: Mapping[str, Option]) -> Any:
    """The architecture's configuration with options filled in, each as its default where None."""
    config = ARCHITECTURES[architecture].config
    names = {f.name for f in dataclasses.fields(config)}
    return config(**{k: v for k, v in options.items() if k in names and v is not None})


def checked(
    architecture: str,
    options: Mapping[str, Option],
    dictionaries: tuple[Words, Words],
    parameters: Mapping[str, Tensor],
) -> Any:
    """The architecture's configuration, its sizes held against parameters.

    Args:
        architecture: name of a known one.
        options: of it, as :func:`check_options` takes them.
        dictionaries: symbols of source and target.
        parameters: by name.

    Raises:
        UserError: what does not fit, to be put after the model's name.
    """
    cfg = configuration(architecture, options)
    sizes = dict(zip(("encoder", "decoder"), map(len, dictionaries), strict=True))
    shapes = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
    check_sizes(vars(cfg), sizes, shapes)
    return cfg


def fresh(
    architecture: str,
    cfg: Any,
    dictionaries: tuple[Words, Words],
    parameters: Mapping[str, Tensor],
) -> EncoderDecoder:
    """The model of a configuration, without the parameters that say how large it may be.

    Args:
        architecture: name of a known one.
        cfg: what :func:`checked` returned for the same parameters.
        dictionaries: symbols of source and target.
        parameters: by name.

    Raises:
        UserError: what does not fit, to be put after the model's name.
    """
    # the caller's random numbers stay as they were
    with (
        torch.random.fork_rng(devices=[]),
        _in_a_sentence(),
        within_bytes(stored_bytes(parameters.values())),
    ):
        return ARCHITECTURES[architecture].build(cfg, *dictionaries)


def build(
    architecture: str,
    options: Mapping[str, Option],
    dictionaries: tuple[Words, Words],
    parameters: Mapping[str, Tensor],
) -> EncoderDecoder:
    """The model with its parameters, in float32 and in evaluation.

    Raises:
        UserError: what does not fit, to be put after the model's name.
    """
    cfg = checked(architecture, options, dictionaries, parameters)
    # float32 before parameters are copied into it, whatever torch's default dtype is
    model = fresh(architecture, cfg, dictionaries, parameters).float()
    state = model.parts.current_names(parameters)
    with _in_a_sentence():
        _add_shared(model, state)
        model.load_state_dict(state)
    return model.eval().requires_grad_(False)


@contextlib.contextmanager
def _in_a_sentence() -> Iterator[None]:
    try:
        yield
    except (ValueError, AssertionError, RuntimeError, KeyError, TypeError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        reason = " ".join((lines[1] if len(lines) > 1 else lines[0]).split())
        raise UserError(f"its parameters and options do not go together ({reason})") from error


def _add_shared(model: EncoderDecoder, state: dict[str, Tensor]) -> None:
    """Give parameters that a file holds once all the names that the model has for them."""
    names: dict[int, str] = {}
    own = model.state_dict()
    for name, tensor in own.items():
        if name in state:
            names.setdefault(tensor.data_ptr(), name)
    for name, tensor in own.items():
        if name not in state and tensor.data_ptr() in names:
            state[name] = state[names[tensor.data_ptr()]]
