"""Errors a user can act on, and the one place where they become an exit status."""

import errno
import sys
from collections.abc import Callable

from hyptrans.support.extras import how_to_install
from hyptrans_startup.errors import UserError, clean

__all__ = ["UserError", "clean", "describe_os_error", "run_command"]

# what a full disk looks like: no space, quota reached, file size limit reached
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def describe_os_error(error: OSError) -> str:
    """Return one sentence for an error of the operating system."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _DISK_FULL:
        return (
            f"{where}the disk is full or a size limit is reached ({error.strerror}); "
            "free some space and run the same command again, it continues where it stopped"
        )
    return f"{where}{error.strerror or error}"


def run_command(
    main: Callable[[], object],
    *,
    stopped: str = "the same command continues where it stopped",
    memory: str = "close other programs or use a smaller training set",
) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C.

    Only errors a user can mend are turned into a sentence; a bug keeps its traceback.

    Args:
        main: the command; what it returns is not looked at.
        stopped: what Ctrl-C means for the next run, may be empty.
        memory: what to do where memory does not suffice.
    """
    try:
        main()
    except UserError as error:
        message = str(error)
    except OSError as error:
        message = describe_os_error(error)
    except ModuleNotFoundError as error:
        hint = how_to_install(error.name)
        if hint is None:
            raise
        message = f"{error.name} is missing: {hint}"
    except MemoryError:
        message = f"not enough memory; {memory}"
    except KeyboardInterrupt:
        sys.stderr.write(f"\nstopped; {stopped}\n" if stopped else "\nstopped\n")
        return 130
    else:
        return 0
    sys.stderr.write(f"error: {message}\n")
    return 2
