"""``hyptrans prepare text``: any parallel text."""

import argparse
import math
import sys
from pathlib import Path

from hyptrans.dataprep.commands.options import add_shared_arguments, make_job, number
from hyptrans.dataprep.pipeline import prepare
from hyptrans.dataprep.plan import Plan
from hyptrans.dataprep.sources.markup import parallel_files
from hyptrans.dataprep.steps.clean import CleanRule
from hyptrans.dataprep.steps.subwords import WORDS
from hyptrans.support.flags import positive

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
            required=name != "test",
            metavar=("SOURCE", "TARGET"),
            help=f"files of the {name} set ({need}; {more})",
        )
    parser.add_argument(
        "--lowercase", action="store_true", help="lower-case the text after tokenizing"
    )
    parser.add_argument(
        "--max-length",
        type=positive,
        metavar="N",
        help=f"drop training pairs with more tokens on a side (default: {_LONGEST}; no limit with "
        f"--bpe {WORDS}, which takes words as spaces part them and changes none)",
    )
    parser.add_argument(
        "--max-ratio",
        type=number(lambda ratio: 1 <= ratio < math.inf, "a number of at least 1"),
        metavar="R",
        help="drop training pairs whose numbers of tokens differ by more than this factor "
        "(default: no limit)",
    )


def main(args: argparse.Namespace) -> None:
    """Prepare a data set from plain parallel files.

    Raises:
        UserError: all that is wrong with the options, in one sentence.
    """
    given = {name: getattr(args, name) or [] for name in _SETS}
    words = args.bpe == WORDS
    problems = _languages(args, given)
    if args.lowercase and args.raw_text:
        problems.append("--lowercase and --raw-text exclude each other")
    if args.lowercase and words:
        problems.append(f"--lowercase and --bpe {WORDS}, which keeps words, exclude each other")
    problems += [
        f"--{name}: {path} is not a file"
        for name, pairs in given.items()
        for path in (path for pair in pairs for path in pair)
        if not Path(path).is_file()
    ]
    job = make_job(args, "data-prep/prepare_text.py", _SIZES, problems)
    tests = {f"test{number or ''}": [pair] for number, pair in enumerate(given["test"])}
    sets = {
        name: parallel_files("plain", [(Path(one), Path(other)) for one, other in pairs])
        for name, pairs in {**given, "test": [], **tests}.items()
        if pairs
    }
    flags = {} if job.raw_text or words else {"tokenize": True, "lowercase": args.lowercase}
    longest = args.max_length or (sys.maxsize if words else _LONGEST)
    rule = CleanRule(maximum=longest, ratio=float(args.max_ratio or 0))
    plan = Plan(sets=sets, text=dict.fromkeys(sets, flags), clean_text=rule)
    prepare(job, [path for source in sets.values() for path in source.inputs], lambda _: plan)


def _languages(args: argparse.Namespace, given: dict[str, list[list[str]]]) -> list[str]:
    """Take languages not given from the first training files, and say which files end in others."""
    source, target = map(_ending, given["train"][0])
    # one ending for both sides is no language
    if source != target:
        args.source_lang = args.source_lang or source
        args.target_lang = args.target_lang or target
    if not (args.source_lang and args.target_lang):
        return [
            "--source-lang and --target-lang are required, as "
            f"{' and '.join(given['train'][0])} do not end in a language each"
        ]
    swapped = [args.target_lang, args.source_lang]
    return [
        f"--{name}: {pair[0]} comes first but ends in the target language"
        for name, pairs in given.items()
        for pair in pairs
        if [*map(_ending, pair)] == swapped
    ]


def _ending(name: str) -> str:
    """The language that a file name ends in, as ``--source-lang`` writes it; or nothing."""
    ending = Path(name.removesuffix(".gz")).suffix[1:]
    return "" if ending.lower() in _PLAIN_ENDINGS else ending.replace("-", "_")
