"""What a result depends on besides its input: package versions and the commit."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from hyptrans import __version__

_ROOT = Path(__file__).resolve().parents[2]


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python, hyptrans and the installed ones of ``packages``."""
    found = {"python": platform.python_version(), "hyptrans": __version__}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit(root: Path = _ROOT) -> str | None:
    """Return the commit of a repository, with a mark if files differ from it.

    Args:
        root: the top folder of the repository, by default that of this code.

    Returns:
        None if ``root`` is no such folder, as after an installation.
    """
    try:
        # site-packages may lie inside the user's own repository
        if Path(_git(root, "rev-parse", "--show-toplevel")) != root:
            return None
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head} with changes" if changed else head


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
