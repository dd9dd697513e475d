"""Options that have the same name and meaning in all commands."""

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hyptrans.support.errors import UserError

MOST_SEED = 2**32 - 1
"""Largest seed that every random number generator takes."""
MOST = 2**31 - 1
"""Largest count that every library takes."""
_DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu|hpu|mtia|xla|npu|mlu|musa)(:\d+)?")


def add_out(
    parser: argparse.ArgumentParser, about: str, *, folder: bool = False, **more: Any
) -> None:
    """Add ``--out``, a file or a folder to write; ``more`` are other arguments of argparse."""

    def checked(name: str) -> Path:
        path, kinds = Path(name), ("file", "folder")
        if path.exists() and path.is_dir() != folder:
            found, wanted = kinds if folder else reversed(kinds)
            raise UserError(f"--out {path} is a {found}, a {wanted} is needed: name another")
        return path

    metavar = "DIR" if folder else "FILE"
    parser.add_argument("--out", type=checked, metavar=metavar, help=about, **more)


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
    """Add ``--device``; ``about`` describes the default."""
    where = f"cpu, cuda, or auto for cuda where there is one (default: {about})"
    parser.add_argument("--device", type=device, default=default, metavar="NAME", help=where)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine``, the library that computes."""
    about = "torch, or onnx: the graphs of a model folder, without torch (default: %(default)s)"
    parser.add_argument("--engine", choices=("torch", "onnx"), default="torch", help=about)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``, the folder of a checkpoint's prepared training text."""
    about = "a checkpoint's data folder, from hyptrans prepare, or its data-bin"
    about += " (default: the one it was trained on)"
    parser.add_argument("--data", type=Path, metavar="DIR", help=about)


def device(text: str) -> str:
    """Check a device's name, for argparse; whether it exists is checked later, by torch.

    Raises:
        UserError: torch knows no such kind of device.
    """
    if not _DEVICE.fullmatch(text):
        raise UserError(f"device {text} cannot be used: name cpu, cuda or cuda:1, for example")
    return text


def seed(text: str) -> int:
    """Parse a seed, for argparse.

    Raises:
        argparse.ArgumentTypeError: random number generators do not take it.
    """
    if not text.isdecimal() or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {MOST_SEED}")
    return int(text)


def number(kind: type, fits: Callable[[float], bool], about: str) -> Callable[[str], Any]:
    """Return a parser of numbers that fit, for argparse; ``about`` says which these are."""

    def parse(text: str) -> Any:
        with suppress(ValueError):
            if fits(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {about}")

    return parse


def positive(text: str) -> int:
    """Parse a whole number from 1 to ``MOST``, for argparse.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        bound = f"from 1 to {MOST:,}" if text.isdecimal() and int(text) else "above 0"
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {bound}")
    return int(text)
