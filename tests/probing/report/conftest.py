"""A report with made-up numbers: sentences with gold trees, good and bad models, baselines."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from probing.geometry.layers import Cloud, Layer, measure
from probing.probes.metrics import predicted_root
from probing.probes.significance import Comparison
from probing.report.data import Arcs, Example, ModelResult, Prediction, Report, Selectivity
from probing.text.trees import distance_matrix, minimum_spanning_edges
from tests.probing.helpers.states import horosphere, square_root_embedding

# words, heads (1-based, 0 for the root) and which words are punctuation
SENTENCES = [
    (
        "The committee that the minister appointed last spring will publish its final report on "
        "hyperbolic geometry tomorrow .",
        [2, 10, 6, 5, 6, 2, 8, 6, 10, 0, 13, 13, 10, 16, 16, 13, 10, 10],
    ),
    (
        "What if Google expanded on its search - engine ( and now e-mail ) wares into a full - "
        "fledged operating system ?",
        [4, 4, 4, 0, 15, 15, 9, 9, 15, 13, 13, 13, 9, 13, 4, 22, 22, 20, 20, 22, 22, 4, 4],
    ),
    ("He said \"hello\" & <script>alert('x')</script> left", [2, 0, 2, 5, 2, 2]),
    ("Yes", [0]),
]
SPREAD = {"uuas": 0.012, "dspr": 0.003, "root": 0.02, "nspr": 0.0004}
PUNCTUATION = {".", "-", "(", ")", "?"}


def example(text: str, heads: list[int], models: dict[str, float], rng: torch.Generator) -> Example:
    """Return a sentence with its tree and the predictions of noisy probes."""
    words, tree = text.split(), tuple(head - 1 for head in heads)
    marks = [word in PUNCTUATION for word in words]
    kept = np.array([not mark for mark in marks])
    points, depths = horosphere(square_root_embedding(tree)), distance_matrix(tree)[heads.index(0)]
    predictions = {}
    for name, noise in models.items():
        drawn = torch.randn(points[:, 1:].shape, generator=rng)
        moved = lorentz.lift(points[:, 1:] + abs(noise) * drawn)
        between = lorentz.squared_distance(moved[:, None], moved[None])
        guess = depths + 3 * abs(noise) * torch.randn(len(words), generator=rng).numpy()
        predictions[name] = Prediction(
            edges=sorted(minimum_spanning_edges(between.numpy(), kept)),
            root=predicted_root(guess, kept),
            distance_points=None if noise < 0 else moved,
        )
    gold = [(min(edge), max(edge)) for edge in enumerate(tree) if edge[1] >= 0]
    return Example(words, gold, heads.index(0), marks, predictions)


def result(name: str, space: str, probe: str, base: float, peak: int):
    height = [base + 0.25 * math.exp(-((layer - peak) ** 2) / 6) for layer in range(7)]
    every = [{"uuas": h, "dspr": h + 0.08, "root": h * 1.05, "nspr": 0.55 + h / 2} for h in height]
    return ModelResult(name, name, space, probe, every, peak, min(peak + 1, 6), every[peak])


def space_use(kind: str, rng: torch.Generator) -> list[Layer]:
    """Two layers: one of all radii, one of a single radius."""
    vectors = torch.randn(2, 60, 4, generator=rng, dtype=torch.float64)
    vectors[1] = 2 * vectors[1] / vectors[1].norm(dim=-1, keepdim=True)
    points = lorentz.exp_origin(vectors) if kind == "lorentz" else vectors
    places = torch.arange(60.0)
    return measure(Cloud("encoder", points, [Space(kind, 1.0)] * 2, places, places))


@pytest.fixture(scope="session")
def report() -> Report:
    """Three models (one with a Euclidean probe, so without disks), what stands beside them."""
    rng = torch.Generator().manual_seed(0)
    noises = {"hybonet": 0.12, "han": 0.3, "transformer": -0.5}
    test = {"uuas": 0.49, "dspr": 0.5, "root": 0.1, "nspr": 0.27}
    chain = ModelResult("linear chain", "", "", "", [], 0, 0, test, role="baseline")
    test = dict.fromkeys(SPREAD, math.nan) | {"uuas": 0.33}
    fresh = ModelResult(
        "random hybonet", "", "lorentz", "lorentz", [], 0, 0, test, "fresh", "hybonet"
    )
    return Report(
        signature="uuas:micro|punct:upos|dspr:len5-50|probe:rank64|version:0.1",
        models=[
            result("transformer", "euclidean", "euclidean", 0.3, 1),
            replace(result("han", "euclidean", "lorentz", 0.38, 3), spread=SPREAD),
            replace(
                result("hybonet", "lorentz", "lorentz", 0.43, 4),
                spread=SPREAD,
                chosen=[(4, 5), (3, 5), (4, 5)],
            ),
            chain,
            fresh,
        ],
        examples=[example(*one, noises, rng) for one in SENTENCES],
        about=[
            ("Trees", ["train: 12,544 sentences, /data/<train>.conllu.gz", "test: 2,077"]),
            ("Date", ["2025-01-31 12:00 UTC"]),
            ("Command", ["hyptrans probe run --checkpoint a/very/long/path.pt --out probes"]),
        ],
        comparisons={
            "han": [Comparison("uuas", -0.05, 0.0001), Comparison("root", 0.012, 0.25)],
            "linear chain": [Comparison("uuas", 0.19, 0.00009)],
        },
        arcs=Arcs(
            [1, 2, 3, 4, 6, 10],
            [4137, 2570, 1320, 1080, 570, 320],
            {"right-branching": [1, 0.062, 0, 0, 0, 0], "hybonet_plus_iwslt_d64": [0.5] * 6},
        ),
        selectivities=[
            Selectivity(name, [0.41, 0.4], [0.3, 0.32])
            for name in ("linear chain", "random hybonet")
        ],
        spaces={"hybonet": space_use("lorentz", rng), "transformer": space_use("euclidean", rng)},
    )
