"""Axes of charts: round numbers along them, and the places of numbers in a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hyptrans.support import svg


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover a range; the first and the last are the ends of the axis."""
    wanted = max(high - low, 1e-9) / count
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(power * k for k in (1, 2, 5, 10, 20) if power * k >= wanted * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * k for k in range(first, max(last, first + 1) + 1)]


@dataclass(frozen=True)
class Frame:
    """A plot inside a picture: where it lies and the numbers along its axes."""

    left: float
    right: float
    top: float
    bottom: float
    last: int
    """The axis across runs over whole numbers from 0 to this."""
    axis: Sequence[float]
    """The ticks of the axis upwards, from its lower to its upper end."""
    inset: float = 14
    names: Sequence[str] = ()
    """What stands at the whole numbers of the axis across, if not they themselves."""

    @property
    def cut(self) -> bool:
        """The axis upwards does not begin at 0."""
        return self.axis[0] > 0

    def x(self, value: float) -> float:
        """Pixels of a number of the axis across."""
        width = self.right - self.left - 2 * self.inset
        return self.left + self.inset + width * (value / self.last if self.last else 0.5)

    def y(self, value: float) -> float:
        """Pixels of a number of the axis upwards."""
        share = (value - self.axis[0]) / (self.axis[-1] - self.axis[0])
        return self.bottom - share * (self.bottom - self.top)

    def draw(self, picture: svg.Element, across: str, upwards: str) -> None:
        """Draw the axes with their names; ``upwards`` stands over the axis, as the title."""
        svg.add(picture, "text", "title", upwards, x=2, y=16)
        for value in self.axis:
            y = self.y(value)
            svg.add(picture, "path", "grid", d=f"M{svg.points(self.left, y)}H{self.right:.0f}")
            text = f"{value:.4g}".replace("-", "\N{MINUS SIGN}")
            svg.add(picture, "text", "tick end", text, x=self.left - 7, y=y + 4)
        if self.cut:
            # two strokes across the foot of the axis
            for y in (self.bottom - 5, self.bottom - 9):
                path = f"M{svg.points(self.left - 4, y + 2)}L{svg.points(self.left + 4, y - 2)}"
                svg.add(picture, "path", "cut", d=path)
        svg.add(picture, "path", "axis", d=f"M{svg.points(self.left, self.top)}V{self.bottom:.0f}")
        each = max(1, math.ceil((self.last + 1) / 13))
        for value in range(0, self.last + 1, each):
            name = self.names[value] if self.names else str(value)
            svg.add(picture, "text", "tick", name, x=self.x(value), y=self.bottom + 17)
        middle = (self.left + self.right) / 2
        svg.add(picture, "text", "tick", across, x=middle, y=self.bottom + 34)
