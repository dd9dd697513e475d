"""Draw the README's picture: recorded results on COGS beside one sentence in the Poincaré disk.

Writes cover.svg, cover-dark.svg and, for phones, cover-narrow.svg and cover-narrow-dark.svg beside
this file. The dots come from recipes/cogs. The disk shows the shipped English-German model's last
encoder layer, projected on the two directions of greatest variance around the words' centroid.
"""

from __future__ import annotations

import io
import itertools
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import torch
from torch import Tensor

import hyptrans
from hyptrans.geometry import lorentz, poincare, riemannian
from hyptrans.support.files import write_whole
from recipes.cogs.__main__ import GEN, finals
from recipes.common import results
from recipes.common.exact import TWINS, by_model, right

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
RECORDS = HERE.parent.parent / "recipes" / "cogs" / "results.jsonl"
MODEL, SENTENCE = "tatoeba-en-de", "A dog runs across the street."
TREE = {"A": "dog", "dog": "runs", "across": "street", "the": "street", "street": "runs"}
"""Head of each word but the root, by Universal Dependencies."""
EUCLIDEAN = (*TWINS, "sphere")
STEPS = torch.linspace(0, 1, 60, dtype=torch.float64)[:, None]
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "hyptrans", "font.size": 10}
SHAPES = {
    "cover": {"ncols": 2, "figsize": (9, 3.9), "width_ratios": (5, 4)},
    "cover-narrow": {"nrows": 2, "figsize": (4.8, 7.2), "height_ratios": (4, 5)},
}
THEMES: dict[str, dict[str, str]] = {
    "": {"ground": "#ffffff", "ink": "#1d242b", "faint": "#c3cad1", "one": "#0063a6"},
    "-dark": {"ground": "#0d1117", "ink": "#e6edf3", "faint": "#3d4650", "one": "#58a6e8"},
}
DOT, LIGHT_DOT = "#c24e00", "#ff9a57"


def main() -> None:
    """Write each shape in each theme."""
    matplotlib.use("svg")
    words, points, share = in_disk()
    for (name, shape), (ending, theme) in itertools.product(SHAPES.items(), THEMES.items()):
        write_whole(HERE / f"{name}{ending}.svg", draw(shape, theme, words, points, share))


def in_disk() -> tuple[list[str], Tensor, float]:
    """Return the words, their points on a hyperboloid of two dimensions, and the share of variance.

    The points are of curvature -1, so that distances in the picture are in units of the radius of
    curvature.
    """
    encoding = hyptrans.load(MODEL).encode([SENTENCE])[0]
    c, states = encoding.spaces[-1].c, encoding.states[-1].double()
    words: list[str] = []
    groups: list[list[Tensor]] = []
    for piece, state in zip(encoding.subwords, states, strict=True):
        if piece in (".", "</s>"):
            continue
        if piece.startswith("▁"):
            words.append("")
            groups.append([])
        words[-1] += piece.strip("▁")
        groups[-1].append(state)
    points = torch.stack([lorentz.centroid(torch.stack(group), c=c) for group in groups])
    middle = lorentz.centroid(points, c=c).expand_as(points)
    tangents = riemannian.project_tangent(middle, points, c=c)
    lengths = riemannian.tangent_squared_norm(middle, tangents, c=c).sqrt()
    tangents = tangents / lengths * lorentz.distance(middle, points, c=c)[:, None]
    start = lorentz.origin(points.shape[-1], c=c, dtype=points.dtype).expand_as(points)
    flat = riemannian.transport(middle, start, tangents, c=c)[:, 1:] * math.sqrt(c)
    flat = flat - flat.mean(dim=0)
    _, sizes, directions = torch.linalg.svd(flat, full_matrices=False)
    share = float(sizes[:2].square().sum() / sizes.square().sum())
    return words, lorentz.exp_origin(flat @ directions[:2].T), share


def draw(
    shape: Mapping[str, Any],
    theme: Mapping[str, str],
    words: list[str],
    points: Tensor,
    share: float,
) -> str:
    """Return one picture as SVG."""
    from matplotlib import pyplot

    colors = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    ground = dict.fromkeys(("figure.facecolor", "axes.facecolor"), theme["ground"])
    with matplotlib.rc_context({**STYLE, **ground, **dict.fromkeys(colors, theme["ink"])}):
        figure, axes = pyplot.subplots(**shape, layout="constrained")
        _scores(axes[0], theme)
        _disk(axes[1], theme, words, points, share)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    return file.getvalue().decode()


def _scores(axis: Axes, theme: Mapping[str, str]) -> None:
    """A dot for each seed and a line at the mean, on an axis that starts near the lowest value."""
    lines = results.read_lines(RECORDS)
    scores = by_model(finals(lines), gen=lambda line: right(line, GEN))["gen"].to_dict()
    ordered = sorted(scores, key=lambda model: statistics.fmean(scores[model]))
    for place, model in enumerate(ordered):
        values = scores[model]
        color = theme["ink"] if model in EUCLIDEAN else theme["one"]
        axis.plot(values, [place] * len(values), "o", color=color, alpha=0.75, markersize=6)
        axis.plot([statistics.fmean(values)] * 2, [place - 0.3, place + 0.3], color=color)
    axis.set_yticks(range(len(ordered)), ordered)
    axis.set(
        title="Words in new roles (COGS)",
        xlabel="exact matches, %: a dot per seed\n(black or white: Euclidean models)",
    )
    axis.grid(axis="x", color=theme["faint"], linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _disk(
    axis: Axes, theme: Mapping[str, str], words: list[str], points: Tensor, share: float
) -> None:
    """The words, and the edges of their tree as geodesics."""
    turn = torch.linspace(0, 2 * math.pi, 200)
    axis.plot(turn.cos(), turn.sin(), color=theme["faint"])
    for word, head in TREE.items():
        ends = points[[words.index(word), words.index(head)]]
        weights = torch.cat([1 - STEPS, STEPS], dim=1)[:, None]
        edge = poincare.from_lorentz(lorentz.centroid(ends.expand(60, 2, 3), weights)[:, 0])
        axis.plot(edge[:, 0], edge[:, 1], color=theme["one"], linewidth=1.2)
    dots = poincare.from_lorentz(points)
    warm = DOT if theme["ground"] == "#ffffff" else LIGHT_DOT
    axis.plot(dots[:, 0], dots[:, 1], "o", color=warm, markersize=5)
    for word, (x, y) in zip(words, dots.tolist(), strict=True):
        axis.annotate(
            word, (x, y), textcoords="offset points", xytext=(0, 7 if y > 0 else -15), ha="center"
        )
    axis.set(title="A sentence and its tree", aspect="equal")
    caption = f"last layer of hybonet_plus; {share:.0%} of the variance"
    axis.text(0, -1.16, caption, ha="center", fontsize=9)
    axis.axis("off")


if __name__ == "__main__":
    main()
