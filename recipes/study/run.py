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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from recipes.common import lines, multi30k, results, scoring, translation
from recipes.common.runner import Runner
from recipes.common.settings import Model, read_models
from recipes.common.steps import Step, portable_command, shown_command
from recipes.common.translation import Run
from recipes.study.findings import comparisons
from recipes.study.findings.pictures import pictures
from recipes.study.findings.table import table
from recipes.study.plan import Training, trainings

HERE = Path(__file__).resolve().parent
SAVE_EVERY = 150
"""Updates between checkpoints, at which the validation perplexity is measured too."""
MOST_WARMUP = 300
BEAM = 5


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = lines.make_parser(HERE, __doc__)
    parser.epilog = "example: python -m recipes.study --data ~/multi30k --out ~/study"
    multi30k.add_data(parser)
    add = parser.add_argument
    add("--compare", action="store_true", help="train nothing, compare what is trained")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet."""
    args = _arguments(argv)
    queue = lines.Queue(HERE, args, lambda found: trainings(found), _publish)
    if args.list:
        queue.show()
        return
    require("sacremoses", "data")
    if not args.compare:
        queue.run(partial(_score, args=args))
    for pair in comparisons.pairs(queue.lines):
        if compared := _compare(pair, args):
            queue.add(compared)
    print(f"{queue.path}: all that is asked for is done")


def _publish(found: lines.Lines) -> None:
    results.put_into(HERE / "README.md", table(found))
    results.put_pictures(HERE, pictures(found))


def _score(training: Training, args: argparse.Namespace) -> dict[str, Any]:
    """Train and score; a training that diverged has no scores."""
    run = _run_of(training, args)
    runner = Runner(args.out)
    prepared = _prepare(run, training, multi30k.files(args.data))
    trained = translation.train(run, _model(training), prepared)
    finished = lines.train(runner, prepared, trained, run.checkpoint(training.name))
    line = {
        "name": training.name,
        **asdict(training),
        "threads": run.threads,
        "command": portable_command(trained, args.out),
        "valid_perplexity": None,
        **translation.course(runner.log(trained)),
    }
    if not finished:
        return line
    validated = translation.validate(run, training.name, trained)
    translated = translation.generate(run, training.name, trained, beam=BEAM)
    runner.run(validated)
    runner.run(translated)
    perplexity = translation.perplexity(runner, validated)
    found = {
        "valid_perplexity": perplexity if math.isfinite(perplexity) else None,
        "parameters": results.count_parameters(run.checkpoint(training.name), run.user_dir),
        **_scores(translation.output(translated), run, lowercase=training.lowercased),
    }
    runner.say(f"{training.name}: perplexity {perplexity}, BLEU {found['bleu']}")
    return line | found


def _user_dir(model: str) -> str:
    """The plug-in that has a model: the package, or the candidates that it has not."""
    folder = HERE / "candidates"
    return str(folder) if (folder / f"{model}.py").is_file() else "hyptrans"


def _model(training: Training) -> Model:
    (model,) = read_models(HERE, [training.model])
    warmup = min(MOST_WARMUP, training.updates // 4)
    own = {"--lr": f"{training.rate:g}", "--warmup-updates": str(warmup)}
    return Model(training.name, model.flags | own | {"--dropout": f"{training.dropout:g}"})


def _run_of(training: Training, args: argparse.Namespace) -> Run:
    run = Run(
        out=args.out / training.folder,
        source=multi30k.SOURCE,
        target=multi30k.TARGET,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        cpu=args.cpu,
        user_dir=_user_dir(training.model),
        save_every=SAVE_EVERY,
        train_flags=["--validate-interval", "100000", "--keep-interval-updates", "5"],
    )
    if not training.lowercased:
        return run
    return replace(run, text_flags=translation.token_flags(run.source, run.target))


def _prepare(run: Run, training: Training, files: Mapping[str, tuple[Path, Path]]) -> Step:
    prepare = partial(translation.prepare, run, files, joined=training.joined)
    if training.lowercased:
        text = ("--lowercase", "--bpe", "subword-nmt")
        return prepare(multi30k.LOWERCASED_VOCABULARY, text=text, name="prepare_lowercased")
    name = "prepare_joined" if training.joined else "prepare"
    return prepare(multi30k.VOCABULARY, name=name)


def _compare(pair: comparisons.Pair, args: argparse.Namespace) -> dict[str, Any] | None:
    """Compare two trainings; None, and a word on what makes it, where a file is missing."""
    outputs, commands = [], []
    for line in (pair.model, pair.baseline):
        known = [field.name for field in fields(Training) if field.name in line]
        training = Training(**{name: line[name] for name in known})
        run = _run_of(training, args)
        prepared = _prepare(run, training, multi30k.paths(args.data or Path("DIR")))
        trained = translation.train(run, _model(training), prepared)
        translated = translation.generate(run, training.name, trained, beam=BEAM)
        outputs.append(translation.output(translated))
        if not outputs[-1].exists():
            if not run.checkpoint(training.name).exists():
                # as recorded: its settings may have changed since
                commands.append(line["command"].replace("OUT/", f"{args.out}/"))
            commands.append(shown_command(translated))
    if not run.references.exists():
        commands.insert(0, shown_command(prepared))
    if commands:
        print(f"{pair.name} is not made: what it reads is not all in {args.out}; made by")
        print("\n".join(f"$ {command}" for command in commands))
        return None
    return comparisons.compare(pair, (outputs[0], outputs[1]), run.references)


def _scores(output: Path, run: Run, *, lowercase: bool) -> dict[str, Any]:
    found = {
        "bleu": scoring.score(output, run.references, lowercase=lowercase),
        "chrf": scoring.chrf(output, run.references, lowercase=lowercase),
        "bleu_lowercased": scoring.lowercased_bleu(output, run.references, run.target),
    }
    signatures = {f"{name}_signature": score.signature for name, score in found.items()}
    return {name: score.value for name, score in found.items()} | signatures


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped="the same command goes on with the unfinished training")


if __name__ == "__main__":
    sys.exit(program())
