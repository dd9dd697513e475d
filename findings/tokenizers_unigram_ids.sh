#!/usr/bin/env bash
# Guess: tokenizers' Unigram trainer, run twice on the same lines, gives the same tokenizer, as its BPE trainer and
# sentencepiece's two do.
# Seen: the pieces are the same, their ids are not, within one process too. Rare characters change places here; with them go the scores.
# Matters: a tokenizer can't be made again from its text: a model that was trained with the first one's ids reads and writes other
# pieces with the second, while pieces and lengths look right. The trainer has no seed.
# Versions: tokenizers 0.23.3, sentencepiece 0.2.3; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages tokenizers==0.23.3 sentencepiece==0.2.3
"$python" - <<'PY'
import io
import random

import sentencepiece
from finding import seen, versions
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

versions("tokenizers", "sentencepiece")
draw = random.Random(0)
WORDS = ["".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(draw.randint(1, 4))) for _ in range(300)]
LINES = [" ".join(draw.choices(WORDS, k=8)) for _ in range(400)] + [" ".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")]


def pieces(model, trainer) -> list[str]:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.train_from_iterator(LINES, trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.get)


def unigram() -> list[str]:
    trainer = trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"])
    return pieces(models.Unigram(), trainer)


def bpe() -> list[str]:
    return pieces(models.BPE(), trainers.BpeTrainer(vocab_size=300, show_progress=False))


def sentencepieces(kind: str) -> list[str]:
    model = io.BytesIO()
    options = {"vocab_size": 300, "model_type": kind, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES), model_writer=model, **options)
    read = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [read.id_to_piece(i) for i in range(read.get_piece_size())]


for name, train, once in (
    ("tokenizers, BPE", bpe, True),
    ("sentencepiece, BPE", lambda: sentencepieces("bpe"), True),
    ("sentencepiece, unigram", lambda: sentencepieces("unigram"), True),
    ("tokenizers, Unigram", unigram, False),
):
    runs = [train() for _ in range(6)]
    seen(f"{name}, six times: the same pieces", all(set(run) == set(runs[0]) for run in runs))
    seen(f"{name}, six times: the same ids", all(run == runs[0] for run in runs), once)
PY
