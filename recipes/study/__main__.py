"""Does the geometry pay? Multi30k English to German, every model tuned with the same care."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.evaluation import scores
from hyptrans.support import steps
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from recipes.common import options, results, scoring, translation
from recipes.common.settings import Flags, Model, read_models
from recipes.common.translation import Run
from recipes.multi30k_en_de import __main__ as multi30k
from recipes.study import bootstrap
from recipes.study.pictures import pictures
from recipes.study.plan import AVERAGED, SEEDS, TWINS, WIDTHS, Training, trainings
from recipes.study.table import table

HERE = Path(__file__).resolve().parent
SAVE_EVERY = 150
"""Updates between checkpoints and between measurements of validation perplexity."""
KEPT = 5
"""Number of last checkpoints to keep, and to average if the stage requires it."""
MOST_WARMUP = 300
MERGES = 10000
"""Merges of the joint byte-pair encoding of lower-cased tokens, as in Revisit-MMT."""
SEARCH = (5, "test")


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write tables and pictures."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/multi30k --out ~/study")
    options.add_data(parser, multi30k.CONTENTS, name=multi30k.HERE.name)
    args = parser.parse_args(argv)

    record = results.Record(HERE, args, trainings, _publish)
    if args.list:
        record.show()
        return
    require("sacremoses", "data")
    record.complete(partial(_score, args=args))
    for line in _compared(record.lines, args):
        record.add(line)
    print(f"{record.path}: every training is done")


def _publish(found: results.Results) -> None:
    results.put_into(HERE / "README.md", table(found))
    for name, text in pictures(found).items():
        results.write_changed(HERE / name, text)


def _score(training: Training, args: argparse.Namespace) -> dict[str, Any]:
    """Train, score and return the line; a training that diverged has no scores."""
    run, name, lowercase = _run_of(training, args), training.name, training.text == "lowercased"
    files = multi30k.files(args.data)
    of_text: dict[str, Any] = {"vocab": multi30k.VOCABULARY, "joined": bool(training.text)}
    if lowercase:
        of_text |= {"vocab": MERGES, "text": ("--lowercase", "--bpe", "subword-nmt")}
    prepare = "_".join(filter(None, ("prepare", training.text)))
    command = translation.prepare(run, files, **of_text)
    inputs = [path for pair in files.values() for path in pair]
    made = translation.step(command, prepare, args.out, [run.data], inputs=inputs, resumes=True)
    steps.run([made], run.out)
    found, finished = translation.train(run, _model(training), args.out, made)
    of_training = {"name": name, **asdict(training), "threads": run.threads}
    line = {**of_training, "valid_perplexity": None, **found}
    if not finished:
        return line
    line |= translation.translate(run, name, args.out, [SEARCH], validated=True)
    of = run.output(name, SEARCH), run.references()
    for key, metric in {"bleu": "bleu", "chrf": "chrf", "bleu_lowercased": scoring.TOKENS}.items():
        score = scoring.score(metric, *of, lowercase=lowercase)
        line |= {key: score.value, f"{key}_signature": score.signature}
    return line


def _compared(found: results.Results, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a line per comparison of averages whose seeds and translations are complete."""
    outputs: dict[str, list[list[str]]] = {}
    for training in trainings(found):
        if training.stage == AVERAGED:
            run = _run_of(training, args)
            path = run.output(training.name, SEARCH)
            outputs.setdefault(training.model, []).extend(
                [scores.detokenized(path)] if path.exists() else []
            )
    whole = {model: texts for model, texts in outputs.items() if len(texts) == SEEDS}
    for twin in TWINS:
        for model, texts in whole.items():
            if twin in whole and model not in TWINS:
                compared = bootstrap.compare(whole[twin], texts, scores.read_text(run.references()))
                name = f"{AVERAGED}-{model}-{twin}"
                of = {"name": name, "stage": "bootstrap", "model": model, "twin": twin}
                # covers all seeds and is no training
                yield {**of, "seed": 0, **compared}


def _model(training: Training) -> Model:
    (model,) = read_models(HERE, [training.model])
    warmup = min(MOST_WARMUP, training.updates // 4)
    own: Flags = {"--lr": f"{training.rate:g}", "--warmup-updates": str(warmup)}
    own["--dropout"] = f"{training.dropout:g}"
    if width := WIDTHS.get(training.stage):
        for side in ("encoder", "decoder"):
            own |= {f"--{side}-embed-dim": str(width), f"--{side}-ffn-embed-dim": str(4 * width)}
    return Model(training.name, model.flags | own)


def _run_of(training: Training, args: argparse.Namespace) -> Run:
    source, target = multi30k.LANGUAGES
    of_text: dict[str, Any] = {}
    if training.text == "lowercased":
        languages = ("--source-lang", source, "--target-lang", target)
        of_text["text_flags"] = [*translation.MOSES, *languages]
    return Run(
        args.out / training.text,
        source,
        target,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        user_dir=translation.plug_in(training.model),
        save_every=SAVE_EVERY,
        averaged=KEPT if training.stage == AVERAGED else 1,
        train_flags=["--validate-interval", "100000", "--keep-interval-updates", str(KEPT)],
        **of_text,
    )


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
