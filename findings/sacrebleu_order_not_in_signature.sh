#!/usr/bin/env bash
# Guess: a signature tells all that changes the score, so BLEU with another n-gram order has another one.
# Seen: BLEU(max_ngram_order=2) and the usual BLEU have the same name and the same signature. chrF's orders are
# in its signature.
# Matters: a BLEU-2 passes for a BLEU in any table that keeps signatures, and is far higher.
# Versions: sacrebleu 2.6.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages sacrebleu==2.6.0
"$python" - <<'PY'
from finding import seen, versions
from sacrebleu.metrics import BLEU, CHRF

versions("sacrebleu")
outputs, references = ["a dog ran far away today"], [["a dog ran away far today"]]
two, four = BLEU(max_ngram_order=2), BLEU(smooth_method="exp")
scores = [metric.corpus_score(outputs, references) for metric in (two, four)]
print(*scores, sep="\n")
seen("signatures are equal", str(two.get_signature()) == str(four.get_signature()))
seen("names", [score.name for score in scores], ["BLEU", "BLEU"])
seen("scores", [round(score.score, 1) for score in scores], [63.2, 35.9])
metric = CHRF(char_order=4)
metric.corpus_score(outputs, references)
seen("chrF tells its order", "nc:4" in str(metric.get_signature()))
PY
