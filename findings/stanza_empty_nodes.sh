#!/usr/bin/env bash
# Guess: conll2doc keeps empty nodes (4.1), as a sentence has a list empty_words, or drops them with their edges.
# Seen: the nodes go and the edges stay: DEPS of the written file points to 2.1, which no line has.
# conll2doc(..., ignore_gapping=False) keeps both.
# Matters: an enhanced graph that passed through stanza can no longer be walked: an edge ends nowhere.
# Versions: stanza 1.15.0, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH stanza==1.15.0 conllu==6.0.0 udapi==0.5.2
"$python" - <<'PY'
from finding import seen, versions
from stanza.utils.conll import CoNLL

versions("stanza", "torch")
rows = (
    "1 Ann Ann PROPN _ _ 2 nsubj 2:nsubj _", "2 reads read VERB _ _ 0 root 0:root _",
    "2.1 reads read VERB _ _ _ _ 2:conj _", "3 Bob Bob PROPN _ _ 2 conj 2.1:nsubj _",
)  # fmt: skip
text = "\n".join(row.replace(" ", "\t") for row in rows) + "\n\n"


def passed(**options) -> list[list[str]]:
    out = f"{CoNLL.conll2doc(input_str=text, **options):C}"
    return [[row.split("\t")[0], row.split("\t")[8]] for row in out.split("\n") if "\t" in row]


seen("ids and DEPS", passed(), [["1", "2:nsubj"], ["2", "0:root"], ["3", "2.1:nsubj"]])
seen("kept", passed(ignore_gapping=False), [["1", "2:nsubj"], ["2", "0:root"], ["2.1", "2:conj"], ["3", "2.1:nsubj"]])
PY
