"""Write tables of results as Markdown: a column has a format, and a cell may hold several seeds."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hyptrans.support import tables
from recipes.common.seeds import spread


def markdown(frame: pd.DataFrame, forms: Mapping[str, str] | None = None, *, texts: int = 1) -> str:
    """Write a table.

    Args:
        frame: a list in a cell is written as mean and standard deviation, a missing value as empty.
        forms: formats of cells by column; for lists, the format of both numbers.
        texts: number of columns that are text, at the left.
    """
    forms = forms or {}
    columns = [[cell(value, forms.get(name, "")) for value in frame[name]] for name in frame]
    return tables.markdown([*frame], [*zip(*columns, strict=True)], texts=texts)


def cell(value: Any, form: str = "") -> str:
    """Write a number, the mean ± standard deviation of a list, or nothing for a missing value."""
    if isinstance(value, list):
        return spread(value, form or ".1f")
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else format(value, form)


def rate(value: float, is_open: bool) -> str:
    """Write a learning rate; brackets mean that it is not tuned."""
    return f"({value:g})" if is_open else f"{value:g}"
