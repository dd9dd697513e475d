#!/usr/bin/env bash
# Guess: a sentence comes back as it was read, and a value in MISC is a text.
# Seen: pyconll reads every value of FEATS and MISC as a set, split at commas, and writes it sorted: Amount=1,000 comes out as Amount=000,1
# and Gloss=the,the as Gloss=the. Keys are sorted too. conllu keeps all of it.
# Matters: numbers, glosses and translations in MISC are changed by any script that reads and writes a treebank.
# Versions: pyconll 3.3.1, conllu 6.0.0; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages pyconll==3.3.1 conllu==6.0.0
"$python" - <<'PY'
import conllu
import pyconll
from finding import seen, versions

versions("pyconll", "conllu")
for misc, written in (
    ("Amount=1,000", "Amount=000,1"),
    ("Gloss=the,the", "Gloss=the"),
    ("Translit=b,a|Gloss=x", "Gloss=x|Translit=a,b"),
    ("Gloss=a=b", "Gloss=a=b"),
):
    text = f"1\tx\tx\tX\t_\t_\t0\troot\t_\t{misc}\n\n"
    seen(f"{misc}: pyconll writes", pyconll.load_from_string(text).conll().strip().split("\t")[9], written)
    if misc != "Gloss=a=b":
        seen(f"{misc}: conllu writes", conllu.parse(text)[0].serialize().strip().split("\t")[9], misc)
PY
