"""Processes that tests interrupt."""

import signal


def heed() -> None:
    """Let a new process heed Ctrl-C (``Popen(preexec_fn=heed)``).

    What a shell starts in the background ignores it, and hands that on to all that it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
