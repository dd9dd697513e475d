"""Run the quickstart with ``hyptrans train``, which needs neither fairseq nor a compiler."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.support import tables
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from recipes.common.commands import execute
from recipes.common.settings import Model
from recipes.common.translation import Run

FOLDER = "hyptrans"
"""Folder in ``--out`` for these trainings; both trainers use the data beside it."""
_OF_FAIRSEQ = ("--optimizer", "--adam-betas", "--criterion", "--total-num-update")
"""Flags that ``hyptrans train`` lacks or applies by default."""
_OF_RECORDS = ("only", "list", "write_readme")
_BEAM = 4


def add_trainer(parser: argparse.ArgumentParser) -> None:
    """Add ``--trainer``."""
    about = "fairseq-train, or hyptrans train, which prints its scores and records nothing "
    about += "(default: %(default)s)"
    parser.add_argument("--trainer", choices=("fairseq", "hyptrans"), default="fairseq", help=about)


def check(args: argparse.Namespace) -> None:
    """Reject options that only trainings with fairseq support.

    Raises:
        UserError: such an option is given; the message names it.
    """
    given = [name for name in _OF_RECORDS if getattr(args, name)]
    given += ["average"] if args.average > 1 else []
    if given:
        flag = "--" + given[0].replace("_", "-")
        raise UserError(f"{flag} goes with --trainer fairseq: hyptrans train records nothing here")


def train(run: Run, models: Sequence[Model], jobs: int) -> dict[str, Path]:
    """Train all models that are not trained yet; return the model folders by name.

    Raises:
        UserError: a training failed, or it was started with other settings.
    """
    out = run.out / FOLDER

    def one(model: Model) -> Path:
        command = ["hyptrans", "train", str(run.data), "--out", str(out / model.name)]
        for flag, value in model.flags.items():
            if flag not in _OF_FAIRSEQ and value is not None:
                command += [flag, value]
        command += ["--max-update", str(run.updates), "--seed", str(run.seed)]
        log = out / "logs" / f"train_{model.name}.log"
        execute([*command, "--beam", str(_BEAM)], log, threads=run.threads)
        return out / model.name / "model"

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip((model.name for model in models), pool.map(one, models), strict=True))


def table(run: Run, folders: Mapping[str, Path]) -> str:
    """Translate the raw test set with each model folder; return a table of the scores."""
    sources = scores.read_text(run.data / "raw" / f"test.{run.source}")
    references = scores.read_text(run.references())
    rows, signatures = [], {}
    for name, folder in folders.items():
        found = hyptrans.load(folder).translate(sources, beam=_BEAM)
        write_whole(folder.parent / f"test.{run.target}", "".join(f"{one}\n" for one in found))
        scored = [measure(found, references) for measure in (scores.bleu, scores.chrf)]
        signatures = dict.fromkeys(f"`{one.signature}`" for one in scored)
        rows.append([name, f"{run.updates:,}", run.seed, *(f"{one.value:.1f}" for one in scored)])
    head = ["model", "updates", "seed", "BLEU", "chrF"]
    return f"{tables.markdown(head, rows)}\n\nsacreBLEU {', '.join(signatures)} on the toy test set"
