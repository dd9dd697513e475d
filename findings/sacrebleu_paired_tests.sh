#!/usr/bin/env bash
# Guess: two systems with the same output have p = 1, and three sentences can't be significant: signs can be
# dealt in 8 ways, so no two-sided p lies below 2/8.
# Seen: both paired tests count only draws whose difference is greater than the observed one, not equal to it.
# Equal outputs get the smallest p there is, 1 / (samples + 1), and so do three sentences.
# Matters: on small or similar outputs the p of paired-bs and paired-ar says "significant" for no difference.
# Versions: sacrebleu 2.6.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages sacrebleu==2.6.0
"$python" - <<'PY'
from finding import seen, versions
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

versions("sacrebleu")
references = ["the cat sat on the mat now", "a dog ran away far today", "it was big enough for you"]
outputs = ["the cat sat on the mat", "a dog ran far away today", "it was big enough for all"]
worse = [line.replace("the ", "teh ").replace("a dog", "dog a").replace("was big", "big was") for line in outputs]


def p(other: list[str], test: str) -> float:
    systems = [("one", outputs), ("other", other)]
    test = PairedTest(systems, {"BLEU": BLEU(references=[references])}, [references], test_type=test, n_samples=999)
    return round(test()[1]["BLEU"][1].p_value, 3)


seen("equal outputs, bootstrap", p(outputs, "bs"), 0.001)
seen("equal outputs, randomization", p(outputs, "ar"), 0.001)
seen("three sentences, randomization", p(worse, "ar"), 0.001)
PY
