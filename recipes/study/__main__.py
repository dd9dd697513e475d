"""Does the geometry pay? Multi30k English to German, every model tuned with the same care.

Trainings run one after the other; each is one line of results.jsonl once it is scored. Whatever
stops the command, the same one goes on: a training from its last checkpoint. With --write-readme
the results are those beside this file: what is in them is done, and what is finished is added.
Last, final trainings of the same seed are compared; --compare does this alone.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from recipes.common import lines, results, scoring, translation
from recipes.common.runner import Runner
from recipes.common.settings import Flags, Model, read_models
from recipes.common.steps import Step
from recipes.common.translation import Run
from recipes.multi30k_en_de import data
from recipes.study.findings.finals import Line, comparison, pairs
from recipes.study.findings.pictures import pictures
from recipes.study.findings.table import table
from recipes.study.plan import Training, trainings

HERE = Path(__file__).resolve().parent
SAVE_EVERY = 150
"""Updates between checkpoints, at which the validation perplexity is measured too."""
MOST_WARMUP = 300
MERGES = 10000
"""Of the joint byte-pair encoding of lower-cased tokens, as Revisit-MMT's."""
SEARCH = (5, "test")


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet."""
    parser = lines.make_parser(HERE, __doc__, "--data ~/multi30k --out ~/study")
    data.add_data(parser)
    about = "train nothing, compare what is trained"
    parser.add_argument("--compare", action="store_true", help=about)
    args = parser.parse_args(argv)
    queue = lines.Queue(HERE, args, lambda found: trainings(found), _publish)
    if args.list:
        queue.show()
        return
    require("sacremoses", "data")
    if not args.compare:
        queue.run(partial(_score, args=args))
    for pair in pairs(queue.lines):
        if compared := _compare(*pair, args):
            queue.add(compared)
    print(f"{queue.path}: all that is asked for is done")


def _publish(found: results.Results) -> None:
    results.put_into(HERE / "README.md", table(found))
    for name, text in pictures(found).items():
        results.write_changed(HERE / name, text)


def _score(training: Training, args: argparse.Namespace) -> dict[str, Any]:
    """Train and score; a training that diverged has no scores."""
    run, runner, name = _run_of(training, args), Runner(args.out), training.name
    prepared = _prepare(run, training, args)
    found, finished = lines.train(runner, run, _model(training), prepared)
    line = {
        "name": name,
        **asdict(training),
        "threads": run.threads,
        "valid_perplexity": None,
        **found,
    }
    if not finished:
        return line
    validated = translation.validate(run, name)
    for step in (validated, translation.generate(run, name, SEARCH)):
        runner.run(step)
    perplexity = translation.perplexity(runner.log(validated.name))
    line["valid_perplexity"] = perplexity if math.isfinite(perplexity) else None
    line["parameters"] = results.count_parameters(run.checkpoint(name), run.user_dir)
    of, lowercase = (run.output(name, SEARCH), run.references()), training.text == "lowercased"
    for key, metric in {"bleu": "bleu", "chrf": "chrf", "bleu_lowercased": scoring.TOKENS}.items():
        score = scoring.score(metric, *of, lowercase=lowercase)
        line |= {key: score.value, f"{key}_signature": score.signature}
    runner.say(f"{name}: perplexity {perplexity}, BLEU {line['bleu']}")
    return line


def _model(training: Training) -> Model:
    (model,) = read_models(HERE, [training.model])
    warmup = min(MOST_WARMUP, training.updates // 4)
    own: Flags = {"--lr": f"{training.rate:g}", "--warmup-updates": str(warmup)}
    own["--dropout"] = f"{training.dropout:g}"
    if width := training.width:
        for side in ("encoder", "decoder"):
            own |= {f"--{side}-embed-dim": str(width), f"--{side}-ffn-embed-dim": str(4 * width)}
    return Model(training.name, model.flags | own)


def _run_of(training: Training, args: argparse.Namespace) -> Run:
    of_text: dict[str, Any] = {}
    if training.text == "lowercased":
        of_text["text_flags"] = translation.token_flags(*data.LANGUAGES)
    return Run(
        args.out / training.text,
        *data.LANGUAGES,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        cpu=args.cpu,
        prepared="_".join(filter(None, ("prepare", training.text))),
        user_dir=translation.plug_in(training.model),
        save_every=SAVE_EVERY,
        train_flags=["--validate-interval", "100000", "--keep-interval-updates", "5"],
        **of_text,
    )


def _prepare(run: Run, training: Training, args: argparse.Namespace) -> Step:
    files = data.files(args.data)
    if training.text == "lowercased":
        text = ("--lowercase", "--bpe", "subword-nmt")
        return translation.prepare(run, files, MERGES, text=text, joined=True)
    return translation.prepare(run, files, data.VOCABULARY, joined=training.text == "joined")


def _compare(model: Line, baseline: Line, args: argparse.Namespace) -> dict[str, Any] | None:
    """Compare two trainings; None, and a word on what makes it, where a file is missing."""
    run = _run_of(Training("final", *(baseline[key] for key in ("model", "rate", "updates"))), args)
    outputs = [run.output(line["name"], SEARCH) for line in (baseline, model)]
    if missing := [path for path in (run.references(), *outputs) if not path.exists()]:
        print(f"{comparison(model, baseline)} is not made: {missing[0]} is missing, which a run of")
        print(f"both trainings leaves: {model['command']}; {baseline['command']}")
        return None
    found = scoring.compare(outputs[0], outputs[1], run.references())
    return {
        "name": comparison(model, baseline),
        "stage": "comparison",
        "model": model["model"],
        "baseline": baseline["model"],
        "seed": model["seed"],
        "trainings": [model["name"], baseline["name"]],
        "scores": {
            metric: {
                "model": round(float(one.values[1]), 2),
                "baseline": round(float(one.values[0]), 2),
                "p": round(float(one.p), 4),
            }
            for metric, one in found.items()
        },
        "signatures": {metric: one.signature for metric, one in found.items()},
    }


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=lines.STOPPED))
