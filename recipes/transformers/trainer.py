"""The trainer of the library, with fairseq's loss and Riemannian Adam."""

from pathlib import Path
from typing import Any

import torch
import transformers

from hyptrans.optim import RiemannianAdam
from hyptrans.transformers import (
    HyptransConfig,
    HyptransForConditionalGeneration,
    HyptransTokenizer,
)

WARMUP, SMOOTHING = 100, 0.1
RATE, BETAS, CLIP = 5e-3, (0.9, 0.98), 0.5
BATCH, TOKENS = 128, 2048
"""Of a batch: sentences of any length here, tokens of sentences of one length in fairseq."""
EVERY = 50
"""Updates between two losses that are told."""


def fairseq_flags(args: Any) -> list[str]:
    """The training of :func:`make_trainer` for ``fairseq-train``; ``args`` are those of that."""
    flags = {
        **{"user-dir": "hyptrans", "arch": args.arch, "dropout": 0, "seed": args.seed},
        **{"optimizer": "riemannian_adam", "lr": RATE, "adam-betas": BETAS, "clip-norm": CLIP},
        **{"criterion": "label_smoothed_cross_entropy", "label-smoothing": SMOOTHING},
        **{"lr-scheduler": "polynomial_decay", "warmup-updates": WARMUP},
        **dict.fromkeys(("max-update", "total-num-update"), args.updates),
        **{"max-tokens": TOKENS, "log-format": "simple", "log-interval": EVERY},
    }
    if args.points:
        flags["embedding-storage"] = "manifold"
    words = [str(word) for name, value in flags.items() for word in (f"--{name}", value)]
    return words if torch.cuda.is_available() else [*words, "--cpu"]


def make_trainer(
    tokenizer: HyptransTokenizer, rows: list[dict[str, Any]], out: Path, args: Any, **chosen: Any
) -> Any:
    """A trainer of a new model, with fairseq's loss and a rate that ends at zero.

    Args:
        tokenizer: of the model's text.
        rows: numbers of sentences and of their translations.
        out: folder for checkpoints.
        args: of the command.
        chosen: settings of the library, in place of these.
    """
    transformers.set_seed(args.seed)
    options = {"embedding_storage": "manifold"} if args.points else {}
    config = HyptransConfig.of(tokenizer, args.arch, dropout=0.0, **options)
    model = HyptransForConditionalGeneration(config)
    optimizer = RiemannianAdam(model.parameters(), lr=RATE, betas=BETAS)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, WARMUP, args.updates)
    symbols = len(tokenizer.dictionaries[1])
    settings = {
        "max_steps": args.updates,
        "per_device_train_batch_size": BATCH,
        "max_grad_norm": CLIP,
        # the library spreads over all symbols what fairseq spreads over all others
        "label_smoothing_factor": SMOOTHING * symbols / (symbols - 1),
        "save_steps": 200,
        "logging_steps": EVERY,
        "report_to": "none",
        "seed": args.seed,
        "use_cpu": not torch.cuda.is_available(),
    }
    return transformers.Seq2SeqTrainer(
        model,
        transformers.Seq2SeqTrainingArguments(output_dir=str(out), **{**settings, **chosen}),
        train_dataset=rows,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model),
        processing_class=tokenizer,
        optimizers=(optimizer, schedule),
    )
