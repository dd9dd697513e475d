#!/usr/bin/env bash
# Guess: MISC is read as name=value, split at the first "=", and a sentence comes back as it was.
# Seen: conllu 6.0.0 keeps what stands between the first and the second "=" and drops the rest: Gloss=a=b is
# read as a and written as Gloss=a. Neither call complains; udapi keeps the value.
# Matters: glosses, URLs and formulas in MISC are cut by any script that reads and writes a treebank.
# Versions: conllu 6.0.0, udapi 0.5.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages conllu==6.0.0 udapi==0.5.2
"$python" - <<'PY'
import conllu
from finding import seen, versions
from udapi.core.document import Document

versions("conllu", "udapi")
text = "1\tx\tx\tX\t_\t_\t0\troot\t_\tGloss=a=b|SpaceAfter=No\n\n"
(sentence,) = conllu.parse(text)
seen("conllu reads", sentence[0]["misc"], {"Gloss": "a", "SpaceAfter": "No"})
seen("conllu writes MISC as", sentence.serialize().split("\t")[9].strip(), "Gloss=a|SpaceAfter=No")
document = Document()
document.from_conllu_string(text)
seen("udapi writes MISC as", document.to_conllu_string().split("\t")[9].strip(), "Gloss=a=b|SpaceAfter=No")
PY
