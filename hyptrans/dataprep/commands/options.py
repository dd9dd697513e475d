"""The options all commands share, and one report of everything that is wrong with them."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence

from hyptrans.dataprep.plan import Job
from hyptrans.dataprep.steps.subwords import WORDS
from hyptrans.support.errors import UserError
from hyptrans.support.flags import add_out, add_overwrite

# options that change no byte of the output, so the manifest does not hold them
_WITHOUT_EFFECT = ("out", "workers", "overwrite", "keep_intermediate")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def add_shared_arguments(
    parser: argparse.ArgumentParser, default_size: dict[str, int], languages: tuple[str, str]
) -> None:
    """Add the options that all commands share; :func:`make_job` reads them.

    Args:
        parser: of the command.
        default_size: by each kind of subwords that the command offers.
        languages: what source and target are where they are not given, in words.
    """
    sizes = ", ".join(f"{size} for {kind}" for kind, size in default_size.items() if size)
    add = parser.add_argument
    add_out(parser, "folder to write (required)", folder=True)
    source, target = languages
    add("--source-lang", metavar="LANG", help=f"language translated from (default: {source})")
    add("--target-lang", metavar="LANG", help=f"language translated to (default: {target})")
    add(
        "--bpe",
        metavar="KIND",
        help=f"kind of subwords: {_either(default_size)} "
        "(default: sentencepiece with --raw-text, else subword-nmt)",
    )
    add(
        "--vocab-size",
        metavar="N",
        help="number of merges for subword-nmt, of pieces for sentencepiece, learned jointly on "
        f"both sides (default: {sizes})",
    )
    add(
        "--raw-text",
        action="store_true",
        help="no lower-casing and no Moses steps: what sacreBLEU on detokenized text wants",
    )
    add("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    add(
        "--workers",
        metavar="N",
        help="number of processes; changes no byte of the output (default: number of cores)",
    )
    add(
        "--keep-intermediate",
        action="store_true",
        help="keep DIR/intermediate, the text of every step",
    )
    add_overwrite(parser, "replace what an earlier run left in DIR")


def positive_integer(text: str | None, option: str, default: int, problems: list[str]) -> int:
    """Return a whole number above 0, or note the problem and return ``default``."""
    if text is None:
        return default
    if re.fullmatch(r"[0-9]+", text) and int(text) > 0:
        return int(text)
    problems.append(f"{option} must be a whole number above 0, not {text!r}")
    return default


def make_job(
    args: argparse.Namespace, program: str, default_size: dict[str, int], problems: list[str]
) -> Job:
    """Check the shared options, and report them together with the problems found before.

    Raises:
        UserError: one sentence with every bad option.
    """
    kind = args.bpe or ("sentencepiece" if args.raw_text else "subword-nmt")
    if kind not in default_size:
        problems.append(f"--bpe must be {_either(default_size)}, not {kind!r}")
        kind = next(iter(default_size))
    if kind == WORDS and args.vocab_size is not None:
        problems.append(f"--vocab-size goes with subwords, not with --bpe {WORDS}")
    if not args.out:
        problems.append("--out is required")
    elif args.out.exists() and not args.out.is_dir():
        problems.append(f"--out {args.out} is a file, a folder is needed")
    elif "," in str(args.out.absolute()):
        problems.append(
            f"--out {args.out.absolute()} has a comma, at which fairseq-preprocess ends a name"
        )
    for option, lang in (("--source-lang", args.source_lang), ("--target-lang", args.target_lang)):
        if lang and not _LANGUAGE.fullmatch(lang):
            problems.append(f"{option} {lang!r} is not a language code")
    if args.source_lang and args.source_lang == args.target_lang:
        problems.append(f"--source-lang and --target-lang are both {args.source_lang}")
    size = positive_integer(args.vocab_size, "--vocab-size", default_size[kind], problems)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = positive_integer(args.workers, "--workers", cores or 1, problems)
    report(problems)
    return Job(
        command=(program, *_effective(args)),
        source_lang=args.source_lang,
        target_lang=args.target_lang,
        out=args.out.absolute(),
        bpe=kind,
        vocab_size=size,
        raw_text=args.raw_text,
        joined_dictionary=args.joined_dictionary,
        workers=workers,
        keep_intermediate=args.keep_intermediate,
        overwrite=args.overwrite,
    )


def report(problems: Sequence[str]) -> None:
    """Raise all problems as one sentence, if there are any.

    Raises:
        UserError: there is at least one.
    """
    if problems:
        raise UserError("; ".join(problems))


def _either(kinds: Iterable[str]) -> str:
    *others, last = kinds
    return f"{', '.join(others)} or {last}"


def _effective(args: argparse.Namespace) -> list[str]:
    words: list[str] = []
    for name, value in sorted(vars(args).items()):
        if name in _WITHOUT_EFFECT or value is None or value is False:
            continue
        option = "--" + name.replace("_", "-")
        for group in value if isinstance(value, list) else [value]:
            words.append(option)
            if group is not True:
                words += map(str, group if isinstance(group, list) else [group])
    return words
