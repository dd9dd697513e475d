"""Tables as text."""

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]], *, texts: int = 1) -> str:
    """A Markdown table; its first ``texts`` columns are text, the others numbers, or None."""
    ruled = ["---"] * texts + ["---:"] * (len(header) - texts)
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ruled, *cells))
