"""``hyptrans prepare wmt14``: WMT'14 English-German, by the steps of fairseq's shell script.

As in that script, punctuation is normalized in the training text only; the SGML sets get straight
apostrophes and the same tokenization.
"""

import argparse
from collections.abc import Mapping
from functools import partial

from hyptrans.data.clean import CleanRule
from hyptrans.data.commands.named import Files, Named
from hyptrans.data.plan import PairSource, Plan

_EUROPARL = "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz"
_CRAWL = "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
_NEWS_V12 = "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz"
_NEWS_V9 = "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
_DEV = "https://data.statmt.org/wmt17/translation-task/dev.tgz"
_TEST = "https://www.statmt.org/wmt14/test-full.tgz"
_HELD_OUT = 100
_RULE = CleanRule(maximum=250, ratio=1.5)
_TRAIN_STEPS = {"normalize": True, "tokenize": True, "aggressive": True}
_TEST_STEPS = {"straight_apostrophe": True, "tokenize": True, "aggressive": True}


def _files(languages: tuple[str, str], *, icml17: bool) -> Files:
    source, target = languages
    corpora = ("europarl-v7", "commoncrawl", f"news-commentary-v{9 if icml17 else 12}")
    train = [(f"{name}.de-en.{source}", f"{name}.de-en.{target}") for name in corpora]
    tests = {
        name: ("sgml", [(f"{stem}-src.{source}.sgm", f"{stem}-ref.{target}.sgm")])
        for name, stem in (("test", "newstest2014-deen"), ("test1", "newstest2013"))
    }
    return {"train": ("plain", train), **tests}


def _plan(sets: Mapping[str, PairSource], *, valid_from_train: bool) -> Plan:
    if not valid_from_train:
        sets = {**sets, "valid": sets["test1"]}
    text = {name: _TRAIN_STEPS if name == "train" else _TEST_STEPS for name in sets}
    held_out = _HELD_OUT if valid_from_train else 0
    return Plan(sets, text, held_out=held_out, clean_subwords=_RULE)


def wmt14(*, icml17: bool = False, valid_from_train: bool = False) -> Named:
    """Return the data set.

    Args:
        icml17: use News Commentary v9 instead of v12.
        valid_from_train: take the validation set from the training text.
    """
    return Named(
        program="hyptrans prepare wmt14",
        languages=("en", "de"),
        sizes={"subword-nmt": 40000, "sentencepiece": 32000},
        urls=(_EUROPARL, _CRAWL, _NEWS_V9 if icml17 else _NEWS_V12, _DEV, _TEST),
        files=partial(_files, icml17=icml17),
        plan=partial(_plan, valid_from_train=valid_from_train),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    wmt14().add_arguments(parser)
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


def main(args: argparse.Namespace) -> None:
    """Prepare WMT'14.

    Raises:
        UserError: options are wrong; one sentence lists all problems.
    """
    wmt14(icml17=args.icml17, valid_from_train=args.valid_from_train).prepare(args)
