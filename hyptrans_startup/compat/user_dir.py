"""``--user-dir NAME`` from any folder, where NAME is the plug-in that the hook comes with."""

import importlib
import importlib.util
import logging
from argparse import Namespace
from pathlib import Path
from typing import Any

from hyptrans_startup import plugin
from hyptrans_startup.errors import UserError
from hyptrans_startup.wrapping import Call

logger = logging.getLogger(__name__)


def user_dir_by_name(import_user_module: Call, args: Any) -> None:
    """``FileNotFoundError: …/NAME`` outside the repository, ``… is not globally unique``.

    fairseq takes ``--user-dir`` for a path, and registers nothing of a package that is imported
    already.
    """
    user_dir = getattr(args, "user_dir", None)
    if user_dir is None:
        return
    folder = locate(user_dir)
    if folder is None and Path(user_dir).is_file():
        raise UserError(f"--user-dir {user_dir} is a file: name the folder of a package")
    try:
        import_user_module(args if folder is None else Namespace(user_dir=str(folder)))
    except FileNotFoundError as error:
        if error.errno is None:  # fairseq's own, which holds the path only
            raise UserError(f"--user-dir {user_dir} does not exist ({error})") from error
        raise
    if folder is not None:
        # fairseq leaves this out where the package was imported before
        importlib.import_module(f"{plugin.PACKAGE}.fairseq")


def locate(user_dir: str) -> Path | None:
    """Return the folder of the package that ``--user-dir`` means, None where it is no name of ours.

    Ours are the package's name, a path or a link to a folder of that name, and the folder around
    one. The installed package is taken for all of them, whatever lies in the present folder; a
    folder that is named counts where none is installed. A path to nothing is returned unchanged:
    fairseq complains of it.
    """
    here = Path(user_dir).resolve()
    inside = here / plugin.PACKAGE
    if not (here / "__init__.py").is_file() and (inside / "__init__.py").is_file():
        here = inside
    if plugin.PACKAGE not in (here.name, Path(user_dir).name):
        return None
    installed = package_folder()
    if installed is None or not (user_dir == plugin.PACKAGE or here.exists()):
        return here
    if (here / "__init__.py").is_file() and not installed.samefile(here):
        logger.warning("--user-dir %s takes %s and leaves out %s", user_dir, installed, here)
    return installed


def package_folder() -> Path | None:
    """Return the folder of the imported or else the installed package, None where there is none."""
    spec = importlib.util.find_spec(plugin.PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
