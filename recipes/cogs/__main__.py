"""COGS in variable-free form: do hyperbolic Transformers generalize by structure?

Reports exact match on the whole generalization set and by kind of generalization, beside the
figures of a published Transformer.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from hyptrans.support.errors import UserError, run_command
from hyptrans.support.lines import read_lines
from recipes.cogs.plan import DEV, GEN, PER_KIND, TEST, trainings
from recipes.cogs.table import PUBLISHED, table
from recipes.common import exact, options, results

HERE = Path(__file__).resolve().parent
FOLDER = "cogs_variable_free"
FILES = {"train": "train", "valid": "dev", TEST: "test"}
PUBLISHED_FILE = "published_transformer.json"
"""A published Transformer's percent of right answers, by seed and kind."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run all unfinished trainings and write the tables."""
    parser = options.recipe_parser(HERE, __doc__, "--data ~/cogs_variable_free --out ~/cogs")
    contents = f"train, dev, test and gen as .tsv or .tsv.gz, and {PUBLISHED_FILE}"
    options.add_data(parser, contents, name=FOLDER)
    args = parser.parse_args(argv)
    experiment = exact.experiment(HERE, args, trainings, lambda task: sets(args.data), table)
    if not args.list:
        data = options.required(args.data, "COGS in variable-free form", "frankaging/ReCOGS")
        published = [*results.read_json(data / PUBLISHED_FILE).values()]
        line = {"name": PUBLISHED, "stage": PUBLISHED, "seeds": published}
        experiment.add(line, measured=False)
    experiment.run()


def sets(data: Path) -> exact.Sets:
    """Read all sets, and the part of the generalization set that serves to choose settings."""
    return with_generalization(data, examples(options.file(data, "gen.tsv")))


def with_generalization(data: Path, gen: Sequence[exact.Example]) -> exact.Sets:
    """Read the sets in a folder; add a generalization set and its first ``PER_KIND`` of a kind."""
    found = {name: examples(options.file(data, f"{stem}.tsv")) for name, stem in FILES.items()}
    frame = pd.DataFrame(gen, columns=["question", "answer", "kind"])
    first = frame.groupby("kind").head(PER_KIND).itertuples(index=False, name=None)
    return {**found, GEN: gen, DEV: [*first]}


def examples(path: Path, lines: Iterable[str] | None = None) -> list[exact.Example]:
    """Read sentences, logical forms and kinds.

    Args:
        path: the file, plain or gzipped.
        lines: its lines, if they were read already.

    Raises:
        UserError: a line does not have these three parts.
    """
    found: list[exact.Example] = []
    for number, line in enumerate(read_lines(path) if lines is None else lines, start=1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise UserError(f"{path}, line {number} is not sentence, form and kind between tabs")
        found.append((parts[0], parts[1], parts[2]))
    return found


if __name__ == "__main__":
    sys.exit(run_command(main))
