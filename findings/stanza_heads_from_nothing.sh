#!/usr/bin/env bash
# Guess: a sentence without heads (HEAD is "_") is written back without heads, or refused.
# Seen: stanza reads the heads as None and writes 0, 1, 2, ...: every word hangs on the one before it, a
# chain that no annotator or parser made. Relations stay empty. udapi writes 0 for every word and warns.
# Matters: files that were only tokenized or tagged turn into "trees" in one round trip, and a right-branching
# chain is a strong baseline for head-initial languages.
# Versions: stanza 1.15.0, udapi 0.5.2, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH stanza==1.15.0 conllu==6.0.0 udapi==0.5.2
"$python" - <<'PY'
from finding import seen, versions
from stanza.utils.conll import CoNLL
from udapi.core.document import Document

versions("stanza", "udapi", "torch")
text = "".join(f"{k}\t{form}\t_\tX\t_\t_\t_\t_\t_\t_\n" for k, form in enumerate(("one", "two", "three"), 1)) + "\n"


def columns(out: str) -> list[list[str]]:
    return [line.split("\t")[6:8] for line in out.split("\n") if "\t" in line]


document = CoNLL.conll2doc(input_str=text)
seen("heads in memory", [word.head for word in document.sentences[0].words], [None, None, None])
seen("HEAD and DEPREL written by stanza", columns(f"{document:C}"), [["0", "_"], ["1", "_"], ["2", "_"]])
other = Document()
other.from_conllu_string(text)
seen("HEAD and DEPREL written by udapi", columns(other.to_conllu_string()), [["0", "_"]] * 3)
PY
