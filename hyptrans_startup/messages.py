"""Errors of the ``fairseq-*`` commands in one sentence, where fairseq shows a traceback.

Nothing here changes what a command does with good input. ``HYPTRANS_TRACEBACK=1`` brings the
tracebacks back.
"""

import difflib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hyptrans_startup import saving
from hyptrans_startup.errors import DISK_FULL, UserError, clean

LONGEST_NAME = 300
"""Characters of a file's name that are shown."""
STOPPED = 130
"""The exit status after Ctrl-C, as a shell has it."""


@contextmanager
def one_sentence(module: ModuleType) -> Iterator[None]:
    """A traceback of dozens of lines for a mistake in what was typed, in all eight commands."""
    yield
    # hydra prints tracebacks of its own, so its task is wrapped as well as the command
    for name in ("cli_main", "_hydra_main"):
        if hasattr(module, name):
            vars(module)[name] = without_traceback(vars(module)[name], module)


def without_traceback(run: Callable[..., Any], module: ModuleType) -> Callable[..., Any]:
    """Return `run`, which ends the process with one sentence where the error is the user's."""

    @functools.wraps(run)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except KeyboardInterrupt:
            if os.environ.get("HYPTRANS_TRACEBACK") == "1":
                raise
            sys.stdout.flush()
            sys.stderr.write(f"\n{Path(sys.argv[0]).name}: {when_stopped(module)}\n")
            sys.exit(STOPPED)
        except Exception as error:
            sentence = explain(error)
            if sentence is None or os.environ.get("HYPTRANS_TRACEBACK") == "1":
                raise
            sys.stdout.flush()
            sys.exit(f"{Path(sys.argv[0]).name}: error: {sentence}")

    return wrapped


def when_stopped(module: ModuleType) -> str:
    """Return what Ctrl-C means for the next run of a command."""
    if module.__name__.rpartition(".")[2] not in ("train", "hydra_train"):
        return "stopped"
    if saving.written:
        stem = Path(saving.LAST).stem
        last = [path for path in saving.written if Path(path).name.startswith(stem)]
        if last:
            return f"stopped; {last[-1]} is saved, and the same command goes on from there"
        return f"stopped; {saving.written[-1]} is saved, --restore-file newest goes on from there"
    return (
        "stopped before this run saved a checkpoint: the same command goes on from what an earlier "
        "one saved, or begins anew (--save-interval-updates N saves more often)"
    )


def explain(error: Exception) -> str | None:
    """Return the sentence for an error that is the user's to mend, None for any other."""
    message = clean(" ".join(str(error).split()))
    if isinstance(error, UserError):
        return message
    if isinstance(error, OSError) and error.filename is not None:
        # a checkpoint may have named it
        name = clean(" ".join(str(error.filename).split()))
        return f"{name[:LONGEST_NAME]}: {error.strerror}"
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return f"the disk is full or a size limit is reached ({error.strerror}): make room"
    package = raised_in(error).partition(".")[0]
    told = {
        "hyptrans": (ValueError, ImportError, NotImplementedError, RuntimeError, OSError),
        "fairseq": (AssertionError, OSError),
        "fairseq_cli": (AssertionError, OSError),
    }.get(package, ())
    # fairseq raises a bare Exception only with words for the user
    if message and (isinstance(error, told) or (told and type(error) is Exception)):
        return f"{message} (HYPTRANS_TRACEBACK=1 shows where this comes from)"
    return None


def raised_in(error: Exception) -> str:
    """Return the name of the module whose line raised the error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__", "") if traceback is not None else ""


@contextmanager
def unknown_arch_on_command_line(module: ModuleType) -> Iterator[None]:
    """A hundred lines of usage and all names in one line for ``--arch nope``."""
    yield
    stock = module.add_model_args

    def add_model_args(parser: Any) -> Any:
        group = stock(parser)
        from fairseq.models import ARCH_MODEL_REGISTRY

        def known(name: str) -> str:
            if name not in ARCH_MODEL_REGISTRY:
                raise unknown_arch(name, ARCH_MODEL_REGISTRY)
            return name

        # argparse asks the type before it looks at the choices
        parser._option_string_actions["--arch"].type = known
        return group

    vars(module)["add_model_args"] = add_model_args


@contextmanager
def help_without_options(module: ModuleType) -> Iterator[None]:
    """``--arch NAME --help`` that leaves out the options of NAME, of criterion and optimizer.

    fairseq parses twice, first to find the names; the first time it must not see the flag, and
    does not go on without the name of an architecture or a task.
    """
    yield
    stock = module.parse_args_and_arch

    def parse_args_and_arch(parser: Any, *args: Any, **options: Any) -> Any:
        parse = parser.parse_known_args

        def first_without_help(words: Any = None, namespace: Any = None) -> Any:
            parser.parse_known_args = parse
            words = sys.argv[1:] if words is None else words
            others = [word for word in words if word not in ("-h", "--help")]
            found, unknown = parse(others, namespace)
            for name in ("arch", "task") if len(others) < len(words) else ():
                if getattr(found, name, "") is None:
                    delattr(found, name)
            return found, unknown

        parser.parse_known_args = first_without_help
        return stock(parser, *args, **options)

    vars(module)["parse_args_and_arch"] = parse_args_and_arch


@contextmanager
def unknown_arch_in_checkpoint(module: ModuleType) -> Iterator[None]:
    """``AssertionError: Could not infer model type from`` and the whole configuration."""
    yield
    stock = module.build_model

    def build_model(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
        models = {**module.ARCH_MODEL_REGISTRY, **module.MODEL_DATACLASS_REGISTRY}
        if isinstance(name, str) and name not in models:
            raise unknown_arch(name, models)
        return stock(cfg, *args, **kwargs)

    vars(module)["build_model"] = build_model


def unknown_arch(name: str, known: dict[str, Any]) -> UserError:
    """Return the error for an architecture that is not registered."""
    near = ", ".join(difflib.get_close_matches(name, known)) or "none"
    plugin = (
        "" if "hyptrans.models" in sys.modules else "; --user-dir hyptrans adds those of hyptrans"
    )
    return UserError(
        f"--arch {name} is not one of the {len(known)} known architectures, "
        f"similar names: {near}{plugin}"
    )
