"""The registry of architectures; a module that defines an architecture registers it here."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyptrans.seq2seq.config import SkeletonConfig
from hyptrans.seq2seq.model import EncoderDecoder, Words
from hyptrans.seq2seq.parts import Parts
from hyptrans.seq2seq.sizes import flags_of

PartsType = TypeVar("PartsType", bound=type[Parts])


@dataclass(frozen=True)
class Architecture:
    """An architecture: its name, options and parts.

    Attributes:
        name: its ``--arch``.
        config: dataclass of its options, with the defaults that the name stands for.
        parts: the class whose parts :class:`EncoderDecoder` assembles.
    """

    name: str
    config: type
    parts: type[Parts]

    def build(self, cfg: Any, source: Words, target: Words) -> EncoderDecoder:
        """Build a model from a configuration and the dictionaries of source and target."""
        return EncoderDecoder(self.parts, cfg, source, target)


ARCHITECTURES: dict[str, Architecture] = {}
_watching: list[Callable[[Architecture], None]] = []


def register(architecture: Architecture) -> None:
    """Register an architecture, replacing any of the same name."""
    ARCHITECTURES[architecture.name] = architecture
    for act in _watching:
        act(architecture)


def watch(act: Callable[[Architecture], None]) -> None:
    """Call ``act`` with every registered architecture, and later with each new one."""
    _watching.append(act)
    for architecture in ARCHITECTURES.values():
        act(architecture)


def register_sizes(
    name: str, config: type[SkeletonConfig], sizes: Iterable[str]
) -> Callable[[PartsType], PartsType]:
    """Return a class decorator that registers parts as ``name`` and, for each size, ``name_size``.

    Each size gets its own dataclass with the size's defaults, so that a hydra configuration with
    ``_name: name_size`` means the same as ``--arch name_size``.
    """

    def registered(parts: PartsType) -> PartsType:
        register(Architecture(name, config, parts))
        for size in sizes:
            register(
                Architecture(f"{name}_{size}", with_defaults(config, size, flags_of(size)), parts)
            )
        return parts

    return registered


def with_defaults(config: type, name: str, defaults: Mapping[str, Any]) -> type:
    """Return a subclass of a configuration with other defaults."""
    known = {f.name: f for f in dataclasses.fields(config)}
    fields = [
        (key, known[key].type, field(default=value, metadata=known[key].metadata))
        for key, value in defaults.items()
    ]
    title = "".join(part.capitalize() for part in name.split("_"))
    made = dataclasses.make_dataclass(config.__name__ + title, fields, bases=(config,))
    # pickle looks up a configuration's class in its module
    made.__module__ = config.__module__
    setattr(sys.modules[config.__module__], made.__name__, made)
    return made
