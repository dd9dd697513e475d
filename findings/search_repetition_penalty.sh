#!/usr/bin/env bash
# Guess: a constant added to all logits changes nothing, as softmax doesn't see it; so also with a repetition penalty.
# Seen: the penalty divides positive and multiplies negative scores. transformers applies it to raw logits in greedy
# search and to log probabilities with beams; CTranslate2 to raw logits in both. The same distribution gives
# "aaaaaa" or "ab", by the constant.
# Matters: one value of repetition_penalty means another thing for greedy and beam search, and for two
# checkpoints whose logits differ by an offset.
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 ctranslate2==4.8.5
"$python" - <<'PY'
from math import log

from constant_model import ctranslate2_search, ctranslate2_translator, transformers_model, transformers_search
from finding import seen, versions

versions("ctranslate2", "transformers", "torch")
PROBABILITIES = [1e-6, 0.21, 1e-6, 0.4, 0.29, 0.099997]


def found(offset: float) -> dict[str, str]:
    logits = [log(p) + offset for p in PROBABILITIES]
    model, translator = transformers_model(logits), ctranslate2_translator(logits)
    both = {"repetition_penalty": 1.3}
    return {
        "transformers, greedy": transformers_search(model, max_new_tokens=6, **both)[0][0],
        "transformers, 2 beams": transformers_search(model, max_new_tokens=6, num_beams=2, **both)[0][0],
        "CTranslate2, greedy": ctranslate2_search(translator, max_decoding_length=6, beam_size=1, **both)[0][0],
        "CTranslate2, 2 beams": ctranslate2_search(translator, max_decoding_length=6, beam_size=2, **both)[0][0],
    }


for (name, plain), shifted in zip(found(0).items(), found(10).values(), strict=True):
    expected = ("aaaaaa", "aaaaaa") if name == "transformers, 2 beams" else ("abaaaa" if "CT" in name and "beams" in name else "aaaaaa", "ab$")
    seen(f"{name}: logits, logits + 10", (plain, shifted), expected)
PY
