"""Format tables as text."""

import re
from collections.abc import Sequence

from hyptrans.support.errors import clean

_MARKUP = re.compile(r"[\\|`<>\[\]*&~]")
_LINKED = re.compile(r"(\w)(://|\.(?<=www\.)|@)", re.IGNORECASE)


def escaped(name: str) -> str:
    """Escape a name for Markdown, so that it adds no tags, links, columns or lines."""
    text = " ".join(clean(name).split())
    return _LINKED.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", text))


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]], *, texts: int = 1) -> str:
    """Return a Markdown table; the first ``texts`` columns are text, the others numbers or None."""
    ruled = ["---"] * texts + ["---:"] * (len(header) - texts)
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ruled, *cells))
