"""Named data sets: the command knows their files, and finds them wherever they lie."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hyptrans.data.commands.options import add_shared_arguments, make_job
from hyptrans.data.pipeline import prepare
from hyptrans.data.plan import Job, PairSource, Plan
from hyptrans.data.sources.archive import unpack
from hyptrans.data.sources.download import download, file_name
from hyptrans.data.sources.files import locate, parallel_files
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from hyptrans.support.steps import Step

Files = Mapping[str, tuple[str, Sequence[tuple[str, str]]]]
"""The name of the reader and the names of the files, source first, for each set."""


@dataclass(frozen=True)
class Named:
    """A named data set.

    Attributes:
        program: name of the command in the manifest.
        languages: its default source and target; the other direction works too.
        sizes: default vocabulary size by kind of subwords.
        urls: what to download by default.
        files: returns its sets' files for a source and a target language.
        plan: returns what happens to its sets, unless the text stays raw.
    """

    program: str
    languages: tuple[str, str]
    sizes: Mapping[str, int]
    urls: Sequence[str]
    files: Callable[[tuple[str, str]], Files]
    plan: Callable[[Mapping[str, PairSource]], Plan]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that all named data sets have."""
        add_shared_arguments(parser, self.sizes, self.languages)
        listed = "\n".join(f"  {url}" for url in self.urls)
        parser.epilog = f"{parser.epilog}\n\ndownloaded when no source is given:\n{listed}"
        add = parser.add_argument
        about = "archive to unpack (several times)"
        add("--archive", type=Path, metavar="FILE", action="append", default=[], help=about)
        about = "folder with the unpacked files, plain or gzipped"
        add("--raw", type=Path, metavar="DIR", help=about)
        about = "SHA-256 of an archive (several times): each archive must have one of them"
        add("--sha256", metavar="HEX", type=_sha256, action="append", default=[], help=about)

    def prepare(self, args: argparse.Namespace) -> None:
        """Prepare the data set.

        Raises:
            UserError: options are wrong; one sentence lists all problems.
        """
        wrong = [*self._wrong_languages(args), *_wrong_source(args)]
        job = make_job(args, self.program, self.sizes, wrong)
        files = self.files(job.languages)
        names = [name for _, pairs in files.values() for pair in pairs for name in pair]
        if args.raw:
            # archives unpack into subfolders
            folders = [args.raw, *sorted(path for path in args.raw.iterdir() if path.is_dir())]
            inputs, before = list(locate(folders, names).values()), []
        else:
            inputs, before = args.archive, list(self._unpacking(args, job, names))
            folders = [step.outputs[0] for step in before if step.name.startswith("unpack ")]

        def make_plan() -> Plan:
            sets = {name: _files(folders, names, *found) for name, found in files.items()}
            plan = replace(self.plan(sets), before=before)
            return replace(plan, text={}) if job.raw_text else plan

        prepare(job, inputs, make_plan)

    def _unpacking(
        self, args: argparse.Namespace, job: Job, names: Sequence[str]
    ) -> Iterator[Step]:
        """Yield steps that download archives, if none is given, and extract their files."""
        archives = list(args.archive)
        for url in self.urls if not archives else ():
            path = job.out / "downloads" / file_name(url)
            archives.append(path)
            if not path.exists():
                yield Step(f"download {path.name}", [path], partial(download, url, path))
        for number, path in enumerate(archives):
            folder = job.work / "unpacked" / f"{number} {path.name}"
            work = partial(_unpack, path, names, folder, args.sha256)
            yield Step(f"unpack {path.name}", [folder], work)

    def _wrong_languages(self, args: argparse.Namespace) -> Iterator[str]:
        """Fill in missing languages, and yield problems: only the default pair is known."""
        source, target = self.languages
        other = {source: target, target: source}
        args.source_lang = args.source_lang or other.get(args.target_lang, source)
        args.target_lang = args.target_lang or other.get(args.source_lang, target)
        if other.get(args.source_lang) != args.target_lang:
            yield (
                f"unknown language pair {args.source_lang}-{args.target_lang}: this data set has "
                f"{source}-{target} and {target}-{source}"
            )


def _files(
    folders: Sequence[Path], names: Sequence[str], reader: str, pairs: Sequence[tuple[str, str]]
) -> PairSource:
    paths = [(Path(source), Path(target)) for source, target in pairs]
    return parallel_files(reader, paths, lambda path: locate(folders, names)[path.name])


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not 64 hexadecimal digits")
    return text.lower()


def _unpack(
    path: Path, names: Sequence[str], folder: Path, hashes: Sequence[str]
) -> dict[str, object]:
    found = sha256(path)
    if hashes and found not in hashes:
        raise UserError(
            f"{path} has SHA-256 {found}, which --sha256 does not name: get the file again"
        )
    return {"sha256": found, **unpack(path, names, folder)}


def _wrong_source(args: argparse.Namespace) -> Iterator[str]:
    """Yield problems with the options that say where the data comes from."""
    if args.archive and args.raw:
        yield "only one of --archive, --raw can be used"
    yield from (f"--archive {path} is not a file" for path in args.archive if not path.is_file())
    if args.raw and not args.raw.is_dir():
        yield f"--raw {args.raw} is not a folder"
    if args.sha256 and args.raw:
        yield "--sha256 is for archives, not for --raw"
