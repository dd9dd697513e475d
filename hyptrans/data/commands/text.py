"""``hyptrans prepare text``: any parallel text, from files or from a data set by its name."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from hyptrans.data.commands.options import add_shared_arguments, check
from hyptrans.data.corpus import CleanRule, Pairs
from hyptrans.data.pipeline import prepare
from hyptrans.data.sources import hub
from hyptrans.data.sources.files import parallel_files
from hyptrans.data.stages import Plan
from hyptrans.data.subwords import WORDS
from hyptrans.support.flags import positive

_SIZES = {"subword-nmt": 10000, "sentencepiece": 8000, WORDS: 0}
_LONGEST = 250
_SETS = ("train", "valid", "test")
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")
"""Endings of file names that may be languages."""
_NO_CODES = ("txt", "text", "tsv", "csv", "raw", "src", "tgt", "ref", "out", "tok", "bpe", "spm")
"""Endings that look like languages but name the file's content or side."""

Given = Mapping[str, list[list[Path]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    source, target = (f"the ending of the first {side} of --train" for side in ("SOURCE", "TARGET"))
    add_shared_arguments(parser, _SIZES, (source, target))
    add = parser.add_argument
    for name in _SETS:
        more = "repeat for test1, test2 ..." if name == "test" else "repeat to join files"
        need = "optional" if name == "test" else "required without --hub"
        about = f"files of the {name} set ({need}; {more})"
        pair = ("SOURCE", "TARGET")
        add(f"--{name}", nargs=2, type=Path, action="append", default=[], metavar=pair, help=about)
    about = "data set for the datasets library, with splits train, validation and test; texts are "
    about += "in a column for each language, or in one column translation"
    add("--hub", metavar="NAME_OR_PATH", help=about)
    add("--hub-config", metavar="NAME", help="configuration of the data set on the hub")
    add("--lowercase", action="store_true", help="lower-case the text after tokenizing")
    about = f"drop training pairs with more tokens on a side (default: {_LONGEST}; no limit with "
    about += f"--bpe {WORDS}, which splits words at spaces and changes none)"
    add("--max-length", type=positive, metavar="N", help=about)


def main(args: argparse.Namespace) -> None:
    """Prepare a data set from plain parallel files, or from a data set that ``datasets`` loads."""
    given: Given = {name: getattr(args, name) for name in _SETS}
    words = args.bpe == WORDS
    check(args, _SIZES, [*_wrong_languages(args, given), *_wrong_options(args, given)])
    files = [path for pairs in given.values() for pair in pairs for path in pair]
    if args.hub and Path(args.hub).exists():
        files = [Path(args.hub)]

    def make_plan() -> Plan:
        languages = (args.source_lang, args.target_lang)
        tests = {f"test{number or ''}": [pair] for number, pair in enumerate(given["test"])}
        sets: dict[str, Callable[[], Pairs]] = {
            name: partial(parallel_files, "plain", pairs)
            for name, pairs in {**given, "test": [], **tests}.items()
            if pairs
        }
        if args.hub:
            sets = hub.sets(args.hub, languages, args.hub_config)
        flags = {} if args.raw_text or words else {"tokenize": True, "lowercase": args.lowercase}
        longest = args.max_length or (sys.maxsize if words else _LONGEST)
        return Plan(
            text=dict.fromkeys([*sets, "valid"], flags),
            clean_text=CleanRule(maximum=longest),
            held_out=0 if "valid" in sets else hub.HELD_OUT,
            sets=sets,
        )

    prepare(args, files, make_plan)


def _wrong_options(args: argparse.Namespace, given: Given) -> Iterator[str]:
    if args.lowercase and args.raw_text:
        yield "--lowercase and --raw-text exclude each other"
    if args.lowercase and args.bpe == WORDS:
        yield f"--lowercase and --bpe {WORDS}, which keeps words, exclude each other"
    if args.hub_config and not args.hub:
        yield "--hub-config needs --hub"
    typed = [f"--{name}" for name in _SETS if given[name]]
    if args.hub and typed:
        yield f"--hub brings all sets, so {', '.join(typed)} cannot go with it"
    for name in ("train", "valid") if not args.hub else ():
        if not given[name]:
            yield f"--{name} SOURCE TARGET is required, or --hub NAME"
    for name, pairs in given.items():
        for path in (path for pair in pairs for path in pair):
            if not path.is_file():
                yield f"--{name}: {path} is not a file"


def _wrong_languages(args: argparse.Namespace, given: Given) -> Iterator[str]:
    """Fill in missing languages from the first training files; yield files that contradict them."""
    first = given["train"][0] if given["train"] else []
    source, target = map(_ending, first) if first else ("", "")
    # the same ending on both sides does not name a language
    if source != target:
        args.source_lang = args.source_lang or source
        args.target_lang = args.target_lang or target
    if not (args.source_lang and args.target_lang):
        why = f"as {' and '.join(map(str, first))} do not both end in a language"
        why = why if first else "as no --train file ends in a language"
        yield f"--source-lang and --target-lang are required, {why}"
        return
    swapped = [args.target_lang, args.source_lang]
    for name, pairs in given.items():
        for pair in pairs:
            if [*map(_ending, pair)] == swapped:
                yield f"--{name}: {pair[0]} comes first but ends in the target language"


def _ending(file: Path) -> str:
    """Return the language that a file name ends in, as ``--source-lang`` has it, else ""."""
    ending = Path(file.name.removesuffix(".gz")).suffix[1:]
    is_code = _CODE.fullmatch(ending) and ending.lower() not in _NO_CODES
    return ending.replace("-", "_") if is_code else ""
