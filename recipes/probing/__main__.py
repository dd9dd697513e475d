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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.files import write_whole
from probing.settings import check_ranks
from recipes.common import experiment, options, results, translation
from recipes.common.experiment import Column, Experiment
from recipes.common.steps import Step
from recipes.common.translation import Run
from recipes.probing import sentences
from recipes.probing.parser import Parser
from recipes.probing.tables import CHECKPOINTS, summary, table
from recipes.tatoeba_en_de.prepare import SPLIT, TABLE

HERE = Path(__file__).resolve().parent
MODELS = "hybonet_plus_iwslt_d64,hybonet_iwslt_d64,han_iwslt_d64,euclidean_prenorm_iwslt_d64"
TREES = {split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")}
COLUMNS = (Column("bleu", "BLEU", 5),)
SAVE_EVERY = 500
RANKS = "2,8,64"
COUNTS = (
    ("steps", 2000, "steps of each probe"),
    ("seeds", 3, "trainings of each with our settings"),
    ("parser-steps", 1500, "steps of each stanza model"),
    ("sentences", 10000, "sentences to parse"),
    ("held-out", 1000, "of those, in dev and in test"),
    ("paper-steps", 20000, "of each as in the paper"),
)
"""Options that are numbers, their defaults and their help."""


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
    after: Sequence[str] = ()
    inputs: Sequence[Path] = ()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    example = "--data ~/corpora --write-readme"
    parser = experiment.make_parser(HERE, __doc__, example, archs=MODELS, updates=4000)
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
    about = f"dimensions of rank curves, or nothing (default: {RANKS})"
    add("--ranks", default=RANKS, metavar="A,B", help=about)
    add("--parsed", action="store_true", help="probe on parses of their own corpus too")
    for name, default, about in COUNTS:
        about += " (default: %(default)s)"
        add(f"--{name}", type=int, default=default, metavar="N", help=about)
    args = parser.parse_args(argv)
    options.check_positive(args, *(name.replace("-", "_") for name, *_ in COUNTS))
    # refused now, and not hours later
    ranks = args.ranks.split(",") if args.ranks else []
    if not all(rank.strip().isdecimal() for rank in ranks):
        raise UserError(f"--ranks must be numbers with commas, not {args.ranks!r}")
    check_ranks([int(rank) for rank in ranks])
    if args.parsed:
        sentences.check_counts(args.sentences, args.held_out)
        require("stanza", "probing")
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Run every step and write ``results.json`` and the table."""
    args = _arguments(argv)
    trees = {split: _file(args.data, name) for split, name in TREES.items()}
    given = _given(args)
    pairs = None if given else _file(args.data, TABLE)
    made = Experiment(HERE, args, ("en", "de"), save_every=SAVE_EVERY)
    run, runner = made.run, made.runner
    found: dict[str, Any] = {}
    if given is None:
        assert pairs is not None
        runner.run(_prepare(run, pairs))
        rows = made.measure(COLUMNS, validated=False)["models"]
        found = {key: {m: row[key] for m, row in rows.items()} for key in ("bleu", "train_seconds")}
        texts = [run.data / SPLIT / f"{name}.{run.source}" for name in ("train", "valid", "test")]
        checkpoints = {name: run.checkpoint(name) for name in rows}
        after = [run.made_by(name) for name in rows]
        given = Encoders(checkpoints, run.data, texts[0], texts[1:], after)
    drawn: dict[str, Path] = {}
    if args.parsed:
        # first: a text of too few sentences is told now, and not hours later
        drawn = _drawn(made, given)
    found["probes"] = {"gold": _gold(made, given, trees)}
    if drawn:
        parser = Parser(run, runner, args.parser_steps)
        found["parser"] = parser.train(trees)
        parses = {split: text.with_suffix(".conllu") for split, text in drawn.items()}
        for split, text in drawn.items():
            parser.parse(f"parse_{split}", text, parses[split])
        found["probes"] |= _parsed(made, given, parses)
        found["held_out"] = bool(given.held_out)
    found["updates"] = None if args.checkpoint else run.updates
    # what is read out of others' checkpoints stands beside what is read out of the recipe's own
    made.finish(found, table, CHECKPOINTS if args.checkpoint else results.RESULTS)


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


def _prepare(run: Run, pairs: Path) -> Step:
    command = ["python", "-m", "recipes.tatoeba_en_de.prepare", "--table", str(pairs)]
    return Step(run.prepared, [*command, "--out", str(run.data)], [run.data], inputs=[pairs])


def _drawn(made: Experiment, encoders: Encoders) -> dict[str, Path]:
    """Draw sentences to parse, a file for each set."""
    assert encoders.text is not None
    text, args = encoders.text, made.args
    files = {split: made.run.out / "parsed" / f"{split}.txt" for split in TREES}
    counts = {"sentences": args.sentences, "held_out": args.held_out, "seed": made.run.seed}

    def make() -> None:
        for split, lines in sentences.draw(text, encoders.held_out, **counts).items():
            write_whole(files[split], "".join(f"{line}\n" for line in lines))

    inputs = [text, *encoders.held_out]
    made.runner.once("draw_sentences", make, settings=counts, inputs=inputs, outputs=files.values())
    return files


def _gold(made: Experiment, encoders: Encoders, trees: Mapping[str, Path]) -> dict[str, Any]:
    """On the treebank, with all controls."""
    args = made.args
    flags = [*_ours(made), "--control"]
    if args.ranks:
        flags += ["--ranks", *args.ranks.split(",")]
    if encoders.text:
        flags += ["--seen", str(encoders.text)]
    return _probe(made, encoders, trees, "probes", flags)


def _parsed(made: Experiment, encoders: Encoders, trees: Mapping[str, Path]) -> dict[str, Any]:
    """On parses of the encoders' own corpus, with our settings of probes and with the paper's."""
    seen = ["--seen", str(encoders.text)] if encoders.held_out else []
    # ten times as long, so one of each, and none of encoders that the paper has not
    paper = ["--seed", str(made.run.seed), "--seeds", "1", "--no-random", "--lr", "5e-5"]
    paper += ["--steps", str(made.args.paper_steps), "--evaluate-every", "500"]
    return {
        name: _probe(made, encoders, trees, f"probes_{name}", [*flags, *seen])
        for name, flags in (("parsed", _ours(made)), ("paper", paper))
    }


def _ours(made: Experiment) -> list[str]:
    args = made.args
    return ["--seed", str(args.seed), "--seeds", str(args.seeds), "--steps", str(args.steps)]


def _probe(
    made: Experiment,
    encoders: Encoders,
    trees: Mapping[str, Path],
    name: str,
    flags: list[str],
) -> dict[str, Any]:
    folder = made.run.out / name
    step = translation.probe(
        name,
        encoders.checkpoints,
        encoders.data,
        trees,
        folder,
        flags,
        after=encoders.after,
        inputs=[*encoders.inputs, *trees.values()],
    )
    made.runner.run(step)
    return summary(json.loads((folder / "results.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
