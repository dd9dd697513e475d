"""Checks of the tables that encoder, decoder and output share."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hyptrans.seq2seq.sizes import Side
from hyptrans.support.errors import UserError


def check_shared(model: nn.Module, parameters: Mapping[str, Tensor]) -> None:
    """Check that a checkpoint has one value for a parameter that the model has under several names.

    torch would silently keep the value of the last name.

    Raises:
        UserError: two parameters that the model shares differ.
    """
    first: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        other = first.setdefault(id(parameter), name)
        one, two = parameters.get(other), parameters.get(name)
        if one is None or two is None or one is two or one.shape != two.shape:
            continue
        if not torch.allclose(one, two, rtol=0, atol=0, equal_nan=True):
            raise UserError(
                f"its {other} and {name} differ, and this model has one table for both: leave "
                "--share-all-embeddings and --share-decoder-input-output-embed as they were"
            )


def check_shareable(source: Any, target: Any, encoder: Side, decoder: Side) -> None:
    """Check that both sides can share one embedding.

    Raises:
        ValueError: their dictionaries or widths differ.
    """
    if source != target:
        raise ValueError(
            "--share-all-embeddings needs one dictionary for both languages: "
            "prepare the data with --joined-dictionary"
        )
    if encoder.width != decoder.width:
        raise ValueError(
            "--share-all-embeddings needs --decoder-embed-dim to equal --encoder-embed-dim, "
            f"got {decoder.width} and {encoder.width}"
        )
