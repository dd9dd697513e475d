"""``hyptrans prepare text``: any parallel text."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.dataprep.commands.options import add_shared_arguments, make_job, positive_integer
from hyptrans.dataprep.pipeline import prepare
from hyptrans.dataprep.plan import PairSource, Plan
from hyptrans.dataprep.sources.markup import ParallelFiles
from hyptrans.dataprep.steps.clean import CleanRule
from hyptrans.dataprep.steps.subwords import WORDS

_SIZES = {"subword-nmt": 10000, "sentencepiece": 8000, WORDS: 0}
_LONGEST = 250
_SETS = ("train", "valid", "test")
# what the name of a text in any language may end in
_PLAIN_ENDINGS = ("txt", "text")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    source, target = (f"the ending of the first {side} of --train" for side in ("SOURCE", "TARGET"))
    add_shared_arguments(parser, _SIZES, (source, target))
    for name in _SETS:
        more = "several times: test, test1 ..." if name == "test" else "several times: joined"
        need = "optional" if name == "test" else "required"
        parser.add_argument(
            f"--{name}",
            nargs=2,
            action="append",
            metavar=("SOURCE", "TARGET"),
            help=f"files of the {name} set ({need}; {more})",
        )
    parser.add_argument(
        "--lowercase", action="store_true", help="lower-case the text after tokenizing"
    )
    parser.add_argument(
        "--max-length",
        metavar="N",
        help=f"drop training pairs with more tokens on a side (default: {_LONGEST}; no limit with "
        f"--bpe {WORDS}, which takes words as spaces part them and changes none)",
    )
    parser.add_argument(
        "--max-ratio",
        metavar="R",
        help="drop training pairs whose numbers of tokens differ by more than this factor "
        "(default: no limit)",
    )


def main(args: argparse.Namespace) -> None:
    """Prepare a data set from plain parallel files.

    Raises:
        UserError: all that is wrong with the options, in one sentence.
    """
    problems = [f"--{name} is required" for name in _SETS[:2] if not getattr(args, name)]
    _languages(args, problems)
    words = args.bpe == WORDS
    longest = sys.maxsize if words else _LONGEST
    maximum = positive_integer(args.max_length, "--max-length", longest, problems)
    ratio = _ratio(args.max_ratio, problems)
    if args.lowercase and args.raw_text:
        problems.append("--lowercase and --raw-text exclude each other")
    if args.lowercase and words:
        problems.append(f"--lowercase and --bpe {WORDS}, which keeps words, exclude each other")
    for name in _SETS:
        for path in (path for pair in getattr(args, name) or [] for path in pair):
            if not Path(path).is_file():
                problems.append(f"--{name}: {path} is not a file")
    job = make_job(args, "data-prep/prepare_text.py", _SIZES, problems)
    sets: dict[str, PairSource] = {
        "train": _plain(args.train),
        "valid": _plain(args.valid),
    }
    for number, pair in enumerate(args.test or []):
        sets[f"test{number or ''}"] = _plain([pair])
    flags = {} if job.raw_text or words else {"tokenize": True, "lowercase": args.lowercase}
    plan = Plan(
        sets=sets,
        text=dict.fromkeys(sets, flags),
        clean_text=CleanRule(maximum=maximum, ratio=ratio),
    )
    inputs = [path for source in sets.values() for path in source.inputs]
    prepare(job, inputs, lambda journal: plan)


def _plain(pairs: Sequence[Sequence[str]]) -> ParallelFiles:
    files = tuple((Path(source), Path(target)) for source, target in pairs)
    return ParallelFiles(("plain",) * len(files), files)


def _languages(args: argparse.Namespace, problems: list[str]) -> None:
    """Take the languages not given from the first training files, and check those of all files."""
    if not args.train:
        return
    source, target = map(_ending, args.train[0])
    # one ending for both sides is no language
    if source != target:
        args.source_lang = args.source_lang or source
        args.target_lang = args.target_lang or target
    if not (args.source_lang and args.target_lang):
        problems.append(
            "--source-lang and --target-lang are required, as "
            f"{' and '.join(args.train[0])} do not end in a language each"
        )
        return
    for name in _SETS:
        for pair in getattr(args, name) or []:
            if [_ending(path) for path in pair] == [args.target_lang, args.source_lang]:
                problems.append(f"--{name}: {pair[0]} comes first but ends in the target language")


def _ending(name: str) -> str:
    """Return the language that a file name ends in, nothing where it ends in none."""
    ending = Path(name.removesuffix(".gz")).suffix[1:]
    return "" if ending.lower() in _PLAIN_ENDINGS else ending


def _ratio(text: str | None, problems: list[str]) -> float:
    try:
        ratio = float(text) if text is not None else 0.0
    except ValueError:
        ratio = 0.5
    if ratio and not 1 <= ratio < float("inf"):
        problems.append(f"--max-ratio must be a number of at least 1, not {text!r}")
    return ratio
