"""The description of a model, against its parameters."""

import math

import pytest
import torch

from hyptrans.inference.describe import radii
from tests.inference.conftest import load


@pytest.mark.parametrize("arch", ["hybonet", "hypformer", "hvt", "han"])
def test_radii_are_distances_from_the_origin_without_padding(arch, make):
    flags = ["--curvature", "0.5"] if arch in ("hybonet", "hvt") else []
    decoder = load(make(arch, *flags)).model.decoder
    with torch.no_grad():
        for name, parameter in decoder.embed_tokens.named_parameters():
            if name.endswith("raw"):
                # a learned curvature of the embeddings alone
                parameter.fill_(math.log(math.expm1(0.25)))
        points = decoder.embed_tokens(torch.arange(len(decoder.dictionary))).double()
    c = 0.25 if arch == "hypformer" else 0.5
    if arch in ("hybonet", "hypformer"):
        wanted = torch.asinh(points[:, 1:].norm(dim=1) * c**0.5)
    elif arch == "hvt":
        wanted = 2 * torch.atanh(points.norm(dim=1) * c**0.5)
    else:
        wanted = points.norm(dim=1)
    wanted = wanted[torch.arange(len(wanted)) != decoder.dictionary.pad()]
    found = radii(decoder)
    assert found == pytest.approx(
        dict(zip(found, map(float, (wanted.min(), wanted.median(), wanted.max())), strict=True)),
        rel=1e-5,
    )
    assert found["least"] > 0
