#!/usr/bin/env bash
# Guess: eight examples give the same gradient whether the Trainer takes them at once or accumulates them, as long as all targets are
# of one length.
# Seen: for models of the kind of BART, mBART, Marian, T5, Pegasus and EncoderDecoderModel the gradient of n accumulated batches is n times
# as large, and so is the loss in the log. GPT-2's is the same.
# The Trainer leaves the division to every model whose forward takes **kwargs; these take them and average over their own batch.
# With label smoothing BART's gradient is right, since the Trainer then computes the loss itself.
# Matters: the learning rate is n times what was asked, or, where gradients are clipped (max_grad_norm is 1 by default), steps are clipped
# that should not be. Only the loss in the log looks odd.
# Versions: transformers 5.24.0, torch 2.13.0, accelerate 1.15.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 accelerate==1.15.0 geoopt==0.5.1 scipy==1.17.1
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import contextlib
import io

import torch
from finding import seen, versions
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

versions("transformers", "torch", "accelerate")
torch.manual_seed(0)
EXAMPLES = [{"input_ids": ids, "labels": ids.flip(0)} for ids in torch.randint(3, 20, (8, 5))]


def bart_like(config: type, model: type) -> torch.nn.Module:
    sides = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    return model(config(vocab_size=20, d_model=16, max_position_embeddings=16, dropout=0, **sides, **special))


def t5() -> torch.nn.Module:
    sizes = {"vocab_size": 20, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**sizes, dropout_rate=0, decoder_start_token_id=0))


def two_berts() -> torch.nn.Module:
    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    one = BertConfig(**sizes, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    config = EncoderDecoderConfig.from_encoder_decoder_configs(one, one)
    config.decoder_start_token_id, config.pad_token_id = 2, 1
    return EncoderDecoderModel(config)


def gpt2() -> torch.nn.Module:
    sizes = {"vocab_size": 20, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def step(make, batch: int, accumulated: int, smoothing: float) -> tuple[float, float]:
    torch.manual_seed(1)
    given = TrainingArguments(
        "out",
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulated,
        label_smoothing_factor=smoothing,
        max_steps=1,
        learning_rate=0,
        optim="sgd",
        max_grad_norm=1e9,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(make(), given, train_dataset=EXAMPLES)
    with contextlib.redirect_stdout(io.StringIO()):
        trainer.train()
    log = next(entry for entry in trainer.state.log_history if "grad_norm" in entry)
    return float(log["loss"]), float(log["grad_norm"])


def grown(make, smoothing: float = 0) -> tuple[float, float]:
    """How loss and gradient of four accumulated batches of 2 compare with those of one batch of 8."""
    whole, parts = step(make, 8, 1, smoothing), step(make, 2, 4, smoothing)
    return tuple(round(part / one, 2) for part, one in zip(parts, whole, strict=True))


for name, make in {
    "BART": lambda: bart_like(BartConfig, BartForConditionalGeneration),
    "mBART": lambda: bart_like(MBartConfig, MBartForConditionalGeneration),
    "Marian": lambda: bart_like(MarianConfig, MarianMTModel),
    "Pegasus": lambda: bart_like(PegasusConfig, PegasusForConditionalGeneration),
    "T5": t5,
    "EncoderDecoderModel": two_berts,
}.items():
    seen(f"{name}: loss and gradient of four batches of 2, over those of one of 8", grown(make), (4, 4))
seen("GPT-2: the same", grown(gpt2), (1, 1))
seen("BART, label smoothing .1: the same", grown(lambda: bart_like(BartConfig, BartForConditionalGeneration), 0.1), (1, 1))
PY
