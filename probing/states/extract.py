"""Extract word states: run an encoder on the sentences of a tree file and take every layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hyptrans.support.errors import UserError
from hyptrans.support.progress import bar
from probing.settings import BATCH_TOKENS
from probing.states.encoder import WordEncoder, moved
from probing.states.file import Contents, LeftOut, States, writing
from probing.states.pooling import pool
from probing.text.pieces import align, surface
from probing.text.trees import Sentence


@dataclass(frozen=True)
class Aligned:
    """A sentence ready for the encoder.

    Attributes:
        tokens: token indices, including those of start and end.
        pieces: the token of each pair of a token and a word that share a character.
        words: the word of each such pair.
        count: number of words.
    """

    tokens: np.ndarray
    pieces: np.ndarray
    words: np.ndarray
    count: int


def extract(
    encoder: WordEncoder,
    sentences: Sequence[Sentence],
    out: Path,
    *,
    trees: Path,
    batch_tokens: int = BATCH_TOKENS,
    device: str = "cpu",
) -> States:
    """Write the states of all sentences that can be aligned and are not too long.

    Args:
        encoder: the encoder to run.
        sentences: all sentences of a tree file.
        out: file to write.
        trees: the tree file, for messages.
        batch_tokens: most tokens that the encoder takes at once, padding included.
        device: device that the encoder runs on.

    Raises:
        UserError: no sentence remains, or a state is not finite.
    """
    kept, left_out = _align(encoder, sentences)
    aligned = list(kept.values())
    if not kept:
        reason = f": sentence {left_out[0].id}, {left_out[0].reason}" if left_out else ""
        raise UserError(f"{trees} has no sentence that the encoder can take{reason}")
    contents = Contents(
        architecture=encoder.architecture,
        identity=encoder.identity,
        spaces=encoder.spaces,
        kept=list(kept),
        lengths=[sentence.count for sentence in aligned],
        left_out=left_out,
    )
    moved(encoder.module, device)
    _write(encoder, aligned, out, contents, batch_tokens)
    return States(out)


def _align(
    encoder: WordEncoder, sentences: Sequence[Sentence]
) -> tuple[dict[int, Aligned], list[LeftOut]]:
    """Return the sentences that the encoder can take, by their places, and the others."""
    kept: dict[int, Aligned] = {}
    left_out: list[LeftOut] = []
    for place, sentence in enumerate(bar(sentences, "align", len(sentences), " sentences")):
        found = align_sentence(encoder, sentence)
        if isinstance(found, str):
            left_out.append(LeftOut(place, sentence.id, found))
        else:
            kept[place] = found
    return kept, left_out


def align_sentence(encoder: WordEncoder, sentence: Sentence) -> Aligned | str:
    """Return a sentence's tokens aligned with its words, or the reason to leave it out."""
    text, words = surface(sentence)
    found = encoder.tokenize(text)
    if len(found) > encoder.max_tokens:
        return f"{len(found)} tokens, the model takes {encoder.max_tokens}"
    indices = align([span for _, span in found], words)
    if isinstance(indices, str):
        return indices
    tokens = np.array([number for number, _ in found], np.int32)
    pairs = [(piece, word) for word, own in enumerate(indices) for piece in own]
    table = np.array(pairs, np.int32).reshape(-1, 2)
    return Aligned(tokens, table[:, 0], table[:, 1], len(words))


def _write(
    encoder: WordEncoder, aligned: list[Aligned], out: Path, contents: Contents, batch_tokens: int
) -> None:
    progress = iter(bar(range(len(aligned)), "encode", len(aligned), " sentences"))
    with writing(out, contents, encoder.width) as writer:
        for batch in batches(aligned, batch_tokens):
            states = states_of_words(encoder, [aligned[i] for i in batch])
            # words first, as in the file
            rows = states.float().transpose(0, 1).contiguous().cpu()
            for i, part in zip(batch, rows.split([aligned[i].count for i in batch]), strict=True):
                writer.write(i, part)
                next(progress)
    next(progress, None)


def batches(aligned: Sequence[Aligned], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of indices of similarly long sentences.

    The longest come first, so that a lack of memory shows at once and not after hours.
    """
    order = sorted(range(len(aligned)), key=lambda i: -len(aligned[i].tokens))
    start = 0
    while start < len(order):
        # a sentence longer than a batch goes alone
        end = start + max(1, batch_tokens // len(aligned[order[start]].tokens))
        yield order[start:end]
        start = end


def states_of_words(encoder: WordEncoder, batch: Sequence[Aligned]) -> Tensor:
    """Return the states of a batch's words, ``[layers, words, D]``, sentence after sentence.

    Raises:
        UserError: a state is not finite.
    """
    lengths = [len(sentence.tokens) for sentence in batch]
    longest = max(lengths)
    tokens = np.full((len(batch), longest), encoder.pad, np.int64)
    pieces, words, count = [], [], 0
    for row, sentence in enumerate(batch):
        tokens[row, : len(sentence.tokens)] = sentence.tokens
        pieces.append(sentence.pieces + row * longest)
        words.append(sentence.words + count)
        count += sentence.count
    # pooling uses float64, which not every device supports
    states = encoder.states(torch.from_numpy(tokens), torch.tensor(lengths)).cpu()
    pairs = torch.from_numpy(np.stack([np.concatenate(pieces), np.concatenate(words)])).long()
    found = pool(states.flatten(1, 2), pairs[0], pairs[1], count, encoder.spaces)
    if not bool(found.isfinite().all()):
        raise UserError(
            f"{encoder.name}: its states are not finite numbers; take one of before its "
            "training broke"
        )
    return found
