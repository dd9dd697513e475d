"""The output folder: tell apart the files that these commands wrote and those of others."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hyptrans.data import manifest, subwords
from hyptrans.support import steps
from hyptrans.support.errors import UserError
from hyptrans.support.files import remove, sync_folder, whole_file

OUTPUTS = ("data-bin", "raw", *subwords.MODEL_NAMES.values())


def refuse_inputs(out: Path, work: Path, inputs: Iterable[Path]) -> None:
    """Refuse inputs that a run into ``out`` would replace, under whatever path or link.

    Raises:
        UserError: an input is or lies in a file or folder that the run writes or removes.
    """
    places = [place for place in (work, *(out / name for name in OUTPUTS)) if place.exists()]
    for path in inputs:
        # both a link inside the folder and a file that a link leads to would be removed
        named = path.parent.resolve() / path.name
        for place in places:
            if any(one.is_relative_to(place.resolve()) for one in (named, path.resolve())):
                raise UserError(
                    f"{path} is an input, and what is in {place} is replaced; choose another --out"
                )


def refuse_others(out: Path, work: Path, finished: Mapping[str, Any] | None) -> None:
    """Refuse to replace files that these commands did not write.

    Args:
        out: the output folder.
        work: the folder in it to which steps write.
        finished: the manifest of ``out``, if it has one.

    Raises:
        UserError: a file is neither in the manifest nor left by a stopped run.
    """
    known = {out / name for name in finished["outputs"]} if finished else set()
    if stopped := steps.is_kept_in(work):
        known |= {out / path.relative_to(work / "result") for path in _files(work / "result")}
    others = {path for name in OUTPUTS for path in _files(out / name)} - known
    others |= set() if stopped else set(_files(work))
    if others:
        raise UserError(
            f"{min(others)} was not made by this command, which would replace it; "
            "choose another --out, or move it away"
        )


def put_in_place(files: Iterable[Path], result: Path, out: Path) -> list[Path]:
    """Replace an earlier run's files in ``out`` by a complete result, and return the new files.

    They also stay in ``result``, so that this can be repeated after a kill.
    """
    # remove the manifest last: it tells which of these files belong to these commands
    for name in (*OUTPUTS, manifest.NAME):
        remove(out / name)
    placed = {path: out / path.relative_to(result) for path in sorted(files)}
    for source, target in placed.items():
        target.parent.mkdir(exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            # the file system has no hard links
            with whole_file(target) as file, open(source, "rb") as whole:
                shutil.copyfileobj(whole, file)
    for parent in {target.parent for target in placed.values()}:
        sync_folder(parent)
    return list(placed.values())


def _files(path: Path) -> Iterator[Path]:
    """Yield the files that would be lost with a path: itself, or all files and links in it."""
    if path.is_dir():
        inside = sorted(path.rglob("*"))
        yield from (one for one in inside if one.is_symlink() or not one.is_dir())
    elif path.exists() or path.is_symlink():
        yield path
