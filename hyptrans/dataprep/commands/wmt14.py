"""``hyptrans prepare wmt14``: WMT'14 English-German, by the steps of fairseq's shell script.

As in that script, punctuation is normalized in the training text only; the SGML sets get straight
apostrophes and the same tokenization.
"""

import argparse

from hyptrans.dataprep.commands.options import add_shared_arguments, make_job
from hyptrans.dataprep.journal import Journal
from hyptrans.dataprep.pipeline import prepare
from hyptrans.dataprep.plan import Job, PairSource, Plan
from hyptrans.dataprep.sources import origin as sources
from hyptrans.dataprep.sources.markup import ParallelFiles
from hyptrans.dataprep.steps.clean import CleanRule

_EUROPARL = "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz"
_CRAWL = "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
_NEWS_V12 = "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz"
_NEWS_V9 = "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
_DEV = "https://data.statmt.org/wmt17/translation-task/dev.tgz"
_TEST = "https://www.statmt.org/wmt14/test-full.tgz"
_LANGUAGES = ("en", "de")
_SIZES = {"subword-nmt": 40000, "sentencepiece": 32000}
_HELD_OUT = 100
_RULE = CleanRule(minimum=1, maximum=250, ratio=1.5)
_TRAIN_STEPS = {"normalize": True, "tokenize": True, "aggressive": True}
_TEST_STEPS = {"straight_apostrophe": True, "tokenize": True, "aggressive": True}


def urls(*, icml17: bool) -> tuple[str, ...]:
    """Return the download list; ``icml17`` takes News Commentary v9 instead of v12."""
    return (_EUROPARL, _CRAWL, _NEWS_V9 if icml17 else _NEWS_V12, _DEV, _TEST)


def file_names(languages: tuple[str, str], *, icml17: bool) -> dict[str, list[tuple[str, str]]]:
    """Return the names of the files of each set, source first."""
    source, target = languages
    corpora = ("europarl-v7", "commoncrawl", f"news-commentary-v{9 if icml17 else 12}")
    return {
        "train": [(f"{name}.de-en.{source}", f"{name}.de-en.{target}") for name in corpora],
        "test": [
            (f"newstest2014-deen-src.{source}.sgm", f"newstest2014-deen-ref.{target}.sgm"),
        ],
        "test1": [(f"newstest2013-src.{source}.sgm", f"newstest2013-ref.{target}.sgm")],
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_shared_arguments(parser, _SIZES, _LANGUAGES)
    parser.add_argument(
        "--icml17",
        action="store_true",
        help="News Commentary v9 instead of v12, as in Convolutional Sequence to Sequence Learning",
    )
    parser.add_argument(
        "--valid-from-train",
        action="store_true",
        help=f"every {_HELD_OUT}th training pair as valid, as in fairseq's script",
    )
    sources.add_options(parser, urls(icml17=False))


def main(args: argparse.Namespace) -> None:
    """Prepare WMT'14.

    Raises:
        UserError: all that is wrong with the options, in one sentence.
    """
    problems: list[str] = []
    sources.languages(args, _LANGUAGES, problems)
    listed = urls(icml17=args.icml17)
    origin = sources.check(args, listed, problems)
    if args.icml17 and args.hub:
        problems.append("--icml17 chooses among the files, it has no meaning with --hub")
    job = make_job(args, "data-prep/prepare_wmt14.py", _SIZES, problems)
    names = file_names(job.languages, icml17=args.icml17)
    flat = [name for pairs in names.values() for pair in pairs for name in pair]

    def make_plan(journal: Journal) -> Plan:
        if origin.hub:
            sets = _hub_sets(origin, job)
        else:
            files = sources.locate(sources.gather(origin, listed, flat, journal), flat)
            sets = {
                name: ParallelFiles(
                    ("plain" if name == "train" else "sgml",) * len(pairs),
                    tuple(sources.pair(files, pair) for pair in pairs),
                )
                for name, pairs in names.items()
            }
        return _plan(sets, job, valid_from_train=args.valid_from_train)

    prepare(job, origin.inputs(flat), make_plan)


def _hub_sets(origin: sources.Origin, job: Job) -> dict[str, PairSource]:
    splits = origin.hub_splits(job.languages)
    sets: dict[str, PairSource] = {"train": splits["train"], "test": splits["test"]}
    if "validation" in splits:
        sets["test1"] = splits["validation"]
    return sets


def _plan(sets: dict[str, PairSource], job: Job, *, valid_from_train: bool) -> Plan:
    # without a development set of its own there is only the training text to take it from
    held_out = _HELD_OUT if valid_from_train or "test1" not in sets else 0
    if not held_out:
        sets = {**sets, "valid": sets["test1"]}
    text = {name: _TRAIN_STEPS if name == "train" else _TEST_STEPS for name in sets}
    return Plan(sets, {} if job.raw_text else text, None, held_out, _RULE)
