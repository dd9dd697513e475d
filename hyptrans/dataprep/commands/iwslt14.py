"""``hyptrans prepare iwslt14``: IWSLT'14 German-English, by the steps of fairseq's shell script."""

import argparse

from hyptrans.dataprep.commands.options import add_shared_arguments, make_job
from hyptrans.dataprep.journal import Journal
from hyptrans.dataprep.pipeline import prepare
from hyptrans.dataprep.plan import Job, PairSource, Plan
from hyptrans.dataprep.sources import origin as sources
from hyptrans.dataprep.sources.markup import ParallelFiles
from hyptrans.dataprep.steps.clean import CleanRule

URLS = ("https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",)
# in the order in which fairseq's script joins them to one test set
TEST_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_LANGUAGES = ("de", "en")
_SIZES = {"subword-nmt": 10000, "sentencepiece": 10000}
_HELD_OUT = 23
_RULE = CleanRule(minimum=1, maximum=175, ratio=1.5)
_TRAIN = {"tokenize": True, "lowercase": True}
_TEST = {"straight_apostrophe": True, **_TRAIN}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_shared_arguments(parser, _SIZES, _LANGUAGES)
    sources.add_options(parser, URLS)


def main(args: argparse.Namespace) -> None:
    """Prepare IWSLT'14.

    Raises:
        UserError: all that is wrong with the options, in one sentence.
    """
    problems: list[str] = []
    sources.languages(args, _LANGUAGES, problems)
    origin = sources.check(args, URLS, problems)
    job = make_job(args, "data-prep/prepare_iwslt14.py", _SIZES, problems)

    train, tests = file_names(job)
    inputs = origin.inputs([*train, *(name for pair in tests for name in pair)])

    def make_plan(journal: Journal) -> Plan:
        if origin.hub:
            return _from_hub(origin, job)
        return _from_files(origin, job, journal)

    prepare(job, inputs, make_plan)


def file_names(job: Job) -> tuple[list[str], list[list[str]]]:
    """Return the names of the training files, and those of each test set, source first."""
    train = [f"train.tags.de-en.{lang}" for lang in job.languages]
    tests = [[f"IWSLT14.{name}.de-en.{lang}.xml" for lang in job.languages] for name in TEST_SETS]
    return train, tests


def _from_files(origin: sources.Origin, job: Job, journal: Journal) -> Plan:
    train, tests = file_names(job)
    names = [*train, *(name for pair in tests for name in pair)]
    files = sources.locate(sources.gather(origin, URLS, names, journal), names)
    sets: dict[str, PairSource] = {
        "train": ParallelFiles(("tags",), (sources.pair(files, train),)),
        "test": ParallelFiles(("xml",) * len(tests), tuple(sources.pair(files, p) for p in tests)),
    }
    # the XML reader decodes entities, which the script's line tools do not
    text = {"train": _TRAIN, "test": {"xml_escape": True, **_TEST}}
    return Plan(sets, {} if job.raw_text else text, _RULE, _HELD_OUT)


def _from_hub(origin: sources.Origin, job: Job) -> Plan:
    splits = origin.hub_splits(job.languages)
    sets: dict[str, PairSource] = {"train": splits["train"], "test": splits["test"]}
    if "validation" in splits:
        sets["valid"] = splits["validation"]
    text = {"train": _TRAIN, "valid": _TEST, "test": _TEST}
    held_out = 0 if "valid" in sets else _HELD_OUT
    return Plan(sets, {} if job.raw_text else text, _RULE, held_out)
