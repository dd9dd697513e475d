"""Does the geometry pay? Multi30k English to German, every model tuned with the same care.

Trainings run one after the other; each is one line of results.jsonl once it is scored. Whatever
stops the command, the same one goes on: a training from its last checkpoint. With --write-readme
the results are those beside this file: what is in them is done, and what is finished is added.
Last, final trainings of the same seed are compared; --compare does this alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import one_at_a_time, write_whole
from hyptrans_startup import saving
from recipes.common import multi30k, options, results, scoring, translation
from recipes.common.runner import Runner
from recipes.common.settings import read_models
from recipes.common.steps import Step, portable_command, shown_command
from recipes.common.translation import Run
from recipes.study.findings import comparisons
from recipes.study.findings.table import table
from recipes.study.plan import Training, trainings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.jsonl"
SAVE_EVERY = 150
"""Updates between checkpoints, at which the validation perplexity is measured too."""
MOST_WARMUP = 300
BEAM = 5


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    parser.epilog = "example: python -m recipes.study --data ~/multi30k --out ~/study"
    add = parser.add_argument
    options.add_data(parser, multi30k.CONTENTS, name=multi30k.FOLDER)
    add(
        "--out",
        type=Path,
        default=Path("runs/study"),
        metavar="DIR",
        help="folder to work in (default: %(default)s)",
    )
    add("--write-readme", action="store_true", help="go on with the results beside this file")
    add("--only", nargs="+", metavar="NAME", help="trainings to run, of those that --list names")
    add("--list", action="store_true", help="list the trainings, and which are done, and stop")
    add("--compare", action="store_true", help="train nothing, compare what is trained")
    add("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    add("--cpu", action="store_true", help="keep off the GPU")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet."""
    args = _arguments(argv)
    options.check_positive(args, "threads")
    path = RESULTS if args.write_readme else args.out / RESULTS.name
    lines = results.read_lines(path)
    known = trainings(lines)
    if args.list:
        done = names(lines)
        for training in known:
            print(f"{training.name}{'  done' if training.name in done else ''}")
        return
    wrong = [name for name in args.only or () if name not in {t.name for t in known}]
    if wrong:
        raise UserError(f"--only: no training is called {', '.join(wrong)}; --list names all")
    require("sacremoses", "data")
    # read once: the results themselves may be files of the repository
    surroundings = results.surroundings()

    def add(line: Mapping[str, Any]) -> None:
        with one_at_a_time(path.parent):
            lines = results.read_lines(path)
            if line["name"] in names(lines):
                # another process was here first
                return
            lines.append({**line, **surroundings})
            write_whole(path, "".join(json.dumps(entry) + "\n" for entry in lines))
            if args.write_readme:
                _publish(lines)

    while not args.compare and (unfinished := _next(results.read_lines(path), args.only)):
        add(_run(unfinished, args))
    for pair in comparisons.pairs(results.read_lines(path)):
        if compared := _compare(pair, args):
            add(compared)
    print(f"{path}: all that is asked for is done")


def pictures(lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """SVG by file name; only who draws needs the extra ``plot``."""
    from recipes.study.findings import pictures

    return pictures.pictures(lines)


def _publish(lines: Sequence[Mapping[str, Any]]) -> None:
    results.put_into(HERE / "README.md", table(lines))
    results.put_pictures(HERE, pictures(lines))


def names(lines: Sequence[Mapping[str, Any]]) -> set[str]:
    """Of finished trainings."""
    return {line["name"] for line in lines}


def _next(lines: Sequence[Mapping[str, Any]], only: Sequence[str] | None) -> Training | None:
    """The first training that is not done; rates that were tried decide on later ones."""
    for training in trainings(lines):
        if training.name not in names(lines) and (only is None or training.name in only):
            return training
    return None


def _run(training: Training, args: argparse.Namespace) -> dict[str, Any]:
    """Train and score; a training that diverged is a result too, without scores."""
    run = _run_of(training, args)
    runner = Runner(args.out)
    prepared = _prepare(run, training, multi30k.files(args.data))
    runner.run(prepared)
    trained = _train(run, training, [prepared])
    # fairseq's own copy may be cut where an earlier run was killed
    saving.mend(run.checkpoint(training.name))
    line = {
        "name": training.name,
        **asdict(training),
        "threads": run.threads,
        "command": portable_command(trained, args.out),
        "valid_perplexity": None,
    }
    try:
        runner.run(trained)
    except UserError:
        if not translation.diverged(runner.log(trained)):
            raise
        runner.say(f"{training.name}: diverged")
        return line | translation.course(runner.log(trained))
    validated = translation.validate(run, training.name, trained)
    translated = translation.generate(run, training.name, trained, beam=BEAM)
    runner.run(validated)
    runner.run(translated)
    perplexity = translation.perplexity(runner, validated)
    found = {
        "valid_perplexity": perplexity if math.isfinite(perplexity) else None,
        "parameters": results.count_parameters(run.checkpoint(training.name), run.user_dir),
        **translation.course(runner.log(trained)),
        **_scores(_output(translated), run, lowercase=training.lowercased),
    }
    runner.say(f"{training.name}: perplexity {perplexity}, BLEU {found['bleu']}")
    return line | found


def _user_dir(model: str) -> str:
    """The plug-in that has a model: the package, or the forms that it left out."""
    folder = HERE / "candidates"
    return str(folder) if (folder / f"{model}.py").is_file() else "hyptrans"


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
    )
    if not training.lowercased:
        return run
    return replace(run, text_flags=translation.token_flags(run.source, run.target))


def _prepare(run: Run, training: Training, files: dict[str, tuple[Path, Path]]) -> Step:
    if training.lowercased:
        return translation.prepare_lowercased(run, files, multi30k.LOWERCASED_VOCABULARY)
    return translation.prepare(run, files, multi30k.VOCABULARY, [], joined=training.joined)


def _output(translated: Step) -> Path:
    return translated.outputs[0] / "generate-test.txt"


def _compare(pair: comparisons.Pair, args: argparse.Namespace) -> dict[str, Any] | None:
    """Compare two trainings; None, and a word on what makes it, where a file is missing."""
    outputs, commands = [], []
    for line in (pair.model, pair.baseline):
        known = [field.name for field in fields(Training) if field.name in line]
        training = Training(**{name: line[name] for name in known})
        run = _run_of(training, args)
        trained = _train(run, training, [])
        translated = translation.generate(run, training.name, trained, beam=BEAM)
        outputs.append(_output(translated))
        if not outputs[-1].exists():
            if not run.checkpoint(training.name).exists():
                # as recorded: the file of flags may have changed since
                commands.append(line["command"].replace("OUT/", f"{args.out}/"))
            commands.append(shown_command(translated))
    if not run.references.exists():
        files = multi30k.paths(args.data or Path("DIR"))
        prepared = _prepare(run, training, files)
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


def _train(run: Run, training: Training, after: Sequence[Step]) -> Step:
    """Train, or go on from the last checkpoint: what is there already is no output to remove."""
    (model,) = read_models(HERE, [training.model])
    save = run.out / training.name
    flags = model.flags_for(updates=training.updates)
    warmup = min(MOST_WARMUP, training.updates // 4)
    command = ["fairseq-train", run.binary, "--user-dir", run.user_dir, *flags]
    command += ["--lr", f"{training.rate:g}", "--warmup-updates", str(warmup)]
    command += ["--dropout", f"{training.dropout:g}"]
    command += ["--max-update", str(training.updates)]
    command += ["--seed", str(training.seed), "--save-dir", str(save), "--no-epoch-checkpoints"]
    command += ["--save-interval-updates", str(SAVE_EVERY), "--keep-interval-updates", "5"]
    command += ["--validate-interval", "100000", "--num-workers", "0"]
    command += ["--log-format", "simple", "--log-interval", "50"]
    command += ["--cpu"] if run.cpu else []
    return Step(
        f"train_{training.name}",
        command,
        outputs=[save],
        after=after,
        threads=run.threads,
        progress=translation.training_progress,
        resumes=True,
        precious=True,
    )


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped="the same command goes on with the unfinished training")


if __name__ == "__main__":
    sys.exit(program())
