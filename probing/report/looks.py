"""Colors, forms and marks that tell models apart in the charts."""

from collections.abc import Sequence
from dataclasses import dataclass

from probing.report.data import ModelResult

COLORS = 6
"""Colors in the style sheet; more models repeat them with other marks."""

# paths around the origin, about 9 pixels wide
_MARKS = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-4.8L4.6 3.6H-4.6Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.6-3.6H-4.6Z",
    "M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
    "M-2.4-5H2.4V5H-2.4Z",
)


@dataclass(frozen=True)
class Look:
    """How a model is drawn, the same in every chart.

    Attributes:
        kind: classes of the style sheet: a color, that of its trained encoder, and a form.
        mark: path of its mark, so that color is not all that tells it apart; none of baselines.
    """

    kind: str
    mark: str | None


def looks(models: Sequence[ModelResult]) -> dict[str, Look]:
    """A look for each model: a color for each encoder, a form for each role."""
    numbers = {m.name: i for i, m in enumerate(m for m in models if m.role == "encoder")}
    found = {}
    for model in models:
        number = numbers.get(model.of or model.name)
        if number is None:
            found[model.name] = Look("base", None)
            continue
        kind = color(number)
        if model.role != "encoder":
            kind += f" {model.role}"
        found[model.name] = Look(kind, _MARKS[number % len(_MARKS)])
    return found


def color(index: int) -> str:
    """The class of the style sheet that has a model's color."""
    return f"m{index % COLORS}"


def mark(index: int) -> str:
    """One of the marks, for what is told apart within a model."""
    return _MARKS[index % len(_MARKS)]
