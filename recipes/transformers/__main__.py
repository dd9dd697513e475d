"""The toy language, learned by the library transformers; the same command goes on with it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.inference.architecture import require_known
from hyptrans.support import steps
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.support.flags import add_seed
from recipes.common import options
from recipes.common.translation import step

SOURCE, TARGET = "en", "qtv"
EVERY = 100
"""Updates between two losses that the command prints."""


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare, train, translate, and print the losses and the BLEU."""
    parser = argparse.ArgumentParser(prog="python -m recipes.transformers", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    add("--arch", default="hybonet_plus_tiny", help="architecture (default: %(default)s)")
    add("--points", action="store_true", help="embeddings are points, moved by Riemannian Adam")
    options.add_number(parser, "--sentences", 20000, "sentence pairs to train on")
    options.add_number(parser, "--updates", 700, "of training")
    add_seed(parser, "of training")
    args = parser.parse_args(argv)
    require("transformers", "transformers")
    require("accelerate", "transformers")
    from hyptrans.transformers import HyptransTokenizer
    from recipes.transformers.trainer import make_trainer

    require_known(args.arch)
    toy, data = args.out / "toy", args.out / "data"
    _prepare(args.out, toy, data, args.sentences)
    tokenizer = HyptransTokenizer.from_data(data, SOURCE, TARGET)
    trainer = make_trainer(tokenizer, _rows(toy, "train", tokenizer), args.out / "model", args)
    begun = any((args.out / "model").glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=begun or None)
    trainer.save_model()
    losses = {line["step"]: line["loss"] for line in trainer.state.log_history if "loss" in line}
    shown = ", ".join(f"{losses[n]:.3f} ({n})" for n in sorted(losses) if n % EVERY == 0)
    sources, references = (scores.read_text(toy / f"test.{one}") for one in (SOURCE, TARGET))
    translations = hyptrans.load(args.out / "model").translate(sources, beam=4)
    found = scores.bleu(translations, references)
    print(f"loss (after updates) {shown}; BLEU {found.value:.2f} {found.signature}")


def _prepare(out: Path, toy: Path, data: Path, sentences: int) -> None:
    commands = {
        "make_toy": ["toy", "--out", str(toy), "--train", str(sentences)],
        "prepare": ["text", "--out", str(data), "--raw-text", "--vocab-size", "1000"],
    }
    for split in ("train", "valid", "test"):
        pair = [str(toy / f"{split}.{language}") for language in (SOURCE, TARGET)]
        commands["prepare"] += [f"--{split}", *pair]
    for name, words in commands.items():
        outputs = [toy if name == "make_toy" else data]
        steps.run([step(["hyptrans", "prepare", *words], name, out, outputs)], out)


def _rows(toy: Path, split: str, tokenizer: Any) -> list[dict[str, Any]]:
    """Tokens of the sentences of a set, and of their translations."""
    sources, targets = (scores.read_text(toy / f"{split}.{one}") for one in (SOURCE, TARGET))
    made = tokenizer(sources, text_target=targets)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    return [{"input_ids": source, "labels": target} for source, target in pairs]


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
