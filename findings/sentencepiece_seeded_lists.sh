#!/usr/bin/env bash
# Guess: after set_random_generator_seed, every call samples something new, and a second run repeats the first.
# Seen: that holds for calls with one string. A call with a list starts from the seed again, so every epoch that
# encodes a corpus as a list gets the same segmentations. Without a seed lists vary.
# Matters: whoever seeds a run to make it repeatable and encodes by lists has switched subword regularization off.
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
words = "lower lowest newer wider low new wide deep deeper deepest".split()
lines = [" ".join(draw.choice(words) for _ in range(6)) for _ in range(600)]
out = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_writer=out, vocab_size=40, hard_vocab_limit=False, minloglevel=2
)
processor = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
text = "the lowest deeper newer wider lower deepest"
options = {"enable_sampling": True, "alpha": 0.1, "nbest_size": -1}


def epochs(encode) -> int:
    """How many of six epochs differ."""
    return len({str(encode()) for _ in range(6)})


def lists():
    return processor.encode([text] * 4, num_threads=1, **options)


def strings():
    return [processor.encode(text, **options) for _ in range(4)]


sentencepiece.set_random_generator_seed(7)
seen("different epochs of six, string by string", epochs(strings), 6)
sentencepiece.set_random_generator_seed(7)
seen("different epochs of six, as lists", epochs(lists), 1)
seen("sentences of one list vary", len({str(ids) for ids in lists()}) > 1)
PY
