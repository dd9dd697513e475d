"""Options of a command that fairseq would ignore, or answer with a traceback: obeyed or refused."""

import argparse
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call, Overlay, before, told

SEVERAL_PASSES = "translation_lev"
"""The one task of fairseq whose models translate in several passes."""


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
    if asked.beam < 1:
        raise UserError(f"--beam {asked.beam} keeps no hypothesis: it must be at least 1")
    if not 1 <= asked.nbest <= asked.beam:
        raise UserError(f"--nbest {asked.nbest} must be between 1 and --beam, {asked.beam}")
    groups = asked.diverse_beam_groups
    if groups > 0 and asked.beam % groups:
        raise UserError(
            f"--diverse-beam-groups {groups} do not divide --beam {asked.beam}: take a multiple"
        )
    if asked.print_step and cfg.task._name != SEVERAL_PASSES:
        raise UserError(
            f"--print-step is for models that translate in several passes (--task {SEVERAL_PASSES})"
            ": leave it out"
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
def alignment_of_interactive(cfg: Any, *_: Any, **__: Any) -> None:
    """``fairseq-interactive --print-alignment soft``: ``too many values to unpack``."""
    if cfg.generation.print_alignment == "soft":
        raise UserError(
            "fairseq-interactive prints hard alignments alone: --print-alignment hard, or "
            "fairseq-generate for soft ones"
        )
    if cfg.dataset.num_shards > 1:
        raise UserError("--num-shards is for fairseq-generate: what is typed has no shards")


@told(ImportError)
def scorer_without_package(error: Exception, *_: Any, **__: Any) -> str | None:
    """``--scoring wer`` without ``editdistance``: a traceback."""
    name = str(error).partition("install ")[2].partition(" ")[0]
    return f"this --scoring needs a package: pip install {name}" if name else None


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
    parser.add_argument("--ignore-case", action="store_true")
    parser.add_argument("--sacrebleu", action="store_true")
    typed, others = parser.parse_known_args()
    if typed.ref is None or {"-h", "--help"} & {*others}:
        return
    if typed.ignore_case and typed.sacrebleu:
        raise UserError("--ignore-case does nothing with --sacrebleu: use sacrebleu -lc")
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
