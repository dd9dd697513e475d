"""Import the user's own architectures from a plug-in such as fairseq's ``--user-dir`` takes."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from hyptrans.support.errors import UserError


def add_user_dir(parser: argparse.ArgumentParser) -> None:
    """Add ``--user-dir``; parsing it imports the plug-in that it names."""
    about = "plug-in, a folder or module that registers an architecture; its code runs"
    parser.add_argument("--user-dir", type=import_plugin, metavar="DIR", help=about)


def import_plugin(place: str) -> str:
    """Import a plug-in, a folder with ``__init__.py`` or a module; return ``place`` unchanged.

    Raises:
        UserError: there is no such plug-in, or Python has another module of that name.
    """
    if place == "hyptrans":  # this package, even if a folder has the same name
        return place
    path, name = Path(place).resolve(), place
    if path.is_file():
        raise UserError(
            f"--user-dir {place} is a file: name its folder, whose __init__.py imports it"
        )
    is_folder = path.is_dir()
    if is_folder:
        if not (path / "__init__.py").is_file():
            raise UserError(
                f"--user-dir {place} has no __init__.py: write one there that imports your modules"
            )
        name = path.name
        if (parent := os.fspath(path.parent)) not in sys.path:
            sys.path.insert(0, parent)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UserError(f"--user-dir {place} is neither a folder nor a module here") from error
    if is_folder and Path(getattr(module, "__file__", None) or "").resolve().parent != path:
        raise UserError(f"--user-dir {place} has the name of another module: rename the folder")
    return place
