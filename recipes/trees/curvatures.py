"""Models of width 16 at fixed curvatures: exact matches, radii, and stress of a flat embedding."""

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch

from hyptrans.geometry.space import Space
from probing.geometry.measures import flat_stress
from recipes.common import results
from recipes.common.exact import TEST, VALID, right
from recipes.trees.__main__ import GRID, HERE

Line = Mapping[str, Any]
LAYER = 2
"""The last encoder layer, whose radius and stress the table shows."""
POINTS, SPACE = 150, 15
"""Points whose stress is measured, and space coordinates of a state of width 16."""


def trained() -> dict[tuple[str, float], Sequence[Line]]:
    """Return all seeds by model and curvature (times -1), at the rate best on the validation set.

    ``lorentz_shell`` has a fixed curvature by default: -1.
    """
    found: dict[tuple[str, float], dict[float, list[Line]]]
    found = defaultdict(lambda: defaultdict(list))
    for line in results.read_lines(HERE / "forms.jsonl"):
        if named := re.fullmatch(r"(\w+), curvature fixed at -([\d.]+)", line.get("form") or ""):
            found[named[1], float(named[2])][line["rate"]].append(line)
    for final in GRID.finals(results.read_lines(HERE / results.LINES), "d16"):
        if final["model"] == "lorentz_shell":
            found[final["model"], 1.0][final["rate"]].append(final)

    def on_valid(several: Sequence[Line]) -> float:
        return statistics.fmean(right(line, VALID) for line in several)

    return {key: max(rates.values(), key=on_valid) for key, rates in sorted(found.items())}


def table() -> str:
    """Write a row for each model and curvature."""
    rows = []
    for (model, c), lines in trained().items():
        measured = next((line for line in lines if "stress_percent" in line), None)
        radius = measured["radius"][LAYER] if measured else None
        rows.append(
            {
                "model": model,
                "curvature": f"-{c:g}",
                "rate": f"{lines[0]['rate']:g}",
                "seeds": len(lines),
                "exact match": [right(line, TEST) for line in lines],
                "level 4": statistics.fmean(right(line, TEST, "level_4") for line in lines),
                "radius": radius,
                "stress": measured["stress_percent"][LAYER] if measured else None,
                "on a sphere": 100 * sphere_stress(radius) if radius else None,
            }
        )
    forms = {"level 4": ".1f", "radius": ".2f", "stress": ".1f", "on a sphere": ".1f"}
    return results.markdown(pd.DataFrame(rows), forms)


def sphere_stress(radius: float) -> float:
    """Return the stress of random points on a sphere around the origin; see :func:`flat_stress`."""
    rng = torch.Generator().manual_seed(1)
    drawn = torch.randn(POINTS, SPACE, dtype=torch.float64, generator=rng)
    tangents = radius * torch.nn.functional.normalize(drawn, dim=-1)
    # the time of a tangent at the origin is 0
    return flat_stress(torch.nn.functional.pad(tangents, (1, 0)), Space("lorentz", 1.0))
