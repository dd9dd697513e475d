#!/usr/bin/env bash
# Guess: a given prefix counts either in score and length (as in fairseq) or in neither.
# Seen: in CTranslate2 it counts in the length and not in the score: "bb" + "aa" is (log p of aa) / 4. In
# transformers it counts in neither: / 2. max_decoding_length includes the prefix, max_new_tokens does not.
# Matters: with a prefix of some length CTranslate2's normalized scores all come near 0, and beams that end
# early or late are ranked otherwise than without the prefix.
# Versions: ctranslate2 4.8.5, transformers 5.24.0, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 ctranslate2==4.8.5
"$python" - <<'PY'
from constant_model import LOG, ctranslate2_search, ctranslate2_translator, transformers_model, transformers_search
from finding import seen, versions

versions("ctranslate2", "transformers", "torch")
options = {"beam_size": 2, "target_prefix": [["b", "b"]], "max_decoding_length": 4}
seen("CTranslate2", ctranslate2_search(ctranslate2_translator(), **options), [("bbaa", round(2 * LOG["a"] / 4, 4))])
found = transformers_search(transformers_model(), prefix="bb", num_beams=2, max_new_tokens=2)
seen("transformers", found, [("bbaa", round(2 * LOG["a"] / 2, 4))])
PY
