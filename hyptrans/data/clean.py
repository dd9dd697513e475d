"""Filter training pairs by lengths and their ratio, as Moses' clean-corpus does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class CleanRule:
    """Bounds on the number of tokens of a side, and on the ratio between both sides.

    Attributes:
        maximum: most tokens of a side; a pair with an empty side is always dropped.
        ratio: largest ratio of the longer side to the shorter; 0 switches this check off.
    """

    maximum: int = 250
    ratio: float = 0.0

    def why_dropped(self, source: str, target: str) -> str | None:
        """Return the first reason to drop the pair, or None to keep it."""
        fewer, more = sorted((len(source.split()), len(target.split())))
        if not fewer:
            return "empty side"
        if more > self.maximum:
            return f"longer than {self.maximum}"
        if self.ratio and more > self.ratio * fewer:
            return f"ratio above {self.ratio:g}"
        return None

    def keep(
        self, pairs: Iterable[tuple[str, str]], dropped: Counter[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the pairs that pass and count the others by reason in ``dropped``."""
        for source, target in pairs:
            reason = self.why_dropped(source, target)
            if reason is None:
                yield source, target
            else:
                dropped[reason] += 1
