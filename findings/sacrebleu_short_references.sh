#!/usr/bin/env bash
# Guess: corpus_score refuses references of another length than the outputs.
# Seen: it scores as many sentences as the shortest list has. References as one list per sentence (the layout of
# nltk and of many metrics' wrappers) are such short lists: only the first sentence is scored, against all
# references at once, and the result is 100.
# Matters: the layout is easily confused, and the score looks better, not worse.
# Versions: sacrebleu 2.6.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages sacrebleu==2.6.0
"$python" - <<'PY'
from finding import seen, versions
from sacrebleu.metrics import BLEU, CHRF, TER

versions("sacrebleu")
outputs = ["the cat sat on the mat", "a dog ran far away today", "it was big enough for all"]
references = ["the cat sat on the mat", "dogs run away", "something else"]


def scores(layout) -> list[float]:
    return [round(metric.corpus_score(outputs, layout).score, 1) for metric in (BLEU(), CHRF(), TER())]


seen("BLEU, chrF, TER of three sentences", scores([references]), [34.6, 50.9, 100.0])
seen("with one reference alone", scores([references[:1]]), [100.0, 100.0, 0.0])
seen("with a list of references per sentence", scores([[reference] for reference in references]), [100.0, 100.0, 0.0])
PY
