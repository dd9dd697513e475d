"""Compute the states of encoder and decoder for sentence pairs of a data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hyptrans.inference.batches import padded
from hyptrans.inference.contents import Contents, data_bin, dictionaries
from hyptrans.inference.dictionary import fingerprint
from hyptrans.support.errors import UserError
from hyptrans.train.batches import Pairs
from probing.geometry.layers import Cloud
from probing.states.encoder import device_of

BATCH_SENTENCES = 64


@torch.inference_mode()
def both_sides(
    model: Any, contents: Contents, data: Path, *, subset: str, sentences: int
) -> list[Cloud]:
    """Return both sides' states for the first pairs of a data set; the decoder reads references.

    Leaves out sentence ends and the token that starts a target sentence.

    Args:
        model: the encoder-decoder that was built from ``contents``.
        contents: its parts.
        data: folder that ``hyptrans prepare`` wrote, or its ``data-bin``.
        subset: name of the set, such as ``valid``.
        sentences: most pairs to read.

    Raises:
        UserError: the data set is missing or uses another dictionary than the model, or a state is
            not finite.
    """
    pairs = _pairs(model, contents, data, subset)
    rows = [pairs[i] for i in range(min(sentences, len(pairs)))]
    words, device = contents.dictionaries[1], device_of(model)
    found: dict[str, list[tuple[Tensor, ...]]] = {"encoder": [], "decoder": []}
    for start in range(0, len(rows), BATCH_SENTENCES):
        batch = rows[start : start + BATCH_SENTENCES]
        sources = padded([row["input_ids"].tolist() for row in batch], words)
        targets = padded([row["labels"][:-1].tolist() for row in batch], words)
        # as in training, the decoder's input starts with the end-of-sentence token
        inputs = torch.cat([targets.new_full((len(targets), 1), words.eos()), targets], 1)
        encoded = model.encoder(sources.to(device))
        decoded = model.decoder(inputs.to(device), encoded.states[-1], encoded.padding)
        of_sides = ("encoder", encoded.states, sources), ("decoder", decoded, inputs)
        for side, states, tokens in of_sides:
            real = tokens.ne(words.pad()) & tokens.ne(words.eos())
            position = torch.arange(tokens.size(1)).expand_as(tokens)
            stacked = torch.stack(states).cpu()[:, real]
            found[side].append((stacked, tokens[real], position[real]))
    return [_cloud(model, contents, side, parts) for side, parts in found.items()]


def _cloud(model: Any, contents: Contents, side: str, parts: Sequence[tuple[Tensor, ...]]) -> Cloud:
    """Join the states, tokens and positions of batches."""
    states = torch.cat([part[0] for part in parts], 1)
    tokens, position = (torch.cat([part[i] for part in parts]) for i in (1, 2))
    if not bool(states.isfinite().all()):
        raise UserError(
            f"{contents.place}: states of its {side} are not finite numbers; take an "
            "earlier checkpoint"
        )
    counts = torch.tensor(contents.dictionaries[side == "decoder"].count)
    return Cloud(side, states, getattr(model, side).state_spaces(), counts[tokens], position)


def _pairs(model: Any, contents: Contents, data: Path, subset: str) -> Pairs:
    """Return the pairs of a data set that are short enough for the model."""
    binary = data_bin(data)
    source, target = contents.languages
    own, others = contents.dictionaries, dictionaries(binary, contents.languages)
    for language, one, other in zip(contents.languages, own, others, strict=True):
        if fingerprint(one) != fingerprint(other):
            raise UserError(
                f"--data {data}: its dictionary of {language} is not that of {contents.place}; "
                "name the data folder of the model's training"
            )
    # fairseq also trains on pairs in the direction opposite to their file names
    names = [f"{subset}.{source}-{target}", f"{subset}.{target}-{source}"]
    there = [name for name in names if (binary / f"{name}.{source}.idx").is_file()]
    if not there:
        raise UserError(
            f"{binary / names[0]}.{source} is not there: name another set with --subset"
        )
    return Pairs(binary / there[0], contents.languages, model)
