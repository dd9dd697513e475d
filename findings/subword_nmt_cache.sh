#!/usr/bin/env bash
# Guess: BPE.segment() without dropout gives the one segmentation that the merges define, whatever came before.
# Seen: a word that was first segmented with dropout stays as that draw left it: the draw goes into the object's
# cache, and calls without dropout read the cache.
# Matters: one BPE object for training (with dropout) and validation segments the validation set at random, in
# another way in every run.
# Versions: subword-nmt 0.3.8; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages subword-nmt==0.3.8
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import io

from finding import seen, versions
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

versions("subword-nmt")
codes = io.StringIO()
learn_bpe(["low lower lowest newest widest low lowest newest\n"] * 5, codes, 12)


def bpe() -> BPE:
    codes.seek(0)
    return BPE(codes)


clean, used = bpe(), bpe()
used.segment("lowest", dropout=1.0)
seen("lowest, a new object", clean.segment("lowest"), "lowest")
seen("lowest, after one call with dropout", used.segment("lowest"), "l@@ o@@ w@@ e@@ s@@ t")
PY
