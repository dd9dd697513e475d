"""COGS in variable-free form: do hyperbolic Transformers generalize by structure?

Reports exact match on the whole generalization set and by kind of generalization, beside the
figures of a published Transformer.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines
from recipes.cogs.plan import DEV, GEN, PER_KIND, TEST, trainings
from recipes.cogs.table import PUBLISHED, table
from recipes.common import exact, options, results

HERE = Path(__file__).resolve().parent
FOLDER = "cogs_variable_free"
FILES = {"train": "train", "valid": "dev", TEST: "test", GEN: "gen"}
PUBLISHED_FILE = "published_transformer.json"


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/cogs_variable_free --out ~/cogs")
    contents = f"train, dev, test and gen as .tsv or .tsv.gz, and {PUBLISHED_FILE}"
    options.add_data(parser, contents, name=FOLDER)
    args = parser.parse_args(argv)
    if args.data is None and not args.list:
        raise UserError(
            "--data is needed: a folder with COGS in variable-free form, "
            "from https://github.com/frankaging/ReCOGS"
        )

    @cache
    def sets(task: str) -> exact.Sets:
        found = {name: examples(args.data, stem) for name, stem in FILES.items()}
        return found | {DEV: first_of_each_kind(found[GEN])}

    def others() -> exact.Results:
        return [{"name": PUBLISHED, "stage": PUBLISHED, "seeds": _published(args.data)}]

    exact.run(HERE, args, trainings, sets, table, others)


def examples(data: Path, stem: str) -> list[exact.Example]:
    """Read the sentences of a file with their logical forms and kinds.

    Raises:
        UserError: the file is missing or a line does not have these three parts.
    """
    path = options.plain_or_zipped(data / f"{stem}.tsv")
    found: list[exact.Example] = []
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise UserError(f"{path}, line {number} is not sentence, form and kind between tabs")
        found.append((parts[0], parts[1], parts[2]))
    return found


def first_of_each_kind(found: Sequence[exact.Example]) -> list[exact.Example]:
    """Return the part of the generalization set that serves to choose settings."""
    seen: Counter[str] = Counter()
    kept = []
    for example in found:
        seen[example[2]] += 1
        if seen[example[2]] <= PER_KIND:
            kept.append(example)
    return kept


def _published(data: Path) -> list[dict[str, float]]:
    """Read a published Transformer's percent of right answers by seed and kind."""
    path = data / PUBLISHED_FILE
    try:
        return list(results.read_json(path).values())
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"--data: {path} cannot be read: {error}") from error


if __name__ == "__main__":
    sys.exit(run_command(main, stopped=options.STOPPED))
