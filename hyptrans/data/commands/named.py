"""Named data sets: the command knows their files, and finds them wherever they lie."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from hyptrans.data.commands.options import add_shared_arguments, check
from hyptrans.data.pipeline import WORK, prepare
from hyptrans.data.sources.archive import unpack
from hyptrans.data.sources.download import download
from hyptrans.data.sources.files import locate, parallel_files
from hyptrans.data.stages import Plan
from hyptrans.support.files import sha256
from hyptrans.support.steps import Step


@dataclass(frozen=True)
class Named:
    """A named data set.

    Attributes:
        name: its command's name.
        languages: its default source and target; the other direction works too.
        sizes: default vocabulary size by kind of subwords.
        urls: what to download by default.
        files: for each set, the name of the reader and the names of the files, in which ``{lang}``
            stands for the language and ``{side}`` for src or ref.
        plan: what happens to its sets, unless the text stays raw.
    """

    name: str
    languages: tuple[str, str]
    sizes: Mapping[str, int]
    urls: Sequence[str]
    files: Mapping[str, tuple[str, Sequence[str]]]
    plan: Plan

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that all named data sets have."""
        add_shared_arguments(parser, self.sizes, self.languages)
        listed = "\n".join(f"  {url}" for url in self.urls)
        parser.epilog = f"{parser.epilog}\n\ndownloaded when no source is given:\n{listed}"
        source = parser.add_mutually_exclusive_group()
        about = "archive to unpack (several times)"
        source.add_argument(
            "--archive", type=Path, metavar="FILE", action="append", default=[], help=about
        )
        about = "folder with the unpacked files, plain or gzipped"
        source.add_argument("--raw", type=Path, metavar="DIR", help=about)

    def prepare(self, args: argparse.Namespace) -> None:
        """Prepare the data set.

        Raises:
            UserError: options are wrong; one sentence lists all problems.
        """
        check(args, self.name, self.sizes, list(self._problems(args)))
        sides = (("src", args.source_lang), ("ref", args.target_lang))
        files = {
            name: [[stem.format(side=side, lang=lang) for side, lang in sides] for stem in stems]
            for name, (_, stems) in self.files.items()
        }
        names = [name for pairs in files.values() for pair in pairs for name in pair]
        if args.raw:
            # archives unpack into subfolders
            folders = [args.raw, *sorted(path for path in args.raw.iterdir() if path.is_dir())]
            inputs, before = list(locate(folders, names).values()), []
        else:
            inputs, before = args.archive, list(self._unpacking(args, names))
            folders = [step.outputs[0] for step in before if step.name.startswith("unpack ")]
        sets = {
            name: partial(
                parallel_files, self.files[name][0], pairs, lambda one: locate(folders, names)[one]
            )
            for name, pairs in files.items()
        }
        text = {} if args.raw_text else self.plan.text
        prepare(args, inputs, lambda: replace(self.plan, sets=sets, before=before, text=text))

    def _unpacking(self, args: argparse.Namespace, names: Sequence[str]) -> Iterator[Step]:
        """Yield steps that download archives, if none is given, and extract their files."""
        archives = list(args.archive)
        for url in self.urls if not archives else ():
            path = args.out / "downloads" / PurePosixPath(url).name
            archives.append(path)
            if not path.exists():
                yield Step(f"download {path.name}", [path], partial(download, url, path))
        for number, path in enumerate(archives):
            folder = args.out / WORK / "unpacked" / f"{number} {path.name}"
            yield Step(f"unpack {path.name}", [folder], partial(_unpack, path, names, folder))

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
        for path in args.archive:
            if not path.is_file():
                yield f"--archive {path} is not a file"
        if args.raw and not args.raw.is_dir():
            yield f"--raw {args.raw} is not a folder"


def _unpack(path: Path, names: Sequence[str], folder: Path) -> dict[str, object]:
    return {"sha256": sha256(path), **unpack(path, names, folder)}
