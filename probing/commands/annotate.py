"""Parse plain text into dependency trees."""

import argparse

from hyptrans.support.lines import read_lines
from hyptrans.support.progress import bar
from probing.text.parse import annotate, load_pipeline


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing annotate``.

    Raises:
        UserError: the text cannot be parsed, or an option cannot be used.
    """
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
