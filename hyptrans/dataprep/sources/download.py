"""Downloads whose SHA-256 is noted the first time and checked ever after."""

import hashlib
import http.client
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tqdm import tqdm

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, sha256, write_json
from hyptrans.support.stored import read_json
from hyptrans_startup.files import take_lock

_PINS = "sha256.json"
_MOST_OF_PINS = 1 << 20
"""Bytes; some hundred for each download."""
_BLOCK = 1 << 18
_PART, _UNTOLD = ".part", "untold"
"""How the names of unfinished downloads end; of those whose server does not tell one version of a
file from another, which begin anew."""
_BYTES: Any = {"unit": "B", "unit_scale": True}
_TIMEOUT = 60.0


def fetch(url: str, folder: Path, pinned: str | None = None) -> Path:
    """Return the file behind ``url``, downloaded into ``folder`` unless it is there already.

    The hash of the first download is kept in ``folder/sha256.json``; any later copy must have it.

    Args:
        url: where the file is.
        folder: where it goes.
        pinned: the SHA-256 it must have, if the user knows it.

    Raises:
        UserError: no connection, an incomplete file, or another SHA-256.
    """
    path = folder / Path(urlsplit(url).path).name
    folder.mkdir(parents=True, exist_ok=True)
    pins = read_pins(folder)
    if not path.is_file():
        _download(url, path)
    found = sha256(path)
    for expected, whose in ((pinned, "--sha256"), (pins.get(url), "its first download")):
        if expected and expected != found:
            raise UserError(
                f"{path} has SHA-256 {found}, but {whose} says {expected}; "
                "remove the file to download it again"
            )
    if pins.get(url) != found:
        write_json(folder / _PINS, dict(sorted({**pins, url: found}.items())))
    return path


def read_pins(folder: Path) -> dict[str, str]:
    """Return SHA-256 by URL of all that was downloaded into ``folder``.

    Raises:
        UserError: the list is damaged.
    """
    path = folder / _PINS
    if not path.exists():
        return {}
    try:
        found = read_json(read_bytes(path, _MOST_OF_PINS).decode())
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove it and the files") from error
    return found


def check_pin(path: Path, pins: Mapping[str, str]) -> None:
    """Compare a file of the user with the SHA-256 given for its name, if there is one.

    Raises:
        UserError: they differ.
    """
    expected = pins.get(path.name) or pins.get("")
    if expected and (found := sha256(path)) != expected:
        raise UserError(f"{path} has SHA-256 {found}, but --sha256 says {expected}")


def _download(url: str, path: Path) -> None:
    """Download a file; what came before an earlier break is gone on with, if it is of that file."""
    sys.stderr.write(f"downloading {url}\n")
    name = re.compile(rf"{re.escape(path.name)}\.([0-9a-f]{{16}}|{_UNTOLD}){re.escape(_PART)}")
    begun = next((p for p in sorted(path.parent.iterdir()) if name.fullmatch(p.name)), None)
    # nothing tells whether what the server has now is what an untold part is of
    size = begun.stat().st_size if begun and f".{_UNTOLD}." not in begun.name else 0
    # not by pooch or requests: they unpack a .tgz that the server calls "encoded" as gzip, and its
    # hash is then not the published one
    request = urllib.request.Request(url, headers={"Range": f"bytes={size}-"} if size else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as reply:
            part = _part(path, reply.headers)
            if begun and part != begun:
                _discard(begun, path)
            size = size if reply.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            range_given = reply.headers.get("Content-Range") or ""
            if not size or (part == begun and range_given.startswith(f"bytes {size}-")):
                _receive(reply, url, path, part, size)
                return
    except urllib.error.HTTPError as error:
        if not size or error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise UserError(f"{url}: the server answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise UserError(
            f"{url} cannot be reached ({error.reason}); without a network use local files "
            "(--archive or --raw)"
        ) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise UserError(f"{url}: the download broke off ({error}); run again") from error
    if begun:  # it is of another file
        _discard(begun, path)
    _download(url, path)


def _discard(part: Path, path: Path) -> None:
    """Remove a part, unless another run is at it."""
    lock = take_lock(part, path)
    try:
        part.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _part(path: Path, headers: Mapping[str, str]) -> Path:
    """Where the bytes of a reply go until all are there; named after what tells its file."""
    tag = headers.get("ETag") or ""
    if not tag or tag.startswith("W/"):
        tag = headers.get("Last-Modified") or ""
    name = hashlib.sha256(tag.encode()).hexdigest()[:16] if tag else _UNTOLD
    return path.with_name(f"{path.name}.{name}{_PART}")


def _receive(reply: Any, url: str, path: Path, part: Path, size: int) -> None:
    """Write what comes after the first ``size`` bytes; rename the part when it is whole."""
    length = int(reply.headers.get("Content-Length") or -1)
    # links are refused, and a part that another run is at
    with open(take_lock(part, path), "r+b") as file:
        try:
            file.truncate(size)
            file.seek(size)
            with tqdm(total=size + length if length > 0 else None, initial=size, **_BYTES) as bar:
                while block := reply.read(_BLOCK):
                    file.write(block)
                    bar.update(len(block))
            done = file.tell() - size
            if 0 <= length != done:
                raise UserError(f"{url}: {done} of {length} bytes came; run again")
            file.flush()
            os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            if part.name.endswith(f".{_UNTOLD}{_PART}"):
                part.unlink(missing_ok=True)
            raise
