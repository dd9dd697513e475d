"""The states to look at: of both sides of a model, for pairs of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyptrans.fairseq.checkpoint import data_bin
from hyptrans.fairseq.states import all_states, spaces_of
from hyptrans.geometry.space import Space
from hyptrans.inference.batches import padded
from hyptrans.support.errors import UserError
from probing.geometry.layers import Tokens
from probing.states.checkpoint import Loaded
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


def both_sides(loaded: Loaded, data: Path, *, subset: str, sentences: int) -> list[Side]:
    """States for the first sentences of a data set, the decoder's with the reference before it.

    The ends of sentences are left out, and what starts a target sentence.

    Args:
        loaded: the model.
        data: folder that ``data-prep/`` wrote, or its ``data-bin``.
        subset: name of the set, as ``valid``.
        sentences: most pairs that are read.

    Raises:
        UserError: there is no such data set, or a state is not a finite number.
    """
    source, target = _pairs(loaded, data, subset, sentences)
    words, device = loaded.model.decoder.dictionary, device_of(loaded.model)
    found: dict[str, list[Tensor]] = {"encoder": [], "decoder": []}
    kept: dict[str, list[tuple[Tensor, Tensor]]] = {"encoder": [], "decoder": []}
    for start in range(0, len(source), BATCH_SENTENCES):
        rows = slice(start, start + BATCH_SENTENCES)
        before, after = padded(source[rows], words), padded(target[rows], words)
        # as in training, the end of a sentence stands before the first word of the target
        given = torch.cat([after.new_full((len(after), 1), loaded.dictionary.eos()), after], 1)
        encoded = all_states(loaded.model.encoder, before.to(device))
        padding = before.eq(words.pad()).to(device)
        decoded = _decoder_states(loaded.model, encoded[-1], padding, given.to(device))
        for name, states, tokens in (
            ("encoder", encoded.cpu(), before),
            ("decoder", decoded.cpu(), given),
        ):
            real = tokens.ne(words.pad()) & tokens.ne(loaded.dictionary.eos())
            position = torch.arange(tokens.size(1)).expand_as(tokens)
            found[name].append(states[:, real])
            kept[name].append((tokens[real], position[real]))
    return [
        _side(loaded, name, torch.cat(found[name], 1), kept[name])
        for name in ("encoder", "decoder")
    ]


def _side(loaded: Loaded, name: str, states: Tensor, kept: Sequence[tuple[Tensor, Tensor]]) -> Side:
    if not bool(states.isfinite().all()):
        raise UserError(
            f"checkpoint {loaded.path}: states of its {name} are not finite numbers; take one of "
            "before its training broke"
        )
    part = getattr(loaded.model, name)
    tokens, positions = (torch.cat(parts) for parts in zip(*kept, strict=True))
    counts = torch.tensor(part.dictionary.count, dtype=torch.float64).clamp_min(1)
    return Side(name, states, spaces_of(part), Tokens(counts[tokens].log(), positions))


def _pairs(
    loaded: Loaded, data: Path, subset: str, sentences: int
) -> tuple[list[list[int]], list[list[int]]]:
    import hyptrans.fairseq  # noqa: F401

    # isort: split
    from fairseq.data.data_utils import load_indexed_dataset

    binary = data_bin(data)
    source, target = loaded.languages
    prefix = binary / f"{subset}.{source}-{target}"
    reverse = binary / f"{subset}.{target}-{source}"
    if not Path(f"{prefix}.{source}.idx").is_file() and Path(f"{reverse}.{source}.idx").is_file():
        # fairseq trains on them against the direction of their names, too
        prefix = reverse
    sides = []
    for language, part in ((source, loaded.model.encoder), (target, loaded.model.decoder)):
        found = load_indexed_dataset(f"{prefix}.{language}", part.dictionary)
        if found is None:
            raise UserError(f"{prefix}.{language} is not there: name another set with --subset")
        sides.append(found)
    most = loaded.model.max_positions()
    chosen: tuple[list[list[int]], list[list[int]]] = ([], [])
    for i in range(min(sentences, len(sides[0]))):
        pair = [side[i] for side in sides]
        if all(len(tokens) <= longest for tokens, longest in zip(pair, most, strict=True)):
            chosen[0].append(pair[0].tolist())
            chosen[1].append(pair[1][:-1].tolist())
    if not chosen[0]:
        raise UserError(f"{prefix} has no sentence that the model can take")
    return chosen


def _decoder_states(model: Any, memory: Tensor, padding: Tensor, given: Tensor) -> Tensor:
    """States of every layer; tokens after a sentence's end are padding and harm nothing.

    Shapes: memory ``[B, S, D]``, the encoder's output; padding ``[B, S]``, true there; given
    ``[B, T]`` -> ``[layers + 1, B, T, D]``.
    """
    encoder_out = {"encoder_out": [memory.transpose(0, 1)], "encoder_padding_mask": [padding]}
    with torch.inference_mode():
        features, extra = model.decoder(
            given, encoder_out=encoder_out, features_only=True, return_all_hiddens=True
        )
    # with --decoder-normalize-before the output has one more norm than the last layer's state
    inner = [state.transpose(0, 1) for state in extra["inner_states"][:-1]]
    return torch.stack([*inner, features])
