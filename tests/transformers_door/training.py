"""A training of the library's own Seq2SeqTrainer, with fairseq's loss and Riemannian Adam."""

import transformers

from hyptrans.optim import RiemannianAdam
from hyptrans.transformers import HyptransConfig, HyptransForConditionalGeneration

SMOOTHING, RATE, BETAS, CLIP = 0.1, 5e-3, (0.9, 0.98), 0.5


def rows_of(tokenizer, texts):
    made = tokenizer(texts, text_target=texts)
    pairs = zip(made["input_ids"], made["labels"], strict=True)
    return [{"input_ids": source, "labels": target} for source, target in pairs]


def make_trainer(tokenizer, rows, out, arch, updates, *, points=False, warmup=100, **chosen):
    """A new model's trainer; its rate ends at zero, and ``chosen`` are settings of the library."""
    transformers.set_seed(1)
    options = {"embedding_storage": "manifold"} if points else {}
    config = HyptransConfig.of(tokenizer, arch, dropout=0.0, **options)
    model = HyptransForConditionalGeneration(config)
    optimizer = RiemannianAdam(model.parameters(), lr=RATE, betas=BETAS)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup, updates)
    symbols = len(tokenizer.dictionaries[1])
    settings = {
        "per_device_train_batch_size": 128,
        "max_grad_norm": CLIP,
        # the library spreads over all symbols what fairseq spreads over all others
        "label_smoothing_factor": SMOOTHING * symbols / (symbols - 1),
        **{"max_steps": updates, "seed": 1, "use_cpu": True, "report_to": "none"},
        **chosen,
    }
    return transformers.Seq2SeqTrainer(
        model,
        transformers.Seq2SeqTrainingArguments(output_dir=str(out), **settings),
        train_dataset=rows,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model),
        processing_class=tokenizer,
        optimizers=(optimizer, schedule),
    )


def fairseq_flags(arch, updates, *, points=False, warmup=100):
    """The same training by ``fairseq-train``."""
    flags = {
        **{"user-dir": "hyptrans", "arch": arch, "dropout": 0, "seed": 1, "max-tokens": 2048},
        **{"optimizer": "riemannian_adam", "lr": RATE, "adam-betas": BETAS, "clip-norm": CLIP},
        **{"criterion": "label_smoothed_cross_entropy", "label-smoothing": SMOOTHING},
        **{"lr-scheduler": "polynomial_decay", "warmup-updates": warmup},
        **dict.fromkeys(("max-update", "total-num-update"), updates),
        "embedding-storage": "manifold" if points else "space",
    }
    return ["--cpu", *(str(word) for name, value in flags.items() for word in (f"--{name}", value))]
