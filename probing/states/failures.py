"""What the libraries of Hugging Face raise for files that they cannot use, in one sentence."""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hyptrans.support.errors import UserError, out_of_memory, unquoted

_MOST_CHARACTERS = 240
"""Of a reason; some list all that would have been right."""


@contextmanager
def told(sentence: Callable[[BaseException], str]) -> Iterator[None]:
    """Tell what is raised inside as an error of the user's files; stops and full memory stay.

    Args:
        sentence: makes the message.

    Raises:
        UserError: something was raised; what is one already stays as it is.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # what Rust ends with, no Exception; no class of it can be imported
        panic = type(error).__name__ == "PanicException"
        if not (panic or isinstance(error, Exception)) or out_of_memory(error):
            raise
        raise UserError(sentence(error)) from error


def reason(error: BaseException) -> str:
    """What an error says, in one line; with its class where that is a mere key, or nothing."""
    text = textwrap.shorten(unquoted(error), _MOST_CHARACTERS).rstrip(".")
    if text and not isinstance(error, KeyError):
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")
