"""Data sets with a name: the command knows their files, and takes them wherever they lie."""

import argparse
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hyptrans.data.commands.options import add_shared_arguments, make_job
from hyptrans.data.pipeline import prepare
from hyptrans.data.plan import Job, PairSource, Plan
from hyptrans.data.sources import hub
from hyptrans.data.sources.archive import MOST_GIGABYTES, unpack
from hyptrans.data.sources.download import fetch, file_name
from hyptrans.data.sources.files import locate, parallel_files
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from hyptrans.support.lines import MOST_TIMES
from hyptrans.support.steps import Step

Files = Mapping[str, tuple[str, Sequence[tuple[str, str]]]]
"""Of each set the name of the reader, and names of files, source first."""
_SHA256 = re.compile(r"(?:(?P<name>[^=]+)=)?(?P<hash>[0-9a-fA-F]{64})")


@dataclass(frozen=True)
class Named:
    """A data set with a name.

    Attributes:
        program: name that the manifest has for the command.
        languages: its default source and target; it has the other direction too.
        sizes: default vocabulary by kind of subwords.
        urls: what is downloaded where nothing else is said.
        files: its sets' files, for a source and a target language.
        validation: the set that the split ``validation`` of the hub's data set is.
        plan: what happens to its sets, of files or, if true, of the hub, unless the text stays raw.
    """

    program: str
    languages: tuple[str, str]
    sizes: Mapping[str, int]
    urls: Sequence[str]
    files: Callable[[tuple[str, str]], Files]
    validation: str
    plan: Callable[[Mapping[str, PairSource], bool], Plan]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that all data sets with a name have."""
        add_shared_arguments(parser, self.sizes, self.languages)
        listed = "\n".join(f"  {url}" for url in self.urls)
        parser.epilog = f"{parser.epilog}\n\ndownloaded when no source is given:\n{listed}"
        add = parser.add_argument
        about = "archive to unpack (several times)"
        add("--archive", type=Path, metavar="FILE", action="append", default=[], help=about)
        about = "folder with the unpacked files, plain or gzipped"
        add("--raw", type=Path, metavar="DIR", help=about)
        hub.add_options(parser)
        about = "SHA-256 that an archive must have (several times; NAME is its file name)"
        add("--sha256", metavar="[NAME=]HEX", action="append", default=[], help=about)
        about = f"gigabytes that an archive may unpack to (default: {MOST_GIGABYTES}, and "
        about += f"{MOST_TIMES} times its size)"
        add("--max-unpacked", metavar="GB", type=float, help=about)

    def prepare(self, args: argparse.Namespace, problems: Sequence[str] = ()) -> None:
        """Prepare the data set.

        Raises:
            UserError: all that is wrong with the options, with ``problems`` in one sentence.
        """
        pins: dict[str, str] = {}
        wrong = [*problems, *self._wrong_languages(args), *self._wrong_source(args, pins)]
        job = make_job(args, self.program, self.sizes, wrong)
        files = self.files(job.languages)
        names = [name for _, pairs in files.values() for pair in pairs for name in pair]
        folders, inputs, before = [], list(args.archive), []
        if args.raw:
            # archives unpack into folders
            folders = [args.raw, *sorted(path for path in args.raw.iterdir() if path.is_dir())]
            inputs = list(locate(folders, names).values())
        elif args.hub:
            named = hub.HubSet(args.hub, args.hub_config, args.hub_revision)
            inputs = named.inputs
        else:
            before = list(self._unpacking(args, job, names, pins))
            folders = [step.outputs[0] for step in before if step.name.startswith("unpack ")]

        def make_plan() -> Plan:
            sets: dict[str, PairSource] = {}
            for name, (reader, pairs) in files.items() if not args.hub else ():
                paths = [(Path(source), Path(target)) for source, target in pairs]
                sets[name] = parallel_files(
                    reader, paths, lambda path: locate(folders, names)[path.name]
                )
            if args.hub:
                sets = named.sets(job.languages, {"valid": self.validation})
            plan = replace(self.plan(sets, bool(args.hub)), before=before)
            return replace(plan, text={}) if job.raw_text else plan

        prepare(job, inputs, make_plan)

    def _unpacking(
        self, args: argparse.Namespace, job: Job, names: Sequence[str], pins: Mapping[str, str]
    ) -> Iterator[Step]:
        """Steps that download archives, if none is given, and take the files out of them."""
        archives = list(args.archive)
        for path in archives:
            pin = pins.get(path.name) or pins.get("")
            if pin and (found := sha256(path)) != pin:
                raise UserError(f"{path} has SHA-256 {found}, but --sha256 says {pin}")
        settings = {"names": sorted(names)}
        for url in self.urls if not archives else ():
            path = job.out / "downloads" / file_name(url)
            pin = pins.get(path.name) or pins.get("")
            archives.append(path)
            run = partial(_download, url, path.parent, pin)
            yield Step(f"download {path.name}", [path], run, settings)
        for number, path in enumerate(archives):
            folder = job.work / "unpacked" / f"{number} {path.name}"
            yield Step(
                f"unpack {path.name}",
                [folder],
                partial(unpack, path, names, folder, args.max_unpacked),
                settings,
            )

    def _wrong_languages(self, args: argparse.Namespace) -> Iterator[str]:
        """Fill in the languages not given; only the default pair, in either direction, is known."""
        source, target = self.languages
        other = {source: target, target: source}
        args.source_lang = args.source_lang or other.get(args.target_lang, source)
        args.target_lang = args.target_lang or other.get(args.source_lang, target)
        if other.get(args.source_lang) != args.target_lang:
            yield (
                f"unknown language pair {args.source_lang}-{args.target_lang}: this data set has "
                f"{source}-{target} and {target}-{source}"
            )

    def _wrong_source(self, args: argparse.Namespace, pins: dict[str, str]) -> Iterator[str]:
        """Say what is wrong with where the data comes from, and fill in SHA-256 by file name."""
        given = [f"--{option}" for option in ("archive", "raw", "hub") if getattr(args, option)]
        if len(given) > 1:
            yield f"only one of {', '.join(given)} can be used"
        yield from (
            f"--archive {path} is not a file" for path in args.archive if not path.is_file()
        )
        if args.raw and not args.raw.is_dir():
            yield f"--raw {args.raw} is not a folder"
        for option in ("hub_config", "hub_revision"):
            if getattr(args, option) and not args.hub:
                yield f"--{option.replace('_', '-')} needs --hub"
        if args.max_unpacked is not None and not 0 < args.max_unpacked < math.inf:
            yield f"--max-unpacked {args.max_unpacked} is not a number above 0"
        names = {path.name for path in args.archive} or set(map(file_name, self.urls))
        for text in args.sha256:
            found = _SHA256.fullmatch(text)
            if args.raw or args.hub:
                yield "--sha256 is for archives, not for --raw or --hub"
            elif not found:
                yield f"--sha256 {text!r} is not [NAME=] and 64 hexadecimal digits"
            elif found["name"] and found["name"] not in names:
                yield f"--sha256: no archive is called {found['name']}"
            elif not found["name"] and len(names) > 1:
                yield f"--sha256 {text} must say NAME= as there are {len(names)} archives"
            else:
                pins[found["name"] or ""] = found["hash"].lower()


def _download(url: str, folder: Path, pin: str | None) -> dict[str, str]:
    return {"url": url, "sha256": sha256(fetch(url, folder, pin))}
