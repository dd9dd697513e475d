"""Tatoeba, English and German: train the packaged model and its twin, and export both folders.

One command prepares, trains, scores and exports; --from de trains German to English.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from hyptrans.support import steps
from hyptrans.support.errors import run_command
from recipes.common.corpus import Corpus
from recipes.common.scoring import Column
from recipes.common.translation import SENTENCEPIECE, sides, step
from recipes.tatoeba_en_de.prepare import SPLIT, add_table, prepared, required

ABOUT = (
    "Tatoeba, English and German sentences by its contributors (tatoeba.org, CC BY 2.0 FR, by way "
    "of manythings.org/anki); split, prepared and trained by recipes/tatoeba_en_de"
)
CORPUS = Corpus(
    Path(__file__).resolve().parent,
    "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64",
    (Column("bleu", "BLEU", 5), Column("chrf", "chrF", 5, "chrf")),
    "the held-out 2,000 sentences",
    updates=4000,
    save_every=500,
)
table = CORPUS.table


def main(argv: Sequence[str] | None = None) -> None:
    """Train, score and export all unfinished models and print the table."""
    parser = CORPUS.parser(__doc__, "--table deu-eng.zip")
    add_table(parser)
    about = "language to translate from (default: %(default)s)"
    parser.add_argument("--from", choices=("en", "de"), default="en", dest="source", help=about)
    args = parser.parse_args(argv)
    pairs = required(args.table)
    source, target = languages = (args.source, "de" if args.source == "en" else "en")
    flags = sides(languages)
    text = [*SENTENCEPIECE, *flags]
    _, runs = CORPUS.run(
        args, languages, lambda run: prepared(run, pairs), train_flags=flags, text_flags=text
    )
    for name, run in runs.items():
        folder = args.out / f"{name}-{source}-{target}"
        export = ["hyptrans", "export", str(run.checkpoint), "--data", str(run.data)]
        export += ["--out", str(folder), "--name", f"tatoeba-{source}-{target}", "--test"]
        export += [str(run.data / SPLIT / f"test.{language}") for language in languages]
        export += ["--dataset", ABOUT, "--license", "cc-by-2.0"]
        exported = step(export, f"export_{name}", args.out, folder, inputs=[run.checkpoint])
        steps.run([exported], args.out)


if __name__ == "__main__":
    sys.exit(run_command(main))
