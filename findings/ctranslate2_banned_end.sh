#!/usr/bin/env bash
# Guess: the score of a hypothesis is the sum of the model's log probabilities, and a minimum length only rules out
# shorter hypotheses.
# Seen: while the end is banned CTranslate2 spreads its probability over the other words, so "a" scores -1.76
# where the model says -2.12; as min_decoding_length is 1, every score has this bonus. score_batch gives the model's.
# transformers' min_new_tokens leaves scores as they are.
# Matters: thresholds on scores, reranking and comparisons between toolkits are off, most where the model would end early.
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 ctranslate2==4.8.5
"$python" - <<'PY'
from math import log

from constant_model import LOG, ctranslate2_search, ctranslate2_translator, transformers_model, transformers_search
from finding import seen, versions

versions("ctranslate2", "transformers", "torch")
translator, model = ctranslate2_translator(), transformers_model()


def score(found, words: str) -> float:
    return dict(found)[words]


options = {"beam_size": 4, "num_hypotheses": 4, "length_penalty": 0}
exact = round(LOG["a"] + LOG["$"], 4)
seen("a$: the model's", exact, -2.1203)
seen("a$: CTranslate2", score(ctranslate2_search(translator, **options), "a$"), round(log(0.4 / 0.7) + LOG["$"], 4))
seen("a$: CTranslate2, minimum 0", score(ctranslate2_search(translator, min_decoding_length=0, **options), "a$"), exact)
seen("a$: CTranslate2, score_batch", round(sum(translator.score_batch([["a"]], [["a"]])[0].log_probs), 4), exact)
options = {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.0}
seen("a$: transformers, minimum 1", score(transformers_search(model, min_new_tokens=1, **options), "a$"), exact)
PY
