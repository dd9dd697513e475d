#!/usr/bin/env bash
# Guess: begin and end of a piece count Python's characters, so text[begin:end] is the piece's surface, in every release.
# Seen: so it is in 0.2.1 (out_type="immutable_proto"). 0.2.3 refuses that type and names "proto" in its place, whose begin and end count
# bytes; text[begin:end] is off behind the first letter that is not ASCII. Its "offset_mapping" counts characters.
# Matters: labels, alignments and highlights put on words by these numbers slip to the right in every text with other letters than ASCII.
# Versions: sentencepiece 0.2.1 and 0.2.3, protobuf 7.36.2; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
offsets() {
    packages "sentencepiece==$1" protobuf==7.36.2
    "$python" - "$@" <<'PY'
import io
import json
import sys

import sentencepiece
from finding import seen, versions

versions("sentencepiece", "protobuf")
model, text = io.BytesIO(), "é à cat"
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter([text] * 20), model_writer=model, minloglevel=3, model_type="char", vocab_size=9, hard_vocab_limit=False
)
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
pieces = processor.encode(text, out_type=sys.argv[2]).pieces
found = {piece.surface: [piece.begin, piece.end] for piece in pieces if piece.surface.strip()}
seen(f"{sys.argv[2]}: begin and end", found, json.loads(sys.argv[3]))
seen("text[begin:end]", "".join(text[begin:end] for begin, end in found.values()), sys.argv[4])
if "offset_mapping" in sys.argv:
    mapping = processor.encode(text, out_type="offset_mapping")
    pairs = zip(mapping["pieces"], mapping["offsets"], strict=True)
    seen("offset_mapping", {piece: list(pair) for piece, pair in pairs if piece != "▁"}, json.loads(sys.argv[6]))
    try:
        processor.encode(text, out_type="immutable_proto")
    except Exception as error:
        seen("immutable_proto is refused", "no longer supported" in str(error))
PY
}
characters='{"é": [0, 1], "à": [2, 3], "c": [4, 5], "a": [5, 6], "t": [6, 7]}'
bytes='{"é": [0, 2], "à": [3, 5], "c": [6, 7], "a": [7, 8], "t": [8, 9]}'
offsets 0.2.1 immutable_proto "$characters" "éàcat"
offsets 0.2.3 proto "$bytes" "é  ct" offset_mapping "$characters"
