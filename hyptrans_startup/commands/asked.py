"""Options of a command that fairseq would ignore, or answer with a traceback: obeyed or refused."""

import argparse
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, Overlay, before

SEVERAL_PASSES = "translation_lev"
"""The one task of fairseq whose models translate in several passes."""
OF_SEVERAL_PASSES = [
    *("print_step", "retain_iter_history", "decoding_format", "iter_decode_eos_penalty"),
    *("iter_decode_max_iter", "iter_decode_with_beam", "iter_decode_force_max_iter"),
    "iter_decode_with_external_reranker",
]
OF_GENERATE = [
    *("dataset.num_shards", "dataset.shard_id", "dataset.gen_subset", "generation.lm_path"),
    *("common_eval.results_path", "common_eval.quiet", "generation.score_reference"),
    *("generation.lm_weight", "generation.prefix_size", "generation.sacrebleu"),
    "dataset.required_batch_size_multiple",
]
OF_TRAINING = [
    *("disable_validation", "combine_valid_subsets", "max_valid_steps", "max_tokens_valid"),
    *("batch_size_valid", "gen_subset", "num_shards", "shard_id", "post_process", "quiet"),
    *("results_path", "required_seq_len_multiple"),
]
"""Options of other programs, which share a parser."""
OF_SEARCHES = ["dataset.num_shards", "dataset.shard_id", "dataset.gen_subset"]
"""Options that a training's parser has and no training obeys."""


def whole_configuration(main: Call, cfg: Any, *args: Any, **kwargs: Any) -> Any:
    """``fairseq-generate`` hands over flags, which it makes a configuration of within."""
    if isinstance(cfg, argparse.Namespace):
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        cfg = convert_namespace_to_omegaconf(cfg)
    return main(cfg, *args, **kwargs)


@before
def search_that_cannot_be(cfg: Any, *_: Any, **__: Any) -> None:
    """``--beam 0``, wrong groups, ``--print-step``, ``--bpe``: tracebacks, or nonsense."""
    asked = cfg.generation
    if asked.nbest > asked.beam:
        raise UserError(f"--nbest {asked.nbest} must be between 1 and --beam, {asked.beam}")
    groups = asked.diverse_beam_groups
    if groups > 0 and asked.beam % groups:
        raise UserError(
            f"--diverse-beam-groups {groups} do not divide --beam {asked.beam}: take a multiple"
        )
    flag = _typed(cfg, [f"generation.{name}" for name in OF_SEVERAL_PASSES])
    if flag and not _in_several_passes(cfg.task._name):
        raise UserError(
            f"{flag} is for models that translate in several passes (--task {SEVERAL_PASSES}): "
            "leave it out"
        )
    if getattr(cfg.bpe, "_name", None) == "sentencepiece" and cfg.common_eval.post_process:
        raise UserError(
            "--bpe sentencepiece and --remove-bpe both put words together, and the second then "
            "loses all spaces: leave one out"
        )


def sets_in_shards(main: Call, cfg: Any, *args: Any, **kwargs: Any) -> Any:
    """``fairseq-generate --num-shards N --shard-id I`` translates all of the set N times."""
    shards, shard = cfg.dataset.num_shards, cfg.dataset.shard_id
    if not 0 <= shard < max(1, shards):
        raise UserError(f"--shard-id {shard} must be from 0 to --num-shards less one, {shards - 1}")
    world = cfg.distributed_training
    if shards > 1 and world.distributed_world_size == 1:
        # where generation looks for its share of the batches
        world.distributed_world_size, world.distributed_rank = shards, shard
    try:
        return main(cfg, *args, **kwargs)
    except ZeroDivisionError as error:
        if shards < 2:
            raise
        raise UserError(
            f"shard {shard} of {shards} is empty: shards are of whole batches, so take fewer "
            "--num-shards or a smaller --batch-size"
        ) from error


def _in_several_passes(task: str) -> bool:
    """Whether a task is fairseq's of several passes, or a plug-in's that is made of it."""
    from fairseq.tasks import TASK_REGISTRY

    return issubclass(TASK_REGISTRY[task], TASK_REGISTRY[SEVERAL_PASSES])


@before
def options_of_others(cfg: Any, *_: Any, **__: Any) -> None:
    """``generate --constraints``: ``'NoneType' … not iterable``; ``--sacrebleu``: ignored."""
    if cfg.generation.constraints is not None:
        raise UserError(
            "--constraints are read by fairseq-interactive, after a tab in each line; "
            "fairseq-generate has none to read"
        )
    if cfg.generation.sacrebleu and getattr(cfg.scoring, "_name", None) != "sacrebleu":
        raise UserError("--sacrebleu scores nothing in this release: use --scoring sacrebleu")


@before
def options_of_generate(cfg: Any, *_: Any, **__: Any) -> None:
    """``fairseq-interactive``: tracebacks, or not a word, for what it has no use for."""
    if cfg.generation.print_alignment == "soft":
        raise UserError(
            "fairseq-interactive prints hard alignments alone: --print-alignment hard, or "
            "fairseq-generate for soft ones"
        )
    _refuse("fairseq-interactive", _typed(cfg, OF_GENERATE))


@before
def options_of_training(_: Any, override_args: Any = None) -> None:
    """``fairseq-validate``: not a word for what it has no use for."""
    typed = [f"--{name.replace('_', '-')}" for name in OF_TRAINING if hasattr(override_args, name)]
    _refuse("fairseq-validate", typed[0] if typed else None)


@before
def options_of_searches(cfg: Any, *_: Any, **__: Any) -> None:
    """``fairseq-train --num-shards``: all of the data are trained on, without a word."""
    _refuse("fairseq-train", _typed(cfg, OF_SEARCHES))


def _typed(cfg: Any, names: Iterable[str]) -> str | None:
    """The flag of the first option, as ``group.name``, that is not as it is by default."""
    from fairseq.dataclass.configs import FairseqConfig

    usual = FairseqConfig()
    for group, name in (each.split(".") for each in names):
        if cfg[group][name] != getattr(getattr(usual, group), name):
            return f"--{name.replace('_', '-')}"
    return None


def _refuse(program: str, flag: str | None) -> None:
    if flag is not None:
        raise UserError(f"{flag} does nothing in {program}: leave it out")


@before
def translation_model_as_language_model(
    _: Any, models: Any, tgt_dict: Any, *args: Any, lm_model: Any = None, **__: Any
) -> None:
    """``--lm-path`` of a model that translates: ``forward() missing 2 required positional …``."""
    from fairseq.models import FairseqLanguageModel

    if lm_model is not None and not isinstance(lm_model, FairseqLanguageModel):
        raise UserError("--lm-path names a model that translates: it must be a language model")


@contextmanager
def ngrams_of_padding(module: ModuleType) -> Iterator[None]:
    """``--no-repeat-ngram-size`` without fairseq's kernel for GPUs: it compares the padding."""
    yield
    from hyptrans_startup.compat.fused import _no_repeat_ngram

    module.NGramRepeatBlock._no_repeat_ngram = _no_repeat_ngram


@contextmanager
def scorer_of_sentences(module: ModuleType) -> Iterator[None]:
    """``fairseq-score --sentence-bleu``: ``Scorer.__init__() takes 2 positional arguments``."""
    yield
    bleu = module.bleu

    def scorer(*given: Any) -> Any:
        """Take a configuration, or the three numbers that one was made of in earlier releases."""
        if len(given) == 3:
            given = (bleu.BleuConfig(pad=given[0], eos=given[1], unk=given[2]),)
        return bleu.Scorer(*given)

    vars(module)["bleu"] = Overlay(bleu, Scorer=scorer)


@before
def texts_that_do_not_match() -> None:
    """``fairseq-score`` of unequal numbers of lines scores those of the shorter text, silently."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-s", "--sys", default="-")
    parser.add_argument("-r", "--ref")
    parser.add_argument("-o", "--order", type=int, default=4)
    for flag in ("--ignore-case", "--sentence-bleu", "--sacrebleu"):
        parser.add_argument(flag, action="store_true")
    typed, others = parser.parse_known_args()
    if typed.ref is None or {"-h", "--help"} & {*others}:
        return
    ignored = {"--ignore-case": typed.ignore_case, "--sentence-bleu": typed.sentence_bleu}
    ignored["--order"] = typed.order != parser.get_default("order")
    for flag in filter(ignored.get, ignored if typed.sacrebleu else ()):
        raise UserError(f"{flag} does nothing with --sacrebleu: leave it out, or use sacrebleu")
    if typed.order < 1:
        raise UserError(f"--order must be at least 1, got {typed.order}")
    named = [typed.ref] if typed.sys == "-" else [typed.sys, typed.ref]
    if not all(map(os.path.exists, named)):
        return  # fairseq says which is missing
    if typed.sys == "-":
        sys.stdin = io.StringIO(sys.stdin.read())
        system = sys.stdin.getvalue().splitlines()
    else:
        system = _lines(typed.sys)
    reference = _lines(typed.ref)
    if len(system) != len(reference):
        output = "standard input" if typed.sys == "-" else typed.sys
        raise UserError(
            f"{output} has {len(system)} lines and {typed.ref} has {len(reference)}: each line of "
            "the one must translate the same line of the other"
        )


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.readlines()
