"""``--user-dir hyptrans`` from any folder: a folder here, an installed package, imported or not."""

import importlib
import importlib.util
import logging
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from hyptrans_startup.errors import UserError

PACKAGE = "hyptrans"

logger = logging.getLogger(__name__)


@contextmanager
def user_dir_by_name(module: ModuleType) -> Iterator[None]:
    """``FileNotFoundError: …/hyptrans`` outside the repository, ``… is not globally unique``.

    fairseq takes ``--user-dir`` for a path, and registers nothing of a package that is imported
    already.
    """
    yield
    stock: Callable[[Any], None] = module.import_user_module

    def import_user_module(args: Any) -> None:
        user_dir = getattr(args, "user_dir", None)
        if user_dir is None:
            return
        ours = Path(user_dir).name == PACKAGE
        try:
            stock(Namespace(user_dir=str(locate(user_dir))) if ours else args)
        except FileNotFoundError as error:
            if error.errno is None:  # fairseq's own, which holds the path only
                raise UserError(f"--user-dir {user_dir} does not exist ({error})") from error
            raise
        if not ours:
            return
        # fairseq leaves this out where the package was imported before
        importlib.import_module(f"{PACKAGE}.models")

    vars(module)["import_user_module"] = import_user_module


def locate(user_dir: str) -> Path:
    """Return the folder of the package that ``--user-dir`` means.

    A package that is imported cannot be exchanged, so it goes first; then a folder of that name, as
    in fairseq; then, for a bare name, the installed package. A path that leads nowhere comes back
    unchanged, for fairseq to complain of.
    """
    here = Path(user_dir).absolute()
    bare = user_dir == PACKAGE
    elsewhere = package_folder() if bare or PACKAGE in sys.modules else None
    if not (here / "__init__.py").is_file():
        return elsewhere or here
    if elsewhere is None or elsewhere.samefile(here):
        return here
    chosen, other = (elsewhere, here) if PACKAGE in sys.modules else (here, elsewhere)
    logger.warning("--user-dir %s takes %s and leaves out %s", user_dir, chosen, other)
    return chosen


def package_folder() -> Path | None:
    """Return the folder of the imported or else the installed package, None where there is none."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent
