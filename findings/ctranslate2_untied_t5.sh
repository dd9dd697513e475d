#!/usr/bin/env bash
# Guess: CTranslate2 converts a T5 of either kind: with one table for words and outputs (the first T5), or with an output layer
# of its own (T5 1.1, mT5, FLAN-T5), and scores a translation as transformers does.
# Seen: the first kind is right. Of the second kind all logits are divided by the square root of the width: transformers 5 sets
# tie_word_embeddings to true whatever config.json says, and the converter takes the scale from that attribute.
# Matters: nothing is refused and greedy search finds the same words, so only the probabilities show it: they are far too flat,
# and beam search, sampling and every score follow them.
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 ctranslate2==4.8.5
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import json
from pathlib import Path

import ctranslate2
import torch
from ctranslate2.converters import TransformersConverter
from finding import seen, versions
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoConfig, MT5Config, MT5ForConditionalGeneration, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

versions("ctranslate2", "transformers", "torch")
WORDS = ["<pad>", "</s>", "<unk>", *"abcdefghijklm"]
WIDTH = 16
SOURCE, TARGET = ["a", "b", "c", "</s>"], ["d", "e", "f", "</s>"]
tokens = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")),
    pad_token="<pad>",
    eos_token="</s>",
    unk_token="<unk>",
)


def ids(words: list[str]) -> torch.Tensor:
    return torch.tensor([[WORDS.index(word) for word in words]])


def compare(name: str, config: type, model: type, tied: bool) -> None:
    torch.manual_seed(0)
    sizes = {"vocab_size": len(WORDS), "d_model": WIDTH, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    made = model(config(**sizes, decoder_start_token_id=0, tie_word_embeddings=tied)).eval()
    if not tied:
        made.lm_head.weight = torch.nn.Parameter(torch.empty(len(WORDS), WIDTH))
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(std=0.5)
    folder = Path(name)
    made.save_pretrained(folder)
    tokens.save_pretrained(folder)
    path = folder / "config.json"
    published = json.loads(path.read_text()) | {"tie_word_embeddings": tied}
    published.pop("scale_decoder_outputs", None)
    path.write_text(json.dumps(published))

    loaded = model.from_pretrained(folder).eval()
    shared = torch.equal(loaded.lm_head.weight, loaded.shared.weight)
    with torch.no_grad():
        logits = loaded(input_ids=ids(SOURCE), decoder_input_ids=ids(["<pad>", *TARGET[:-1]])).logits[0]
    TransformersConverter(str(folder)).convert(f"{name}.converted")
    translator = ctranslate2.Translator(f"{name}.converted", intra_threads=1)
    scores = torch.tensor(translator.score_batch([SOURCE], [TARGET[:-1]])[0].log_probs)

    def same(logits: torch.Tensor) -> bool:
        expected = logits.log_softmax(-1).gather(1, ids(TARGET).T)[:, 0]
        return torch.allclose(scores, expected, atol=1e-4)

    seen(f"{name}: tie_word_embeddings, {tied} in config.json, once loaded", AutoConfig.from_pretrained(folder).tie_word_embeddings)
    seen(f"{name}: the loaded model shares its table", shared, tied)
    seen(f"{name}: CTranslate2 scores as transformers", same(logits), tied)
    seen(f"{name}: CTranslate2 scores as transformers with its logits / sqrt({WIDTH})", same(logits / WIDTH**0.5), not tied)


compare("T5", T5Config, T5ForConditionalGeneration, tied=True)
compare("T5 1.1", T5Config, T5ForConditionalGeneration, tied=False)
compare("mT5", MT5Config, MT5ForConditionalGeneration, tied=False)
PY
