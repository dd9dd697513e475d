"""Tatoeba, English and German: train the packaged model and its twin, and export both folders.

One command prepares, trains, scores and exports; --from de trains German to English.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support import steps
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.steps import Step
from recipes.common import options
from recipes.common.corpus import Column, Corpus
from recipes.common.translation import Run, step
from recipes.tatoeba_en_de.prepare import SPLIT, TABLE, command

ABOUT = (
    "Tatoeba, English and German sentences by its contributors (tatoeba.org, CC BY 2.0 FR, by way "
    "of manythings.org/anki); split, prepared and trained by recipes/tatoeba_en_de"
)
CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64",
    (Column("bleu", "BLEU", 5), Column("chrf", "chrF", 5, "chrf")),
    "the held-out 2,000 sentences",
    of_run={"save_every": 500},
)
table = CORPUS.table


def main(argv: Sequence[str] | None = None) -> None:
    """Train, score and export all unfinished models and print the table."""
    parser = CORPUS.parser(__doc__, "--table deu-eng.zip")
    table_at = options.default_data(TABLE)
    parser.add_argument("--table", type=Path, default=table_at, help="the pairs, plain or zipped")
    about = "language to translate from (default: %(default)s)"
    parser.add_argument("--from", choices=("en", "de"), default="en", dest="source", help=about)
    args = parser.parse_args(argv)
    if args.table is None:
        raise UserError("--table is needed: deu-eng.zip from https://www.manythings.org/anki")
    source, target = languages = (args.source, "de" if args.source == "en" else "en")
    asked = ("--source-lang", source, "--target-lang", target)

    def prepare(run: Run) -> Step:
        made = command(args.table, run.data)
        inputs = [args.table]
        return step(made, "prepare", args.out, [run.data], inputs=inputs, resumes=True)

    text = ("--remove-bpe", "sentencepiece", *asked)
    _, runs = CORPUS.run(args, languages, prepare, train_flags=asked, text_flags=text)
    for name, run in runs.items():
        folder = args.out / f"{name}-{source}-{target}"
        export = ["hyptrans", "export", str(run.checkpoint(name)), "--data", str(run.data)]
        export += ["--out", str(folder), "--name", f"tatoeba-{source}-{target}", "--test"]
        export += [str(run.data / SPLIT / f"test.{language}") for language in languages]
        export += ["--dataset", ABOUT, "--license", "cc-by-2.0"]
        inputs = [run.checkpoint(name)]
        made = step(export, f"export_{name}", args.out, [folder], inputs=inputs)
        steps.run([made], args.out)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
