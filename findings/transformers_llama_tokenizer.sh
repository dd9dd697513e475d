#!/usr/bin/env bash
# Guess: a BPE model of sentencepiece cuts a text in the same pieces through transformers, whichever class reads tokenizer.model.
# Seen: AutoTokenizer's reading (TokenizersBackend) is sentencepiece's. LlamaTokenizer, given the same file, normalizes nothing (full-width
# letters, ligatures, double and trailing spaces) and, for a model without byte fallback, drops unknown characters: no <unk>
# stands for them, and "die Größe" comes back as "die Gre".
# Matters: LlamaTokenizer takes any BPE model of sentencepiece without a word, and texts lose letters without a trace: counting <unk> finds
# nothing.
# Versions: transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import json
from pathlib import Path

import sentencepiece
from finding import seen, versions
from transformers import AutoTokenizer, LlamaTokenizer

versions("transformers", "tokenizers", "sentencepiece")
TEXT = ["the fine old model trains on the green line", "die neue Gasse ist grün und fein", "Tee in der Gasse", "The green model"] * 5


def readers(folder: str, byte_fallback: bool) -> dict:
    Path(folder).mkdir()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=f"{folder}/tokenizer",
        vocab_size=330 if byte_fallback else 60,
        model_type="bpe",
        byte_fallback=byte_fallback,
        minloglevel=2,
    )
    own = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/tokenizer.model")
    llama = LlamaTokenizer.from_pretrained(folder)
    Path(folder, "config.json").write_text(json.dumps({"model_type": "llama"}))
    auto = AutoTokenizer.from_pretrained(folder)
    return {
        "sentencepiece": own.encode,
        "AutoTokenizer": lambda text: auto.encode(text, add_special_tokens=False),
        "LlamaTokenizer": lambda text: llama.encode(text, add_special_tokens=False),
        "text": own.decode,
    }


EXPECTED = {
    "the green model": ("the green model", "the green model"),
    "die Größe": ("die Gre", "die Größe"),
    "ﬁne": ("ne", "ﬁne"),
    "Ｔee": ("ee", "Ｔee"),
    "the  model": ("the  model", "the  model"),
    "the model ": ("the model ", "the model "),
}
for place, (folder, byte_fallback) in enumerate((("characters", False), ("bytes", True))):
    read = readers(folder, byte_fallback)
    for text, expected in EXPECTED.items():
        ids = read["sentencepiece"](text)
        seen(f"{folder}, {text!r}: AutoTokenizer's ids are sentencepiece's", read["AutoTokenizer"](text) == ids)
        as_it = text == "the green model" or (byte_fallback and text == "die Größe")
        seen("   LlamaTokenizer's ids are", read["LlamaTokenizer"](text) == ids, as_it)
        seen("   the text of LlamaTokenizer's ids", read["text"](read["LlamaTokenizer"](text)), expected[place])
PY
