"""Where a named data set comes from: archives, an unpacked tree, the hub, or a download list."""

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hyptrans.dataprep.journal import Journal
from hyptrans.dataprep.plan import PairSource
from hyptrans.dataprep.sources.archive import MOST_GIGABYTES, unpack
from hyptrans.dataprep.sources.download import check_pin
from hyptrans.dataprep.sources.hub import local_inputs, splits
from hyptrans.support.errors import UserError
from hyptrans.support.lines import MOST_TIMES

_SHA256 = re.compile(r"(?:(?P<name>[^=]+)=)?(?P<hash>[0-9a-fA-F]{64})")


@dataclass(frozen=True)
class Origin:
    """The checked answers to where the data comes from; at most one of the first three is set.

    Attributes:
        archives: tar files of the user.
        raw: folder with the unpacked files, plain or gzipped.
        hub: name or path for ``datasets``.
        pins: SHA-256 by file name; the empty name stands for the only file.
        gigabytes: that an archive may unpack to, None for the default.
    """

    archives: tuple[Path, ...]
    raw: Path | None
    hub: str | None
    hub_config: str | None
    hub_revision: str | None
    pins: dict[str, str]
    gigabytes: float | None

    def inputs(self, names: Sequence[str]) -> list[Path]:
        """Return what is read of the user's: archives, the files ``names``, or a local data set.

        Raises:
            UserError: the folder lacks some of the files.
        """
        if self.raw:
            return list(locate(self.folders(), names).values())
        return list(self.archives) + (local_inputs(self.hub) if self.hub else [])

    def hub_splits(self, languages: tuple[str, str]) -> dict[str, PairSource]:
        """Return the splits of the data set of ``--hub``."""
        return splits(self.hub or "", self.hub_config, self.hub_revision, languages)

    def folders(self) -> list[Path]:
        """Return the folder of ``--raw`` and those in it, as archives unpack into folders."""
        if not self.raw:
            return []
        return [self.raw, *sorted(path for path in self.raw.iterdir() if path.is_dir())]


def add_options(parser: argparse.ArgumentParser, urls: Sequence[str]) -> None:
    """Add the options that say where the data comes from."""
    listed = "\n".join(f"  {url}" for url in urls)
    parser.epilog = f"{parser.epilog}\n\ndownloaded when no source is given:\n{listed}"
    add = parser.add_argument
    add("--archive", metavar="FILE", action="append", help="archive to unpack (several times)")
    add("--raw", metavar="DIR", help="folder with the unpacked files, plain or gzipped")
    add(
        "--hub",
        metavar="NAME_OR_PATH",
        help="data set for the datasets library, with a column translation",
    )
    for option, metavar, what in (
        ("--hub-config", "NAME", "configuration"),
        ("--hub-revision", "REV", "revision"),
    ):
        add(option, metavar=metavar, help=f"{what} of the data set on the hub")
    add(
        "--sha256",
        metavar="[NAME=]HEX",
        action="append",
        help="SHA-256 that an archive must have (several times; NAME is its file name)",
    )
    add(
        "--max-unpacked",
        metavar="GB",
        type=float,
        help=f"gigabytes that an archive may unpack to (default: {MOST_GIGABYTES}, and "
        f"{MOST_TIMES} times its size)",
    )


def check(args: argparse.Namespace, urls: Sequence[str], problems: list[str]) -> Origin:
    """Check the options of ``add_options``; what is wrong is added to ``problems``."""
    given = [option for option in ("archive", "raw", "hub") if getattr(args, option)]
    if len(given) > 1:
        problems.append(f"only one of {', '.join('--' + option for option in given)} can be used")
    archives = tuple(map(Path, args.archive or ()))
    problems += [f"--archive {path} is not a file" for path in archives if not path.is_file()]
    if args.raw and not Path(args.raw).is_dir():
        problems.append(f"--raw {args.raw} is not a folder")
    problems += [
        f"--{option.replace('_', '-')} needs --hub"
        for option in ("hub_config", "hub_revision")
        if getattr(args, option) and not args.hub
    ]
    if args.max_unpacked is not None and not 0 < args.max_unpacked < math.inf:
        problems.append(f"--max-unpacked {args.max_unpacked} is not a number above 0")
    names = {path.name for path in archives} or {Path(urlsplit(url).path).name for url in urls}
    return Origin(
        archives=archives,
        raw=Path(args.raw) if args.raw else None,
        hub=args.hub,
        hub_config=args.hub_config,
        hub_revision=args.hub_revision,
        pins=_pins(args, names, problems),
        gigabytes=args.max_unpacked,
    )


def _pins(args: argparse.Namespace, names: set[str], problems: list[str]) -> dict[str, str]:
    pins: dict[str, str] = {}
    for text in args.sha256 or ():
        found = _SHA256.fullmatch(text)
        if args.raw or args.hub:
            problems.append("--sha256 is for archives, not for --raw or --hub")
        elif not found:
            problems.append(f"--sha256 {text!r} is not [NAME=] and 64 hexadecimal digits")
        elif found["name"] and found["name"] not in names:
            problems.append(f"--sha256: no archive is called {found['name']}")
        elif not found["name"] and len(names) > 1:
            problems.append(f"--sha256 {text} must say NAME= as there are {len(names)} archives")
        else:
            pins[found["name"] or ""] = found["hash"].lower()
    return pins


def gather(
    origin: Origin, urls: Sequence[str], wanted: Sequence[str], journal: Journal
) -> list[Path]:
    """Return the folders in which the files lie, after downloading and unpacking as needed.

    Raises:
        UserError: an archive cannot be had, is damaged, or has another SHA-256.
    """
    if origin.raw:
        return origin.folders()
    archives = list(origin.archives)
    for path in archives:
        check_pin(path, origin.pins)
    if not archives:
        for url in urls:
            name = Path(urlsplit(url).path).name
            pin = origin.pins.get(name) or origin.pins.get("")
            archives.append(journal.download(url, pin))
    folders = []
    for number, path in enumerate(archives):
        folder = journal.work / "unpacked" / str(number)
        folders.append(folder)

        def work(path: Path = path, folder: Path = folder) -> dict[str, int]:
            return unpack(path, wanted, folder, origin.gigabytes)

        journal.once(
            f"unpack {path.name}",
            work,
            settings={"wanted": sorted(wanted)},
            inputs=[path],
            outputs=[folder],
        )
    return folders


def locate(folders: Sequence[Path], names: Sequence[str]) -> dict[str, Path]:
    """Return the path of each file, plain or gzipped.

    Raises:
        UserError: some are nowhere; names all of them.
    """
    found: dict[str, Path] = {}
    for name in names:
        for folder in folders:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    found.setdefault(name, path)
    if missing := [name for name in names if name not in found]:
        raise UserError(f"not found in {folders[0]}: {', '.join(missing)}")
    return found
