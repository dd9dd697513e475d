"""Logging of the libraries beneath is as it was, in whatever order threads end."""

import logging

from hyptrans.support.logs import quiet


def test_the_last_of_several_takes_it_all_back():
    before = logging.root.manager.disable
    first, second = quiet(), quiet()
    first.__enter__()
    second.__enter__()
    assert logging.root.manager.disable == logging.INFO
    first.__exit__(None, None, None)
    assert logging.root.manager.disable == logging.INFO
    second.__exit__(None, None, None)
    assert logging.root.manager.disable == before
