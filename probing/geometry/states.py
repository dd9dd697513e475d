"""The states to look at: of both sides of a model, for pairs of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyptrans.fairseq.checkpoint import data_bin, dictionaries
from hyptrans.geometry.space import Space
from hyptrans.inference.batches import padded
from hyptrans.inference.contents import Contents
from hyptrans.inference.dictionary import fingerprint
from hyptrans.support.errors import UserError
from probing.geometry.layers import Tokens
from probing.states.encoder import device_of

BATCH_SENTENCES = 64


@dataclass(frozen=True)
class Side:
    """The states of encoder or decoder, all tokens one after the other."""

    name: str
    states: Tensor
    """``[layers + 1, N, D]``."""
    spaces: Sequence[Space]
    tokens: Tokens


@torch.inference_mode()
def both_sides(
    model: Any, contents: Contents, data: Path, *, subset: str, sentences: int
) -> list[Side]:
    """States for the first sentences of a data set, the decoder's with the reference before it.

    The ends of sentences are left out, and what starts a target sentence.

    Args:
        model: an encoder-decoder.
        contents: what it was made of.
        data: folder that ``hyptrans prepare`` wrote, or its ``data-bin``.
        subset: name of the set, as ``valid``.
        sentences: most pairs that are read.

    Raises:
        UserError: there is no such data set, it is numbered by another dictionary than the model's,
            or a state is not a finite number.
    """
    most = model.encoder.longest, model.decoder.longest
    source, target = _pairs(contents, data, subset, sentences, most)
    words, device = contents.dictionaries[1], device_of(model)
    found: dict[str, list[Tensor]] = {"encoder": [], "decoder": []}
    kept: dict[str, list[tuple[Tensor, Tensor]]] = {"encoder": [], "decoder": []}
    for start in range(0, len(source), BATCH_SENTENCES):
        rows = slice(start, start + BATCH_SENTENCES)
        before, after = padded(source[rows], words), padded(target[rows], words)
        # as in training, the end of a sentence stands before the first word of the target
        given = torch.cat([after.new_full((len(after), 1), words.eos()), after], 1)
        encoded = model.encoder(before.to(device))
        memory = encoded.states[-1], encoded.padding
        decoded = model.decoder(given.to(device), *memory)
        for name, states, tokens in (
            ("encoder", encoded.states, before),
            ("decoder", decoded, given),
        ):
            real = tokens.ne(words.pad()) & tokens.ne(words.eos())
            position = torch.arange(tokens.size(1)).expand_as(tokens)
            found[name].append(torch.stack(states).cpu()[:, real])
            kept[name].append((tokens[real], position[real]))
    return [
        _side(model, contents, name, torch.cat(found[name], 1), kept[name])
        for name in ("encoder", "decoder")
    ]


def _side(
    model: Any,
    contents: Contents,
    name: str,
    states: Tensor,
    kept: Sequence[tuple[Tensor, Tensor]],
) -> Side:
    if not bool(states.isfinite().all()):
        raise UserError(
            f"{contents.place}: states of its {name} are not finite numbers; take one of before "
            "its training broke"
        )
    tokens, positions = (torch.cat(parts) for parts in zip(*kept, strict=True))
    words = contents.dictionaries[name == "decoder"]
    counts = torch.tensor(words.count, dtype=torch.float64).clamp_min(1)
    spaces = getattr(model, name).state_spaces()
    return Side(name, states, spaces, Tokens(counts[tokens].log(), positions))


def _pairs(
    contents: Contents, data: Path, subset: str, sentences: int, most: tuple[int, int]
) -> tuple[list[list[int]], list[list[int]]]:
    import hyptrans.fairseq  # noqa: F401

    # isort: split
    from fairseq.data.data_utils import load_indexed_dataset

    binary = data_bin(data)
    source, target = contents.languages
    own, others = contents.dictionaries, dictionaries(binary, contents.languages)
    for language, one, other in zip(contents.languages, own, others, strict=True):
        if fingerprint(one) != fingerprint(other):
            raise UserError(
                f"--data {data}: its dictionary of {language} is not that of {contents.place}; "
                "name the data folder of the model's training"
            )
    prefix = binary / f"{subset}.{source}-{target}"
    reverse = binary / f"{subset}.{target}-{source}"
    if not Path(f"{prefix}.{source}.idx").is_file() and Path(f"{reverse}.{source}.idx").is_file():
        # fairseq trains on them against the direction of their names, too
        prefix = reverse
    sides = []
    for language in (source, target):
        found = load_indexed_dataset(f"{prefix}.{language}", None)
        if found is None:
            raise UserError(f"{prefix}.{language} is not there: name another set with --subset")
        sides.append(found)
    chosen: tuple[list[list[int]], list[list[int]]] = ([], [])
    for i in range(min(sentences, len(sides[0]))):
        pair = [side[i] for side in sides]
        if all(len(tokens) <= longest for tokens, longest in zip(pair, most, strict=True)):
            chosen[0].append(pair[0].tolist())
            chosen[1].append(pair[1][:-1].tolist())
    if not chosen[0]:
        raise UserError(f"{prefix} has no sentence that the model can take")
    return chosen
