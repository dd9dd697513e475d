#!/usr/bin/env bash
# Guess: after --lr-period-updates fairseq's cosine schedule stays at --min-lr, as a schedule that has ended does.
# Seen: it starts again at a tenth of the rate (--lr-shrink .1) and goes on doing so: with warm-up 4 and period 6
# the rate falls to .067, jumps to .1, and the third period begins at .01.
# Matters: the last updates of a run whose period ends early are made at a rising rate.
# Versions: fairseq 0.12.2 (edited to import on Python 3.11), hydra-core 1.3.8, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
fairseq_packages
"$python" - <<'PY'
from fairseq_rates import rates
from finding import seen, versions

versions("fairseq", "hydra-core", "omegaconf", "torch")
used = rates("cosine", 18, min_lr=0.0, max_update=100, t_mult=1.0, lr_period_updates=6.0, lr_shrink=0.1)
print(*used)
seen("end of the first period, begin of the second", used[9:11], [0.067, 0.1])
seen("end of the second, begin of the third", used[15:17], [0.007, 0.01])
PY
