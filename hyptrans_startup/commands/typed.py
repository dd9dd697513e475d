"""What a user types that fairseq answers with a traceback, a page of usage, or another error."""

import argparse
import difflib
import json
import math
import re
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.checkpoints.literals import literal, not_a_literal
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, after, before, told

UNKNOWN = "unrecognized arguments: "
_UNSET = re.compile(r"argument (--[\w-]+): invalid \w+ value: '\?\?\?'")
"""What argparse says of an option that has no default, and is none of text."""
BOUNDS = {
    r"(encoder|decoder)_(layers|attention_heads|embed_dim|ffn_embed_dim)": (1, math.inf),
    r"(batch_size|max_tokens)(_valid)?|required_(batch_size|seq_len)_multiple": (1, math.inf),
    r"beam|nbest|(log|save|validate)_interval|num_shards|distributed_world_size": (1, math.inf),
    r"seed|num_workers|buffer_size|min_len|prefix_size|no_repeat_ngram_size": (0, math.inf),
    r"lr|warmup_updates|save_interval_updates|clip_norm|max_update": (0, math.inf),
    r"update_freq|workers": (1, math.inf),
    r"threshold(src|tgt)|padding_factor": (0, math.inf),
    r"nwords(src|tgt)": (-1, math.inf),
    r"(\w+_)?dropout|label_smoothing": (0, 1),
}
"""Of numbers, by the name of the option: fairseq divides by others, or takes no notice of them."""
_AS_TEXT = ("lr", "update_freq")
"""Lists of numbers that fairseq reads later."""
OF_OPTIONS: dict[str, tuple[Callable[[str], Any], str]] = {
    "model_overrides": (literal, "{'dropout': 0.1}"),
    "eval_bleu_args": (json.loads, '{"beam": 4}'),
    "eval_bleu_detok_args": (json.loads, '{"moses_no_dash_splits": true}'),
}
"""Options that hold others: how they are read, and one of them."""


def help_without_options(
    parse: Call, parser: Any, input_args: Sequence[str] | None = None, *args: Any, **options: Any
) -> Any:
    """``--arch NAME --help`` that leaves out the options of NAME, of criterion and optimizer.

    fairseq parses twice, first to find the names. The first time, the parser must not see the flag
    for help, and fairseq goes on without the name of an architecture or a task.
    """
    parse_known = parser.parse_known_args

    def first_without_help(words: Any = None, namespace: Any = None) -> Any:
        parser.parse_known_args = parse_known
        words = sys.argv[1:] if words is None else words
        others = [word for word in words if word not in ("-h", "--help")]
        found, unknown = parse_known(others, namespace)
        for name in ("arch", "task") if len(others) < len(words) else ():
            if getattr(found, name, "") is None:
                delattr(found, name)
        return found, unknown

    parser.parse_known_args = first_without_help
    return parse(parser, input_args, *args, **options)


def page_of_usage(parse: Call, parser: Any, *args: Any, **options: Any) -> Any:
    """A hundred lines of usage for a flag that does not exist, without the one that was meant."""

    def error(message: str) -> None:
        raise UserError(mistyped(message, parser._option_string_actions))

    parser.error = error
    try:
        return parse(parser, *args, **options)
    except RuntimeError as nameless:
        if nameless.args:
            raise
        raise UserError("--arch NAME is missing; --help lists all flags") from nameless
    except argparse.ArgumentError as both:
        raise UserError(f"{both}: it is an option of two of the names that are chosen") from both


def mistyped(message: str, flags: Any) -> str:
    """Return argparse's message, with the flags that are similar to those it does not know."""
    if unset := _UNSET.fullmatch(message):
        return f"{unset[1]} is missing"
    if not message.startswith(UNKNOWN):
        return f"{message} (--help lists all flags)"
    unknown = [word.partition("=")[0] for word in message.removeprefix(UNKNOWN).split()]
    words = []
    for flag in (word for word in unknown if word.startswith("--")):
        near = difflib.get_close_matches(flag, flags, n=2)
        words.append(f"{flag} (similar: {', '.join(near)})" if near else flag)
    return f"there is no flag {', '.join(words or unknown)}; --help lists all"


@after
def half_precision_without_gpu(parsed: Any, *_: Any, **__: Any) -> None:
    """``--fp16`` on a CPU: ``Torch not compiled with CUDA enabled``, or nothing learned."""
    import torch

    options = parsed[0] if isinstance(parsed, tuple) else parsed
    on_gpu = torch.cuda.is_available() and not getattr(options, "cpu", False)
    if getattr(options, "fp16", False) and not on_gpu and not getattr(options, "tpu", False):
        raise UserError("--fp16 needs a GPU, and none is used: leave it out, or take --bf16")


def validation_without_task(parse: Call, parser: Any, *args: Any, **options: Any) -> Any:
    """``fairseq-validate`` without ``--task``, or ``--path``: ``KeyError: None``."""
    flags = parser._option_string_actions
    # every other parser has a task by default
    validates = "--path" in flags and "--task" in flags and flags["--task"].default is None
    if validates:
        parser.set_defaults(task="translation")
    parsed = parse(parser, *args, **options)
    if validates and not (parsed[0] if isinstance(parsed, tuple) else parsed).path:
        raise UserError("--path CHECKPOINT is missing; --help lists all flags")
    return parsed


@before
def names_of_a_training(parser: Any, *_: Any, **__: Any) -> None:
    """``fairseq-generate --lr-scheduler cosine``: ``NoneType … not iterable``, or not a word."""
    flags = parser._option_string_actions
    trains = not {"--optimizer", "--lr-scheduler"} <= flags.keys() or "--max-update" in flags
    # programs of others may look at the criterion while they search
    searches = Path(sys.argv[0]).stem in ("fairseq-generate", "fairseq-interactive")
    searched = ("--criterion",) if searches else ()
    for flag in () if trains else ("--optimizer", "--lr-scheduler", *searched):
        # argparse asks the type before it looks at the choices, and of the default too
        flags[flag].type = partial(_untrained, flag, flags[flag].default)


def _untrained(flag: str, usual: str | None, name: str) -> str:
    if name != usual:
        raise UserError(f"{flag} {name} does nothing where nothing is trained: leave it out")
    return name


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


@after
def unknown_arch_on_command_line(_: Any, parser: Any) -> None:
    """A hundred lines of usage and all names in one line for ``--arch nope``."""
    from fairseq.models import ARCH_MODEL_REGISTRY as KNOWN

    def known(name: str) -> str:
        if name not in KNOWN:
            hint = f"; --user-dir {plugin.PACKAGE} adds those of {plugin.PACKAGE}"
            raise UserError(
                f"--arch {name} is not one of the {len(KNOWN)} known architectures, "
                f"{similar(name, KNOWN)}{'' if plugin.is_registered() else hint}"
            )
        return name

    # argparse asks the type before it looks at the choices
    parser._option_string_actions["--arch"].type = known


@after
def numbers_that_cannot_be(parsed: Any, *_: Any, **__: Any) -> None:
    """``--log-interval 0``, ``--seed -1``, ``--max-len-a nan``: tracebacks, or not a word."""
    options = parsed[0] if isinstance(parsed, tuple) else parsed
    for name, value in vars(options).items():
        _check_number(name, value)
    for name, (read, example) in OF_OPTIONS.items():
        text = getattr(options, name, None) or "{}"
        try:
            found = read(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UserError(f"--{name.replace('_', '-')} {text} is none: {example} is, for example")


@before
def numbers_of_a_preparation(args: Any) -> None:
    """``fairseq-preprocess --workers 0``: ``ZeroDivisionError``; ``--nwordssrc -2``: not a word."""
    for name, value in vars(args).items():
        _check_number(name, value)


@after
def unknown_tokenizer(parsed: Any, *_: Any, **__: Any) -> None:
    """``--eval-bleu-detok nope``: ``KeyError``."""
    from fairseq.registry import REGISTRIES

    options = parsed[0] if isinstance(parsed, tuple) else parsed
    name, known = getattr(options, "eval_bleu_detok", None), REGISTRIES["tokenizer"]["registry"]
    if name and name not in known:
        raise UserError(f"--eval-bleu-detok {name} is not known, {similar(name, known)}")


@told(ValueError, SyntaxError)
def no_literal(_: Exception, text: str) -> str:
    """``--update-freq nope``: ``malformed node or string``."""
    return str(not_a_literal(text))


@before
def model_of_no_size(cfg: Any, *_: Any, **__: Any) -> None:
    """``model.encoder_layers=0``, without a parser: ``IndexError``, division by zero."""
    for side in ("encoder", "decoder"):
        for size in ("layers", "attention_heads", "embed_dim", "ffn_embed_dim"):
            _check_number(f"{side}_{size}", getattr(cfg, f"{side}_{size}", None))


def _check_number(name: str, value: Any) -> None:
    """Hold a number, or those of a list, against `BOUNDS`.

    Raises:
        UserError: it is out of them, or not finite.
    """
    found = (bounds for names, bounds in BOUNDS.items() if re.fullmatch(names, name))
    least, most = next(found, (-math.inf, math.inf))
    if name in _AS_TEXT and isinstance(value, str):
        value = literal(value)
    flag = f"--{name.replace('_', '-')}"
    for number in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(number, int | float) or isinstance(number, bool):
            continue
        # --clip-norm inf clips nothing, and logs the norm
        if not math.isfinite(number) and (name != "clip_norm" or math.isnan(number)):
            raise UserError(f"{flag} is {number}: it must be a finite number")
        if not least <= number <= most:
            end = f"at least {least}" if number < least else f"at most {most}"
            raise UserError(f"{flag} must be {end}, got {number}")


def similar(name: str, known: Collection[str]) -> str:
    """Return the known names that are similar to one, as a clause."""
    return f"similar names: {', '.join(difflib.get_close_matches(name, known)) or 'none'}"


@told(Exception)
def no_language_model(error: Exception, cfg: Any, *_: Any, **__: Any) -> str | None:
    """``fairseq-eval-lm`` on a translation model: a dictionary that is missing, or a traceback."""
    task = task_of(cfg.common_eval.path)
    if task is None or not task.startswith("translation"):
        return None
    return (
        f"checkpoint {cfg.common_eval.path} is of a model that translates, and fairseq-eval-lm is "
        "for language models: fairseq-validate measures its perplexity"
    )


@before
def processes_of_no_gpu(cfg: Any, *_: Any, **__: Any) -> None:
    """``--distributed-init-method`` without a GPU: nothing is done, and the exit status is 0."""
    import torch

    asked = cfg.distributed_training
    spawned = asked.distributed_init_method and not asked.distributed_no_spawn
    if spawned and not torch.cuda.device_count():
        raise UserError(
            "--distributed-init-method starts a process for each GPU, and there is none: start "
            "each process yourself, with --distributed-rank and --distributed-no-spawn"
        )


@before
def alignment_without_attention(generator: Any, sample: Any, hypotheses: Any) -> None:
    """``--print-alignment`` of a model that returns no attention: ``IndexError: Dimension …``."""
    models = generator.model.models
    apart = any(getattr(model, "full_context_alignment", False) for model in models)
    # [source, target] where there is one, else empty
    if not apart and hypotheses[0][0]["attention"].dim() != 2:
        raise UserError(
            "--print-alignment needs attention weights, which this model does not return: "
            "leave it out"
        )


@before
def plugin_after_hydra() -> None:
    """``fairseq-hydra-train model=NAME`` of a plug-in: ``Could not load model/NAME``.

    hydra puts the configuration together before fairseq imports ``common.user_dir``.
    """
    given = dict(word.split("=", 1) for word in sys.argv[1:] if re.match(r"[\w.]+=", word))
    if "common.user_dir" in given:
        from fairseq.utils import import_user_module

        import_user_module(argparse.Namespace(user_dir=given["common.user_dir"]))
    model = given.get("model", "")
    configured = any(word.startswith(("--config-dir", "-cd")) for word in sys.argv)
    # a slash leads to fairseq's own files
    if model and "/" not in model and not configured:
        check_model(model)


def check_model(name: str) -> None:
    """Raise for a model that hydra does not know."""
    import fairseq
    from hydra.core.config_store import ConfigStore

    known = {entry.removesuffix(".yaml") for entry in ConfigStore.instance().repo.get("model", {})}
    folder = Path(fairseq.__file__).parent / "config" / "model"
    known |= {path.stem for path in folder.iterdir()} if folder.is_dir() else set()
    if name not in known:
        hint = f"common.user_dir={plugin.PACKAGE} adds {plugin.PACKAGE}'"
        raise UserError(
            f"model={name} is not known, {similar(name, known)}"
            + ("" if plugin.is_registered() else f"; {hint}")
        )
