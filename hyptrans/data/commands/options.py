"""The options that all commands share, and checks of their combinations."""

import argparse
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.data.learn import RARE_LEFT_OUT
from hyptrans.data.plan import Job
from hyptrans.data.subwords import WORDS
from hyptrans.support.errors import UserError
from hyptrans.support.flags import add_out, add_overwrite, positive

# options that change no byte of the output; the manifest leaves them out
_WITHOUT_EFFECT = ("out", "workers", "overwrite", "keep_intermediate")
_PLACES = ("train", "valid", "test", "archive", "raw", "hub")
"""Options that name files and folders, which the user may move."""
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9]+)*")


def add_shared_arguments(
    parser: argparse.ArgumentParser, sizes: Mapping[str, int], languages: tuple[str, str]
) -> None:
    """Add the options that all commands share; :func:`make_job` reads them.

    Args:
        parser: the command's parser.
        sizes: default vocabulary size for each kind of subwords that the command offers.
        languages: the default source and target, described in words.
    """
    shown = ", ".join(f"{size} for {kind}" for kind, size in sizes.items() if size)
    add = parser.add_argument
    add_out(parser, "folder to write (required)", folder=True, required=True)
    for side, what, language in zip(("source", "target"), ("from", "to"), languages, strict=True):
        about = f"language translated {what} (default: {language})"
        add(f"--{side}-lang", type=_language, metavar="LANG", help=about)
    about = f"kind of subwords, of {', '.join(sizes)} "
    about += "(default: sentencepiece with --raw-text, else subword-nmt)"
    add("--bpe", choices=list(sizes), metavar="KIND", help=about)
    about = "number of merges for subword-nmt, of pieces for sentencepiece, learned jointly on "
    about += f"both sides (default: {shown}, or as many as the text supports)"
    add("--vocab-size", type=positive, metavar="N", help=about)
    add(
        "--character-coverage",
        type=number(0.98, 1, "a number from 0.98 to 1"),
        metavar="SHARE",
        help="share of the text, from 0.98 to 1, that the characters in sentencepiece's pieces "
        "make up; rarer ones are symbols of their own in the dictionaries (default: 1, or, where "
        f"that is more characters than pieces by default, {RARE_LEFT_OUT})",
    )
    about = "no lower-casing and no Moses steps: what sacreBLEU on detokenized text wants"
    add("--raw-text", action="store_true", help=about)
    add("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    about = "number of processes, at most one a core; changes no byte of the output "
    add("--workers", type=positive, metavar="N", help=f"{about}(default: number of cores)")
    about = "keep DIR/intermediate, the text of every step"
    add("--keep-intermediate", action="store_true", help=about)
    add_overwrite(parser, "replace what an earlier run left in DIR")


def _language(text: str) -> str:
    """Check a language code; ``zh-Hans`` becomes zh_Hans, as fairseq puts a hyphen between two."""
    if not _LANGUAGE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language code")
    return text.replace("-", "_")


def number(least: float, most: float, about: str) -> Callable[[str], float]:
    """Return an argparse ``type`` for numbers from ``least`` to ``most``, as ``about`` says."""

    def check(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {about}")
        return value

    return check


def make_job(
    args: argparse.Namespace, program: str, sizes: Mapping[str, int], problems: Sequence[str]
) -> Job:
    """Check the shared options, and report problems together with those found before.

    Args:
        args: the parsed options.
        program: name of the command in the manifest.
        sizes: as for :func:`add_shared_arguments`.
        problems: those found before, a sentence each.

    Raises:
        UserError: there are problems; one sentence lists them all.
    """
    problems = list(problems)
    kind = args.bpe or ("sentencepiece" if args.raw_text else "subword-nmt")
    if kind == WORDS and args.vocab_size is not None:
        problems.append(f"--vocab-size goes with subwords, not with --bpe {WORDS}")
    if kind != "sentencepiece" and args.character_coverage:
        problems.append(f"--character-coverage goes with --bpe sentencepiece, not with {kind}")
    if args.source_lang and args.source_lang == args.target_lang:
        problems.append(f"--source-lang and --target-lang are both {args.source_lang}")
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Job(
        command=(program, *_words(args, str)),
        options=(program, *_words(args, _name)),
        source_lang=args.source_lang,
        target_lang=args.target_lang,
        out=args.out.absolute(),
        bpe=kind,
        vocab_size=args.vocab_size or sizes[kind],
        size_adapts=args.vocab_size is None,
        character_coverage=args.character_coverage,
        raw_text=args.raw_text,
        joined_dictionary=args.joined_dictionary,
        workers=min(args.workers or cores or 1, cores or 1),
        keep_intermediate=args.keep_intermediate,
        overwrite=args.overwrite,
    )


def _name(place: Any) -> str:
    """Return the bare name of a file or folder, or the full name of a data set on the hub."""
    return Path(place).name if Path(place).exists() else str(place)


def _words(args: argparse.Namespace, shown: Callable[[Any], str]) -> Iterator[str]:
    """Yield the options as they are typed; ``shown`` formats files and folders."""
    for name, value in sorted(vars(args).items()):
        if name in _WITHOUT_EFFECT or value is None or value is False:
            continue
        for group in value if isinstance(value, list) else [value]:
            yield "--" + name.replace("_", "-")
            if group is not True:
                one = shown if name in _PLACES else str
                yield from map(one, group if isinstance(group, list) else [group])
