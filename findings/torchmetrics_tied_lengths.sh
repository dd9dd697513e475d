#!/usr/bin/env bash
# Guess: torchmetrics' SacreBLEUScore is sacreBLEU / 100.
# Seen: with one reference it is (but for smoothing, which is off by default). With several it depends on their order: when two are
# equally near in length, the first one's length counts; in sacreBLEU the shorter one's.
# Matters: BLEU of a corpus with two references differs from sacreBLEU's by one point and more, and again when the references are exchanged.
# Versions: torchmetrics 1.9.0, sacrebleu 2.6.0, torch 2.13.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH torchmetrics==1.9.0 sacrebleu==2.6.0
"$python" - <<'PY'
from finding import seen, versions
from sacrebleu.metrics import BLEU
from torchmetrics.text import SacreBLEUScore

versions("torchmetrics", "sacrebleu", "torch")
outputs = ["the old cat sat on the mat today", "a dog ran away from the big house"]
longer = ["the old cat sat on the mat at noon", "a dog ran away from the very big house"]
shorter = ["the cat sat on the mat today", "a dog ran from the big house"]


def sacrebleu(*references: list[str]) -> float:
    return round(BLEU(smooth_method="none").corpus_score(outputs, references).score, 1)


def torchmetrics(*references: list[str]) -> float:
    return round(100 * SacreBLEUScore()(outputs, [list(lines) for lines in zip(*references, strict=True)]).item(), 1)


for name, references, one, other in (
    ("the longer alone", [longer], 71.1, 71.1),
    ("the shorter alone", [shorter], 61.8, 61.8),
    ("the longer, the shorter", [longer, shorter], 97.4, 86.0),
    ("the shorter, the longer", [shorter, longer], 97.4, 97.4),
):
    seen(f"{name}: sacreBLEU, torchmetrics", (sacrebleu(*references), torchmetrics(*references)), (one, other))
PY
