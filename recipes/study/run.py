"""Does the geometry pay? Multi30k English to German, every model tuned with the same care.

Trainings run one after the other; each is one line of results.jsonl once it is scored. Whatever
stops the command, the same one goes on: a training from its last checkpoint. With --write-readme
the results are those beside this file: what is in them is done, and what is finished is added.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from hyptrans_startup import saving
from recipes.common import multi30k, options, results, scoring, translation
from recipes.common.commands import Runner, Step, portable_command
from recipes.common.models import read_models
from recipes.common.translation import Run
from recipes.study.plan import DROPOUT, Training, perplexity_of, trainings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.jsonl"
SAVE_EVERY = 150
"""Updates between checkpoints, at which the validation perplexity is measured too."""
MOST_WARMUP = 300
BEAM = 5
HEADER = (
    "model",
    "rate",
    "dropout",
    "seed",
    "parameters",
    "valid perplexity",
    "BLEU",
    "chrF",
    "BLEU, lower-cased tokens",
)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = options.script_parser(__doc__)
    parser.epilog = "example: python recipes/study/run.py --data ~/multi30k --out ~/study"
    add = parser.add_argument
    options.add_data(parser, multi30k.CONTENTS, name=multi30k.FOLDER)
    add("--out", type=Path, default=Path("runs/study"), metavar="DIR", help="folder to work in")
    add("--write-readme", action="store_true", help="go on with the results beside this file")
    add("--only", nargs="+", metavar="NAME", help="trainings to run, of those that --list names")
    add("--list", action="store_true", help="list the trainings, and which are done, and stop")
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
    while unfinished := _next(results.read_lines(path), args.only):
        line = {**_run(unfinished, args), **surroundings}
        lines = [*results.read_lines(path), line]
        write_whole(path, "".join(json.dumps(entry) + "\n" for entry in lines))
        if args.write_readme:
            results.put_into(HERE / "README.md", table(lines))
    print(f"{path}: all that is asked for is done")


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
    run = Run(
        out=args.out,
        source=multi30k.SOURCE,
        target=multi30k.TARGET,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        cpu=args.cpu,
        user_dir=_user_dir(training.model),
    )
    runner = Runner(args.out)
    prepared = translation.prepare(run, multi30k.files(args.data), multi30k.VOCABULARY, [])
    runner.run(prepared)
    trained = _train(run, training, prepared)
    # fairseq's own copy may be cut where an earlier run was killed
    saving.mend(run.checkpoint(training.name))
    line = {
        "name": training.name,
        **asdict(training),
        "threads": run.threads,
        "command": portable_command(trained, run.out),
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
        "parameters": results.count_parameters(run.checkpoint(training.name)),
        **translation.course(runner.log(trained)),
        **_scores(translated.outputs[0] / "generate-test.txt", run),
    }
    runner.say(f"{training.name}: perplexity {perplexity}, BLEU {found['bleu']}")
    return line | found


def _user_dir(model: str) -> str:
    """The plug-in that has a model: the package, or the forms that it left out."""
    folder = HERE / "candidates"
    return str(folder) if (folder / f"{model}.py").is_file() else "hyptrans"


def _scores(output: Path, run: Run) -> dict[str, Any]:
    found = {
        "bleu": scoring.score(output, run.references),
        "chrf": scoring.chrf(output, run.references),
        "bleu_lowercased": scoring.lowercased_bleu(output, run.references, run.target),
    }
    signatures = {f"{name}_signature": score.signature for name, score in found.items()}
    return {name: score.value for name, score in found.items()} | signatures


def _train(run: Run, training: Training, prepared: Step) -> Step:
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
        after=[prepared],
        threads=run.threads,
        progress=translation.training_progress,
        resumes=True,
    )


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """The results as Markdown: final trainings where there are some, and rates."""
    blocks = []
    for stage, title in (
        ("final", "Final trainings"),
        ("candidates", "Candidates"),
        ("rates", "Rates"),
    ):
        chosen = sorted((line for line in lines if line["stage"] == stage), key=perplexity_of)
        if chosen:
            blocks.append(f"{title}, {chosen[0]['updates']:,} updates, one run a row:")
            blocks.append(results.markdown(HEADER, [_row(line) for line in chosen]))
    scored = [line for line in lines if "bleu" in line]
    if scored:
        found = [scored[0][f"{name}_signature"] for name in ("bleu", "chrf", "bleu_lowercased")]
        blocks.append(f"sacreBLEU: {', '.join(f'`{signature}`' for signature in found)}")
    return "\n\n".join(blocks) or results.NOT_MEASURED


def _row(line: Mapping[str, Any]) -> list[object]:
    asked = [line["model"], f"{line['rate']:g}", f"{line.get('dropout', DROPOUT):g}", line["seed"]]
    if line["valid_perplexity"] is None:
        return [*asked, None, "diverged", *[None] * 3]
    return [
        *asked,
        f"{line['parameters']:,}",
        f"{line['valid_perplexity']:.2f}",
        f"{line['bleu']:.1f}",
        f"{line['chrf']:.1f}",
        f"{line['bleu_lowercased']:.1f}",
    ]


if __name__ == "__main__":
    sys.exit(run_command(main, stopped="the same command goes on with the unfinished training"))
