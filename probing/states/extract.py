"""Extract word states: run an encoder on the sentences of a tree file and take every layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hyptrans.inference.batches import by_length
from hyptrans.support.errors import UserError
from hyptrans.support.progress import bar
from probing.states.encoder import WordEncoder, move
from probing.states.file import Contents, States, writing
from probing.states.pooling import pool
from probing.text.pieces import align, surface
from probing.text.trees import Sentence

BATCH_TOKENS = 4096
"""Most tokens that an encoder takes at once, padding included."""


@dataclass(frozen=True)
class Aligned:
    """A sentence ready for the encoder.

    Attributes:
        tokens: token indices, including those of start and end.
        pieces: the token of each pair of a token and a word that share a character.
        words: the word of each such pair; every word has one.
    """

    tokens: list[int]
    pieces: Tensor
    words: Tensor


def extract(
    encoder: WordEncoder,
    sentences: Sequence[Sentence],
    out: Path,
    *,
    trees: Path,
    device: str = "cpu",
) -> States:
    """Write the states of those sentences of a tree file that can be aligned and are not too long.

    Raises:
        UserError: no sentence remains, or a state is not finite.
    """
    kept: dict[int, Aligned] = {}
    left_out: list[dict[str, Any]] = []
    for place, sentence in enumerate(bar(sentences, "align", len(sentences), " sentences")):
        found = align_sentence(encoder, sentence)
        if isinstance(found, str):
            left_out.append({"index": place, "id": sentence.id, "reason": found})
        else:
            kept[place] = found
    if not kept:
        reason = ": sentence {id}, {reason}".format(**left_out[0]) if left_out else ""
        raise UserError(f"{trees} has no sentence that the encoder can take{reason}")
    aligned = list(kept.values())
    contents = Contents(
        architecture=encoder.architecture,
        identity=encoder.identity,
        spaces=encoder.spaces,
        kept=list(kept),
        lengths=[len(sentences[place]) for place in kept],
        left_out=left_out,
    )
    move(encoder.module, device)
    with writing(out, contents, encoder.width) as write:
        # the longest come first, so that a lack of memory shows at once and not after hours
        for batch in by_length([len(one.tokens) for one in aligned], BATCH_TOKENS, "encode", True):
            counts = [contents.lengths[i] for i in batch]
            pooled = _states_of_words(encoder, [aligned[i] for i in batch], counts)
            # words first, as in the file
            for i, own in zip(batch, pooled.float().transpose(0, 1).split(counts), strict=True):
                write(i, own)
    return States(out)


def align_sentence(encoder: WordEncoder, sentence: Sentence) -> Aligned | str:
    """Return a sentence's tokens aligned with its words, or the reason to leave it out."""
    text, words = surface(sentence)
    found = encoder.tokenize(text)
    if len(found) > encoder.max_tokens:
        return f"{len(found)} tokens, the model takes {encoder.max_tokens}"
    indices = align([span for _, span in found], words)
    if isinstance(indices, str):
        return indices
    pairs = [(piece, word) for word, own in enumerate(indices) for piece in own]
    pieces, of_words = torch.tensor(pairs).T
    return Aligned([number for number, _ in found], pieces, of_words)


def _states_of_words(
    encoder: WordEncoder, batch: Sequence[Aligned], counts: Sequence[int]
) -> Tensor:
    """Return the states of a batch's words, sentence after sentence.

    Shapes: counts of words ``[B]`` -> ``[layers, words, D]``.
    """
    rows = [torch.tensor(sentence.tokens) for sentence in batch]
    tokens = pad_sequence(rows, batch_first=True, padding_value=encoder.pad)
    # pooling uses float64, which not every device supports
    states = encoder.states(tokens, torch.tensor([len(row) for row in rows])).cpu()
    pieces = [sentence.pieces + row * tokens.size(1) for row, sentence in enumerate(batch)]
    starts = accumulate(counts, initial=0)
    words = [sentence.words + start for sentence, start in zip(batch, starts, strict=False)]
    flat = states.flatten(1, 2)
    found = pool(flat, torch.cat(pieces), torch.cat(words), sum(counts), encoder.spaces)
    if not bool(found.isfinite().all()):
        raise UserError(
            f"{encoder.name}: its states are not finite numbers; take an earlier checkpoint"
        )
    return found
