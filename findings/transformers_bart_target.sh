#!/usr/bin/env bash
# Guess: with label smoothing a batch of sources and labels either trains as it does without, or is refused for want of
# decoder_input_ids.
# Seen: Marian and T5 refuse. BART and mBART train: the decoder reads the source in place of the target. The Trainer takes the
# labels out of the batch before it calls the model, and BART without labels makes the decoder's input from input_ids.
# Matters: a collator that adds no decoder_input_ids (DataCollatorForSeq2Seq without its model=, or the default one) trains a
# translator that never sees its own prefix. Sources and labels padded to one length are enough; nothing is said.
# Versions: transformers 5.24.0, torch 2.13.0, accelerate 1.15.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 accelerate==1.15.0 geoopt==0.5.1 scipy==1.17.1
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import contextlib
import io

import torch
from finding import seen, versions
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
)

versions("transformers", "torch", "accelerate")
WORDS = ["<s>", "<pad>", "</s>", "<unk>", *"abcdefgh"]
SPECIAL = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
tokens = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")),
    pad_token="<pad>",
    eos_token="</s>",
)
SOURCE, TARGET = ["a", "b", "c", "</s>"], ["e", "f", "g", "</s>"]
EXAMPLE = {"input_ids": [WORDS.index(w) for w in SOURCE], "labels": [WORDS.index(w) for w in TARGET]}


def bart_like(config: type, model: type) -> torch.nn.Module:
    sides = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))}
    return model(config(vocab_size=len(WORDS), d_model=16, max_position_embeddings=16, **sides, **SPECIAL))


def t5() -> torch.nn.Module:
    sizes = {"vocab_size": len(WORDS), "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**sizes, **SPECIAL))


def decoder_reads(model: torch.nn.Module, smoothing: float, collator_knows_model: bool) -> str:
    read = []
    model.get_decoder().register_forward_pre_hook(lambda module, args, kwargs: read.append(kwargs["input_ids"]), with_kwargs=True)
    given = Seq2SeqTrainingArguments(
        "out", max_steps=1, label_smoothing_factor=smoothing, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
    )
    collator = DataCollatorForSeq2Seq(tokens, model=model if collator_knows_model else None)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            Seq2SeqTrainer(model, given, train_dataset=[EXAMPLE] * 8, data_collator=collator).train()
    except ValueError:
        return "refused"
    return " ".join(WORDS[i] for i in read[0][0])


for name, make in {
    "BART": lambda: bart_like(BartConfig, BartForConditionalGeneration),
    "mBART": lambda: bart_like(MBartConfig, MBartForConditionalGeneration),
    "Marian": lambda: bart_like(MarianConfig, MarianMTModel),
    "T5": t5,
}.items():
    seen(f"{name}, no smoothing: the decoder reads", decoder_reads(make(), 0, False), "</s> e f g")
    seen(f"{name}, smoothing, collator with the model", decoder_reads(make(), 0.1, True), "</s> e f g")
    seen(f"{name}, smoothing, collator without it", decoder_reads(make(), 0.1, False), "</s> a b c" if "BART" in name else "refused")
PY
