"""States of words: the sentences of a tree file through an encoder, every layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.geometry.space import Space
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from hyptrans.support.progress import bar
from probing.states.checkpoint import LoadedEncoder, all_states, load_encoder
from probing.states.file import Contents, LeftOut, States, writing
from probing.states.pooling import pool
from probing.text import segment
from probing.text.align import align, surface
from probing.text.trees import Sentence, read_conllu

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Aligned:
    """A sentence ready for the encoder.

    Attributes:
        tokens: numbers of its pieces, the end of sentence last.
        pieces: of each pair of a piece and a word that share a character, the piece.
        words: the word.
        count: number of words.
    """

    tokens: np.ndarray
    pieces: np.ndarray
    words: np.ndarray
    count: int


def extract_file(
    checkpoint: Path,
    trees: Path,
    out: Path,
    *,
    data: Path | None = None,
    random: bool = False,
    seed: int = 1,
    batch_tokens: int = BATCH_TOKENS,
    device: str = "cpu",
    user_dir: str | None = None,
    pieces: segment.Options | None = None,
) -> States:
    """Write the states of a tree file's words.

    Args:
        checkpoint: file that ``fairseq-train`` wrote.
        trees: CoNLL-U.
        out: file to write.
        data: folder that ``data-prep/`` wrote for the checkpoint.
        random: take the architecture with fresh parameters.
        seed: of those.
        batch_tokens: most tokens that go through the encoder at once, padding included.
        device: where the encoder runs.
        user_dir: plug-in that has the architecture.
        pieces: how text becomes pieces, in place of what ``data`` says.

    Raises:
        UserError: a file, flag or value that is wrong.
    """
    options = pieces or segment.Options()
    dictionaries = options.data_bin or data
    if dictionaries is None:
        raise UserError("the dictionaries are missing: name a folder with --data or --data-bin")
    sentences = read_conllu(trees)
    loaded = load_encoder(checkpoint, dictionaries, random=random, seed=seed, user_dir=user_dir)
    if options.sentencepiece_model or options.bpe_codes or data is None:
        segmenter = segment.from_options(options, loaded.dictionary)
    else:
        segmenter = segment.from_prepared(data, loaded.dictionary)
    return extract(
        loaded, segmenter, sentences, out, trees=trees, batch_tokens=batch_tokens, device=device
    )


def extract(
    loaded: LoadedEncoder,
    segmenter: segment.Segmenter,
    sentences: Sequence[Sentence],
    out: Path,
    *,
    trees: Path,
    batch_tokens: int = BATCH_TOKENS,
    device: str = "cpu",
) -> States:
    """Write the states of all sentences that can be aligned and are not too long.

    Raises:
        UserError: there is no such sentence, or a state is not a finite number.
    """
    kept: list[int] = []
    aligned: list[Aligned] = []
    left_out: list[LeftOut] = []
    for index, sentence in enumerate(bar(sentences, "align", len(sentences), " sentences")):
        found = align_sentence(loaded, segmenter, sentence)
        if isinstance(found, str):
            left_out.append(LeftOut(index, sentence.id, found))
        else:
            kept.append(index)
            aligned.append(found)
    if not kept:
        reason = f": sentence {left_out[0].id}, {left_out[0].reason}" if left_out else ""
        raise UserError(f"{trees} has no sentence that the encoder can take{reason}")
    contents = Contents(
        architecture=loaded.architecture,
        checkpoint=str(loaded.path),
        checkpoint_sha256=sha256(loaded.path),
        random=loaded.random,
        seed=loaded.seed,
        trees=str(trees),
        trees_sha256=sha256(trees),
        spaces=loaded.spaces,
        kept=kept,
        lengths=[sentence.count for sentence in aligned],
        left_out=left_out,
    )
    _write(loaded, aligned, out, contents, batch_tokens, device)
    return States.open(out)


def align_sentence(
    loaded: LoadedEncoder, segmenter: segment.Segmenter, sentence: Sentence
) -> Aligned | str:
    """The pieces of a sentence and of its words, or the reason why it has to be left out."""
    text, words = surface(sentence)
    pieces = segmenter(text)
    if len(pieces) + 1 > loaded.max_positions:
        return f"{len(pieces) + 1} tokens, the model takes {loaded.max_positions}"
    indices = align(pieces, words)
    if isinstance(indices, str):
        return indices
    dictionary = loaded.dictionary
    tokens = [dictionary.index(piece.text) for piece in pieces]
    pairs = [(piece, word) for word, own in enumerate(indices) for piece in own]
    table = np.array(pairs, np.int32).reshape(-1, 2)
    return Aligned(
        np.array([*tokens, dictionary.eos()], np.int32), table[:, 0], table[:, 1], len(words)
    )


def _write(
    loaded: LoadedEncoder,
    aligned: list[Aligned],
    out: Path,
    contents: Contents,
    batch_tokens: int,
    device: str,
) -> None:
    try:
        encoder = loaded.encoder.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"--device {device} cannot be used ({reason})") from error
    progress = iter(bar(range(len(aligned)), "encode", len(aligned), " sentences"))
    with writing(out, contents, loaded.width) as writer:
        for batch in _batches(aligned, batch_tokens):
            states = _states(encoder, [aligned[i] for i in batch], contents.spaces)
            if not bool(states.isfinite().all()):
                raise UserError(
                    f"checkpoint {loaded.path}: its states are not finite numbers; take one of "
                    "before its training broke"
                )
            # words first, as in the file
            rows = states.float().transpose(0, 1).contiguous().cpu()
            for i, part in zip(batch, rows.split([aligned[i].count for i in batch]), strict=True):
                writer.write(i, part)
                next(progress)
    next(progress, None)


def _batches(aligned: list[Aligned], batch_tokens: int) -> Iterator[list[int]]:
    """Sentences of about the same length together; one that is longer than a batch goes alone."""
    batch: list[int] = []
    for i in sorted(range(len(aligned)), key=lambda i: len(aligned[i].tokens)):
        # the newest is the longest
        if batch and (len(batch) + 1) * len(aligned[i].tokens) > batch_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _states(encoder: Any, batch: list[Aligned], spaces: list[Space]) -> Tensor:
    """States of the words of a batch, ``[layers, words, D]``, sentence after sentence."""
    longest = max(len(sentence.tokens) for sentence in batch)
    tokens = np.full((len(batch), longest), encoder.dictionary.pad(), np.int64)
    pieces, words, count = [], [], 0
    for row, sentence in enumerate(batch):
        tokens[row, : len(sentence.tokens)] = sentence.tokens
        pieces.append(sentence.pieces + row * longest)
        words.append(sentence.words + count)
        count += sentence.count
    device = next(encoder.parameters()).device
    states = all_states(encoder, torch.from_numpy(tokens).to(device))
    pairs = torch.from_numpy(np.stack([np.concatenate(pieces), np.concatenate(words)]))
    pairs = pairs.long().to(device)
    return pool(states.flatten(1, 2), pairs[0], pairs[1], count, spaces)
