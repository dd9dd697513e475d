"""The final trainings among the results, by model."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipes.study.plan import DROPOUT, TWINS, perplexity_of

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """What is trained with several seeds.

    Attributes:
        lines: the final trainings by seed.
    """

    model: str
    rate: float
    dropout: float
    lines: tuple[Line, ...]

    @property
    def finished(self) -> list[Line]:
        """The trainings that did not diverge."""
        return scored(self.lines)

    @property
    def perplexity(self) -> float:
        """The mean of those that did not diverge, infinite where all did."""
        finished = self.finished
        return statistics.mean(map(perplexity_of, finished)) if finished else math.inf


def settings(lines: Sequence[Line]) -> list[Setting]:
    """All that final trainings were run with; the lowest mean perplexity is first."""
    found: dict[tuple[str, float, float], list[Line]] = {}
    for line in sorted(lines, key=lambda line: int(line["seed"])):
        if line["stage"] == "final":
            key = (line["model"], line["rate"], line.get("dropout", DROPOUT))
            found.setdefault(key, []).append(line)
    made = [Setting(*key, tuple(trained)) for key, trained in found.items()]
    # by name where all diverged, so that the order of the results decides nothing
    return sorted(made, key=lambda one: (one.perplexity, one.model, one.dropout))


def chosen(lines: Sequence[Line]) -> dict[str, Setting]:
    """The setting of each model, the best by its first seed, as the plan goes on with it.

    Of two that are level it is the one that the plan names first: of the higher rate, and of the
    lower dropout.
    """
    best: dict[str, Setting] = {}
    for setting in sorted(settings(lines), key=lambda one: (-one.rate, one.dropout)):
        other = best.get(setting.model)
        if other is None or _first(setting) < _first(other):
            best[setting.model] = setting
    return dict(sorted(best.items(), key=lambda item: (item[1].perplexity, item[0])))


def best_twin(lines: Sequence[Line]) -> str | None:
    """The twin that is ahead so far; none where no twin has finished a final training."""
    return next((model for model in finished(lines) if model in TWINS), None)


def _first(setting: Setting) -> float:
    return perplexity_of(setting.lines[0])


def scored(lines: Iterable[Line]) -> list[Line]:
    """The trainings that did not diverge."""
    return [line for line in lines if line["valid_perplexity"] is not None]


def finished(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The final trainings of each model at its best that did not diverge, where there are some."""
    found = {model: setting.finished for model, setting in chosen(lines).items()}
    return {model: lines for model, lines in found.items() if lines}


def pairs(lines: Sequence[Line]) -> list[tuple[Line, Line]]:
    """What is to be compared and is not yet: all models with the better twin, seed by seed."""
    best, twin = finished(lines), best_twin(lines)
    done = {line["name"] for line in lines}
    return [
        (one, other)
        for model in best
        for one in best[model]
        for other in best.get(twin or "", [])
        if model != twin and one["seed"] == other["seed"] and comparison(one, other) not in done
    ]


def comparison(*of: Line) -> str:
    """What the line of a comparison is called."""
    return "-".join(["comparison", *(line["name"].removeprefix("final-") for line in of)])


def updates_until_twin(lines: Sequence[Line]) -> str:
    """A sentence: when each model first is where the better twin ends; empty without its finals."""
    best, twin = finished(lines), best_twin(lines)
    ends = [line["curve"][-1][1] for line in best.get(twin or "", [])]
    others = {model: found for model, found in best.items() if model not in TWINS}
    if not ends or not others:
        return ""
    goal = statistics.mean(ends)
    reached = [
        f"`{model}` {_listed([_first_below(line['curve'], goal) for line in found])}"
        for model, found in others.items()
    ]
    of = f"mean of {len(ends)} seeds" if len(ends) > 1 else "one run"
    return (
        f"Updates until the validation perplexity at which `{twin}` ends ({goal:.2f}, {of}) is "
        f"first measured, a number for each seed: {'; '.join(reached)}."
    )


def _first_below(curve: Sequence[tuple[int, float]], goal: float) -> str:
    reached = [update for update, perplexity in curve if perplexity <= goal]
    return f"{min(reached):,}" if reached else "never"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
