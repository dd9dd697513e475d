"""From nothing to a score: make the toy corpus, train on it, translate, and compare models."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hyptrans.support import tables
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from recipes.common import comparison, experiment, options, results, translation
from recipes.common.runner import Runner
from recipes.common.scoring import Score
from recipes.common.settings import Model
from recipes.common.steps import Step
from recipes.common.translation import Run

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_tiny,euclidean_prenorm_tiny"
SOURCE, TARGET = "en", "qtv"
VOCABULARY = 1500
BEAM = 4
TREES = {"train": 4000, "dev": 400, "test": 500}
"""Sentences of the toy treebank's English side that probes see."""


def _arguments() -> argparse.Namespace:
    example = f"--archs {MODELS} --seed 2"
    parser = options.make_parser(HERE, __doc__, example, archs=MODELS, updates=700)
    add = parser.add_argument
    add("--sentences", type=int, default=20000, metavar="N", help="sentence pairs to train on")
    add("--vocab-size", type=int, default=VOCABULARY, metavar="N", help="sentencepiece pieces")
    add("--probe-steps", type=int, default=1000, metavar="N", help="steps of each probe, 0: none")
    add("--no-untrained", action="store_true", help="skip the row of the untrained first model")
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    options.check_positive(args, "updates", "sentences", "vocab_size", "jobs")
    if args.probe_steps > 0:
        # now, and not after the trainings
        require("conllu", "probing")
    models, run, runner = experiment.start(HERE, args, source=SOURCE, target=TARGET)
    prepared = _prepare(runner, run, args)
    train = partial(translation.train_and_translate, run, after=prepared, beams=[BEAM])
    chains = {model.name: train(model) for model in models}
    shown_untrained = [] if args.no_untrained else models[:1]
    untrained = {model.name: train(model, untrained=True) for model in shown_untrained}
    runner.chains([*chains.values(), *untrained.values()], jobs=args.jobs)
    probed = _probe(runner, run, models, chains, args.probe_steps) if args.probe_steps > 0 else {}
    scores = _scores(run, chains)
    (signature,) = {score.signature for score in scores.values()}
    found = {
        "bleu": {name: score.value for name, score in scores.items()},
        "signature": signature,
        **_chrf(run, chains),
        **_compared(run, models, chains),
        "bleu_untrained": {name: score.value for name, score in _scores(run, untrained).items()},
        "parameters": {name: results.count_parameters(run.checkpoint(name)) for name in chains},
        "train_seconds": experiment.train_seconds(runner, models),
        **probed,
        **experiment.conditions(run, runner),
    }
    experiment.finish(HERE, args, runner, found, table(found))
    if probed:
        runner.say(f"pictures of the trees: {run.out / 'report.html'}")


def _prepare(runner: Runner, run: Run, args: argparse.Namespace) -> Step:
    corpus = run.out / "toy"
    command = ["python", translation.script("make_toy.py"), "--out", str(corpus)]
    toy = Step("make_toy", [*command, "--train", str(args.sentences)], [corpus])
    runner.run(toy)
    files = {
        split: (corpus / f"{split}.{SOURCE}", corpus / f"{split}.{TARGET}")
        for split in ("train", "valid", "test")
    }
    prepared = translation.prepare(run, files, args.vocab_size, [toy])
    runner.run(prepared)
    return prepared


def _probe(
    runner: Runner,
    run: Run,
    models: list[Model],
    chains: Mapping[str, list[Step]],
    steps: int,
) -> dict[str, Any]:
    """Read the gold trees of the source side out of the trained encoders."""
    trees = {}
    for split, sentences in TREES.items():
        name = "valid" if split == "dev" else split
        trees[split] = run.out / "trees" / f"{split}.conllu"
        _first_trees(run.out / "toy" / f"{name}.{SOURCE}.conllu", sentences, trees[split])
    trained = [chain[-2] for chain in chains.values()]
    encoders = {model.name: run.checkpoint(model.name) for model in models}
    flags = ["--steps", str(steps), "--seed", str(run.seed)]
    step = translation.probe(encoders, run.data, trees, run.out / "probes", trained, flags)
    runner.run(step)
    shutil.copyfile(run.out / "probes" / "report.html", run.out / "report.html")
    probed = json.loads((run.out / "probes" / "results.json").read_text(encoding="utf-8"))
    return {
        "probe": {model["name"]: model["test"] for model in probed["models"]},
        "probe_signature": probed["signature"],
        "probe_seconds": runner.seconds[step.name],
    }


def _first_trees(path: Path, sentences: int, out: Path) -> None:
    """Copy the first sentences of a CoNLL-U file, which end with an empty line each."""
    trees = path.read_text(encoding="utf-8").split("\n\n")[:sentences]
    out.parent.mkdir(exist_ok=True)
    write_whole(out, "\n\n".join(trees).rstrip("\n") + "\n\n")


def _scores(run: Run, chains: Mapping[str, list[Step]]) -> dict[str, Score]:
    return {name: translation.bleu(run, chain[-1]) for name, chain in chains.items()}


def _chrf(run: Run, chains: Mapping[str, list[Step]]) -> dict[str, Any]:
    scores = {name: translation.chrf(run, chain[-1]) for name, chain in chains.items()}
    values = {name: score.value for name, score in scores.items()}
    return {"chrf": values, "chrf_signature": next(iter(scores.values())).signature}


def _compared(run: Run, models: list[Model], chains: Mapping[str, list[Step]]) -> dict[str, Any]:
    baseline = comparison.baseline_of(models)
    if baseline is None:
        return {}
    outputs = {name: translation.output(chain[-1]) for name, chain in chains.items()}
    p, signatures = comparison.against(baseline, outputs, run.references)
    return {"baseline": baseline, "p": p, "comparison_signatures": signatures}


def table(found: Mapping[str, Any]) -> str:
    """The results as Markdown."""

    def cell(name: str, metric: str) -> str:
        p = found.get("p", {}).get(name, {})
        return comparison.cell(found[metric][name], p.get(metric))

    rows: list[list[object]] = [
        [
            name,
            f"{found['parameters'][name]:,}",
            cell(name, "bleu"),
            # runs of version 0.1.0 did not measure it
            *([cell(name, "chrf")] if "chrf" in found else []),
            f"{found['train_seconds'][name]:.0f}",
        ]
        for name in found["bleu"]
    ]
    for name, bleu in found["bleu_untrained"].items():
        numbers = [f"{found['parameters'][name]:,}", f"{bleu:.1f}"]
        rows.append([f"{name}, untrained", *numbers, *[None] * (2 if "chrf" in found else 1)])
    scored = ["BLEU", "chrF"] if "chrf" in found else ["BLEU"]
    lines = tables.markdown(["model", "parameters", *scored, "training, s"], rows)
    about = [
        f"sacreBLEU {results.signatures(found)} on the toy test set",
        comparison.caption(found),
        f"{found['updates']} updates",
        experiment.averaged(found),
        f"one run, seed {found['seed']}",
    ]
    bleu = f"{lines}\n\n{'; '.join(filter(None, about))}"
    return f"{bleu}\n\n{_probe_table(found)}" if "probe" in found else bleu


def _probe_table(found: Mapping[str, Any]) -> str:
    rows = [
        [
            name,
            *(_figure(scores[key]) for key in ("uuas", "dspr", "root", "nspr")),
        ]
        for name, scores in found["probe"].items()
    ]
    lines = tables.markdown(["encoder", "UUAS", "Dspr.", "Root", "Nspr."], rows)
    return f"{lines}\n\nTrees of the toy test set, `{found['probe_signature']}`"


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped=options.STOPPED)


if __name__ == "__main__":
    sys.exit(program())
