"""Checkpoints on disk whole or not at all, and the way on where one is cut all the same."""

import logging
import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hyptrans_startup.errors import UserError
from hyptrans_startup.files import whole_file
from hyptrans_startup.wrapping import Call, before

LAST = "checkpoint_last.pt"
NEWEST = "newest"
"""The value of ``--restore-file`` that asks for the newest whole checkpoint of ``--save-dir``."""
ZIP = b"PK\x03\x04"
written: list[str] = []
"""Checkpoints that this process has written."""

logger = logging.getLogger(__name__)


def cut_when_killed(save: Call, obj: Any, filename: str, async_write: bool = False) -> None:
    """A checkpoint of half its length after a kill, or a traceback for a full disk."""
    import torch
    from fairseq.file_io import PathManager

    if async_write or not PathManager.supports_rename(filename):
        save(obj, filename, async_write=async_write)
        return
    with whole(filename) as file:
        torch.save(obj, file)


def cut_when_copied(copy: Call, src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    """A ``checkpoint_last.pt`` of half its length: fairseq copies over the one before."""
    from fairseq.file_io import PathManager

    if any(map(PathManager.path_requires_pathmanager, (src_path, dst_path))):
        return copy(src_path, dst_path, overwrite=overwrite)
    copy_whole(src_path, dst_path)
    return True


@contextmanager
def whole(filename: str) -> Iterator[BinaryIO]:
    """:func:`whole_file` of a checkpoint.

    Raises:
        UserError: the disk is full, or the file cannot be written for another reason.
    """
    try:
        with whole_file(Path(filename)) as file:
            yield file
        written.append(filename)
    except Exception as error:
        # torch says RuntimeError, with the system's own error behind it
        cause = error if isinstance(error, OSError) else error.__context__
        if isinstance(cause, OSError) and not isinstance(error, UserError):
            raise UserError(
                f"checkpoint {filename} cannot be written ({cause.strerror}): checkpoints saved "
                "before are whole; make room and run the same command again, it goes on from the "
                "last of them"
            ) from error
        raise


def copy_whole(source: str, copy: str) -> None:
    """Copy a file so that ``copy`` is at any moment either what it was or all of ``source``."""
    with open(source, "rb") as read, whole(copy) as written:
        shutil.copyfileobj(read, written)


@before
def cut_checkpoint(cfg: Any, trainer: Any, **_: Any) -> None:
    """A traceback where training should go on from a cut file, with whole ones beside it.

    ``--restore-file newest`` goes on from the newest that is whole.
    """
    from torch import distributed

    if cfg.save_dir is None:
        return  # of a program without files of its own
    last = Path(cfg.save_dir) / LAST.replace(".pt", f"{trainer.checkpoint_suffix}.pt")
    if cfg.restore_file == NEWEST:
        cfg.restore_file = LAST
        # processes with one file would write it at the same time
        if trainer.checkpoint_suffix or trainer.is_data_parallel_master:
            mend(last)
        if distributed.is_available() and distributed.is_initialized():
            distributed.barrier()
    elif cfg.restore_file == LAST and is_cut(last):
        found = newest(last)
        way_on = (
            f"remove it to begin anew, as {cfg.save_dir} holds no whole one"
            if found is None
            else f"the newest whole one is {found}, add --restore-file {NEWEST} to go on from it"
        )
        raise UserError(f"checkpoint {last} is cut short: {way_on}")


def is_cut(checkpoint: Path) -> bool:
    """Whether a file is there and its end is missing: torch writes its table of contents last.

    A machine that stops may also leave nothing but zeros.
    """
    if not checkpoint.is_file():
        return False
    try:
        with open(checkpoint, "rb") as file:
            start = file.read(len(ZIP))
        if not ZIP.startswith(start):
            return not any(start)  # if not a file of today's torch, its loader may know it
        zipfile.ZipFile(checkpoint).close()
    except zipfile.BadZipFile:
        return True
    return False


def mend(last: Path) -> None:
    """Put the newest whole checkpoint in the place of a last one that is cut or not there.

    Where there is none, a cut one is removed.
    """
    there = last.is_file()
    if there and not is_cut(last):
        return
    found = newest(last)
    if there or found:
        state = "cut short" if there else "missing"
        way_on = found or "the beginning"
        logger.warning("checkpoint %s is %s: going on from %s", last, state, way_on)
    if found is not None:
        copy_whole(str(found), str(last))
    elif there:
        last.unlink()


def newest(last: Path) -> Path | None:
    """The newest whole checkpoint beside ``last``, of the same part of a sharded model if any."""
    suffix = re.escape(last.stem.removeprefix(Path(LAST).stem))
    name = re.compile(rf"checkpoint(_best|_?\d+(_\d+)?|\.best_.+){suffix}\.pt")
    folder = last.parent.iterdir() if last.parent.is_dir() else ()
    beside = [path for path in folder if name.fullmatch(path.name)]
    beside.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return next((path for path in beside if not is_cut(path)), None)
