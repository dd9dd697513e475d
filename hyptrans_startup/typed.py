"""What a user types that fairseq answers with a traceback, a page of usage, or another error."""

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError

UNKNOWN = "unrecognized arguments: "


@contextmanager
def page_of_usage(module: ModuleType) -> Iterator[None]:
    """A hundred lines of usage for a flag that does not exist, without the one that was meant."""
    yield
    stock = module.parse_args_and_arch

    def parse_args_and_arch(parser: Any, *args: Any, **options: Any) -> Any:
        def error(message: str) -> None:
            raise UserError(mistyped(message, parser._option_string_actions))

        parser.error = error
        try:
            return stock(parser, *args, **options)
        except RuntimeError as nameless:
            if nameless.args:
                raise
            raise UserError("--arch NAME is missing; --help lists all flags") from nameless

    vars(module)["parse_args_and_arch"] = parse_args_and_arch


def mistyped(message: str, flags: Any) -> str:
    """Return argparse's message, with the flags that are similar to those it does not know."""
    if not message.startswith(UNKNOWN):
        return f"{message} (--help lists all flags)"
    unknown = [word.partition("=")[0] for word in message.removeprefix(UNKNOWN).split()]
    words = []
    for flag in (word for word in unknown if word.startswith("--")):
        near = difflib.get_close_matches(flag, flags, n=2)
        words.append(f"{flag} (similar: {', '.join(near)})" if near else flag)
    return f"there is no flag {', '.join(words or unknown)}; --help lists all"


@contextmanager
def half_precision_without_gpu(module: ModuleType) -> Iterator[None]:
    """``--fp16`` on a CPU: ``Torch not compiled with CUDA enabled``, or nothing learned."""
    yield
    stock = module.parse_args_and_arch

    def parse_args_and_arch(*args: Any, **options: Any) -> Any:
        parsed = stock(*args, **options)
        found = parsed[0] if isinstance(parsed, tuple) else parsed
        import torch

        on_gpu = torch.cuda.is_available() and not getattr(found, "cpu", False)
        if getattr(found, "fp16", False) and not on_gpu and not getattr(found, "tpu", False):
            raise UserError("--fp16 needs a GPU, and none is used: leave it out, or take --bf16")
        return parsed

    vars(module)["parse_args_and_arch"] = parse_args_and_arch


@contextmanager
def validation_without_task(module: ModuleType) -> Iterator[None]:
    """``fairseq-validate`` without ``--task``: ``KeyError: None``; the checkpoint has its name."""
    yield
    stock = module.get_validation_parser

    def get_validation_parser(default_task: str | None = None) -> Any:
        task = default_task or task_of_checkpoint(sys.argv[1:])
        parser = stock(task)
        from fairseq.tasks import TASK_REGISTRY

        # a plug-in may have brought it just now
        if task is not None and task not in TASK_REGISTRY:
            raise UserError(
                f"the checkpoint was trained for the task {task[:40]!r}, which is not known here: "
                "name another with --task, or its plug-in with --user-dir"
            )
        return parser

    vars(module)["get_validation_parser"] = get_validation_parser


def task_of_checkpoint(words: list[str]) -> str | None:
    """Return the name of the task that the checkpoint of a command line was trained for.

    None where the command line names a task itself, or asks for help.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--task", "--path", "-h", "--help"):
        parser.add_argument(flag, nargs="?", default=None, const="")
    known, _ = parser.parse_known_args(words)
    if known.task is not None or known.h is not None or known.help is not None:
        return None
    if not known.path:
        raise UserError("--path CHECKPOINT is missing; --help lists all flags")
    return task_of(known.path)


def task_of(path: str) -> str | None:
    """Return the name of the task of a checkpoint, None where it has none."""
    from fairseq import checkpoint_utils

    if not Path(path).is_file():
        raise UserError(f"checkpoint {path} does not exist")
    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    if state.get("cfg") is not None:
        name: str | None = getattr(state["cfg"].task, "_name", None)
        return name
    return getattr(state.get("args"), "task", None)


@contextmanager
def no_language_model(module: ModuleType) -> Iterator[None]:
    """``fairseq-eval-lm`` on a translation model: a dictionary that is missing, or a traceback."""
    yield
    stock = module.main

    def main(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return stock(cfg, *args, **kwargs)
        except Exception as error:
            task = task_of(cfg.common_eval.path)
            if task is None or not task.startswith("translation"):
                raise
            raise UserError(
                f"checkpoint {cfg.common_eval.path} is of a model that translates, and "
                "fairseq-eval-lm is for language models: fairseq-validate measures its perplexity"
            ) from error

    vars(module)["main"] = main


@contextmanager
def no_sentencepiece_model(module: ModuleType) -> Iterator[None]:
    """``--bpe sentencepiece`` alone: ``MissingMandatoryValue`` or ``Not found: "???"``."""
    yield
    stock = module.SentencepieceBPE.__init__

    def init(self: Any, cfg: Any) -> None:
        from omegaconf import MissingMandatoryValue

        try:
            path = cfg.sentencepiece_model
        except MissingMandatoryValue:
            path = "???"
        if path == "???":
            raise UserError(
                "--bpe sentencepiece needs --sentencepiece-model FILE, the model that the training "
                "text was cut into pieces with"
            )
        if "://" not in path and not Path(path).is_file():
            raise UserError(f"--sentencepiece-model {path} does not exist")
        stock(self, cfg)

    module.SentencepieceBPE.__init__ = init


@contextmanager
def alignment_without_attention(module: ModuleType) -> Iterator[None]:
    """``--print-alignment`` of a model that returns no attention: ``IndexError: Dimension …``."""
    yield
    cls = module.SequenceGeneratorWithAlignment
    stock = cls._prepare_batch_for_alignment

    def prepare(self: Any, sample: Any, hypotheses: Any) -> Any:
        apart = any(getattr(m, "full_context_alignment", False) for m in self.model.models)
        # [source, target] where there is one, else empty
        if not apart and hypotheses[0][0]["attention"].dim() != 2:
            raise UserError(
                "--print-alignment needs attention weights, which this model does not return: "
                "leave it out"
            )
        return stock(self, sample, hypotheses)

    cls._prepare_batch_for_alignment = prepare


@contextmanager
def plugin_after_hydra(module: ModuleType) -> Iterator[None]:
    """``fairseq-hydra-train model=hybonet_tiny``: ``Could not load model/hybonet_tiny``.

    hydra puts the configuration together before fairseq imports ``common.user_dir``.
    """
    yield
    stock = module.cli_main

    def cli_main() -> None:
        given = dict(word.split("=", 1) for word in sys.argv[1:] if re.match(r"[\w.]+=", word))
        if "common.user_dir" in given:
            from fairseq.utils import import_user_module

            import_user_module(argparse.Namespace(user_dir=given["common.user_dir"]))
        model = given.get("model", "")
        configured = any(word.startswith(("--config-dir", "-cd")) for word in sys.argv)
        # a slash leads to fairseq's own files
        if model and "/" not in model and not configured:
            check_model(model)
        stock()

    vars(module)["cli_main"] = cli_main


def check_model(name: str) -> None:
    """Raise for a model that hydra does not know."""
    import fairseq
    from hydra.core.config_store import ConfigStore

    known = {entry.removesuffix(".yaml") for entry in ConfigStore.instance().repo.get("model", {})}
    folder = Path(fairseq.__file__).parent / "config" / "model"
    known |= {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
    if name in known:
        return
    near = ", ".join(difflib.get_close_matches(name, known)) or "none"
    plugin = "" if "hyptrans.models" in sys.modules else "; common.user_dir=hyptrans adds hyptrans'"
    raise UserError(f"model={name} is not known, similar names: {near}{plugin}")
