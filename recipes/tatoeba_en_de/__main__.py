"""Tatoeba, English and German: the model that the package brings, its twin, and folders of both.

One command prepares, trains, scores and exports; --from de trains from German to English.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from recipes.common import experiment, options
from recipes.common.experiment import Column, Experiment
from recipes.common.steps import Step
from recipes.tatoeba_en_de.prepare import SPLIT, TABLE

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_iwslt_d64,euclidean_prenorm_iwslt_d64"
COLUMNS = (Column("bleu", "BLEU", 5), Column("chrf", "chrF", 5, "chrf"))
CORPUS = (
    "Tatoeba, English and German sentences by its contributors (tatoeba.org, CC BY 2.0 FR, by way "
    "of manythings.org/anki); split, prepared and trained by recipes/tatoeba_en_de"
)
SAVE_EVERY = 500


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step, write ``results.json`` and the model folders, print the table."""
    parser = experiment.make_parser(HERE, __doc__, "--table deu-eng.zip", archs=MODELS, jobs=1)
    table_at = options.default_data(TABLE)
    parser.add_argument("--table", type=Path, default=table_at, help="the pairs, plain or zipped")
    about = "language to translate from (default: %(default)s)"
    parser.add_argument("--from", choices=("en", "de"), default="en", dest="source", help=about)
    args = parser.parse_args(argv)
    if args.table is None:
        raise UserError("--table is needed: deu-eng.zip from https://www.manythings.org/anki")
    source, target = languages = (args.source, "de" if args.source == "en" else "en")
    asked = ("--source-lang", source, "--target-lang", target)
    made = Experiment(
        HERE,
        args,
        languages,
        save_every=SAVE_EVERY,
        train_flags=asked,
        text_flags=("--remove-bpe", "sentencepiece", *asked),
    )
    run = made.run
    command = ["python", "-m", "recipes.tatoeba_en_de.prepare", "--table", str(args.table)]
    made.runner.run(
        Step(run.prepared, [*command, "--out", str(run.data)], [run.data], inputs=[args.table])
    )
    found = made.measure(COLUMNS)
    test = [str(run.data / SPLIT / f"test.{language}") for language in languages]
    for model in made.models:
        folder = args.out / f"{model.name}-{source}-{target}"
        command = ["hyptrans", "export", str(run.checkpoint(model.name)), "--data", str(run.data)]
        command += ["--out", str(folder), "--name", f"tatoeba-{source}-{target}"]
        command += ["--test", *test, "--dataset", CORPUS, "--license", "cc-by-2.0"]
        made.runner.run(Step(f"export_{model.name}", command, [folder], [run.made_by(model.name)]))
    made.finish(found, table)


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    return experiment.table(found, COLUMNS, "the held-out 2,000 sentences")


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
