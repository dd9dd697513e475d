"""Programs that tests start, each as a process of its own."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent
HYPTRANS = [sys.executable, "-m", "hyptrans"]


def run(*command, check=True, **how):
    """Run a command to its end; unless a test looks at its status itself, it must succeed."""
    how = {"env": {**os.environ, "OMP_NUM_THREADS": "1"}, "text": True} | how
    done = subprocess.run([*map(str, command)], capture_output=True, check=False, **how)
    if check:
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def python(code, *words, without=(), **how):
    """Run code in a Python for which some packages are not installed."""
    return run(*interpreter(code, without), *words, **how)


def interpreter(code, without=()):
    hidden = f"import sys; sys.modules.update(dict.fromkeys({[*without]}))\n"
    return sys.executable, "-c", hidden + textwrap.dedent(code)


def printed(code, names=None):
    """What code prints that is run here, with its names in a dictionary."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {} if names is None else names)
    return out.getvalue()


MAIN = "from hyptrans.commands.cli import main; sys.exit(main(sys.argv[1:]))"
"""The code of ``hyptrans``."""


def heed():
    """Let a new process heed Ctrl-C (``Popen(preexec_fn=heed)``).

    What a shell starts in the background ignores it, and hands that on to all that it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
