#!/usr/bin/env bash
# Guess: with --warmup-updates 4 every schedule of fairseq warms up alike: a quarter of the rate at the first update.
# Seen: fixed does. polynomial_decay, inverse_sqrt and cosine make the first update with
# rate 0 and reach the full rate one update later; the log shows .25 there, as it shows the rate of the update to come.
# Matters: one update is lost (Adam's moments move, the weights don't), and recipes that compare schedules or
# reproduce another toolkit's are off by one. transformers' schedules begin at 0 too.
# Versions: fairseq 0.12.2 (edited to import on Python 3.11), hydra-core 1.3.8, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
fairseq_packages
"$python" - <<'PY'
from fairseq_rates import rates
from finding import seen, versions

versions("fairseq", "hydra-core", "omegaconf", "torch")
seen("fixed", rates("fixed", 6, force_anneal=None, lr_shrink=0.1), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0])
seen("inverse_sqrt", rates("inverse_sqrt", 6), [0.0, 0.25, 0.5, 0.75, 1.0, 0.894])
seen(
    "polynomial_decay",
    rates("polynomial_decay", 6, total_num_update=10.0, end_learning_rate=0.0, power=1.0, force_anneal=None),
    [0.0, 0.25, 0.5, 0.75, 1.0, 0.833],
)
cosine = {"min_lr": 0.0, "max_update": 10, "t_mult": 1.0, "lr_period_updates": -1.0, "lr_shrink": 0.1}
seen("cosine", rates("cosine", 6, **cosine), [0.0, 0.25, 0.5, 0.75, 1.0, 0.933])
PY
