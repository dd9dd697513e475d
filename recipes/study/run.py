"""Does the geometry pay? Multi30k English to German, every model tuned with the same care.

Trainings run one after the other, each as one line of results.jsonl beside this file once it is
scored. Whatever stops the command, the same one goes on: a training from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# a recipe is run as a file, and the recipes are not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.files import write_whole
from recipes.common import multi30k, options, results, scoring, translation
from recipes.common.commands import Runner, Step
from recipes.common.models import read_models
from recipes.common.translation import Run
from recipes.study.plan import Training, trainings

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.jsonl"
SAVE_EVERY = 150
"""Updates between checkpoints, at which the validation perplexity is measured too."""
MOST_WARMUP = 300
BEAM = 5
HEADER = (
    "model",
    "rate",
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
    add("--only", nargs="+", metavar="NAME", help="trainings to run, of those that --list names")
    add("--list", action="store_true", help="list the trainings, and which are done, and stop")
    add("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    add("--cpu", action="store_true", help="keep off the GPU")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is not done yet."""
    args = _arguments(argv)
    options.check_positive(args, "threads")
    if args.list:
        for training in trainings(read()):
            print(f"{training.name}{'  done' if training.name in names(read()) else ''}")
        return
    known = {training.name for training in trainings(read())}
    wrong = [name for name in args.only or () if name not in known]
    if wrong:
        raise UserError(f"--only: no training is called {', '.join(wrong)}; --list names all")
    while unfinished := _next(args.only):
        _run(unfinished, args)


def read() -> list[dict[str, Any]]:
    """The finished trainings, in the order in which they ended."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def names(lines: Sequence[Mapping[str, Any]]) -> set[str]:
    """Of finished trainings."""
    return {line["name"] for line in lines}


def _next(only: Sequence[str] | None) -> Training | None:
    """The first training that is not done; rates that were tried decide on later ones."""
    lines = read()
    for training in trainings(lines):
        if training.name not in names(lines) and (only is None or training.name in only):
            return training
    return None


def _run(training: Training, args: argparse.Namespace) -> None:
    run = Run(
        out=args.out,
        source=multi30k.SOURCE,
        target=multi30k.TARGET,
        seed=training.seed,
        updates=training.updates,
        threads=args.threads,
        cpu=args.cpu,
    )
    runner = Runner(args.out)
    prepared = translation.prepare(run, multi30k.files(args.data), multi30k.VOCABULARY, [])
    runner.run(prepared)
    trained = _train(run, training, prepared)
    runner.run(trained)
    validated = translation.validate(run, training.name, trained)
    translated = translation.generate(run, training.name, trained, beam=BEAM)
    runner.run(validated)
    runner.run(translated)
    output = translated.outputs[0] / "generate-test.txt"
    line = {
        "name": training.name,
        "stage": training.stage,
        "model": training.model,
        "rate": training.rate,
        "updates": training.updates,
        "seed": training.seed,
        "parameters": results.count_parameters(run.checkpoint(training.name)),
        "valid_perplexity": translation.perplexity(runner, validated),
        # of all its parts, where it was stopped in between
        **translation.course(runner.log(trained)),
        **_scores(output, run),
        "threads": run.threads,
        **results.surroundings(),
        "command": _anywhere(runner.commands[1], run.out),
    }
    lines = [*read(), line]
    write_whole(RESULTS, "".join(json.dumps(entry) + "\n" for entry in lines))
    results.put_into(HERE / "README.md", table(lines))
    runner.say(f"{training.name}: perplexity {line['valid_perplexity']}, BLEU {line['bleu']}")


def _anywhere(command: str, out: Path) -> str:
    """A command without the folders of this machine."""
    return re.sub(r"\S*/(fairseq-train)\b", r"\1", command).replace(str(out), "OUT")


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
    command = ["fairseq-train", run.binary, "--user-dir", "hyptrans", *flags]
    command += ["--lr", f"{training.rate:g}", "--warmup-updates", str(warmup)]
    command += ["--max-update", str(training.updates)]
    command += ["--seed", str(training.seed), "--save-dir", str(save), "--no-epoch-checkpoints"]
    command += ["--save-interval-updates", str(SAVE_EVERY), "--keep-interval-updates", "5"]
    command += ["--validate-interval", "100000", "--num-workers", "0"]
    command += ["--log-format", "simple", "--log-interval", "50"]
    command += ["--cpu"] if run.cpu else []
    return Step(
        f"train_{training.name}",
        command,
        outputs=[],
        after=[prepared],
        threads=run.threads,
        progress=translation.training_progress,
        resumes=True,
    )


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """The results as Markdown: rates, and final trainings where there are some."""
    blocks = []
    for stage, title in (("final", "Final trainings"), ("rates", "Rates")):
        chosen = [line for line in lines if line["stage"] == stage]
        rows = [_row(line) for line in sorted(chosen, key=lambda line: line["valid_perplexity"])]
        if rows:
            updates = chosen[0]["updates"]
            blocks.append(f"{title}, {updates:,} updates, one run a row:")
            blocks.append(results.markdown(HEADER, rows))
    signatures = [lines[0][f"{name}_signature"] for name in ("bleu", "chrf", "bleu_lowercased")]
    quoted = ", ".join(f"`{signature}`" for signature in signatures)
    return "\n\n".join([*blocks, f"sacreBLEU: {quoted}"])


def _row(line: Mapping[str, Any]) -> list[object]:
    return [
        line["model"],
        f"{line['rate']:g}",
        line["seed"],
        f"{line['parameters']:,}",
        f"{line['valid_perplexity']:.2f}",
        f"{line['bleu']:.1f}",
        f"{line['chrf']:.1f}",
        f"{line['bleu_lowercased']:.1f}",
    ]


if __name__ == "__main__":
    sys.exit(run_command(main, stopped="the same command goes on with the unfinished training"))
