"""Rank curves: what probes of few and many dimensions read, in each of the three geometries."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from probing.commands.compare import Fit, Run, scored
from probing.probes.probe import KINDS
from probing.report.data import RankPoint
from probing.report.results import means, spread


def add_rank_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--ranks``."""
    parser.add_argument(
        "--ranks",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="draw UUAS against the dimensions of a probe's space, these, for all three kinds of "
        "probes, each of the layer that is best for it on the development set; hyperbolic points "
        "have one coordinate more than dimensions, their time",
    )


def rank_points(run: Run, ranks: Sequence[int]) -> list[RankPoint]:
    """Probes of all kinds and sizes of every trained encoder, with every seed."""
    found = []
    for subject in run.subjects:
        if subject.random:
            continue
        for kind in KINDS:
            for dimensions in sorted(set(ranks)):
                rank = dimensions + (kind != "euclidean")
                several = []
                for seed in range(run.settings.seed, run.settings.seed + run.seeds):
                    settings = replace(run.settings, probe=kind, rank=rank, seed=seed)
                    result, _ = scored(run, subject, Fit(settings))
                    several.append(result.test)
                point = RankPoint(subject.name, kind, dimensions, means(several), spread(several))
                found.append(point)
    return found
