"""What stands in the output folder: what these commands wrote there, and what is another's."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hyptrans.dataprep import manifest
from hyptrans.dataprep.journal import is_kept_in
from hyptrans.dataprep.steps import subwords
from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, whole_file
from hyptrans_startup.files import sync_folder

WORK = "intermediate"
OUTPUTS = ("data-bin", "raw", *subwords.MODEL_NAMES.values())
# what a run that was stopped may have left, whatever its options were
_UNFINISHED = re.compile(
    r"data-bin/(dict|train|valid|test\d*)\.[^/]+|raw/test\d*\.\w+(\.partial)?|"
    + "|".join(map(re.escape, subwords.MODEL_NAMES.values()))
)


def refuse_inputs(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse to read what a run into ``out`` replaces; by whatever path or link it is named.

    Raises:
        UserError: an input lies in a file or folder that is written or removed.
    """
    places = [out / name for name in (manifest.NAME, WORK, *OUTPUTS)]
    places = [place for place in places if place.exists()]
    for path in inputs:
        # a link in the folder would be removed as well as a file that a link leads to
        named, real = Path(os.path.abspath(path)), path.resolve()
        around = [named, *named.parents, real, *real.parents]
        for place in places:
            if any(one.exists() and one.samefile(place) for one in around):
                raise UserError(
                    f"{path} is an input, and what is in {place} is replaced; choose another --out"
                )


def refuse_others(out: Path, finished: Mapping[str, Any] | None) -> None:
    """Refuse to replace what these commands did not write.

    Args:
        out: the folder.
        finished: its manifest, if it has one.

    Raises:
        UserError: a file is neither in the manifest nor left by a run that was stopped.
    """
    work = out / WORK
    stopped = is_kept_in(work)
    others = [] if stopped else list(_files(work))
    for path in (path for name in OUTPUTS for path in _files(out / name)):
        name = path.relative_to(out).as_posix()
        left = stopped and _UNFINISHED.fullmatch(name)
        if not (left if finished is None else name in finished["outputs"]):
            others.append(path)
    if others:
        raise UserError(
            f"{min(others)} was not made by this command, which would replace it; "
            "choose another --out, or move it away"
        )


def put_in_place(files: Iterable[Path], result: Path, out: Path) -> list[Path]:
    """Replace what stands in ``out`` by the files of a whole result, and return them there.

    They stay in ``result`` too, so that after a kill this can be done again.
    """
    # the manifest goes first: without it the folder does not count as finished
    for name in (manifest.NAME, *OUTPUTS):
        remove(out / name)
    placed = {path: out / path.relative_to(result) for path in files}
    for source, target in placed.items():
        target.parent.mkdir(exist_ok=True)
        _link(source, target)
    for parent in {target.parent for target in placed.values()}:
        sync_folder(parent)
    return list(placed.values())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # a file system without hard links
        with whole_file(target) as file, open(source, "rb") as whole:
            shutil.copyfileobj(whole, file)


def _files(path: Path) -> Iterator[Path]:
    """Yield what would be lost with a path: itself, or all in it but folders."""
    if path.is_dir():
        inside = sorted(path.rglob("*"))
        yield from (one for one in inside if one.is_symlink() or not one.is_dir())
    elif path.exists() or path.is_symlink():
        yield path
