"""Translations, attention and states of a sentence, as numbers for the page to draw."""

from typing import Any

import torch

from hyptrans.geometry.space import vectors
from hyptrans.inference.results import Encoding
from hyptrans.inference.translator import Translator

_FARTHEST = 4.0
"""Largest radius that a disk shows well; a sentence with a larger one has all radii scaled down."""


def look(model: Translator, texts: list[str], **options: Any) -> list[dict[str, Any]]:
    """Return each text's translations, the best one's attention and encoder states, for JSON."""
    found = model.n_best(texts, **options)
    aligned = model.align(texts, [row[0].text for row in found])
    return [
        {
            "translations": [one.as_json() for one in row],
            "source": each.source,
            "target": each.target,
            "attention": each.weights.tolist(),
            **_layers(states),
        }
        for row, each, states in zip(found, aligned, model.encode(texts), strict=True)
    ]


def _layers(encoding: Encoding) -> dict[str, Any]:
    """Return for each layer the words' places ``[T, 2]`` in the unit disk, and their radii.

    In a hyperbolic layer a word keeps its distance from the origin; its direction comes from the
    two principal components of the sentence's tangents. A flat layer shows these components.
    """
    spaces, layers = encoding.spaces, []
    tangents = [
        vectors(x, space) for x, space in zip(encoding.states.double(), spaces, strict=True)
    ]
    scale = min(1.0, *(_FARTHEST / float(x.norm(dim=1).max().clamp_min(1e-9)) for x in tangents))
    for x, space in zip(tangents, spaces, strict=True):
        left, values, axes = torch.linalg.svd(x - x.mean(0), full_matrices=False)
        # the sign of a component is arbitrary: make its largest entry positive
        signs = axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign().squeeze(1)
        plane = (left * values * signs)[:, :2]
        radii, length = x.norm(dim=1), plane.norm(dim=1).clamp_min(1e-12)
        disk = space.kind != "euclidean"
        factors = (radii * scale / 2).tanh() / length if disk else 0.9 / length.max()
        places = plane * factors.expand_as(length).unsqueeze(1)
        layers.append({"disk": disk, "places": places.tolist(), "radii": radii.tolist()})
    return {"layers": layers, "scale": scale}
