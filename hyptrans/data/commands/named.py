"""``hyptrans prepare iwslt14`` and ``wmt14``, by the steps of fairseq's shell scripts."""

import argparse
import gzip
import os
import shutil
import sys
import tarfile
import urllib.request
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from hyptrans.data.commands.options import add_shared_arguments, check
from hyptrans.data.corpus import CleanRule
from hyptrans.data.pipeline import check_before_download, prepare
from hyptrans.data.sources.files import locate, parallel_files
from hyptrans.data.stages import Plan
from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file
from hyptrans.support.lines import most_by_ratio

_TIMEOUT = 60.0
"""Seconds without an answer after which a download fails."""
_MOST_MEMBERS = 10_000
"""Most members of an archive; those of the data sets have a few hundred."""


@dataclass(frozen=True)
class Named:
    """A data set whose files the command knows.

    Attributes:
        languages: its default source and target; the other direction works too.
        sizes: default vocabulary size by kind of subwords.
        urls: where its archives are.
        files: for each set, the name of the reader and the names of the files, in which ``{lang}``
            stands for the language and ``{side}`` for src or ref.
        plan: what happens to its sets, unless the text stays raw.
    """

    languages: tuple[str, str]
    sizes: Mapping[str, int]
    urls: Sequence[str]
    files: Mapping[str, tuple[str, Sequence[str]]]
    plan: Plan

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that all named data sets have."""
        add_shared_arguments(parser, self.sizes, self.languages)
        listed = "\n".join(f"  {url}" for url in self.urls)
        parser.epilog = f"{parser.epilog}\n\narchives to download into FOLDER:\n{listed}"
        about = "folder with the unpacked archives, downloaded if it does not exist"
        parser.add_argument("--raw", type=Path, metavar="FOLDER", required=True, help=about)

    def main(self, args: argparse.Namespace) -> None:
        """Prepare the data set.

        Raises:
            UserError: options are wrong, and one sentence lists all problems; or an archive
                cannot be downloaded.
        """
        check(args, self.sizes, list(self._problems(args)))
        sides = (("src", args.source_lang), ("ref", args.target_lang))
        names = {
            one: [[stem.format(side=side, lang=lang) for side, lang in sides] for stem in stems]
            for one, (_, stems) in self.files.items()
        }
        if not args.raw.exists():
            check_before_download(args)
            fetch(self.urls, args.raw)
        # archives unpack into subfolders
        folders = [args.raw, *sorted(path for path in args.raw.iterdir() if path.is_dir())]
        every = [name for pairs in names.values() for pair in pairs for name in pair]
        found = locate(folders, every)
        sets = {}
        for one, pairs in names.items():
            paths = [[found[name] for name in pair] for pair in pairs]
            sets[one] = partial(parallel_files, self.files[one][0], paths)
        text = {} if args.raw_text else self.plan.text
        prepare(args, found.values(), lambda: replace(self.plan, sets=sets, text=text))

    def _problems(self, args: argparse.Namespace) -> Iterator[str]:
        """Fill in missing languages, and yield what is wrong: only the default pair is known."""
        source, target = self.languages
        other = {source: target, target: source}
        args.source_lang = args.source_lang or other.get(args.target_lang, source)
        args.target_lang = args.target_lang or other.get(args.source_lang, target)
        if other.get(args.source_lang) != args.target_lang:
            yield (
                f"unknown language pair {args.source_lang}-{args.target_lang}: this data set has "
                f"{source}-{target} and {target}-{source}"
            )
        if os.path.lexists(args.raw) and not args.raw.is_dir():
            yield f"--raw {args.raw} is not a folder"


def fetch(urls: Sequence[str], folder: Path) -> None:
    """Download archives and unpack them into a new folder; a second run resumes.

    Raises:
        UserError: an archive cannot be downloaded or unpacked.
        OSError: the disk is full, for example.
    """
    if not hasattr(tarfile, "data_filter"):
        raise UserError(f"this Python is too old to unpack safely: unpack the archives to {folder}")
    partial = folder.with_name(f"{folder.name}.partial")
    for url in urls:
        archive = partial / PurePosixPath(url).name
        instead = f"run again, or put the unpacked files into {folder}"
        if not archive.exists():
            try:
                _download(url, archive)
            except (OSError, HTTPException, EOFError) as error:
                raise UserError(f"{url} cannot be downloaded ({error}): {instead}") from error
        try:
            _unpack(archive, partial)
        except (EOFError, tarfile.TarError, gzip.BadGzipFile, zlib.error) as error:
            raise UserError(
                f"{archive} cannot be unpacked ({error}): delete it and {instead}"
            ) from error
    partial.rename(folder)


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive, unless it grows suspiciously much or has too many members."""
    most = most_by_ratio(archive.stat().st_size)
    with tarfile.open(archive) as tar:
        for number, member in enumerate(tar):
            most -= abs(member.size)
            if most < 0 or number == _MOST_MEMBERS:
                raise tarfile.TarError("it unpacks to suspiciously many bytes or files")
            tar.extract(member, folder, filter="data")


def _download(url: str, path: Path) -> None:
    sys.stderr.write(f"downloading {url}\n")
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as reply, whole_file(path) as file:
        size = int(reply.headers.get("Content-Length") or 0)
        with tqdm.wrapattr(file, "write", total=size or None, bytes=True) as counted:
            shutil.copyfileobj(reply, counted, 1 << 18)
        if size not in (0, file.tell()):
            raise EOFError(f"only {file.tell():,} of {size:,} bytes arrived")


_OF_IWSLT = {"tokenize": True, "lowercase": True}
# the XML reader decodes entities; the script's line tools do not
_XML = {"xml_escape": True, "straight_apostrophe": True, **_OF_IWSLT}
# in the order in which fairseq's script joins them into one test set
_TESTS_OF_IWSLT = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
IWSLT14 = Named(
    languages=("de", "en"),
    sizes={"subword-nmt": 10000, "sentencepiece": 10000},
    urls=("https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",),
    files={
        "train": ("tags", ["train.tags.de-en.{lang}"]),
        "test": ("xml", [f"IWSLT14.{name}.de-en.{{lang}}.xml" for name in _TESTS_OF_IWSLT]),
    },
    plan=Plan(
        text={"train": _OF_IWSLT, "test": _XML},
        clean_text=CleanRule(maximum=175, ratio=1.5),
        held_out=23,
    ),
)
# as in the script: punctuation is normalized in the training text only, the SGML sets get straight
# apostrophes and the same tokenization, and every 100th training pair is validation data
_OF_WMT = {"tokenize": True, "aggressive": True}
_SGML = {"straight_apostrophe": True, **_OF_WMT}
_TRAIN_OF_WMT = ("europarl-v7", "commoncrawl", "news-commentary-v12")
WMT14 = Named(
    languages=("en", "de"),
    sizes={"subword-nmt": 40000, "sentencepiece": 32000},
    urls=(
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",
        "https://data.statmt.org/wmt17/translation-task/dev.tgz",
        "https://www.statmt.org/wmt14/test-full.tgz",
    ),
    files={
        "train": ("plain", [f"{name}.de-en.{{lang}}" for name in _TRAIN_OF_WMT]),
        "test": ("sgml", ["newstest2014-deen-{side}.{lang}.sgm"]),
        "test1": ("sgml", ["newstest2013-{side}.{lang}.sgm"]),
    },
    plan=Plan(
        text={"train": {"normalize": True, **_OF_WMT}, "test": _SGML, "test1": _SGML},
        held_out=100,
        clean_subwords=CleanRule(maximum=250, ratio=1.5),
    ),
)
