# ruff: noqa: T201
"""What the findings' scripts share: print versions and what was seen; fail where that changed."""

import atexit
import os
import platform
from importlib.metadata import version

_changed: list[str] = []


def versions(*packages: str) -> None:
    """Print the versions of Python and of ``packages``."""
    print(
        "versions:",
        ", ".join(
            [
                f"Python {platform.python_version()}",
                *(f"{name} {version(name)}" for name in packages),
            ]
        ),
    )


def seen(what: str, got: object, expected: object = True) -> None:
    """Print ``got``; if it is not ``expected``, the script exits with status 1 at its end."""
    same = got == expected
    print(f"{what}: {got}" + ("" if same else f"   CHANGED, was {expected}"), flush=True)
    if not same:
        _changed.append(what)


@atexit.register
def _report() -> None:
    if _changed:
        print(f"changed: {len(_changed)}", flush=True)
        os._exit(1)
