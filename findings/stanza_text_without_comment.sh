#!/usr/bin/env bash
# Guess: sentence.text is the comment "# text" or, where there is none, the tokens joined by SpaceAfter.
# Seen: it is None. stanza does read SpaceAfter (token.spaces_after is right); it does not put the text together.
# Matters: treebanks and parser outputs without the comment give None where a string is expected, and the
# spacing has to be rebuilt by hand.
# Versions: stanza 1.15.0, torch 2.13.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH stanza==1.15.0 conllu==6.0.0 udapi==0.5.2
"$python" - <<'PY'
from finding import seen, versions
from stanza.utils.conll import CoNLL

versions("stanza", "torch")
text = "1\tgo\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n2\t!\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_\n\n"
(sentence,) = CoNLL.conll2doc(input_str=text).sentences
seen("text", sentence.text, None)
seen("tokens and the spaces after them", [(t.text, t.spaces_after) for t in sentence.tokens], [("go", ""), ("!", " ")])
(sentence,) = CoNLL.conll2doc(input_str="# text = go!\n" + text).sentences
seen("with the comment", sentence.text, "go!")
PY
