"""Read trees out of the encoders of translation models.

Trains encoders on Tatoeba, English to German, or takes checkpoints (--checkpoint); probes them on
the gold trees of English EWT, and with --parsed also on parses of their own corpus, as the HyboNet
paper does. Whatever stops the command, the same one goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from probing.probes.probe import check_ranks
from recipes.common import experiment, options, results, translation
from recipes.common.runner import Runner
from recipes.common.steps import Step
from recipes.common.translation import Run
from recipes.probing import sentences
from recipes.probing.parser import Parser
from recipes.probing.tables import CHECKPOINTS, summary, table

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_iwslt_d64,hybonet_iwslt_d64,han_iwslt_d64,euclidean_prenorm_iwslt_d64"
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")}
TABLE = "tatoeba_en_de/deu-eng.zip"
SPLIT = "split-seed1-2000"
"""Of the prepared folder: the text of the encoders that the recipe trains."""
BEAM = 5
SAVE_EVERY = 500
RANKS = "2,4,8,16,32,64"


@dataclass(frozen=True)
class Encoders:
    """What is probed.

    Attributes:
        checkpoints: by name; the first is compared with all others.
        data: the folder that they were prepared in.
        text: their training text, the source side.
        held_out: source sides of their validation and test text, which dev and test trees are drawn
            from; none: these are drawn from the training text too.
        after: the steps that make them.
        inputs: files of theirs that no step wrote.
    """

    checkpoints: Mapping[str, Path]
    data: Path
    text: Path | None
    held_out: Sequence[Path] = ()
    after: Sequence[Step] = ()
    inputs: Sequence[Path] = ()


def _arguments() -> argparse.Namespace:
    example = "--data ~/corpora --write-readme"
    parser = options.make_parser(HERE, __doc__, example, archs=MODELS, updates=4000)
    options.add_data(parser, f"{TABLE} and {TREES['train']}, …")
    add = parser.add_argument
    add("--checkpoint", action="append", metavar="NAME=FILE", help="take it, and train nothing")
    add("--prepared", type=Path, metavar="DIR", help="folder that the checkpoints were prepared in")
    add("--text", type=Path, metavar="FILE", help="source side of the checkpoints' training text")
    add(
        "--held-out-text",
        nargs=2,
        type=Path,
        metavar=("VALID", "TEST"),
        help="source sides that they have not seen, for dev and test parses (default: --text)",
    )
    add("--steps", type=int, default=2000, metavar="N", help="steps of each probe")
    add("--seeds", type=int, default=3, metavar="N", help="trainings of each with our settings")
    add("--ranks", default=RANKS, metavar="A,B", help="dimensions of rank curves, or nothing")
    add("--parsed", action="store_true", help="probe on parses of their own corpus too")
    add("--parser-steps", type=int, default=1500, metavar="N", help="steps of each stanza model")
    add("--sentences", type=int, default=10000, metavar="N", help="sentences to parse")
    add("--held-out", type=int, default=1000, metavar="N", help="of those, in dev and in test")
    add("--paper-steps", type=int, default=20000, metavar="N", help="of each as in the paper")
    return parser.parse_args()


def main() -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments()
    counts = ("updates", "steps", "seeds", "jobs", "parser_steps", "sentences", "held_out")
    options.check_positive(args, *counts, "paper_steps")
    _check(args)
    trees = {split: _file(args.data, name) for split, name in TREES.items()}
    given = _given(args)
    pairs = None if given else _file(args.data, TABLE)
    models, run, runner = experiment.start(
        HERE, args, source="en", target="de", save_every=SAVE_EVERY
    )
    found: dict[str, Any] = {}
    if given is None:
        assert pairs is not None
        prepared = _prepare(pairs, run.data)
        runner.run(prepared)
        chains = {
            model.name: translation.train_and_translate(run, model, prepared, beams=[BEAM])
            for model in models
        }
        runner.chains(list(chains.values()), jobs=args.jobs)
        checkpoints = {name: run.checkpoint(name) for name in chains}
        trained = [chain[0] for chain in chains.values()]
        texts = [run.data / SPLIT / f"{name}.{run.source}" for name in ("train", "valid", "test")]
        given = Encoders(checkpoints, run.data, texts[0], texts[1:], trained)
        found["bleu"] = {
            name: translation.bleu(run, chain[-1]).value for name, chain in chains.items()
        }
        found["train_seconds"] = experiment.train_seconds(runner, models)
    drawn = _drawn(run, given, args) if args.parsed else None
    if drawn:
        # first: a text of too few sentences is told now, and not hours later
        runner.run(drawn)
    found["probes"] = {"gold": _gold(runner, run, given, trees, args)}
    if drawn:
        parser = Parser(run.out / "stanza", trees, args.parser_steps, run.threads, run.cpu)
        found["probes"] |= _parsed(runner, run, given, parser, drawn, args)
        found["parser"] = json.loads(parser.accuracy.read_text(encoding="utf-8"))
        found["held_out"] = bool(given.held_out)
    found |= experiment.conditions(run, runner)
    found["updates"] = None if args.checkpoint else run.updates
    # what is read out of others' checkpoints stands beside what is read out of the recipe's own
    name = CHECKPOINTS if args.checkpoint else results.RESULTS
    experiment.finish(HERE, args, runner, found, table(found), name)


def _check(args: argparse.Namespace) -> None:
    """Refuse now what would end the command hours later.

    Raises:
        UserError: ranks that no probe has, too few sentences, or stanza is not installed.
    """
    ranks = args.ranks.split(",") if args.ranks else []
    if not all(rank.strip().isdecimal() for rank in ranks):
        raise UserError(f"--ranks must be numbers with commas, not {args.ranks!r}")
    check_ranks([int(rank) for rank in ranks])
    if args.parsed:
        sentences.check_counts(args.sentences, args.held_out)
        require("stanza", "probing")


def _file(data: Path | None, name: str) -> Path:
    """A file of the data folder.

    Raises:
        UserError: it is missing, or no folder is named.
    """
    if data is None:
        raise UserError(f"--data is needed: a folder with {TABLE} and {TREES['train']}")
    if not (data / name).is_file():
        raise UserError(f"--data: {data / name} is missing")
    return data / name


def _given(args: argparse.Namespace) -> Encoders | None:
    """The checkpoints that the options name, if they do.

    Raises:
        UserError: they are incomplete.
    """
    if not args.checkpoint:
        if args.prepared or args.text or args.held_out_text:
            raise UserError(
                "--prepared, --text and --held-out-text go with --checkpoint: name the encoders, "
                "or leave them out to train some"
            )
        return None
    named = dict(one.partition("=")[::2] for one in args.checkpoint)
    if len(named) < len(args.checkpoint):
        raise UserError("--checkpoint: two have one name; tables need a name for each")
    missing = [f"{name}={file}" for name, file in named.items() if not Path(file).is_file()]
    if missing or "" in named:
        raise UserError(f"--checkpoint must be NAME=FILE of a file, not {(missing or [''])[0]!r}")
    if args.prepared is None:
        raise UserError("--prepared is needed: the folder that the checkpoints were prepared in")
    if args.parsed and args.text is None:
        raise UserError("--text is needed: the source side that the checkpoints were trained on")
    held_out = args.held_out_text or []
    if held_out and not args.parsed:
        raise UserError("--held-out-text is of --parsed: give both, or neither")
    for flag, text in [("--text", args.text), *(("--held-out-text", one) for one in held_out)]:
        if text is not None and not text.is_file():
            raise UserError(f"{flag}: {text} is missing")
    checkpoints = {name: Path(file) for name, file in named.items()}
    described = [args.prepared / "manifest.json", args.text]
    inputs = [*checkpoints.values(), *(path for path in described if path and path.is_file())]
    return Encoders(checkpoints, args.prepared, args.text, held_out, inputs=inputs)


def _prepare(pairs: Path, out: Path) -> Step:
    command = [
        "python",
        "-m",
        "recipes.tatoeba_en_de.prepare",
        "--table",
        str(pairs),
        "--out",
        str(out),
    ]
    return Step("prepare", command, [out], inputs=[pairs])


def _gold(
    runner: Runner,
    run: Run,
    encoders: Encoders,
    trees: Mapping[str, Path],
    args: argparse.Namespace,
) -> dict[str, Any]:
    """On the treebank, with all controls."""
    flags = [*_flags(run, args), "--steps", str(args.steps), "--control"]
    if args.ranks:
        flags += ["--ranks", *args.ranks.split(",")]
    if encoders.text:
        flags += ["--seen", str(encoders.text)]
    read = replace(encoders, inputs=[*encoders.inputs, *trees.values()])
    return _probe(runner, run, read, trees, "probes", encoders.after, flags)


def _drawn(run: Run, encoders: Encoders, args: argparse.Namespace) -> Step:
    """Draw sentences to parse."""
    assert encoders.text is not None
    folder = run.out / "parsed"
    command = ["python", "-m", "recipes.probing.sentences", "--text", str(encoders.text)]
    command += ["--sentences", str(args.sentences), "--held-out", str(args.held_out)]
    if encoders.held_out:
        command += ["--held-out-text", *map(str, encoders.held_out)]
    command += ["--seed", str(run.seed), "--out", str(folder)]
    outputs = [folder / f"{split}.txt" for split in TREES]
    # the text of encoders that the recipe trains is made by a step
    inputs = [] if encoders.after else [encoders.text, *encoders.held_out]
    return Step("draw_sentences", command, outputs, encoders.after, inputs=inputs)


def _parsed(
    runner: Runner,
    run: Run,
    encoders: Encoders,
    parser: Parser,
    drawn: Step,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """On parses of the encoders' own corpus, with our settings of probes and with the paper's."""
    training = parser.training()
    for step in training:
        runner.run(step)
    trees, after = {}, [*encoders.after]
    for split, text in zip(TREES, drawn.outputs, strict=True):
        trees[split] = text.with_suffix(".conllu")
        before = [drawn, *training[:-2]]
        after.append(
            parser.parse(f"parse_{split}", text, trees[split], before, "--one-sentence-per-line")
        )
        runner.run(after[-1])
    shared = _flags(run, args)
    if encoders.held_out:
        shared += ["--seen", str(encoders.text)]
    ours = [*shared, "--steps", str(args.steps)]
    # ten times as long, so one of each, and none of encoders that the paper has not
    paper = ["--seed", str(run.seed), "--seeds", "1", "--no-random", "--lr", "5e-5"]
    paper += ["--steps", str(args.paper_steps), "--evaluate-every", "500"]
    return {
        name: _probe(runner, run, encoders, trees, f"probes_{name}", after, flags)
        for name, flags in (("parsed", ours), ("paper", paper))
    }


def _flags(run: Run, args: argparse.Namespace) -> list[str]:
    return ["--seed", str(run.seed), "--seeds", str(args.seeds)]


def _probe(
    runner: Runner,
    run: Run,
    encoders: Encoders,
    trees: Mapping[str, Path],
    name: str,
    after: Sequence[Step],
    flags: list[str],
) -> dict[str, Any]:
    folder = run.out / name
    step = translation.probe(
        encoders.checkpoints,
        encoders.data,
        trees,
        folder,
        after,
        flags,
        name=name,
        inputs=encoders.inputs,
    )
    runner.run(step)
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return summary(found)


def program() -> int:
    """Run the recipe as a command does; returns the exit status."""
    return run_command(main, stopped=options.STOPPED)


if __name__ == "__main__":
    sys.exit(program())
