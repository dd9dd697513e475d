"""The toy language, learned by the library transformers; the same command goes on with it."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

import hyptrans
from hyptrans.evaluation import scores
from hyptrans.inference.architecture import require_known
from hyptrans.optim import RiemannianAdam
from hyptrans.support.errors import run_command
from hyptrans.support.extras import require
from hyptrans.transformers import (
    HyptransConfig,
    HyptransForConditionalGeneration,
    HyptransTokenizer,
)
from recipes.common.options import STOPPED

SOURCE, TARGET = "en", "qtv"
VOCABULARY, WARMUP, SMOOTHING = 1500, 100, 0.1


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
    require("accelerate", "transformers")
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


def make_trainer(
    tokenizer: HyptransTokenizer, rows: list[dict[str, Any]], out: Path, args: Any
) -> Any:
    """A trainer of a new model, with fairseq's loss and a rate that ends at zero."""
    transformers.set_seed(args.seed)
    options = {"embedding_storage": "manifold"} if args.points else {}
    config = HyptransConfig.of(tokenizer, args.arch, dropout=0.0, **options)
    model = HyptransForConditionalGeneration(config)
    optimizer = RiemannianAdam(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, args.updates)
    symbols = len(tokenizer.dictionaries[1])
    settings = transformers.Seq2SeqTrainingArguments(
        output_dir=str(out),
        max_steps=args.updates,
        per_device_train_batch_size=128,
        max_grad_norm=0.5,
        # the library spreads over all symbols what fairseq spreads over all others
        label_smoothing_factor=SMOOTHING * symbols / (symbols - 1),
        save_steps=getattr(args, "save_steps", 200),
        logging_steps=50,
        report_to="none",
        seed=args.seed,
        use_cpu=not torch.cuda.is_available(),
    )
    return transformers.Seq2SeqTrainer(
        model,
        settings,
        train_dataset=rows,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model),
        processing_class=tokenizer,
        optimizers=(optimizer, schedule),
    )


def _lines(toy: Path, split: str, tokenizer: HyptransTokenizer) -> list[dict[str, Any]]:
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
