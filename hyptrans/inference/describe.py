"""A description of a model in numbers."""

from typing import Any

import torch
from torch import nn

from hyptrans.geometry.space import vectors
from hyptrans.inference.contents import AVERAGED
from hyptrans.inference.translator import Translator


def parameter_count(model: nn.Module) -> int:
    """Return a model's number of parameters; those that two parts share count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def radii(side: Any) -> dict[str, float]:
    """Return the least, median and greatest distance of embeddings from the origin.

    Distances are at curvature -1; in a flat space they are lengths. ``side`` is the encoder or the
    decoder, whose embedding of padding is left out.
    """
    words, table = side.dictionary, side.embed_tokens
    tokens = torch.arange(len(words), device=next(table.parameters()).device)
    with torch.inference_mode():
        points = table(tokens[tokens != words.pad()]).double()
        found = vectors(points, side.space_of(table)).norm(dim=-1)
    return {
        "least": float(found.min()),
        "median": float(found.median()),
        "greatest": float(found.max()),
    }


def describe(translator: Translator) -> dict[str, Any]:
    """Return sizes, options, spaces and radii of a model, for JSON."""
    facts, model = translator.facts, translator.model
    return {
        "architecture": translator.architecture,
        "languages": list(translator.languages),
        "parameters": parameter_count(model),
        "dictionaries": list(translator.dictionary_sizes),
        "longest source": translator.max_tokens,
        "options": dict(sorted(translator.options.items())),
        "spaces": [f"{one.kind} c={one.c:.4g}" for one in dict.fromkeys(translator.spaces)],
        "radii of embeddings": {
            side: radii(getattr(model, side)) for side in ("encoder", "decoder")
        },
        "updates": facts.get("updates"),
        **({"average of": facts[AVERAGED]} if facts.get(AVERAGED) else {}),
        "scores": {one["name"]: one["value"] for one in facts.get("scores") or ()},
        "license": facts.get("license"),
    }
