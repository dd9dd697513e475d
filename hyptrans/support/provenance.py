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

    Returns: None if ``root`` is not such a folder, as after an installation.
    """
    # site-packages may lie inside the user's own repository
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*"]
    command.append("--dirty= with changes")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
