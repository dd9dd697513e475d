"""The options that all commands share, and checks of their combinations."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from hyptrans.data.subwords import WORDS
from hyptrans.support.errors import UserError
from hyptrans.support.flags import add_out, add_overwrite, positive
from hyptrans.support.options import flag

# options that change no byte of the output; the manifest leaves them out
_WITHOUT_EFFECT = ("command", "out", "workers", "overwrite", "keep_intermediate")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9]+)*")


def add_shared_arguments(
    parser: argparse.ArgumentParser, sizes: Mapping[str, int], languages: tuple[str, str]
) -> None:
    """Add the options that all commands share; :func:`check` checks them.

    ``sizes`` has the default vocabulary size for each kind of subwords that the command offers, and
    ``languages`` describes the default source and target.
    """
    shown = ", ".join(f"{size} for {kind}" for kind, size in sizes.items() if size)
    add = parser.add_argument
    parser.set_defaults(command=parser.prog.rpartition(" ")[2])
    add_out(parser, "folder to write (required)", folder=True, required=True)
    for side, what, language in zip(("source", "target"), ("from", "to"), languages, strict=True):
        about = f"language to translate {what} (default: {language})"
        add(f"--{side}-lang", type=_language, metavar="LANG", help=about)
    about = f"kind of subwords: {', '.join(sizes)} "
    about += "(default: sentencepiece with --raw-text, else subword-nmt)"
    add("--bpe", choices=list(sizes), metavar="KIND", help=about)
    about = "maximum merges of subword-nmt or pieces of sentencepiece, learned jointly on both "
    about += f"sides; a small text supports fewer (default: {shown})"
    add("--vocab-size", type=positive, metavar="N", help=about)
    about = "no lower-casing and no Moses steps, for sacreBLEU on detokenized text"
    add("--raw-text", action="store_true", help=about)
    add("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    about = "number of processes, at most one per core; does not affect the output "
    add("--workers", type=positive, metavar="N", help=f"{about}(default: number of cores)")
    about = "keep the text of every step in DIR/intermediate"
    add("--keep-intermediate", action="store_true", help=about)
    add_overwrite(parser, "replace the files of an earlier run in DIR")


def _language(text: str) -> str:
    """Check a language code; ``zh-Hans`` becomes zh_Hans, as fairseq puts a hyphen between two."""
    if not _LANGUAGE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a language code")
    return text.replace("-", "_")


def check(args: argparse.Namespace, sizes: Mapping[str, int], problems: Sequence[str]) -> None:
    """Check the shared options and fill in their defaults.

    ``args.command`` becomes the command's name and the options that change the output, as typed.

    Raises:
        UserError: there are problems; one sentence lists those found here and ``problems``.
    """
    found = list(problems)
    command = [args.command, *_words(args)]
    args.bpe = args.bpe or ("sentencepiece" if args.raw_text else "subword-nmt")
    if args.bpe == WORDS and args.vocab_size is not None:
        found.append(f"--vocab-size goes with subwords, not with --bpe {WORDS}")
    if args.source_lang and args.source_lang == args.target_lang:
        found.append(f"--source-lang and --target-lang are both {args.source_lang}")
    if found:
        raise UserError("; ".join(found))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    args.workers = min(args.workers or cores or 1, cores or 1)
    args.vocab_size = args.vocab_size or sizes[args.bpe]
    args.command = command


def _words(args: argparse.Namespace) -> Iterator[str]:
    """Yield the options that change the output."""
    for name, value in sorted(vars(args).items()):
        if name not in _WITHOUT_EFFECT and value not in (None, False, []):
            yield flag(name)
            for one in value if isinstance(value, list) else [value] * (value is not True):
                yield from map(str, one if isinstance(one, list) else [one])
