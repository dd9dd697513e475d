"""``--user-dir NAME`` from any folder, where NAME is the plug-in that the hook comes with."""

import importlib
import importlib.util
import logging
import sys
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
    ours = Path(user_dir).name == plugin.PACKAGE
    try:
        import_user_module(Namespace(user_dir=str(locate(user_dir))) if ours else args)
    except FileNotFoundError as error:
        if error.errno is None:  # fairseq's own, which holds the path only
            raise UserError(f"--user-dir {user_dir} does not exist ({error})") from error
        raise
    if ours:
        # fairseq leaves this out where the package was imported before
        importlib.import_module(f"{plugin.PACKAGE}.models")


def locate(user_dir: str) -> Path:
    """Return the folder of the package that ``--user-dir`` means.

    An imported package cannot be exchanged and is taken first; then a folder of that name, as in
    fairseq; then, for a bare name, the installed package. A path to nothing is returned unchanged:
    fairseq complains of it.
    """
    here = Path(user_dir).absolute()
    bare = user_dir == plugin.PACKAGE
    elsewhere = package_folder() if bare or plugin.PACKAGE in sys.modules else None
    if not (here / "__init__.py").is_file():
        return elsewhere or here
    if elsewhere is None or elsewhere.samefile(here):
        return here
    chosen, other = (elsewhere, here) if plugin.PACKAGE in sys.modules else (here, elsewhere)
    logger.warning("--user-dir %s takes %s and leaves out %s", user_dir, chosen, other)
    return chosen


def package_folder() -> Path | None:
    """Return the folder of the imported or else the installed package, None where there is none."""
    spec = importlib.util.find_spec(plugin.PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
