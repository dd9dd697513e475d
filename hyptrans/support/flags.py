"""Options of one meaning, which have one name in all commands."""

import argparse
import re
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError
from hyptrans.support.files import out_file, out_folder

MOST_SEED = 2**32 - 1
"""What every generator of random numbers takes."""
_DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu|hpu|mtia|xla|npu|mlu|musa)(:\d+)?")


def add_out(
    parser: argparse.ArgumentParser, about: str, *, folder: bool = False, **more: Any
) -> None:
    """Add ``--out``, a file or a folder to write.

    Args:
        parser: of the command.
        about: what is written.
        folder: into a folder.
        more: as ``required`` or ``default``.
    """
    kind, metavar = (out_folder, "DIR") if folder else (out_file, "FILE")
    parser.add_argument("--out", type=kind, metavar=metavar, help=about, **more)


def add_overwrite(parser: argparse.ArgumentParser, about: str) -> None:
    """Add ``--overwrite``."""
    parser.add_argument("--overwrite", action="store_true", help=about)


def add_seed(parser: argparse.ArgumentParser, about: str, default: int = 1) -> None:
    """Add ``--seed``."""
    about += " (default: %(default)s)"
    parser.add_argument("--seed", type=seed, default=default, metavar="N", help=about)


def add_device(
    parser: argparse.ArgumentParser, default: str | None = "cpu", about: str = "%(default)s"
) -> None:
    """Add ``--device``; ``about`` says what it is where it is not given."""
    where = f"cpu, cuda, or auto for cuda where there is one (default: {about})"
    parser.add_argument("--device", type=device, default=default, metavar="NAME", help=where)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine``: what computes."""
    about = "torch, or onnx: the graphs of a model folder, without torch (default: %(default)s)"
    parser.add_argument("--engine", choices=("torch", "onnx"), default="torch", help=about)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``, the folder that a checkpoint's training text was prepared in."""
    about = "folder that hyptrans prepare wrote for a checkpoint, or its data-bin"
    about += " (default: that of its training)"
    parser.add_argument("--data", type=Path, metavar="DIR", help=about)


def device(text: str) -> str:
    """A device as it is typed, for argparse; torch, which says if it is here, is slow to import.

    Raises:
        UserError: torch computes on none of this kind.
    """
    if not _DEVICE.fullmatch(text):
        raise UserError(f"device {text} cannot be used: name cpu, cuda or cuda:1, for example")
    return text


def seed(text: str) -> int:
    """A seed as it is typed, for argparse.

    Raises:
        argparse.ArgumentTypeError: generators of random numbers do not take it.
    """
    if not text.isdecimal() or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {MOST_SEED}")
    return int(text)


def positive(text: str) -> int:
    """A whole number above 0 as it is typed, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
