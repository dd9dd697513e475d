"""Does the geometry pay? Multi30k English to German, every model tuned with the same care."""

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hyptrans.evaluation import scores
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.support.steps import Step
from recipes.common import options, results, translation
from recipes.common.commands import THREADS
from recipes.common.experiment import Experiment
from recipes.common.settings import read_models
from recipes.common.translation import SENTENCEPIECE, Run, sides
from recipes.multi30k_en_de import __main__ as multi30k
from recipes.study import bootstrap
from recipes.study.pictures import pictures
from recipes.study.plan import AVERAGED, SEEDS, TWINS, WIDTHS, Training, trainings
from recipes.study.table import SCORES, table

HERE = Path(__file__).resolve().parent
SAVE_EVERY = 150
"""Updates between checkpoints and between measurements of validation perplexity."""
KEPT = 5
"""Number of last checkpoints to keep, and to average if the stage requires it."""
MOST_WARMUP = 300
_MERGES = ("--lowercase", "--bpe", "subword-nmt", "--vocab-size", "10000")
"""The text of Revisit-MMT: joint byte-pair encoding of lower-cased tokens."""
TEXTS = {
    "": multi30k.TEXT,
    "joined": (*multi30k.TEXT, "--joined-dictionary"),
    "lowercased": (*_MERGES, "--joined-dictionary"),
}
"""Text options of ``hyptrans prepare text`` by kind of text."""
_MOSES = ("--remove-bpe", "subword_nmt", "--tokenizer", "moses", *sides(multi30k.LANGUAGES))
"""Flags that turn lower-cased subwords back into text."""
SEARCH = (5, "test")


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write tables and pictures."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/multi30k --out ~/study")
    options.add_data(parser, multi30k.CONTENTS, name=multi30k.HERE.name)
    args = parser.parse_args(argv)
    lost = {"valid_perplexity": None, "threads": int(THREADS.partition(",")[0])}

    def begin(training: Training) -> tuple[Run, Step]:
        run, files = _run_of(training, args.out), multi30k.files(args.data)
        name = "_".join(filter(None, ("prepare", training.text)))
        return run, translation.prepared(run, files, TEXTS[training.text], name)

    def score(training: Training, run: Run) -> dict[str, Any]:
        lowercase = training.text == "lowercased"
        return lost | translation.score_columns(run, SCORES, lowercase=lowercase)

    experiment = Experiment(HERE, args, trainings, begin, score, table, lost, pictures)
    if not args.list:
        require("sacremoses", "data")
    if experiment.run():
        for line in _compared(experiment.lines, args.out):
            experiment.add(line)


def _compared(found: results.Results, out: Path) -> Iterator[dict[str, Any]]:
    """Yield a line per comparison of averages whose seeds and translations are complete."""
    runs: dict[str, list[Run]] = {}
    for training in trainings(found):
        if training.stage == AVERAGED and (run := _run_of(training, out)).output(SEARCH).exists():
            runs.setdefault(training.model, []).append(run)
    texts = {
        model: [scores.detokenized(run.output(SEARCH)) for run in several]
        for model, several in runs.items()
        if len(several) == SEEDS
    }
    for twin, model in itertools.product(TWINS, texts):
        if twin in texts and model not in TWINS:
            references = scores.read_text(runs[twin][0].references)
            name = f"{AVERAGED}-{model}-{twin}"
            of = {"name": name, "stage": "bootstrap", "model": model, "twin": twin}
            # covers all seeds and is not a training
            yield {**of, "seed": 0, **bootstrap.compare(texts[twin], texts[model], references)}


def _run_of(training: Training, out: Path) -> Run:
    """Return a training's commands."""
    flags = read_models(HERE, [training.model])[training.model]
    warmup = min(MOST_WARMUP, training.updates // 4)
    flags |= {"--lr": f"{training.rate:g}", "--warmup-updates": str(warmup)}
    flags["--dropout"] = f"{training.dropout:g}"
    if width := WIDTHS.get(training.stage):
        for side in ("encoder", "decoder"):
            flags |= {f"--{side}-embed-dim": str(width), f"--{side}-ffn-embed-dim": str(4 * width)}
    return Run(
        out,
        training.name,
        flags,
        multi30k.LANGUAGES,
        training.seed,
        training.updates,
        task=training.text,
        save_every=SAVE_EVERY,
        averaged=KEPT if training.stage == AVERAGED else 1,
        train_flags=["--validate-interval", "100000", "--keep-interval-updates", str(KEPT)],
        text_flags=_MOSES if training.text == "lowercased" else SENTENCEPIECE,
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
