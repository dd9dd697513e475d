"""Downloads whose SHA-256 is noted the first time and checked ever after."""

import http.client
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tqdm import tqdm

from hyptrans.support.errors import UserError
from hyptrans.support.files import read_bytes, sha256, whole_file, write_json
from hyptrans.support.stored import read_json

_PINS = "sha256.json"
_MOST_OF_PINS = 1 << 20
"""Bytes; some hundred for each download."""
_TIMEOUT = 60.0


def file_name(url: str) -> str:
    """What the file behind a URL is called."""
    return Path(urlsplit(url).path).name


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
    path, pins = folder / file_name(url), _read_pins(folder)
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


def _read_pins(folder: Path) -> dict[str, str]:
    """SHA-256 by URL of all that was downloaded into ``folder``."""
    path = folder / _PINS
    if not path.exists():
        return {}
    try:
        return read_json(read_bytes(path, _MOST_OF_PINS).decode())
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove it and the files") from error


def _download(url: str, path: Path) -> None:
    sys.stderr.write(f"downloading {url}\n")
    # not by pooch or requests: they unpack a .tgz that the server calls "encoded" as gzip, and its
    # hash is then not the published one
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as reply, whole_file(path) as file:
            length = int(reply.headers.get("Content-Length") or -1)
            total = length if length > 0 else None
            with tqdm.wrapattr(file, "write", total=total, bytes=True) as counted:
                shutil.copyfileobj(reply, counted, 1 << 18)
            if 0 <= length != file.tell():
                raise UserError(f"{url}: {file.tell()} of {length} bytes came; run again")
    except urllib.error.HTTPError as error:
        raise UserError(f"{url}: the server answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise UserError(
            f"{url} cannot be reached ({error.reason}); without a network use local files "
            "(--archive or --raw)"
        ) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise UserError(f"{url}: the download broke off ({error}); run again") from error
