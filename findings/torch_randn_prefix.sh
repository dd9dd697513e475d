#!/usr/bin/env bash
# Guess: with one seed, randn(15) and randn(16) begin with the same fifteen numbers, as rand and numpy's do.
# Seen: they share none: from 16 numbers on torch draws in blocks of 16, with another method, and
# fills the last block anew. randn(24) shares only its first 8 with randn(16). A transposed tensor filled
# by normal_() differs from a plain one too.
# Matters: a word more in the vocabulary or a unit more in a layer changes initial weights of others.
# Versions: torch 2.13.0, numpy 2.4.6; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH
"$python" - <<'PY'
import numpy
import torch
from finding import seen, versions

versions("torch", "numpy")


def shared(draw, fewer: int, more: int) -> int:
    """How many of the first numbers are the same."""
    torch.manual_seed(3)
    first = draw(fewer)
    torch.manual_seed(3)
    return int((first == draw(more)[:fewer]).sum())


seen("randn: of 15 and 16", shared(torch.randn, 15, 16), 0)
seen("randn: of 16 and 24", shared(torch.randn, 16, 24), 8)
seen("randn: of 16 and 32", shared(torch.randn, 16, 32), 16)
seen("rand: of 15 and 16", shared(torch.rand, 15, 16), 15)
one, two = (numpy.random.default_rng(3).normal(size=n) for n in (15, 16))
seen("numpy: of 15 and 16", int((one == two[:15]).sum()), 15)
PY
