"""The toy language, learned by the library transformers; the same command goes on with it."""

import argparse
import importlib
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hyptrans
from hyptrans.evaluation import curves, scores
from hyptrans.inference.architecture import require_known
from hyptrans.support.errors import UserError, run_command
from hyptrans.support.extras import require
from hyptrans.support.flags import add_seed, positive
from recipes.common.options import STOPPED

SOURCE, TARGET = "en", "qtv"
VOCABULARY = 1500
TOLD = 100
"""Updates between two losses that are printed."""


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare, train, translate, and print the losses and the BLEU."""
    parser = argparse.ArgumentParser(prog="python -m recipes.transformers", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    add("--arch", default="hybonet_plus_tiny", help="architecture (default: %(default)s)")
    add("--points", action="store_true", help="embeddings are points, moved by Riemannian Adam")
    about = "sentence pairs to train on (default: %(default)s)"
    add("--sentences", type=positive, default=20000, metavar="N", help=about)
    about = "of training (default: %(default)s)"
    add("--updates", type=positive, default=700, metavar="N", help=about)
    add_seed(parser, "of training")
    add("--fairseq", action="store_true", help="train by fairseq-train, too")
    args = parser.parse_args(argv)
    require("transformers", "transformers")
    require("accelerate", "transformers")
    if args.fairseq:
        importlib.import_module("hyptrans.fairseq")
    from hyptrans.transformers import HyptransTokenizer
    from recipes.transformers.trainer import fairseq_flags, make_trainer

    require_known(args.arch)
    toy, data = args.out / "toy", args.out / "data"
    _hyptrans("prepare", "toy", "--out", toy, "--train", args.sentences)
    pairs = [
        part
        for split in ("train", "valid", "test")
        for part in (f"--{split}", toy / f"{split}.{SOURCE}", toy / f"{split}.{TARGET}")
    ]
    text = ("--raw-text", "--vocab-size", VOCABULARY, "--workers", 1)
    _hyptrans("prepare", "text", "--out", data, *text, *pairs)
    tokenizer = HyptransTokenizer.from_data(data, SOURCE, TARGET)
    trainer = make_trainer(tokenizer, _lines(toy, "train", tokenizer), args.out / "model", args)
    begun = any((args.out / "model").glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=begun or None)
    trainer.save_model()
    losses = {line["step"]: line["loss"] for line in trainer.state.log_history if "loss" in line}
    _show("Seq2SeqTrainer", losses, hyptrans.load(args.out / "model"), toy)
    if args.fairseq:
        losses = _train_by_fairseq(args.out, fairseq_flags(args))
        model = hyptrans.load(args.out / "fairseq" / "checkpoint_last.pt", data=data)
        _show("fairseq-train", losses, model, toy)


def _train_by_fairseq(out: Path, flags: Sequence[str]) -> dict[int, float]:
    """Losses, base e, by number of updates."""
    log = out / "fairseq.log"
    command = [sys.executable, "-m", "fairseq_cli.train", str(out / "data" / "data-bin"), *flags]
    command += ["--save-dir", str(out / "fairseq"), "--no-epoch-checkpoints"]
    command += ["--disable-validation", "--save-interval-updates", "200"]
    command += ["--keep-interval-updates", "1"]
    with open(log, "a", encoding="utf-8") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        raise UserError(f"fairseq-train ended with status {done.returncode}: see {log}")
    found = curves.read_log(log).curves[curves.METRICS["train_inner"]["loss"]]
    return {updates: loss * math.log(2) for updates, loss in found.items()}


def _show(name: str, losses: Mapping[int, float], model: hyptrans.Translator, toy: Path) -> None:
    """Print how a training went and how well it translates."""
    sources, references = (scores.read_text(toy / f"test.{one}") for one in (SOURCE, TARGET))
    found = scores.bleu(model.translate(sources, beam=4), references)
    told = ", ".join(f"{losses[n]:.3f} ({n})" for n in sorted(losses) if n % TOLD == 0)
    print(f"{name}: loss (after updates) {told}; BLEU {found.value:.2f} {found.signature}")


def _lines(toy: Path, split: str, tokenizer: Any) -> list[dict[str, Any]]:
    """Numbers of the sentences of a set, and of their translations."""
    sources, targets = (scores.read_text(toy / f"{split}.{one}") for one in (SOURCE, TARGET))
    made = tokenizer(sources, text_target=targets)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    return [{"input_ids": source, "labels": target} for source, target in pairs]


def _hyptrans(*command: Any) -> None:
    done = subprocess.run([sys.executable, "-m", "hyptrans", *map(str, command)])
    if done.returncode:
        # it has said why
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=STOPPED))
