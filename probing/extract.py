"""States of words: the sentences of a tree file through an encoder, every layer."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hyptrans.dataprep.files import sha256
from hyptrans.dataprep.progress import bar
from hyptrans.geometry.space import Space
from probing import segment
from probing.align import align, surface
from probing.checkpoint import LoadedEncoder, all_states, load_encoder
from probing.errors import ProbingError
from probing.pooling import pool
from probing.states import Contents, LeftOut, States, writing
from probing.trees import Sentence, read_conllu

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
        ProbingError: a file, flag or value that is wrong.
    """
    options = pieces or segment.Options()
    dictionaries = options.data_bin or data
    if dictionaries is None:
        raise ProbingError("the dictionaries are missing: name a folder with --data or --data-bin")
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
        ProbingError: there is no such sentence, or a state is not a finite number.
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
        raise ProbingError(f"{trees} has no sentence that the encoder can take{reason}")
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
        raise ProbingError(f"--device {device} cannot be used ({reason})") from error
    progress = iter(bar(range(len(aligned)), "encode", len(aligned), " sentences"))
    with writing(out, contents, loaded.width) as writer:
        for batch in _batches(aligned, batch_tokens):
            states = _states(encoder, [aligned[i] for i in batch], contents.spaces)
            if not bool(states.isfinite().all()):
                raise ProbingError(
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing extract``."""
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="FILE", help="checkpoint of fairseq")
    add(
        "--trees",
        type=Path,
        required=True,
        metavar="CONLLU",
        help="sentences, in CoNLL-U, plain or gzipped",
    )
    add("--out", type=Path, required=True, metavar="FILE", help="states to write, safetensors")
    add(
        "--random",
        action="store_true",
        help="the same architecture with fresh parameters, a baseline",
    )
    add(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="of the fresh parameters (default: %(default)s)",
    )
    add_model_arguments(parser)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a checkpoint reads text."""
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="folder that data-prep/ wrote for the checkpoint")
    add(
        "--data-bin",
        type=Path,
        metavar="DIR",
        help="folder of the dictionaries, where it is not DIR/data-bin of --data",
    )
    add(
        "--sentencepiece-model",
        type=Path,
        metavar="FILE",
        help="sentencepiece model, where --data does not say how text becomes pieces",
    )
    add("--bpe-codes", type=Path, metavar="FILE", help="subword-nmt codes, likewise")
    add("--moses", action="store_true", help="tokenise and escape as Moses before, likewise")
    add("--lowercase", action="store_true", help="lower-case before, likewise")
    add(
        "--language",
        default="en",
        metavar="LANG",
        help="language of the Moses rules (default: %(default)s)",
    )
    add(
        "--user-dir",
        metavar="DIR",
        help="fairseq plug-in with the checkpoint's architecture, if it is not hyptrans",
    )
    add(
        "--batch-tokens",
        type=int,
        default=BATCH_TOKENS,
        metavar="N",
        help="most tokens that the encoder takes at once (default: %(default)s)",
    )
    add(
        "--device",
        default="cpu",
        metavar="NAME",
        help="where the encoder runs, as torch names it (default: %(default)s)",
    )


def model_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of :func:`add_model_arguments` mean to :func:`extract_file`."""
    pieces = segment.Options(
        data_bin=args.data_bin,
        sentencepiece_model=args.sentencepiece_model,
        bpe_codes=args.bpe_codes,
        moses=args.moses,
        lowercase=args.lowercase,
        language=args.language,
    )
    return {
        "data": args.data,
        "pieces": pieces,
        "user_dir": args.user_dir,
        "batch_tokens": args.batch_tokens,
        "device": args.device,
    }


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing extract``."""
    states = extract_file(
        args.checkpoint,
        args.trees,
        args.out,
        random=args.random,
        seed=args.seed,
        **model_options(args),
    )
    print(summary(states))


def summary(states: States) -> str:
    """What a file of states holds, in lines for the terminal; sentences left out are listed."""
    words, layers = sum(states.lengths), states.layers
    total = len(states.kept) + len(states.left_out)
    lines = [
        f"{states.path}: {words} words of {len(states.kept)} of {total} sentences, {layers} layers "
        f"of {states.architecture}, width {states.width}"
    ]
    if states.left_out:
        reasons = Counter(left.reason for left in states.left_out)
        lines.append(f"left out: {', '.join(f'{count} ({why})' for why, count in reasons.items())}")
        lines += [f"  {left.id} (sentence {left.index + 1})" for left in states.left_out]
    return "\n".join(lines)
