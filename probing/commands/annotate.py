"""Parse plain text into dependency trees."""

import argparse
from pathlib import Path

from hyptrans.support.flags import add_alias, add_device, add_out
from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar
from probing.commands.options import check_counts
from probing.text.parse import BATCH_LINES, annotate, load_pipeline


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing annotate``."""
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="UTF-8 text, plain or gzipped")
    add_out(parser, "CoNLL-U to write", required=True)
    add("--lang", default="en", metavar="LANG", help="language of the text (default: %(default)s)")
    add(
        "--stanza-dir",
        type=Path,
        metavar="DIR",
        help="folder of stanza's models, with its resources.json (default: stanza's own)",
    )
    add(
        "--one-sentence-per-line",
        action="store_true",
        help="a line is a sentence (default: stanza looks for sentences inside of each line)",
    )
    add(
        "--pretokenized",
        action="store_true",
        help="words are separated by spaces, and a line is a sentence",
    )
    add(
        "--batch-size",
        type=int,
        default=BATCH_LINES,
        metavar="N",
        help="lines parsed together (default: %(default)s)",
    )
    add_device(parser, None, "cuda where there is one")
    for old, device in (("--gpu", "cuda"), ("--cpu", "cpu")):
        add_alias(parser, old, "device", device)


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing annotate``.

    Raises:
        UserError: the text cannot be parsed, or an option cannot be used.
    """
    check_counts(args, "batch_size")
    whole_lines = args.one_sentence_per_line or args.pretokenized
    # an unusable file is told before the models are loaded
    total = sum(1 for _ in read_lines(args.text))
    pipeline = load_pipeline(
        args.lang,
        args.stanza_dir,
        device=args.device,
        pretokenized=args.pretokenized,
        one_sentence_per_line=whole_lines,
    )
    summary = annotate(
        pipeline,
        bar(read_lines(args.text), "annotate", total),
        args.out,
        one_sentence_per_line=whole_lines,
        batch_lines=args.batch_size,
    )
    print(
        f"{args.out}: {summary.sentences} sentences, {summary.words} words of {summary.lines} lines"
    )
    if summary.empty:
        print(f"without text: lines {_numbers(summary.empty)}")
    if summary.changed:
        print(f"characters that did not come back: lines {_numbers(summary.changed)}")


def _numbers(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
