"""The toy language, learned by the library transformers; the same command goes on with it."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.inference.architecture import require_known
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from recipes.common.options import STOPPED

SOURCE, TARGET = "en", "qtv"
VOCABULARY = 1500


def main(argv: Sequence[str] | None = None) -> None:
    """Prepare, train, translate, and print the BLEU."""
    parser = argparse.ArgumentParser(prog="python -m recipes.transformers", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    add("--arch", default="hybonet_plus_tiny", help="architecture (default: %(default)s)")
    add("--points", action="store_true", help="embeddings are points, moved by Riemannian Adam")
    about = "sentence pairs to train on (default: %(default)s)"
    add("--sentences", type=int, default=20000, metavar="N", help=about)
    add("--updates", type=int, default=700, metavar="N", help="of training (default: %(default)s)")
    add("--seed", type=int, default=1, metavar="N", help="of training (default: %(default)s)")
    args = parser.parse_args(argv)
    require("transformers", "transformers")
    require("accelerate", "transformers")
    from hyptrans.transformers import HyptransTokenizer
    from recipes.transformers.trainer import make_trainer

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
    model = hyptrans.load(args.out / "model")
    sources, references = (scores.read_text(toy / f"test.{one}") for one in (SOURCE, TARGET))
    found = scores.bleu(model.translate(sources, beam=4), references)
    print(f"BLEU {found.value:.2f} {found.signature}")


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
