#!/usr/bin/env bash
# Guess: a user-defined symbol is one piece always, so a placeholder survives subword sampling too.
# Seen: under unigram sampling it is sometimes spelled out, here <sep> in about 2 of 100 samples at alpha .1 and
# in 40 of 100 at alpha .01; "<" and ">" were in no training text, so they come out as <unk>. nbest_encode lists
# such spellings too. BPE keeps the symbol, even at dropout 1.
# Matters: tags for languages, documents or named entities turn into <unk> during training with sampling.
# Versions: sentencepiece 0.2.3; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages sentencepiece==0.2.3
"$python" - <<'PY'
import io
import random

import sentencepiece
from finding import seen, versions

versions("sentencepiece")
draw = random.Random(1)
words = "the cat sat on mat dog ran far away lower lowest newer wider low new wide deep deeper deepest".split()
lines = [" ".join(draw.choice(words) for _ in range(6)) for _ in range(600)]


def model(kind: str) -> sentencepiece.SentencePieceProcessor:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type=kind, vocab_size=60, hard_vocab_limit=False,
        user_defined_symbols=["<sep>"], minloglevel=2,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def split(processor, alpha: float) -> int:
    samples = [processor.encode("cat<sep>dog", enable_sampling=True, alpha=alpha, nbest_size=-1) for _ in range(1000)]
    return sum(processor.piece_to_id("<sep>") not in sample for sample in samples)


sentencepiece.set_random_generator_seed(1)
unigram, bpe = model("unigram"), model("bpe")
seen("unigram without sampling keeps it", "<sep>" in unigram.encode("cat<sep>dog", out_type=str))
often, rarely = split(unigram, 0.01), split(unigram, 0.1)
print("of 1000 samples without the symbol, alpha .01 and .1:", often, rarely)
seen("split at alpha .01 and at .1", (often > 200, 0 < rarely < 100), (True, True))
broken = next(pieces for pieces in unigram.nbest_encode("cat<sep>dog", nbest_size=9) if unigram.unk_id() in pieces)
seen("an n-best list holds", [unigram.id_to_piece(piece) for piece in broken].count("<unk>"), 2)
seen("BPE at dropout 1 splits", split(bpe, 1.0), 0)
PY
