"""A stored configuration, cut down to the options that the parts which it names declare.

fairseq registers tasks, architectures, criterions and the like with a dataclass, or with flags of a
parser; these say which options there are and of which type. No text of a file is taken for the name
of another file, of a program or of an address.
"""

import json
import os
import re
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from hyptrans_startup import plugin
from hyptrans_startup.checkpoints.literals import MOST_ENTRIES, literal
from hyptrans_startup.checkpoints.sentences import shown
from hyptrans_startup.checkpoints.types import UNSET, fits
from hyptrans_startup.errors import UserError, clean

BOUNDS = {
    r"\w*layers?": (-1_000, 1_000),
    r"\w*heads": (1, 1_024),
    r"\w*(_dim|_channels|hidden_size)": (0, 1 << 20),
    r"\w*(positions|tokens_per_sample)": (0, 10_000_000),
    r"num_batch_buckets": (0, 100_000),
    r"\w*(_len|_len_a|_len_b|_multiple)": (-1, 10_000),
    r"\w*(dropout|layerdrop)": (0, 1),
    r"dict_size|beam|nbest|sampling_topk": (-1, 1_000_000),
}
"""Lowest and highest value of numbers, by the name of the option, far beyond any in use."""
MOST_POSITIONS_TIMES_WIDTH = 1 << 24
"""Numbers of a table of sinusoidal positions, which is made and not stored: four times those of
4,096 positions of width 1,024. fairseq computes some before torch can tell of them."""
_BOUNDS = [(re.compile(name), *bounds) for name, bounds in BOUNDS.items()]
_POSITIONS = ("positions", "tokens_per_sample")
"""Options that end so are numbers of positions; models of language have the latter."""

CHOSEN_BY_A_FILE = {
    "task": {"translation"},
    "criterion": {"cross_entropy", "label_smoothed_cross_entropy"},
}
"""Of fairseq's tasks and criterions, those that a file may choose: others open files, or fetch."""
ALLOW = "HYPTRANS_ALLOW"
"""Variable with further names, separated by commas."""
_NAMES = {"_name", "arch", "task", "criterion", "optimizer", "lr_scheduler"}
_NAMES |= {"scoring", "bpe", "tokenizer", "simul_type"}
"""Options whose value is a registered name, which hydra would look up as a file otherwise."""
_PLAIN_NAME = re.compile(r"[\w.+-]{1,100}")
_WORDS = re.compile(r"[\w,+@ -]{0,1000}")
"""No place: nothing that separates folders, an ending or the parts of an address."""
_OF_A_FILE = re.compile(
    r"(\w+_)?(file|path|dir|folder|from|codes|vocab|dict|dictionary|model|checkpoint|url|yaml)s?"
)
"""Options whose words would be names of files in the present folder."""
_LANGUAGES = re.compile(r"(\w+_)?(langs?|lang_pairs)")
"""Options whose words are languages, whatever task has them: a model is built for its pairs."""
_DATA, _USER_DIR = "data", "user_dir"
"""The places that are said: where our own commands look for dictionaries, if none is typed; and of
the plug-in's folder, which is not imported, the last part."""
_OF_OLDER = "max_positions"
"""What fairseq makes two options of."""


class Option(NamedTuple):
    """What the owner of an option declares of it, and whether a file may have words for it."""

    kind: Any = Any
    default: Any = None
    words: bool = True


def taken(
    configuration: Any, typed: Mapping[str, Any], built: Collection[str] = (), largest: int = 0
) -> Any:
    """Return what is taken of a stored configuration.

    Args:
        configuration: ``cfg`` or ``args`` of a checkpoint, as the reader returns it.
        typed: options of the command line; names among them go before those of the file.
        built: groups of which something will be built, as the configuration says.
        largest: numbers of the largest tensor beside it; positions that are learned are stored.

    Raises:
        UserError: names the option, its value and what it may be; or what is built is none that a
            file may choose.
    """
    flat = isinstance(configuration, Namespace)
    groups = _groups()
    stored = dict.fromkeys(groups, configuration) if flat else configuration
    names = {group: _name_in(stored.get(group), group, typed) for group in groups}
    if flat and not hasattr(configuration, "task"):
        # as fairseq takes a file of before it had tasks
        names["task"] = names["task"] or "translation"
    for group in built:
        _check_choice(group, names[group], groups[group], typed)
    declared = {group: _declared_by(group, name, groups[group]) for group, name in names.items()}
    # of flags: an architecture sees the options of its task as well
    every = {_OF_OLDER: Option(int)}
    for options in declared.values():
        every |= options or {}

    found: Any = {}
    for group in groups.keys() & stored.keys():
        options, name = stored[group], names[group]
        if isinstance(options, Namespace):
            own = {_flag(group): name, "_name": name}
            found[group] = Namespace(**_options(vars(options), every) | own)
        elif isinstance(options, dict):
            found[group] = _options(options, declared[group]) | {"_name": name}
        else:
            found[group] = name
    if flat:
        found = {"": Namespace(**_options(vars(configuration), every))}
        place = typed.get(_DATA) or getattr(found[""], _DATA, None)
        if place is None and "task" in built and _DATA in (declared["task"] or {}):
            raise UserError("its options name no data folder, of which its task is built")
    for options in found.values():
        _check_positions(options, largest)
    return found[""] if flat else found


def _options(stored: Mapping[Any, Any], declared: Mapping[str, Option] | None) -> dict[str, Any]:
    """The declared options among some; all of an owner that is not registered, and so not built."""
    others = stored if declared is None else _NAMES
    known = {**dict.fromkeys(others, Option()), **(declared or {})}
    return {
        name: _value(name, value, known[name])
        for name, value in stored.items()
        if isinstance(name, str) and name in known
    }


def _value(name: str, value: Any, option: Option) -> Any:
    """What is taken of one value."""
    if not fits(value, option.kind):
        raise UserError(f"its option {name} is {shown(value)}, of another type")
    if isinstance(value, str):
        return _text(name, value, option)
    if isinstance(value, list | tuple):
        if len(value) > MOST_ENTRIES:
            raise UserError(f"its option {name} has {len(value):,} entries, which no model has")
        each = option._replace(kind=Any)
        # bounds are those of a number alone
        return type(value)(
            p if isinstance(p, int | float) else _value(name, p, each) for p in value
        )
    if isinstance(value, dict | Namespace):
        inner = value if isinstance(value, dict) else vars(value)
        nested = hasattr(option.kind, "__dataclass_fields__")
        declared = _declared(option.kind, option.words) if nested else None
        return type(value)(**_options(inner, declared))
    if isinstance(value, int | float) and not isinstance(value, bool):
        check_number(name, value)
    elif not isinstance(value, bool | None):
        raise UserError(f"its option {name} is a {type(value).__name__}, not a plain value")
    return value


def _text(name: str, value: str, option: Option) -> Any:
    """What is taken of a text: a name, words, what it is a literal of; else the default."""
    if value == UNSET:
        return value
    if name in _NAMES:
        return value if _PLAIN_NAME.fullmatch(value) else None
    if name == _DATA:
        # fairseq logs it
        return None if "${" in value or len(value) > 4096 or clean(value) != value else value
    if name == _USER_DIR:
        last = value.rstrip("/").rpartition("/")[2]
        return last if _WORDS.fullmatch(last) else None
    try:
        # options inside an option are in JSON
        found = json.loads(value) if value.startswith("{") else literal(value)
    except (UserError, ValueError, RecursionError):
        found = ""
    if isinstance(found, str):
        may = (option.words and not _OF_A_FILE.fullmatch(name)) or _LANGUAGES.fullmatch(name)
        words = may and _WORDS.fullmatch(value)
        return value if words else option.default
    return value if _value(name, found, Option()) == found else option.default


def check_number(name: str, value: float) -> None:
    """Check a number against `BOUNDS`.

    Raises:
        UserError: names the option and its bounds.
    """
    found = (bounds for pattern, *bounds in _BOUNDS if pattern.fullmatch(name))
    bounds = next(found, plugin.bounds.get(name))
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise UserError(
            f"its option {name} is {value}, and models have from {bounds[0]} to {bounds[1]}"
        )


def _check_positions(options: Any, largest: int) -> None:
    """Hold positions and widths of a model against what they may take, or its file has."""
    positions, widths = [1], [1]
    for name, value in _flat(options):
        if isinstance(value, int | float) and name.endswith(_POSITIONS):
            positions.append(int(value))
        elif isinstance(value, int) and name.endswith("_dim") and "ffn_" not in name:
            widths.append(value)
    if max(positions) * max(widths) > max(MOST_POSITIONS_TIMES_WIDTH, largest):
        raise UserError(f"its options ask for {max(positions)} positions of {max(widths)} numbers")


def _flat(options: Any) -> Iterator[tuple[str, Any]]:
    """All options, those inside others too."""
    inner = vars(options) if isinstance(options, Namespace) else options
    for name, value in inner.items() if isinstance(inner, dict) else ():
        yield name, value
        yield from _flat(value)


def _groups() -> dict[str, Any]:
    """The groups of a configuration, each with its dataclass or with what is registered for it."""
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    registered = {group: entry["registry"] for group, entry in REGISTRIES.items()}
    registered |= {"task": TASK_REGISTRY, "model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}}
    return {each.name: registered.get(each.name, each.type) for each in fields(FairseqConfig)}


def _flag(group: str) -> str:
    return "arch" if group == "model" else group


def _name_in(stored: Any, group: str, typed: Mapping[str, Any]) -> str | None:
    """The name of what is chosen for a group: by the user, else by the file."""
    options = vars(stored) if isinstance(stored, Namespace) else stored
    own = ("_name", _flag(group)) if isinstance(stored, dict) else (_flag(group), "_name")
    if isinstance(options, dict):
        options = next(filter(None, map(options.get, own)), None)
    name = typed.get(group) or options
    return name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else None


def _check_choice(group: str, name: str | None, owners: Any, typed: Mapping[str, Any]) -> None:
    """Check that the user, or a file that may, chose what will be built.

    Raises:
        UserError: it is fairseq's, and the file alone names it, or nobody's; or there is no name.
    """
    if name is None:
        raise UserError(f"it names no {group} of which one could be built")
    if typed.get(group) == name:
        return
    if name not in owners:
        raise UserError(
            f"its {group} {name} is not known here: name its plug-in with --user-dir, as in "
            f"--user-dir {plugin.PACKAGE}, or another {group} with --{_flag(group)}"
        )
    known = {*CHOSEN_BY_A_FILE.get(group, [name]), *os.environ.get(ALLOW, "").split(",")}
    if name not in known and owners[name].__module__.startswith("fairseq."):
        raise UserError(
            f"it names the {group} {name}, which a file cannot choose: type one with --{group}, or "
            f"set {ALLOW}={name} if you trust the file"
        )


def _declared_by(group: str, name: str | None, owners: Any) -> dict[str, Option] | None:
    """The options of what is chosen for a group, None where that is not registered."""
    if not isinstance(owners, Mapping):
        return _declared(owners, words=True)
    owner = owners.get(name)
    if owner is None:
        return None
    words = name in CHOSEN_BY_A_FILE.get(group, [name]) or not owner.__module__.startswith(
        "fairseq."
    )
    by_architecture = _set_by_architecture(str(name)) if group == "model" else {}
    return by_architecture | _declared(owner, words)


def _declared(owner: Any, words: bool) -> dict[str, Option]:
    """The options of a dataclass, or of a class that declares its flags."""
    known = getattr(owner, "__dataclass", None) or owner
    if hasattr(known, "__dataclass_fields__"):
        return {each.name: Option(each.type, _plain(each.default), words) for each in fields(known)}
    parser = ArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    getattr(owner, "add_args", id)(parser)
    return {
        action.dest: Option(_kind_of(action), _plain(action.default), words)
        for action in parser._actions
    }


def _kind_of(action: Any) -> Any:
    """The type of a flag's values, as far as it says one."""
    if isinstance(action.const, bool) and action.nargs == 0:
        return bool
    return action.type if action.type in (int, float, str) and action.nargs is None else Any


def _plain(default: Any) -> Any:
    """What an option is where a stored text is not taken."""
    usual = isinstance(default, str | int | float) and default not in (SUPPRESS, UNSET)
    return default if usual and "${" not in str(default) else None


def _set_by_architecture(name: str) -> dict[str, Option]:
    """Options that the function of an architecture sets and its flags do not declare."""
    from fairseq.models import ARCH_CONFIG_REGISTRY

    options = Namespace(arch=name)
    try:
        ARCH_CONFIG_REGISTRY.get(name, vars)(options)
    except Exception:  # it needs what a command line has; then the flags alone declare options
        return {}
    return {each: Option(Any, _plain(value)) for each, value in vars(options).items()}
