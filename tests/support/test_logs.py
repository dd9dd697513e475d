"""Logging of the libraries beneath is as it was, in whatever order threads end."""

import logging

from hyptrans.support.logs import quiet


def test_overlapping_redirections_restore_the_original_state():
    root = logging.getLogger()
    before = (root.handlers[:], root.level, root.manager.disable)
    first, second = quiet(), quiet()
    first.__enter__()
    root.addHandler(logging.NullHandler())  # as fairseq does when it is imported
    root.setLevel(logging.DEBUG)
    second.__enter__()
    first.__exit__(None, None, None)
    assert not root.isEnabledFor(logging.INFO)
    second.__exit__(None, None, None)
    assert (root.handlers, root.level, root.manager.disable) == before
