#!/usr/bin/env bash
# Guess: set_random_seed before a call makes that call's samples repeatable, as torch.manual_seed does.
# Seen: the seed acts on translators made after it. Set again later, it does nothing: the same translator goes on
# drawing other samples. A new translator after the seed repeats the first.
# Matters: an experiment that seeds before each sampled pass is not repeatable, and tests that do so pass by luck.
# Versions: ctranslate2 4.8.5; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages ctranslate2==4.8.5 numpy==2.4.6
"$python" - <<'PY'
import ctranslate2
from constant_model import ctranslate2_search, ctranslate2_translator
from finding import seen, versions

versions("ctranslate2")


def samples(translator) -> str:
    return " ".join(ctranslate2_search(translator, beam_size=1, sampling_topk=0, max_decoding_length=20)[0][0] for _ in range(4))


ctranslate2.set_random_seed(3)
translator = ctranslate2_translator()
first = samples(translator)
ctranslate2.set_random_seed(3)
again = samples(translator)
new = samples(ctranslate2_translator())
print(first, again, new, sep="\n")
seen("the seed set again, the same translator: equal", again == first, False)
seen("the seed set again, a new translator: equal", new == first, True)
PY
