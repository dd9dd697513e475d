#!/usr/bin/env bash
# Guess: 0.2.3 is a patch release of 0.2.1, so code for one runs with the other.
# Seen: SampleEncodeAndScore, NBestEncodeAsSerializedProto, CalculateEntropy, SetVocabulary, LoadVocabulary and
# their lower-case names are gone from SentencePieceProcessor.
# Matters: restricting a joint model to one language's pieces (SetVocabulary) and scores of samples are no longer
# to be had from Python; ">=0.2" as a requirement breaks such code with an AttributeError.
# Versions: sentencepiece 0.2.1 and 0.2.3; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
methods() {
    packages "sentencepiece==$1"
    "$python" -c 'import sentencepiece; print(*(m for m in dir(sentencepiece.SentencePieceProcessor) if m[0] != "_"))'
}
methods 0.2.1 > "$work/before"
methods 0.2.3 > "$work/after"
"$python" - "$work" <<'PY'
import sys
from pathlib import Path

from finding import seen

before, after = (set(Path(sys.argv[1], name).read_text().split()) for name in ("before", "after"))
print("gone:", *sorted(before - after))
seen("gone, of the four", sorted({"SampleEncodeAndScore", "SetVocabulary", "LoadVocabulary", "CalculateEntropy"} & (before - after)),
     ["CalculateEntropy", "LoadVocabulary", "SampleEncodeAndScore", "SetVocabulary"])  # fmt: skip
PY
