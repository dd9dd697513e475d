"""IWSLT'14 and WMT'14, English to German: ``hyptrans prepare`` and the papers' settings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hyptrans.support.extras import require
from hyptrans.support.steps import Step
from recipes.common.corpus import Corpus
from recipes.common.translation import MOSES, Run, step

LANGUAGES = ("--source-lang", "en", "--target-lang", "de")


def main(
    corpus: Corpus, description: str | None, source: str, argv: Sequence[str] | None = None
) -> None:
    """Prepare, train, validate, translate and score.

    Args:
        corpus: one of the two.
        description: of the recipe.
        source: name of the corpus for ``hyptrans prepare``.
        argv: options; the recipe passes those that it does not know to the preparation.
    """
    parser = corpus.parser(description, "--raw DIR --write-readme")
    about = "further flags of every training, as --train-flags='--amp --update-freq 1'"
    parser.add_argument("--train-flags", type=shlex.split, default=[], metavar="FLAGS", help=about)
    args, others = parser.parse_known_args(argv)
    require("sacremoses", "data")

    def prepare(run: Run) -> Step:
        command = ["hyptrans", "prepare", source, *LANGUAGES, *others, "--out", str(run.data)]
        return step(command, "prepare", args.out, [run.data], resumes=True)

    text = [*MOSES, *LANGUAGES, *corpus.of_run.get("text_flags", ())]
    how = {"save_every": 1000, "best": True, "train_flags": args.train_flags, "text_flags": text}
    corpus.run(args, ("en", "de"), prepare, **how)
