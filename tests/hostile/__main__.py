"""``python -m tests.hostile --seed N``: hostile files by class, as tried, held and fallen."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.hostile.classes import CLASSES
from tests.hostile.running import attempt, fallen, table


def run(seed: int, folder: Path, only: str = "") -> dict:
    """Outcomes by class."""
    outcomes = {}
    for name, make in CLASSES.items():
        if only in name:
            place = folder / "".join(filter(str.isalnum, name))
            place.mkdir()
            tries = make(random.Random(f"{seed} {name}"), place)
            outcomes[name] = [attempt(hostile, place) for hostile in tries]
            # what is found out is not lost where a run is stopped
            for line in [*fallen({name: outcomes[name]}), f"{name}: {len(tries)} tried"]:
                sys.stderr.write(f"{line}\n")
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="draws the files (default: any)")
    parser.add_argument("--only", default="", help="classes that have this in their name")
    parser.add_argument("--words", action="store_true", help="show what each file ended with")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(seed, Path(folder), options.only)
    if options.words:
        for name, each in outcomes.items():
            for outcome in each:
                sys.stdout.write(f"{name} | {outcome.name} | {outcome.words}\n")
    sys.stdout.write(f"{table(outcomes)}\nseed {seed}\n")
    fell = list(fallen(outcomes))
    sys.exit("\n".join(fell) if fell else 0)


if __name__ == "__main__":
    main()
