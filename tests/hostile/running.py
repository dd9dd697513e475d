"""Tries hostile files, each in a fork of this process, and says whether it was held.

Held is a file that ends in one sentence, which names it, or is read as what it says, within
`MOST_SECONDS` of computing and `MOST_BYTES` of memory, that has run nothing, fetched nothing and
written nowhere, and of which nothing reached the terminal that it acts on.
"""

import itertools
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

MOST_SECONDS = 2.0
MOST_BYTES = 500 << 20
WALL = 120  # on a machine that does much else, too
ORDINARY = "ordinary"
"""Name of a file that must be read, or what is refused beside it proves nothing."""
ATTEMPTS = 3
"""Where a file took too long: a machine that does much else is slow at times."""
RAN = "RAN"
"""File in the working folder that a payload makes when it is run."""
_STARTS = {"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"}
"""Events of Python's by which a program is run, or something is fetched."""
_OWN = re.compile(r"/__pycache__(/[^/]+\.(pyc|nbi|nbc)(\.\d+|\.tmp\.\w+)?)?$")
"""Cache files of Python and numba, and their temporary names."""


class Hostile(NamedTuple):
    """One file: what it tries, and what the user would do with it."""

    name: str
    use: Callable[[], object]


class Outcome(NamedTuple):
    name: str
    held: bool
    words: str
    slow: bool = False


def ordinary(use: Callable[[], object]) -> Hostile:
    """A file as the others of its class, with nothing wrong in it."""
    return Hostile(ORDINARY, use)


def of_each_kind(
    kinds: Mapping[str, Callable[[random.Random], bytes]],
    use: Callable[[Path], object],
    draw: random.Random,
    folder: Path,
    count: int,
) -> list[Hostile]:
    """One file of each kind after the other."""
    tries = []
    for i, kind in enumerate(itertools.islice(itertools.cycle(kinds), count)):
        path = folder / f"file{i}"
        path.write_bytes(kinds[kind](draw))
        tries.append(Hostile(kind, partial(use, path)))
    return tries


def payload(draw: random.Random) -> str:
    """An expression that is a value like any other, after it has made a file."""
    call = draw.choice(
        [
            f"__import__('os').system('touch {RAN}')",
            f"open('{RAN}', 'w').close()",
            f"__import__('pathlib').Path('{RAN}').touch()",
            f'exec(\'open("{RAN}", "w")\')',
            f"[c for c in ().__class__.__base__.__subclasses__() if open('{RAN}', 'w')]",
            f"(lambda: __import__('subprocess').run(['touch', '{RAN}']))()",
        ]
    )
    shapes = ["{}", "[{}, None][1]", "({}, None)[1]", "{} and None", "(x := {}) and None"]
    shapes += ["[{}] * 0", "' '.join(str({})) and None", "{{'a': {}}}['b' if 0 else 'a'] and None"]
    return draw.choice(shapes).format(call)


def attempt(hostile: Hostile, folder: Path) -> Outcome:
    """Use one file, again where it took too long."""
    for _ in range(ATTEMPTS):
        outcome = once(hostile, folder)
        if outcome.held or not outcome.slow:
            break
    return outcome


def once(hostile: Hostile, folder: Path) -> Outcome:
    """Use one file in a fork."""
    from hyptrans.support.errors import UserError, clean

    (folder / RAN).unlink(missing_ok=True)
    there = set(folder.rglob("*"))
    read, write = os.pipe()
    terminal = os.memfd_create("terminal")
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(terminal, 1)
        os.dup2(terminal, 2)
        done = watched(folder)
        signal.alarm(WALL)
        words = "fell: "
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            hostile.use()
            words = "read"
        except UserError as error:
            words = f"told: {error}"
        except BaseException:
            words += traceback.format_exc()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        seconds = time.process_time() - started
        words = f"fell: it did {done[0]}; {words}" if done else words
        os.write(write, f"{seconds:.2f} {used << 10} {words}"[:4000].encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    left = sorted(path.name for path in set(folder.rglob("*")) - there if path.name != RAN)
    shown = os.pread(terminal, 1 << 20, 0).decode(errors="replace")
    os.close(terminal)
    # what is at fault may be the data folder beside that of the class
    beside = [path for path in folder.parent.iterdir() if path != folder]
    places = [*beside, *(path if path.is_dir() else path.name for path in there)]
    named = any(clean(str(place)) in said for place in places)
    return judge(hostile.name, said, shown, ran=(folder / RAN).exists(), left=left, named=named)


def watched(folder: Path) -> list[str]:
    """What this process does from now on that no file may make it do."""
    done: list[str] = []

    def watch(event: str, given: tuple) -> None:
        if event in _STARTS:
            done.append(f"{event} {given!r}"[:200])
        elif event == "open" and isinstance(given[0], str) and given[2] & (os.O_WRONLY | os.O_RDWR):
            path = os.path.abspath(given[0])
            elsewhere = not path.startswith((str(folder), "/dev/shm"))
            if elsewhere and path != os.devnull and not _OWN.search(path):
                done.append(f"open {path} to write")

    sys.addaudithook(watch)
    return done


def judge(
    name: str, said: str, shown: str, *, ran: bool, left: Sequence[str], named: bool
) -> Outcome:
    from hyptrans.support.errors import clean

    if not said:
        return Outcome(name, False, "the process died or ran out of time")
    seconds, used, words = said.split(" ", 2)
    if ran:
        return Outcome(name, False, f"it ran code; {words}")
    if clean(shown + words) != shown + words:
        return Outcome(name, False, f"it showed {shown[-300:]!r}; {words}")
    if words.startswith("fell"):
        return Outcome(name, False, words)
    if words.startswith("told") and left:
        return Outcome(name, False, f"it left {left[0]} behind; {words}")
    if words.startswith("told") and ("\n" in words or not named):
        return Outcome(name, False, f"it is not one sentence that names the file; {words}")
    slow = float(seconds) > MOST_SECONDS
    if slow or int(used) > MOST_BYTES:
        return Outcome(name, False, f"{seconds} s and {int(used) >> 20} MB; {words}", slow)
    if name == ORDINARY and words != "read":
        return Outcome(name, False, f"it has nothing wrong in it; {words}")
    return Outcome(name, True, words)
